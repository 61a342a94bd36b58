/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ROW_BINARY_H
#define BRAID_ROW_BINARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ClickHouse's RowBinary: the values of rows without separators, numbers in little-endian order,
 * texts and arrays after their length. */

/* A zeroed struct is empty. A failed allocation sets `failed` permanently; callers check it at the
 * end. */
struct row_writer {
	uint8_t *data;
	size_t len, cap;
	bool failed;
};

void row_writer__bytes(struct row_writer *rows, const void *data, size_t len);
void row_writer__length(struct row_writer *rows, uint64_t len); /* length of an array */
void row_writer__text(struct row_writer *rows, const char *text);
#define row_writer__number(rows, type, value) \
	row_writer__bytes(rows, &(type) { value }, sizeof(type))
void row_writer__done(struct row_writer *rows); /* leaves an empty struct */

/* Reads untrusted data from a server. After `failed` all values are 0. */
struct row_reader {
	const uint8_t *at, *end;
	bool failed; /* the data do not match the request */
};

bool row_reader__more(const struct row_reader *rows);
uint64_t row_reader__number(struct row_reader *rows, size_t size); /* @size: 1, 2, 4 or 8 bytes */
double row_reader__double(struct row_reader *rows);
/* Returns the number of elements of at least @size bytes that follow, limited by the remaining
 * bytes. */
size_t row_reader__length(struct row_reader *rows, size_t size);
/* Returns the bytes up to a NUL, if any; the caller owns them. NULL: out of memory, or failed. */
char *row_reader__text(struct row_reader *rows);

#endif
