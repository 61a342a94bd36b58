/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LOAD_FILE_H
#define BRAID_LOAD_FILE_H

#include <sqlite3.h>
#include <stdint.h>

#include "core/base/err.h"

/* Opens a recording for reading, with SQLite set up for untrusted files. Begins a transaction, so
 * that all reads see one commit even if the recorder goes on. *@ret_version is the version of the
 * schema. Errors are those of load__profile(). */
int load_file__open(const char *path, sqlite3 **ret_db, uint32_t *ret_version, struct err *err);

/* Returns the errno for SQLite's error @code, -EBADMSG for damage. Sets @err to a message that
 * names the file. */
int load_file__failed(const char *path, int code, struct err *err);

#endif
