/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_SQLITE_TEXT_H
#define BRAID_TESTS_SQLITE_TEXT_H

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

/* Returns the result of query @sql on the file @path as text: columns separated by '|', rows by
 * blanks, NULL as "-"; or SQLite's error. The text is borrowed until the next call. */
static inline const char *sqlite_text(const char *path, const char *sql)
{
	static char text[8192];
	sqlite3_stmt *stmt = NULL;
	size_t len = 0;
	sqlite3 *db;
	int i, code;

	text[0] = '\0';
	code = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL);
	if (!code)
		code = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
	while (!code && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
		for (i = 0; i < sqlite3_column_count(stmt) && len < sizeof(text); i++) {
			const char *value = (const char *)sqlite3_column_text(stmt, i);

			len += snprintf(text + len, sizeof(text) - len, "%s%s",
					i ? "|" : (len ? " " : ""), value ? value : "-");
		}
		code = 0;
	}
	if (code && code != SQLITE_DONE)
		snprintf(text, sizeof(text), "error: %s", sqlite3_errmsg(db));
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	return text;
}

#endif
