// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/store/recording_rows.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/profile/sink.h"

/* A text is stored as its length + 1 in a uint32_t (0: NULL) and its bytes without the final
 * NUL. */

static int put(struct recording_rows *rows, const void *from, size_t size)
{
	int code = array__reserve(&rows->bytes, &rows->cap, rows->n_bytes + size, 1);

	if (!code) {
		memcpy(rows->bytes + rows->n_bytes, from, size);
		rows->n_bytes += size;
	}
	return code;
}

static int put_text(struct recording_rows *rows, const char *text)
{
	uint32_t len = text ? strlen(text) : 0, mark = text ? len + 1 : 0;
	int code = put(rows, &mark, sizeof(mark));

	return code || !text ? code : put(rows, text, len);
}

int recording_rows__add(struct recording_rows *rows, const char *format, va_list args)
{
	size_t before = rows->n_bytes;
	uint32_t number;
	int64_t wide;
	int code = 0;

	for (; !code && *format; format++) {
		switch (*format) {
		case 'u':
			number = va_arg(args, uint32_t);
			code = put(rows, &number, sizeof(number));
			break;
		case 'l':
			wide = va_arg(args, int64_t);
			code = put(rows, &wide, sizeof(wide));
			break;
		case 't':
			code = put_text(rows, va_arg(args, const char *));
			break;
		}
	}
	if (code)
		rows->n_bytes = before;
	return code;
}

/* Binds the row at @from to the statement's parameters. Returns the size of the row. */
static size_t bind(sqlite3_stmt *insert, const char *format, const uint8_t *from)
{
	const uint8_t *at = from;
	uint32_t number;
	int64_t wide;
	int i;

	for (i = 1; format[i - 1]; i++) {
		if (format[i - 1] == 'l') {
			memcpy(&wide, at, sizeof(wide));
			at += sizeof(wide);
			if (wide == SINK_NO_OFFSET)
				sqlite3_bind_null(insert, i);
			else
				sqlite3_bind_int64(insert, i, wide);
			continue;
		}
		memcpy(&number, at, sizeof(number));
		at += sizeof(number);
		if (!number)
			sqlite3_bind_null(insert, i);
		else if (format[i - 1] == 'u')
			sqlite3_bind_int64(insert, i, number);
		else
			sqlite3_bind_text(insert, i, (const char *)at, number - 1, SQLITE_STATIC);
		at += format[i - 1] == 't' && number ? number - 1 : 0;
	}
	return at - from;
}

int recording_rows__flush(struct recording_rows *rows, const char *format, sqlite3_stmt *insert)
{
	int code = SQLITE_OK;

	while (rows->n_flushed < rows->n_bytes) {
		size_t size = bind(insert, format, rows->bytes + rows->n_flushed);

		assert(size && size <= rows->n_bytes - rows->n_flushed);
		sqlite3_step(insert);
		code = sqlite3_reset(insert);
		if (code)
			break;
		rows->n_flushed += size;
	}
	sqlite3_clear_bindings(insert); /* they point into rows that are about to be freed */
	return code;
}

void recording_rows__committed(struct recording_rows *rows)
{
	if (rows->n_flushed)
		memmove(rows->bytes, rows->bytes + rows->n_flushed,
			rows->n_bytes - rows->n_flushed);
	rows->n_bytes -= rows->n_flushed;
	rows->n_flushed = 0;
}

void recording_rows__rolled_back(struct recording_rows *rows)
{
	rows->n_flushed = 0;
}

void recording_rows__done(struct recording_rows *rows)
{
	free(rows->bytes);
	*rows = (struct recording_rows) {};
}
