/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_ROW_BINARY_H
#define BRAID_ROW_BINARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ClickHouse's RowBinary: values of rows one after the other, numbers in little-endian order, texts
 * and arrays behind their length. */

/* A zeroed struct is empty. Want of memory sticks: look at `failed` at the end. */
struct row_writer {
	uint8_t *data;
	size_t len, cap;
	bool failed;
};

void row_writer__bytes(struct row_writer *rows, const void *data, size_t len);
void row_writer__length(struct row_writer *rows, uint64_t len); /* of an array */
void row_writer__text(struct row_writer *rows, const char *text);
#define row_writer__number(rows, type, value) \
	row_writer__bytes(rows, &(type) { value }, sizeof(type))
void row_writer__done(struct row_writer *rows); /* leaves an empty one */

/* Reads what a server has sent: anything. After `failed` all is 0. */
struct row_reader {
	const uint8_t *at, *end;
	bool failed; /* what is there is not what was asked for */
};

bool row_reader__more(const struct row_reader *rows);
uint64_t row_reader__number(struct row_reader *rows, size_t size); /* bytes: 1, 2, 4 or 8 */
double row_reader__double(struct row_reader *rows);
/* How many elements of at least `size` bytes follow: no more than there is room for. */
size_t row_reader__length(struct row_reader *rows, size_t size);
/* The bytes up to a NUL, if there is one, owned by the caller; NULL: out of memory, or failed. */
char *row_reader__text(struct row_reader *rows);

#endif
