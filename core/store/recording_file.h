/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORDING_FILE_H
#define BRAID_RECORDING_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/file_beside.h"

/* The file of a recording seen from outside: its identification and its replacement. */

/* Reads the file's header only. Returns 0 and the schema version, -ENOENT, or another errno of
 * open(). Returns -EBADMSG for any other file (a directory, another format, an empty file). */
int recording_file__identify(const char *path, uint32_t *ret_version, struct err *err);

/* Returns true if a recorder has the file open. */
bool recording_file__is_being_written(const char *path);

/* A new recording before it is at its path. An existing file stays until the first commit succeeds,
 * so that a failed start changes nothing. */
struct recording_claim {
	struct file_beside file; /* the new file; closing it would drop SQLite's locks on it */
	char *aside;		 /* present path of the replaced file; NULL: there was none */
	bool force, keep, placed, settled; /* private */
};

/* Checks whether a recording may go to @path (see recording__create()). Creates an empty file for
 * it, mode 0600, and marks it as being written as long as the claim exists. The caller must call
 * recording_file__release() also on failure. */
int recording_file__claim(const char *path, bool force, struct recording_claim *ret,
			  struct err *err);

/* Repeats the check, sets an existing file aside, and moves the new file to @path. */
int recording_file__place(const char *path, struct recording_claim *claim, struct err *err);

/* Renames the file that was set aside to @path.old, over an older one; removes it if it is not a
 * recording. */
int recording_file__settle(const char *path, struct recording_claim *claim, struct err *err);

/* Ends the claim. Restores the original files unless the claim was settled. */
void recording_file__release(const char *path, struct recording_claim *claim);

/* Returns true if the header requires a write-ahead log, or is unreadable. No recording has a
 * write-ahead log, and SQLite would create one. */
bool recording_file__uses_wal(const char *path);

/* Returns true if the open file is a journal as recorders leave them: empty, or begun and without
 * the name of a third file, which SQLite would remove. */
bool recording_file__is_journal(int fd);

/* Returns @path in a form that SQLite treats only as a file name (unlike ":memory:"). NULL: out of
 * memory. */
char *recording_file__sqlite_path(const char *path);

#endif
