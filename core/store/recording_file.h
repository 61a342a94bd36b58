/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RECORDING_FILE_H
#define BRAID_RECORDING_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/file_beside.h"

/* The file of a recording seen from outside: is it one, may it be replaced. */

/* Looks at the file's header only. 0 and its schema version; -ENOENT; -EBADMSG: no recording
 * (a directory, another format, an empty file); any other errno of open. */
int recording_file__identify(const char *path, uint32_t *ret_version, struct err *err);

/* Does a recorder have it open? */
bool recording_file__is_being_written(const char *path);

/* A new recording on its way to its place. What is there stays until the first commit has
 * succeeded, so that a failed start changes nothing. */
struct recording_claim {
	struct file_beside file; /* the new one; SQLite's locks on it are lost when it is closed */
	char *aside;		 /* where what was at the path is since; NULL: nothing was there */
	bool force, keep, placed, settled; /* private */
};

/* Looks whether a recording may take the place, as recording__create promises, creates an empty
 * file for it, mode 0600, and marks it as being written; the mark lasts as long as the claim.
 * Whatever it returns, recording_file__release has to follow. */
int recording_file__claim(const char *path, bool force, struct recording_claim *ret,
			  struct err *err);

/* The new file takes the place; what is there is set aside. Looks once more. */
int recording_file__place(const char *path, struct recording_claim *claim, struct err *err);

/* What was set aside becomes `path`.old, over an older one, or goes if it was no recording. */
int recording_file__settle(const char *path, struct recording_claim *claim, struct err *err);

/* Ends the claim. Unless it was settled, all is as it was before. */
void recording_file__release(const char *path, struct recording_claim *claim);

/* Does its header say that it has a write-ahead log? No recording has, and SQLite would create one.
 */
bool recording_file__uses_wal(const char *path);

/* Is the open file a journal as recorders leave them: empty, or begun, and without the name of a
 * third file, which SQLite would remove? */
bool recording_file__is_journal(int fd);

/* `path` in a form that SQLite takes for nothing but a file name (":memory:"). NULL: no memory. */
char *recording_file__sqlite_path(const char *path);

#endif
