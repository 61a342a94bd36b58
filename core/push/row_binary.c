// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/push/row_binary.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

void row_writer__bytes(struct row_writer *rows, const void *data, size_t len)
{
	if (rows->failed || array__reserve(&rows->data, &rows->cap, rows->len + len, 1)) {
		rows->failed = true;
		return;
	}
	memcpy(rows->data + rows->len, data, len);
	rows->len += len;
}

void row_writer__length(struct row_writer *rows, uint64_t len)
{
	for (; len >= 0x80; len >>= 7)
		row_writer__number(rows, uint8_t, len | 0x80);
	row_writer__number(rows, uint8_t, len);
}

void row_writer__text(struct row_writer *rows, const char *text)
{
	size_t len = strlen(text);

	row_writer__length(rows, len);
	row_writer__bytes(rows, text, len);
}

void row_writer__done(struct row_writer *rows)
{
	free(rows->data);
	*rows = (struct row_writer) {};
}

bool row_reader__more(const struct row_reader *rows)
{
	return !rows->failed && rows->at < rows->end;
}

uint64_t row_reader__number(struct row_reader *rows, size_t size)
{
	uint64_t number = 0;

	if (rows->failed || (size_t)(rows->end - rows->at) < size) {
		rows->failed = true;
		return 0;
	}
	memcpy(&number, rows->at, size);
	rows->at += size;
	return number;
}

double row_reader__double(struct row_reader *rows)
{
	uint64_t bits = row_reader__number(rows, sizeof(bits));
	double number;

	memcpy(&number, &bits, sizeof(number));
	return number;
}

size_t row_reader__length(struct row_reader *rows, size_t size)
{
	uint64_t len = 0, byte = 0x80;

	for (unsigned shift = 0; byte & 0x80 && !rows->failed; shift += 7) {
		byte = row_reader__number(rows, 1);
		if (shift > 56)
			rows->failed = true;
		else
			len |= (byte & 0x7f) << shift;
	}
	if (rows->failed || len > (size_t)(rows->end - rows->at) / size) {
		rows->failed = true;
		return 0;
	}
	return len;
}

char *row_reader__text(struct row_reader *rows)
{
	size_t len = row_reader__length(rows, 1);
	char *text = rows->failed ? NULL : strndup((const char *)rows->at, len);

	if (!rows->failed)
		rows->at += len;
	return text;
}
