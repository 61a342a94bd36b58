// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/store/recording_db.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/base/util.h"
#include "core/store/recording.h"
#include "core/store/recording_vfs.h"

/* A recording survives kill -9, a full disk, and a copy of the .db file alone:
 *
 * Rows gather in memory, packed (core/store/recording_rows.h). A commit writes them to the file in
 * one transaction. The rollback journal, without which a file is incomplete while SQLite changes
 * it, therefore exists only for some milliseconds of each second. No page goes to the file before
 * SQLite's COMMIT (cache_spill = OFF), so the file itself is torn only during the writes of COMMIT.
 * A recorder that dies then leaves a journal, from which the next reader restores the file. At any
 * other time the file is whole, and readers need neither write permission nor a second file. A
 * write-ahead log would always be needed beside the file.
 *
 * synchronous = OFF: a recording must survive the death of this process, not of the machine, and
 * the page cache does. An fsync() can take longer than the ring buffer lasts. */
#define SETTINGS                                                            \
	"PRAGMA main.journal_mode = DELETE; PRAGMA main.synchronous = OFF;" \
	"PRAGMA cache_spill = OFF; PRAGMA temp_store = MEMORY;"

/* A commit that waits for a reader delays the ring buffer, which then loses samples. The last
 * commit can wait longer. */
#define COMMIT_WAIT_MS 100
#define CLOSE_WAIT_MS  10000

static const char *const write_sql[TABLES_N] = {
#define X(name, format, marks) "INSERT OR REPLACE INTO " #name " VALUES(" marks ")",
	TABLES(X)
#undef X
#define X(name, format, sql) sql,
		CHANGES(X)
#undef X
};

static const char *const formats[TABLES_N] = {
#define X(name, format, sql) format,
	TABLES(X) CHANGES(X)
#undef X
};

extern const char asset_recording_sql_start[];

static bool is_space(int number)
{
	return number == EFBIG || number == EDQUOT || number == ENOSPC;
}

/* Returns the errno for SQLite's error @code. SQLITE_FULL is ENOSPC only. Quotas and size limits
 * are I/O errors, whose number SQLite stores in one of two places. */
static int sqlite_errno(sqlite3 *db, int code)
{
	int number = 0;

	switch (code & 0xff) {
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_BUSY:
		return -EBUSY;
	case SQLITE_READONLY: /* the file was writable, so its name now belongs to another file */
		return -ESTALE;
	case SQLITE_CANTOPEN: /* the journal's name is in use */
		return sqlite3_system_errno(db) ? -sqlite3_system_errno(db) : -EIO;
	case SQLITE_IOERR:
		sqlite3_file_control(db, "main", SQLITE_FCNTL_LAST_ERRNO, &number);
		return is_space(number) || is_space(sqlite3_system_errno(db)) ? -ENOSPC : -EIO;
	default:
		return -EIO;
	}
}

int recording_db__check(const struct recording_db *db, struct err *err)
{
	if (!db->failed)
		return 0;
	return err__set(err, db->failed, "cannot write %s: an earlier write failed",
			db->path ? db->path : "to memory");
}

int recording_db__fail(struct recording_db *db, int code, struct err *err)
{
	int rolled_back = SQLITE_OK;

	if (db->db && !sqlite3_get_autocommit(db->db))
		rolled_back = sqlite3_exec(db->db, "ROLLBACK", NULL, NULL, NULL);
	for (int i = 0; i < TABLES_N; i++)
		recording_rows__rolled_back(&db->rows[i]);
	if (code != -ENOSPC || rolled_back || !db->keeps_trying)
		db->failed = code;
	return err__set(err, code, "cannot write %s: %s", db->path ? db->path : "to memory",
			code == -ESTALE ? "the file was moved or removed" : strerror(-code));
}

int recording_db__insert(struct recording_db *db, enum table table, struct err *err, ...)
{
	va_list args;
	int code;

	if (recording_db__check(db, err))
		return db->failed;
	va_start(args, err);
	code = recording_rows__add(&db->rows[table], formats[table], args);
	va_end(args);
	return code ? recording_db__fail(db, code, err) : 0;
}

static int open_database(const char *path, sqlite3 **ret)
{
	char *name = path ? recording_file__sqlite_path(path) : strdup("braid");
	const char *vfs = recording_vfs__name();
	int code = SQLITE_NOMEM;

	if (name && vfs)
		code = sqlite3_open_v2(name, ret,
				       SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
					       (path ? 0 : SQLITE_OPEN_MEMORY | SQLITE_OPEN_CREATE),
				       path ? vfs : NULL);
	free(name);
	if (code)
		return code;
	sqlite3_busy_timeout(*ret, COMMIT_WAIT_MS);
	return sqlite3_exec(*ret, SETTINGS, NULL, NULL, NULL);
}

/* Commits the schema, from which point the file is a recording. */
static int write_schema(sqlite3 *db)
{
	char mark[128];
	int code;

	snprintf(mark, sizeof(mark), "BEGIN; PRAGMA application_id = %d; PRAGMA user_version = %d;",
		 RECORDING_APPLICATION_ID, RECORDING_SCHEMA_VERSION);
	code = sqlite3_exec(db, mark, NULL, NULL, NULL);
	if (!code)
		code = sqlite3_exec(db, asset_recording_sql_start, NULL, NULL, NULL);
	return code ? code : sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
}

static int prepare(struct recording_db *db)
{
	int i, code = 0;

	for (i = 0; !code && i < TABLES_N; i++)
		code = sqlite3_prepare_v3(db->db, write_sql[i], -1, SQLITE_PREPARE_PERSISTENT,
					  &db->write[i], NULL);
	return code;
}

static int cannot_create(const struct recording_db *db, sqlite3 *sqlite, int code, struct err *err)
{
	int ret = sqlite ? sqlite_errno(sqlite, code) : -ENOMEM;

	return err__set(err, ret, "cannot create %s: %s", db->path ? db->path : "a database",
			strerror(-ret));
}

/* Creates the file. SQLite opens a file and its journal by name, and this file has no name yet. So
 * the contents are built in memory. */
static int create_file(struct recording_db *db, bool force, struct err *err)
{
	sqlite3 *sqlite = NULL;
	sqlite3_int64 size = 0, written = 0;
	unsigned char *bytes = NULL;
	int code = recording_file__claim(db->path, force, &db->claim, err);

	if (code)
		return code;
	code = open_database(NULL, &sqlite);
	if (!code)
		code = write_schema(sqlite);
	if (!code) {
		bytes = sqlite3_serialize(sqlite, "main", &size, 0);
		code = bytes ? 0 : SQLITE_NOMEM;
	}
	if (code) {
		code = cannot_create(db, sqlite, code, err);
	} else {
		written = write(db->claim.file.fd, bytes, size);
		code = written == size ? 0 : written < 0 ? -errno : -ENOSPC;
		if (code)
			err__set(err, code, "cannot create %s: %s", db->path, strerror(-code));
	}
	sqlite3_free(bytes);
	sqlite3_close(sqlite);
	return code;
}

int recording_db__create(struct recording_db *db, const char *path, bool force, struct err *err)
{
	int code;

	*db = (struct recording_db) { .claim = { .file = { .fd = -1 } },
				      .path = path ? strdup(path) : NULL };
	if (path && !db->path)
		return err__set(err, -ENOMEM, "out of memory");
	if (path)
		return create_file(db, force, err);
	code = open_database(NULL, &db->db);
	if (!code)
		code = write_schema(db->db);
	if (!code)
		code = prepare(db);
	return code ? cannot_create(db, db->db, code, err) : 0;
}

/* Moves the file to its path, before the first commit. */
static int take_place(struct recording_db *db, struct err *err)
{
	int code = recording_file__place(db->path, &db->claim, err);

	if (code)
		return code;
	code = open_database(db->path, &db->db);
	if (!code)
		code = prepare(db);
	return code ? cannot_create(db, db->db, code, err) : 0;
}

void recording_db__done(struct recording_db *db)
{
	int i;

	for (i = 0; i < TABLES_N; i++) {
		sqlite3_finalize(db->write[i]);
		recording_rows__done(&db->rows[i]);
	}
	sqlite3_close(db->db);
	recording_file__release(db->path, &db->claim);
	free(db->path);
}

int recording_db__commit(struct recording_db *db, bool last, struct err *err)
{
	int i, code = SQLITE_OK;

	if (recording_db__check(db, err))
		return db->failed;
	if (!db->db)
		code = db->failed = take_place(db, err);
	if (code)
		return code;
	if (last)
		sqlite3_busy_timeout(db->db, CLOSE_WAIT_MS);
	if (sqlite3_get_autocommit(db->db)) /* otherwise the last commit was deferred */
		code = sqlite3_exec(db->db, "BEGIN", NULL, NULL, NULL);
	for (i = 0; !code && i < TABLES_N; i++)
		code = recording_rows__flush(&db->rows[i], formats[i], db->write[i]);
	if (!code)
		code = sqlite3_exec(db->db, "COMMIT", NULL, NULL, NULL);
	if (code == SQLITE_BUSY && !last)
		return 0;
	if (code)
		return recording_db__fail(db, sqlite_errno(db->db, code), err);
	for (i = 0; i < TABLES_N; i++)
		recording_rows__committed(&db->rows[i]);
	if (db->path && !db->claim.settled)
		db->failed = recording_file__settle(db->path, &db->claim, err);
	return db->failed;
}
