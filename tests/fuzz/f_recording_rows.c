// SPDX-License-Identifier: GPL-2.0-or-later
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/out/output.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/recording_seed.h"

#define COLUMNS_MAX 256
#define EDITS_MAX   16

/* A change of one value. */
struct edit {
	uint8_t column; /* number among all columns of all tables */
	uint8_t row;	/* number in the table, from its first row on */
	uint8_t type;
	uint8_t writer; /* first edit only: the writer that shows the profile */
	uint32_t value;
};

enum edit_type { EDIT_SMALL, EDIT_LARGE, EDIT_NULL, EDIT_REAL, EDIT_TEXT, EDIT_BLOB, EDIT_TYPES_N };

static struct base {
	uint8_t *data; /* the recording that is changed */
	size_t size;
	char *updates[COLUMNS_MAX];
	size_t n_updates;
} base;

static sqlite3 *open_base(void)
{
	sqlite3 *db = NULL;
	uint8_t *copy = sqlite3_malloc64(base.size);

	if (copy)
		memcpy(copy, base.data, base.size);
	if (!copy || sqlite3_open(":memory:", &db) ||
	    sqlite3_deserialize(db, "main", copy, base.size, base.size,
				SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE))
		fuzz__die("the recording cannot be opened in memory");
	return db;
}

/* Makes a statement for each column, for any schema. */
static void make_base(void)
{
	static const char columns[] =
		"SELECT printf('UPDATE \"%w\" SET \"%w\" = ?1 WHERE (%s) = (SELECT %s FROM \"%w\""
		" LIMIT 1 OFFSET ?2)', t.name, c.name, k.list, k.list, t.name)"
		" FROM sqlite_schema AS t, pragma_table_info(t.name) AS c,"
		" (SELECT m.name, CASE WHEN m.sql LIKE '%WITHOUT ROWID%' THEN"
		"  (SELECT group_concat(name) FROM pragma_table_info(m.name) WHERE pk)"
		"  ELSE 'rowid' END AS list FROM sqlite_schema AS m) AS k"
		" WHERE t.type = 'table' AND k.name = t.name ORDER BY 1";
	sqlite3_stmt *stmt = NULL;
	sqlite3 *db;

	base.data = recording_seed__make(&base.size);
	db = open_base();
	if (sqlite3_prepare_v2(db, columns, -1, &stmt, NULL))
		fuzz__die("the columns of the recording: %s", sqlite3_errmsg(db));
	while (sqlite3_step(stmt) == SQLITE_ROW && base.n_updates < COLUMNS_MAX)
		base.updates[base.n_updates++] = strdup((char *)sqlite3_column_text(stmt, 0));
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	if (!base.n_updates)
		fuzz__die("the recording has no columns");
}

static void bind_value(sqlite3_stmt *stmt, const struct edit *edit)
{
	char text[16];

	switch (edit->type % EDIT_TYPES_N) {
	case EDIT_SMALL:
		sqlite3_bind_int64(stmt, 1, (int32_t)edit->value % 64);
		break;
	case EDIT_LARGE:
		sqlite3_bind_int64(stmt, 1, (uint64_t)edit->value << 32 | (edit->value ^ 1));
		break;
	case EDIT_REAL:
		sqlite3_bind_double(stmt, 1, edit->value * 1e30);
		break;
	case EDIT_TEXT:
		snprintf(text, sizeof(text), "%u", edit->value);
		sqlite3_bind_text(stmt, 1, text, -1, SQLITE_TRANSIENT);
		break;
	case EDIT_BLOB:
		sqlite3_bind_blob(stmt, 1, &edit->value, sizeof(edit->value), SQLITE_TRANSIENT);
		break;
	}
}

/* Changes a value. The row stays unchanged if the change would violate a constraint. */
static int apply(sqlite3 *db, const struct edit *edit)
{
	sqlite3_stmt *stmt = NULL;

	if (sqlite3_prepare_v2(db, base.updates[edit->column % base.n_updates], -1, &stmt, NULL))
		fuzz__die("a change of the recording: %s", sqlite3_errmsg(db));
	bind_value(stmt, edit);
	sqlite3_bind_int(stmt, 2, edit->row % 16);
	sqlite3_step(stmt);
	sqlite3_finalize(stmt);
	return sqlite3_changes(db);
}

static uint8_t writer;

static void show(const struct profile *profile)
{
	static int (*const writers[])(const struct profile *, const struct output_opts *,
				      FILE *) = { output__table,     output__tree,
						  output__folded,    output__flame_html,
						  output__flame_svg, output__pprof,
						  output__histogram, output__speedscope,
						  output__perf,	     output__dot };
	const struct output_opts opts = { .annotate = true };
	static FILE *nowhere;

	if (!nowhere)
		nowhere = fopen("/dev/null", "we");
	if (nowhere)
		writers[writer % ARRAY_SIZE(writers)](profile, &opts, nowhere);
}

/* Reads a sound file, in whose rows values are changed arbitrarily. */
bool target__run(const uint8_t *data, size_t size)
{
	sqlite3_int64 file_size = 0;
	uint8_t *file;
	struct edit edit;
	int changes = 0;
	sqlite3 *db;
	bool loaded;

	if (!base.data)
		make_base();
	writer = size > offsetof(struct edit, writer) ? data[offsetof(struct edit, writer)] : 0;
	db = open_base();
	sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
	for (size_t i = 0; i < EDITS_MAX && (i + 1) * sizeof(edit) <= size; i++) {
		memcpy(&edit, data + i * sizeof(edit), sizeof(edit));
		changes += apply(db, &edit);
	}
	sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	file = sqlite3_serialize(db, "main", &file_size, 0);
	if (!file)
		fuzz__die("the changed recording cannot be written");
	loaded = recording_seed__load(fuzz__file(file, file_size), show);
	fuzz__file(NULL, 0);
	sqlite3_free(file);
	sqlite3_close(db);
	return changes && loaded;
}

void target__seeds(void)
{
	make_base();
	for (size_t i = 0; i < base.n_updates; i++) {
		const struct edit edit = { .column = i, .writer = i, .value = 2 };

		if (strstr(base.updates[i], "\"value\"") || strstr(base.updates[i], "\"line\""))
			fuzz__seed(&edit, sizeof(edit));
	}
}
