/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LOAD_FILE_H
#define BRAID_LOAD_FILE_H

#include <sqlite3.h>
#include <stdint.h>

#include "core/base/err.h"

/* Opens a recording for reading, with SQLite set up for files that one does not trust, and begins
 * a transaction, so that all is read from one commit even if the recorder goes on. Errors as
 * load__profile. `ret_version`: of its schema. */
int load_file__open(const char *path, sqlite3 **ret_db, uint32_t *ret_version, struct err *err);

/* The errno for SQLite's error code, -EBADMSG for damage. Sets `err`, naming the file. */
int load_file__failed(const char *path, int code, struct err *err);

#endif
