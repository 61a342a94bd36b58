// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/store/load_file.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/store/recording.h"
#include "core/store/recording_file.h"
#include "core/store/recording_vfs.h"

/* time to wait for the end of a commit, or for another reader that restores the file */
#define WAIT_MS 5000

/* maximum bytes of a text or a row; longer ones are damage */
#define VALUE_BYTES_MAX (1 << 20)

int load_file__failed(const char *path, int code, struct err *err)
{
	switch (code & 0xff) {
	case SQLITE_NOMEM:
		return err__set(err, -ENOMEM, "out of memory");
	case SQLITE_BUSY:
		return err__set(err, -EBUSY, "%s is locked by another program", path);
	case SQLITE_CANTOPEN:
	case SQLITE_READONLY:
	case SQLITE_PERM:
		return err__set(err, -EACCES, "cannot read %s: %s", path, sqlite3_errstr(code));
	default:
		return err__set(err, -EBADMSG, "%s is damaged: %s", path, sqlite3_errstr(code));
	}
}

/* Returns file:PATH?immutable=1, in which all but the plainest bytes are encoded. The caller owns
 * it. */
static char *immutable_uri(const char *path)
{
	char *uri = malloc(3 * strlen(path) + sizeof("file:./?immutable=1")), *to = uri;

	if (!uri)
		return NULL;
	to += sprintf(to, "file:%s", *path == '/' ? "" : "./");
	for (; *path; path++) {
		if (strchr("/._-", *path) || (*path >= '0' && *path <= '9') ||
		    (*path >= 'a' && *path <= 'z') || (*path >= 'A' && *path <= 'Z'))
			*to++ = *path;
		else
			to += sprintf(to, "%%%02X", (uint8_t)*path);
	}
	strcpy(to, "?immutable=1");
	return uri;
}

/* Limit of steps of SQLite's virtual machine for one statement. A row needs about ten steps, and
 * occupies about ten bytes in the file. A damaged b-tree can have an endless number of rows. */
#define STEPS_MIN      200000
#define STEPS_PER_BYTE 2

static int give_up(void *ctx)
{
	(void)ctx;
	return 1;
}

static void limit_steps(sqlite3 *db, const char *path)
{
	struct stat st;

	if (!stat(path, &st) && st.st_size < (INT_MAX - STEPS_MIN) / STEPS_PER_BYTE)
		sqlite3_progress_handler(db, STEPS_MIN + STEPS_PER_BYTE * (int)st.st_size, give_up,
					 NULL);
}

/* Sets limits and begins a transaction. The schema may contain nothing in place of a table: a view
 * can be an endless loop. See https://www.sqlite.org/security.html, "Untrusted SQLite Database
 * Files". */
static int begin(sqlite3 *db, const char *path)
{
	limit_steps(db, path);
	sqlite3_busy_timeout(db, WAIT_MS);
	sqlite3_limit(db, SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX);
	sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_drop_modules(db, NULL);
	return sqlite3_exec(
		db, "PRAGMA cell_size_check = ON; BEGIN; SELECT 1 FROM sqlite_schema LIMIT 1", NULL,
		NULL, NULL);
}

static int try_open(const char *path, const char *name, int flags, sqlite3 **ret_db)
{
	const char *vfs = recording_vfs__name();
	sqlite3 *db = NULL;
	int code;

	if (!name || !vfs)
		return SQLITE_NOMEM;
	code = sqlite3_open_v2(name, &db, flags | SQLITE_OPEN_NOMUTEX, vfs);
	if (!code)
		code = begin(db, path);
	if (code) {
		sqlite3_close(db);
		db = NULL;
	}
	*ret_db = db;
	return code;
}

static bool needs_writing(int code)
{
	return (code & 0xff) == SQLITE_READONLY || (code & 0xff) == SQLITE_CANTOPEN;
}

/* A recorder that is killed during a commit leaves a journal, from which SQLite restores the file.
 * That requires write permission and a journal of the user's own (core/store/recording_vfs.h).
 * Otherwise the file is read without the journal, and is nearly always whole: see
 * core/store/recording_db.c. */
static int open_any(const char *path, sqlite3 **ret_db)
{
	char *name = recording_file__sqlite_path(path);
	char *uri = immutable_uri(path);
	bool wal = recording_file__uses_wal(path);
	int code = SQLITE_READONLY;

	if (!wal)
		code = try_open(path, name, SQLITE_OPEN_READONLY, ret_db);
	if (needs_writing(code) && !wal)
		code = try_open(path, name, SQLITE_OPEN_READWRITE, ret_db);
	if (needs_writing(code))
		code = try_open(path, uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, ret_db);
	free(uri);
	free(name);
	return code;
}

int load_file__open(const char *path, sqlite3 **ret_db, uint32_t *ret_version, struct err *err)
{
	uint32_t version;
	int code = recording_file__identify(path, &version, err);

	if (code)
		return code;
	if (!version || version > RECORDING_SCHEMA_VERSION)
		return err__set(err, -EBADMSG,
				"%s has format version %u; this braid reads versions up to %d",
				path, version, RECORDING_SCHEMA_VERSION);
	*ret_version = version;
	code = open_any(path, ret_db);
	return code ? load_file__failed(path, code, err) : 0;
}
