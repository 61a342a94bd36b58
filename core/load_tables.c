// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/load_tables.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/intern.h"
#include "core/load_file.h"
#include "core/merge.h"
#include "core/recording.h"
#include "core/util.h"

/* Stack addresses come as offsets from the base of their stack: any base does, if it is so high
 * that none gets below 0. */
#define STACK_BASE	 (1ULL << 62)
#define STACK_OFFSET_MAX (1LL << 61)

struct reader {
	const char *table, *columns; /* the first one ascends from row to row */
	int (*row)(struct load_tables *tables, sqlite3_stmt *stmt);
};

/* Only integers count, and only those in range. */
static int64_t column_i64(sqlite3_stmt *stmt, int column, int64_t otherwise)
{
	return sqlite3_column_type(stmt, column) == SQLITE_INTEGER
		       ? sqlite3_column_int64(stmt, column)
		       : otherwise;
}

static uint32_t column_u32(sqlite3_stmt *stmt, int column)
{
	int64_t value = column_i64(stmt, column, 0);

	return value < 0 || value > UINT32_MAX ? 0 : value;
}

static uint64_t column_count(sqlite3_stmt *stmt, int column)
{
	int64_t value = column_i64(stmt, column, 0);

	return value < 0 ? 0 : value;
}

static uint8_t column_kind(sqlite3_stmt *stmt, int column)
{
	int64_t value = column_i64(stmt, column, KINDS_MAX);

	return value < 0 || value > KINDS_MAX ? KINDS_MAX : value;
}

static uint32_t kind_bit(uint8_t kind)
{
	return kind < KINDS_MAX ? 1u << kind : 0;
}

/* "" unless it is a text. */
static const char *column_text(sqlite3_stmt *stmt, int column)
{
	const char *text = NULL;

	if (sqlite3_column_type(stmt, column) == SQLITE_TEXT)
		text = (const char *)sqlite3_column_text(stmt, column);
	return text ? text : "";
}

static int add_text(struct load_tables *tables, const char *text, load_text *ret)
{
	size_t size = strlen(text) + 1;

	if (size == 1) {
		*ret = 0;
		return 0;
	}
	if (array__reserve(&tables->texts, &tables->cap_texts, tables->n_texts + size, 1))
		return -ENOMEM;
	memcpy(tables->texts + tables->n_texts, text, size);
	*ret = tables->n_texts;
	tables->n_texts += size;
	return 0;
}

/* A new row at the end, zeroed; NULL: out of memory. `LOAD_NONE` is no index, so there are fewer
 * rows than that. */
#define add_row(table)                                                                            \
	((table)->n >= LOAD_NONE || array__reserve(&(table)->rows, &(table)->cap, (table)->n + 1, \
						   sizeof(*(table)->rows))                        \
		 ? NULL                                                                           \
		 : memset(&(table)->rows[(table)->n++], 0, sizeof(*(table)->rows)))

static int compare_id(const void *key, const void *row)
{
	uint32_t a = *(const uint32_t *)key, b;

	memcpy(&b, row, sizeof(b));
	return a < b ? -1 : a > b;
}

/* The row with that id; braid's own files have all ids from 1 on. */
static uint32_t find_id(const void *rows, size_t n, size_t size, uint32_t id)
{
	const char *at = rows, *found;

	if (!id || !n)
		return LOAD_NONE;
	if (id <= n && !compare_id(&id, at + (id - 1) * size))
		return id - 1;
	found = bsearch(&id, rows, n, size, compare_id);
	return found ? (found - at) / size : LOAD_NONE;
}
#define find_row(table, id) find_id((table)->rows, (table)->n, sizeof(*(table)->rows), (id))

static double number_of(const char *text)
{
	double number = strtod(text, NULL);

	return isfinite(number) && number > 0 ? number : 0;
}

static int meta_row(struct load_tables *tables, sqlite3_stmt *stmt)
{
	const char *key = column_text(stmt, 1), *value = column_text(stmt, 2);

	if (!strcmp(key, "target"))
		return add_text(tables, value, &tables->target);
	if (!strcmp(key, "duration_s"))
		tables->duration_s = number_of(value);
	else if (!strcmp(key, "frequency_hz"))
		tables->frequency_hz = number_of(value);
	return 0;
}

static int counter_row(struct load_tables *tables, sqlite3_stmt *stmt)
{
	struct load_counter *row = add_row(&tables->counters);

	if (!row)
		return -ENOMEM;
	row->value = column_count(stmt, 2);
	return add_text(tables, column_text(stmt, 1), &row->name);
}

static int kind_row(struct load_tables *tables, sqlite3_stmt *stmt)
{
	uint8_t kind = column_kind(stmt, 0);

	if (kind == KINDS_MAX)
		return 0;
	if (add_text(tables, column_text(stmt, 1), &tables->kind_names[kind]))
		return -ENOMEM;
	return add_text(tables, column_text(stmt, 2), &tables->kind_suffixes[kind]);
}

static int process_row(struct load_tables *tables, sqlite3_stmt *stmt)
{
	struct load_process *row = add_row(&tables->processes);

	if (!row)
		return -ENOMEM;
	row->id = column_u32(stmt, 0);
	row->pid = column_u32(stmt, 1);
	return add_text(tables, column_text(stmt, 2), &row->name);
}

static int thread_row(struct load_tables *tables, sqlite3_stmt *stmt)
{
	struct load_thread *row = add_row(&tables->threads);

	if (!row)
		return -ENOMEM;
	row->id = column_u32(stmt, 0);
	row->process = find_row(&tables->processes, column_u32(stmt, 1));
	row->tid = column_u32(stmt, 2);
	return add_text(tables, column_text(stmt, 3), &row->name);
}

static int image_row(struct load_tables *tables, sqlite3_stmt *stmt)
{
	struct load_image *row = add_row(&tables->images);
	const char *path = column_text(stmt, 1), *slash = strrchr(path, '/');

	if (!row)
		return -ENOMEM;
	row->id = column_u32(stmt, 0);
	return add_text(tables, slash ? slash + 1 : path, &row->name);
}

static int function_row(struct load_tables *tables, sqlite3_stmt *stmt)
{
	struct load_function *row = add_row(&tables->functions);

	if (!row)
		return -ENOMEM;
	row->id = column_u32(stmt, 0);
	if (add_text(tables, column_text(stmt, 1), &row->name))
		return -ENOMEM;
	return add_text(tables, column_text(stmt, 2), &row->file);
}

static int frame_row(struct load_tables *tables, sqlite3_stmt *stmt)
{
	struct load_frame *row = add_row(&tables->frames);

	if (!row)
		return -ENOMEM;
	row->id = column_u32(stmt, 0);
	row->kind = column_kind(stmt, 1);
	row->kinds = kind_bit(row->kind);
	row->image = find_row(&tables->images, column_u32(stmt, 2));
	row->address = column_i64(stmt, 3, 0);
	row->loop = column_i64(stmt, 4, 0) == 1;
	row->anonymous = sqlite3_column_type(stmt, 2) == SQLITE_NULL;
	return 0;
}

/* Rows come by frame, then level, so that those of a frame lie together. */
static int location_row(struct load_tables *tables, sqlite3_stmt *stmt)
{
	uint32_t frame = find_row(&tables->frames, column_u32(stmt, 0));
	struct load_frame *owner;
	struct load_location *row;

	if (frame == LOAD_NONE)
		return 0;
	owner = &tables->frames.rows[frame];
	if (owner->n_locations == LOAD_LEVEL_MAX)
		return 0;
	row = add_row(&tables->locations);
	if (!row)
		return -ENOMEM;
	if (!owner->n_locations++)
		owner->location = row - tables->locations.rows;
	row->kind = column_kind(stmt, 1);
	row->function = find_row(&tables->functions, column_u32(stmt, 2));
	row->line = column_u32(stmt, 3);
	owner->kinds |= kind_bit(row->kind);
	return 0;
}

static int node_row(struct load_tables *tables, sqlite3_stmt *stmt)
{
	struct load_node *row = add_row(&tables->nodes);
	int64_t offset = column_i64(stmt, 3, INT64_MIN);
	uint32_t parent = column_u32(stmt, 1);

	if (!row)
		return -ENOMEM;
	row->id = column_u32(stmt, 0);
	if (parent >= row->id)
		return -EBADMSG; /* a cycle, maybe */
	row->frame = find_row(&tables->frames, column_u32(stmt, 2));
	if (row->frame != LOAD_NONE)
		row->kinds = tables->frames.rows[row->frame].kinds;
	if (offset > -STACK_OFFSET_MAX && offset < STACK_OFFSET_MAX)
		row->address = STACK_BASE - offset;
	else if (offset == RECORDING_APART)
		row->address = MERGE_APART;
	row->depth = 1;
	row->parent = find_row(&tables->nodes, parent);
	if (row->parent != LOAD_NONE) {
		row->kinds |= tables->nodes.rows[row->parent].kinds;
		row->depth += tables->nodes.rows[row->parent].depth;
	}
	return row->depth > LOAD_DEPTH_MAX ? -EBADMSG : 0;
}

static int sample_row(struct load_tables *tables, sqlite3_stmt *stmt)
{
	uint32_t thread = find_row(&tables->threads, column_u32(stmt, 1));
	uint32_t native = find_row(&tables->nodes, column_u32(stmt, 2));
	uint32_t runtime = find_row(&tables->nodes, column_u32(stmt, 3));
	uint64_t weight = column_count(stmt, 4);
	struct load_stack *row;
	uint32_t *id;

	if (tables->wanted && (thread == LOAD_NONE || !tables->wanted[thread]))
		return 0;
	id = intern__at(tables->stack_ids, (uint64_t)native << 32 | runtime, 0);
	if (!id)
		return -ENOMEM;
	if (!*id) {
		row = add_row(&tables->stacks);
		if (!row)
			return -ENOMEM;
		row->native = native;
		row->runtime = runtime;
		*id = tables->stacks.n;
	}
	row = &tables->stacks.rows[*id - 1];
	row->samples++;
	if (__builtin_add_overflow(row->weight, weight, &row->weight))
		row->weight = UINT64_MAX;
	return 0;
}

/* Each after the ones that it refers to. */
static const struct reader readers[] = {
	{ "meta", "rowid, key, value", meta_row },
	{ "counter", "rowid, name, value", counter_row },
	{ "kind", "id, name, suffix", kind_row },
	{ "process", "id, pid, name", process_row },
	{ "thread", "id, process, tid, name", thread_row },
	{ "image", "id, path", image_row },
	{ "function", "id, name, file", function_row },
	{ "frame", "id, kind, image, address, loop", frame_row },
	{ "location", "frame, kind, function, line", location_row },
	{ "node", "id, parent, frame, offset", node_row },
};

/* Up to version 1 frames have no column `loop`. */
static const struct reader old_frame_reader = { "frame", "id, kind, image, address, 0", frame_row };

static const struct reader sample_reader = { "sample", "id, thread, native, runtime, weight",
					     sample_row };

/* A damaged b-tree can lead in circles, or say the same again and again; an id that does not
 * ascend gives it away. Locations have several rows per frame, but only so many. */
static int check_id(const struct reader *reader, sqlite3_stmt *stmt, int64_t *last, int *repeats)
{
	int64_t id = column_i64(stmt, 0, -1);
	bool repeat = reader->row == location_row && id == *last;

	*repeats = repeat ? *repeats + 1 : 0;
	if (id < 0 || (id <= *last && !repeat) || *repeats >= LOAD_LEVEL_MAX)
		return -EBADMSG;
	if (reader != &sample_reader && id > UINT32_MAX)
		return -EBADMSG;
	*last = id;
	return 0;
}

/* Never by an index, which could have another order. */
static int read_table(struct load_tables *tables, const struct reader *reader, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int code, ret = 0, repeats = 0;
	int64_t last = -1;
	char sql[128];

	snprintf(sql, sizeof(sql), "SELECT %s FROM main.%s NOT INDEXED", reader->columns,
		 reader->table);
	code = sqlite3_prepare_v2(tables->db, sql, -1, &stmt, NULL);
	while (!code && !ret) {
		code = sqlite3_step(stmt);
		if (code != SQLITE_ROW)
			break;
		code = 0;
		ret = check_id(reader, stmt, &last, &repeats);
		if (!ret)
			ret = reader->row(tables, stmt);
	}
	if (ret == -EBADMSG)
		err__set(err, ret, "%s is damaged: table %s, after row %lld", tables->path,
			 reader->table, (long long)last);
	else if (ret)
		err__set(err, ret, "out of memory");
	else if (code != SQLITE_DONE)
		ret = load_file__failed(tables->path, code, err);
	sqlite3_finalize(stmt);
	return ret;
}

int load_tables__read(struct load_tables *tables, const char *path, struct err *err)
{
	uint32_t version = 0;
	size_t i;
	int ret;

	*tables = (struct load_tables) { .path = path };
	if (array__reserve(&tables->texts, &tables->cap_texts, 1, 1))
		return err__set(err, -ENOMEM, "out of memory");
	tables->texts[tables->n_texts++] = '\0';
	ret = load_file__open(path, &tables->db, &version, err);
	for (i = 0; !ret && i < ARRAY_SIZE(readers); i++)
		ret = read_table(tables,
				 version < 2 && readers[i].row == frame_row ? &old_frame_reader
									    : &readers[i],
				 err);
	return ret;
}

int load_tables__samples(struct load_tables *tables, const bool *wanted, struct err *err)
{
	struct intern stack_ids;
	int ret;

	intern__init(&stack_ids, LOAD_NONE);
	tables->stack_ids = &stack_ids;
	tables->wanted = wanted;
	ret = read_table(tables, &sample_reader, err);
	intern__done(&stack_ids);
	tables->stack_ids = NULL;
	tables->wanted = NULL;
	return ret;
}

void load_tables__done(struct load_tables *tables)
{
	sqlite3_close(tables->db);
	free(tables->processes.rows);
	free(tables->threads.rows);
	free(tables->images.rows);
	free(tables->functions.rows);
	free(tables->frames.rows);
	free(tables->locations.rows);
	free(tables->nodes.rows);
	free(tables->stacks.rows);
	free(tables->counters.rows);
	free(tables->texts);
}
