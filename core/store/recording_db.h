/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORDING_DB_H
#define BRAID_RECORDING_DB_H

#include <sqlite3.h>
#include <stdbool.h>

#include "core/base/err.h"
#include "core/store/recording_file.h"
#include "core/store/recording_rows.h"

/* The database under a recording that is being written: rows in, commits, and what remains when
 * either fails. Knows the tables' names and widths, and nothing of what they mean. */

/* All tables of core/store/assets/recording.sql: X(name, a letter per column as in
 * core/store/recording_rows.h, a mark per column). */
/* clang-format off */
#define TABLES(X)                                          \
	X(meta,     "tt",        "?,?")                    \
	X(kind,     "ltt",       "?,?,?")                  \
	X(event,    "utt",       "?,?,?")                  \
	X(process,  "uuultttt",  "?,?,?,?,?,?,?,?")        \
	X(thread,   "uuut",      "?,?,?,?")                \
	X(source,   "utttt",     "?,?,?,?,?")              \
	X(image,    "utt",       "?,?,?")                  \
	X(function, "utt",       "?,?,?")                  \
	X(frame,    "uluulu",    "?,?,?,?,?,?")            \
	X(location, "ulluu",     "?,?,?,?,?")              \
	X(node,     "uuulu",     "?,?,?,?,?")              \
	X(sample,   "lluuluulllluuulull", "?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?") \
	X(counter,  "tl",        "?,?")
/* clang-format on */

/* Changes of rows that may be in the file already: X(name, letters, statement). They come after all
 * new rows of the same commit. */
#define CHANGES(X)                                                           \
	X(frame_is_loop, "u", "UPDATE frame SET loop = 1 WHERE id = ?")      \
	X(thread_is_called, "tu", "UPDATE thread SET name = ? WHERE id = ?") \
	X(process_is_called, "ttu", "UPDATE process SET name = ?, command = ? WHERE id = ?")

enum table {
#define X(name, format, sql) TABLE_##name,
	TABLES(X) CHANGES(X)
#undef X
		TABLES_N
};

struct recording_db {
	char *path;
	struct recording_claim claim;
	sqlite3 *db; /* NULL until the first commit, if there is a path */
	sqlite3_stmt *write[TABLES_N];
	struct recording_rows rows[TABLES_N]; /* since the last commit */
	int failed;			      /* what the first failed call returned */
	bool keeps_trying; /* a full disk is no failure: the next commit may succeed */
};

/* As recording__create. Call recording_db__done in any case. */
int recording_db__create(struct recording_db *db, const char *path, bool force, struct err *err);

/* Frees everything and commits nothing. Before the first commit has succeeded, it leaves all files
 * as they were before. */
void recording_db__done(struct recording_db *db);

/* 0, or the error that this recording failed with: nothing more can be written. */
int recording_db__check(const struct recording_db *db, struct err *err);

/* Marks the recording as failed, rolls back to the last commit and says so. Returns `code`. */
int recording_db__fail(struct recording_db *db, int code, struct err *err);

/* One row, for the next commit; its columns as the table's letters say. */
int recording_db__insert(struct recording_db *db, enum table table, struct err *err, ...);

/* A reader may hold up a commit. While recording, one that waited too long is put off to the next
 * call, without an error; the last one waits longer, and then fails. If the recording keeps trying,
 * all is as before after -ENOSPC, and the call may be repeated. */
int recording_db__commit(struct recording_db *db, bool last, struct err *err);

#endif
