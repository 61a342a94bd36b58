/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORDING_ROWS_H
#define BRAID_RECORDING_ROWS_H

#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Rows of one table that wait for the next commit, packed. A zeroed struct has none. */
struct recording_rows {
	uint8_t *bytes;
	size_t n_bytes, cap;
};

/* Adds a row; a letter of `format` per column, the same at each call: u uint32_t, l int64_t, t
 * text, each NULL if it stands for none: 0, SINK_NO_OFFSET, NULL. 0 or -ENOMEM, with the rows
 * as they were. */
int recording_rows__add(struct recording_rows *rows, const char *format, va_list args);

/* Executes an INSERT statement with a parameter per column for each row, in their order, and takes
 * them out. Returns SQLITE_OK, or what the first one returned that failed: that one and those
 * behind it stay. */
int recording_rows__flush(struct recording_rows *rows, const char *format, sqlite3_stmt *insert);

void recording_rows__done(struct recording_rows *rows); /* leaves none */

#endif
