/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORDING_DB_H
#define BRAID_RECORDING_DB_H

#include <sqlite3.h>
#include <stdbool.h>

#include "core/base/err.h"
#include "core/store/recording_file.h"
#include "core/store/recording_rows.h"

/* The database of a recording that is being written: rows, commits, and their failures. It contains
 * the tables' names and widths, but not the meaning of columns. */

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
	X(attribute, "utt",      "?,?,?")                  \
	X(context,  "utt",       "?,?,?")                  \
	X(label,    "utt",       "?,?,?")                  \
	X(sample,   "lluuluulllluuulullu", "?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?") \
	X(counter,  "tl",        "?,?")
/* clang-format on */

/* Changes of rows that may already be in the file: X(name, letters, statement). They follow all new
 * rows of the same commit. */
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
	sqlite3 *db; /* NULL before the first commit, unless path is NULL */
	sqlite3_stmt *write[TABLES_N];
	struct recording_rows rows[TABLES_N]; /* rows since the last commit */
	int failed;			      /* result of the first failed call */
	bool keeps_trying; /* a full disk is not final: the next commit may succeed */
};

/* As recording__create(). The caller must call recording_db__done() also on failure. */
int recording_db__create(struct recording_db *db, const char *path, bool force, struct err *err);

/* Frees everything without a commit. Before the first successful commit, restores all files. */
void recording_db__done(struct recording_db *db);

/* Returns 0, or the error of an earlier failure, after which nothing can be written. */
int recording_db__check(const struct recording_db *db, struct err *err);

/* Marks the recording as failed, rolls back to the last commit and sets the message. Returns
 * @code. */
int recording_db__fail(struct recording_db *db, int code, struct err *err);

/* Adds a row to the next commit. The arguments match the table's letters. */
int recording_db__insert(struct recording_db *db, enum table table, struct err *err, ...);

/* Commits the rows. A reader may delay a commit. A commit that waits too long is deferred to the
 * next call, without an error; the last commit waits longer, and then fails. With `keeps_trying`
 * the state is unchanged after -ENOSPC, and the call may be repeated. */
int recording_db__commit(struct recording_db *db, bool last, struct err *err);

#endif
