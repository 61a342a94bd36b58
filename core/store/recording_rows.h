/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORDING_ROWS_H
#define BRAID_RECORDING_ROWS_H

#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Packed rows of one table for the next commit. Rows stay until a commit succeeds, so that it can
 * be repeated. A zeroed struct is empty. */
struct recording_rows {
	uint8_t *bytes;
	size_t n_bytes, cap;
	size_t n_flushed; /* bytes of the rows that are in the transaction */
};

/* Adds a row. @format has a letter per column, the same at each call: u uint32_t, l int64_t, t
 * text. The values 0, SINK_NO_OFFSET and NULL respectively become SQL's NULL. Returns 0, or -ENOMEM
 * with the rows unchanged. */
int recording_rows__add(struct recording_rows *rows, const char *format, va_list args);

/* Executes @insert, which has a parameter per column, for each row that is not in the transaction
 * yet, in order. Returns SQLITE_OK, or the error of the first failure. */
int recording_rows__flush(struct recording_rows *rows, const char *format, sqlite3_stmt *insert);

/* Update the rows after the transaction: recording_rows__committed() removes the flushed rows,
 * recording_rows__rolled_back() marks all rows as not flushed. */
void recording_rows__committed(struct recording_rows *rows);
void recording_rows__rolled_back(struct recording_rows *rows);

void recording_rows__done(struct recording_rows *rows); /* leaves an empty struct */

#endif
