/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORDING_DB_H
#define BRAID_RECORDING_DB_H

#include <sqlite3.h>
#include <stdbool.h>

#include "core/err.h"

/* The database under a recording that is being written: rows in, commits, and what remains when
 * either fails. Knows the tables' names and widths, and nothing of what they mean. */

/* All tables of core/assets/recording.sql: X(name, a mark per column). */
#define TABLES(X)                    \
	X(meta, "?,?")               \
	X(kind, "?,?,?")             \
	X(process, "?,?,?,?,?,?")    \
	X(thread, "?,?,?,?")         \
	X(source, "?,?,?,?,?")       \
	X(image, "?,?,?")            \
	X(function, "?,?,?")         \
	X(frame, "?,?,?,?,?")        \
	X(location, "?,?,?,?,?")     \
	X(node, "?,?,?,?")           \
	X(sample, "?,?,?,?,?,?,?,?") \
	X(counter, "?,?")

enum table {
#define X(name, marks) TABLE_##name,
	TABLES(X)
#undef X
		TABLES_N
};

struct recording_db {
	char *path;
	int fd;	    /* of recording_file__claim */
	bool moved; /* and what else it told */
	sqlite3 *db;
	sqlite3_stmt *insert[TABLES_N];
	int failed; /* what the first failed call returned */
};

/* As recording__create. Call recording_db__done in any case. */
int recording_db__create(struct recording_db *db, const char *path, bool force, struct err *err);

/* Removes the file and puts back the one that was there. Then call recording_db__done. */
void recording_db__abandon(struct recording_db *db);

/* Frees everything and commits nothing. */
void recording_db__done(struct recording_db *db);

/* 0, or the error that this recording failed with: nothing more can be written. */
int recording_db__check(const struct recording_db *db, struct err *err);

/* Marks the recording as failed, rolls back to the last commit and says so. Returns `code`. */
int recording_db__fail(struct recording_db *db, int code, struct err *err);

/* One row; a letter of `format` per column: u uint32_t, l int64_t, t text, each NULL if it stands
 * for none: 0, RECORDING_NO_OFFSET, NULL. */
int recording_db__insert(struct recording_db *db, enum table table, struct err *err,
			 const char *format, ...);

/* A reader may hold up a commit. While recording, one that waited too long is put off to the next
 * call, without an error; the last one waits longer, and then fails. */
int recording_db__commit(struct recording_db *db, bool last, struct err *err);

#endif
