/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORDING_ROWS_H
#define BRAID_RECORDING_ROWS_H

#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Rows of one table that wait for the next commit, packed. A zeroed struct has none. They stay
 * until that has succeeded, so that it can be tried again. */
struct recording_rows {
	uint8_t *bytes;
	size_t n_bytes, cap;
	size_t n_flushed; /* bytes of those that are in the transaction */
};

/* Adds a row; a letter of `format` per column, the same at each call: u uint32_t, l int64_t, t
 * text, each NULL if it stands for none: 0, SINK_NO_OFFSET, NULL. 0 or -ENOMEM, with the rows
 * as they were. */
int recording_rows__add(struct recording_rows *rows, const char *format, va_list args);

/* Executes an INSERT statement with a parameter per column for each row that is not in the
 * transaction yet, in their order. Returns SQLITE_OK, or what the first one returned that failed.
 */
int recording_rows__flush(struct recording_rows *rows, const char *format, sqlite3_stmt *insert);

/* The transaction was committed: what was flushed goes. Or it was rolled back: none was. */
void recording_rows__committed(struct recording_rows *rows);
void recording_rows__rolled_back(struct recording_rows *rows);

void recording_rows__done(struct recording_rows *rows); /* leaves none */

#endif
