// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/store/load.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/profile/recorded.h"
#include "core/profile/where_match.h"
#include "core/store/load_columns.h"
#include "core/store/load_file.h"
#include "core/store/load_range.h"
#include "core/store/recording.h"

/* A table, and the function that adds each of its rows to the recorded data. */
struct reader {
	const char *table, *columns; /* the first column ascends from row to row */
	int (*row)(struct recorded *recorded, sqlite3_stmt *stmt);
	uint32_t from, to; /* versions of the schema with this table */
};

struct reading {
	const char *path;
	const struct recorded_times *times;	/* NULL: all times */
	const struct recorded_columns *columns; /* NULL: divide the whole time */
	sqlite3 *db;
	struct recorded recorded;
};

/* Returns the integer in @column, or @otherwise for a value of another type. */
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

/* Returns the text in @column, or "" for a value of another type. */
static const char *column_text(sqlite3_stmt *stmt, int column)
{
	const char *text = NULL;

	if (sqlite3_column_type(stmt, column) == SQLITE_TEXT)
		text = (const char *)sqlite3_column_text(stmt, column);
	return text ? text : "";
}

static double number_of(const char *text)
{
	double number = strtod(text, NULL);

	return isfinite(number) && number > 0 ? number : 0;
}

static int meta_row(struct recorded *recorded, sqlite3_stmt *stmt)
{
	const char *key = column_text(stmt, 1), *value = column_text(stmt, 2);

	if (!strcmp(key, "target"))
		return recorded__add_text(recorded, value, &recorded->target);
	if (!strcmp(key, META_HOST))
		return recorded__add_text(recorded, value, &recorded->host);
	if (!strcmp(key, META_TASK))
		return recorded__add_text(recorded, value, &recorded->task_name);
	if (!strcmp(key, META_STARTED_AT))
		return recorded__add_text(recorded, value, &recorded->started);
	if (!strcmp(key, META_BOOT_S))
		recorded->boot_s = number_of(value);
	else if (!strcmp(key, META_CLOCK_OFFSET_NS))
		recorded->clock_offset_ns = strtoll(value, NULL, 10);
	else if (!strcmp(key, META_SYMBOLS_QUERIED))
		recorded->symbols_queried = number_of(value) > 0;
	else if (!strcmp(key, META_DURATION_S))
		recorded->duration_s = number_of(value);
	else if (!strcmp(key, "frequency_hz"))
		recorded->frequency_hz = number_of(value);
	return 0;
}

static int counter_row(struct recorded *recorded, sqlite3_stmt *stmt)
{
	return recorded__add_counter(recorded, column_text(stmt, 1), column_count(stmt, 2));
}

static int kind_row(struct recorded *recorded, sqlite3_stmt *stmt)
{
	return recorded__add_kind(recorded, column_kind(stmt, 0), column_text(stmt, 1),
				  column_text(stmt, 2));
}

static int event_row(struct recorded *recorded, sqlite3_stmt *stmt)
{
	return recorded__add_event(recorded, column_u32(stmt, 0), column_text(stmt, 1),
				   column_text(stmt, 2));
}

static int process_row(struct recorded *recorded, sqlite3_stmt *stmt)
{
	return recorded__add_process(recorded, column_u32(stmt, 0), column_u32(stmt, 1),
				     column_text(stmt, 2), column_text(stmt, 3),
				     column_text(stmt, 4))
		       ?: recorded__set_command(recorded, column_u32(stmt, 0),
						column_text(stmt, 5))
		       ?: recorded__set_start(recorded, column_u32(stmt, 0),
					      column_count(stmt, 6));
}

static int thread_row(struct recorded *recorded, sqlite3_stmt *stmt)
{
	return recorded__add_thread(recorded, column_u32(stmt, 0), column_u32(stmt, 1),
				    column_u32(stmt, 2), column_text(stmt, 3));
}

static int image_row(struct recorded *recorded, sqlite3_stmt *stmt)
{
	return recorded__add_image(recorded, column_u32(stmt, 0), column_text(stmt, 1),
				   column_text(stmt, 2));
}

static int function_row(struct recorded *recorded, sqlite3_stmt *stmt)
{
	return recorded__add_function(recorded, column_u32(stmt, 0), column_text(stmt, 1),
				      column_text(stmt, 2));
}

static int frame_row(struct recorded *recorded, sqlite3_stmt *stmt)
{
	const struct sink_frame frame = { .kind = column_kind(stmt, 1),
					  .image = column_u32(stmt, 2),
					  .address = column_i64(stmt, 3, 0),
					  .loop = column_i64(stmt, 4, 0) == 1 };

	return recorded__add_frame(recorded, column_u32(stmt, 0), &frame,
				   sqlite3_column_type(stmt, 2) == SQLITE_NULL);
}

/* Rows are sorted by frame and then level, so that all rows of a frame are adjacent. */
static int location_row(struct recorded *recorded, sqlite3_stmt *stmt)
{
	return recorded__add_location(recorded,
				      recorded__find(&recorded->frames, column_u32(stmt, 0)),
				      column_kind(stmt, 1), column_u32(stmt, 2),
				      column_u32(stmt, 3));
}

static int node_row(struct recorded *recorded, sqlite3_stmt *stmt)
{
	const struct sink_node node = { .parent = column_u32(stmt, 1),
					.frame = column_u32(stmt, 2),
					.offset = column_i64(stmt, 3, SINK_NO_OFFSET),
					.evidence = column_u32(stmt, 4) };

	return recorded__add_node(recorded, column_u32(stmt, 0), &node);
}

static int attribute_row(struct recorded *recorded, sqlite3_stmt *stmt)
{
	return recorded__add_attribute(recorded, column_u32(stmt, 0), column_text(stmt, 1),
				       column_text(stmt, 2));
}

static int context_row(struct recorded *recorded, sqlite3_stmt *stmt)
{
	return recorded__add_context(recorded, column_u32(stmt, 0), column_text(stmt, 1),
				     column_text(stmt, 2));
}

static int label_row(struct recorded *recorded, sqlite3_stmt *stmt)
{
	return recorded__add_label(recorded, column_u32(stmt, 0), column_text(stmt, 1),
				   column_text(stmt, 2));
}

static struct sink_sample sample_of(sqlite3_stmt *stmt)
{
	return (struct sink_sample) { .thread = column_u32(stmt, 1),
				      .native = column_u32(stmt, 2),
				      .runtime = column_u32(stmt, 3),
				      .value = column_count(stmt, 4),
				      .event = column_u32(stmt, 5),
				      .condition = { .state = column_u32(stmt, 6),
						     .lock = column_u32(stmt, 7),
						     .syscall = column_u32(stmt, 8) - 1 },
				      .link = column_i64(stmt, 9, 0),
				      .object = column_i64(stmt, 10, 0),
				      .time_ns = column_count(stmt, 11),
				      .task = column_i64(stmt, 12, 0),
				      .flags = column_u32(stmt, 13),
				      .weight = column_count(stmt, 14),
				      .total = column_count(stmt, 15),
				      .context = column_u32(stmt, 16) };
}

static int sample_row(struct recorded *recorded, sqlite3_stmt *stmt)
{
	const struct sink_sample sample = sample_of(stmt);

	return recorded__add_sample(recorded, &sample);
}

#define NOW RECORDING_SCHEMA_VERSION

/* The only event until version 2, which called its values weights. */
#define CPU_EVENT    1
#define CPU_EVENT_ID "1"

/* Maximum number of attributes of a service or a request, less 1. */
#define LABELS_MAX 255

/* Each table follows the tables that it refers to. */
/* clang-format off */
static const struct reader readers[] = {
	{ "meta",     "rowid, key, value",                            meta_row,     1, NOW },
	{ "counter",  "rowid, name, value",                           counter_row,  1, NOW },
	{ "kind",     "id, name, suffix",                             kind_row,     1, NOW },
	{ "event",    "id, name, unit",                               event_row,    3, NOW },
	{ "process",  "id, pid, name, '', '', command, start_ticks", process_row, 1, 3 },
	{ "process",  "id, pid, name, cgroup, container, command, "
		      "start_ticks",                                  process_row,  4, NOW },
	{ "thread",   "id, process, tid, name",                       thread_row,   1, NOW },
	{ "image",    "id, path, build_id",                           image_row,    1, NOW },
	{ "function", "id, name, file",                               function_row, 1, NOW },
	{ "frame",    "id, kind, image, address, 0",                  frame_row,    1, 1 },
	{ "frame",    "id, kind, image, address, loop",               frame_row,    2, NOW },
	{ "location", "frame, kind, function, line",                  location_row, 1, NOW },
	{ "node",     "id, parent, frame, offset, 0",                 node_row,     1, 5 },
	{ "node",     "id, parent, frame, offset, evidence",          node_row,     6, NOW },
	{ "attribute", "process, key, value",               attribute_row, 8, NOW },
	{ "context",  "id, trace, span",                  context_row, 8, NOW },
	{ "label",    "context, key, value",              label_row, 8, NOW },
	{ "sample",   "id, thread, native, runtime, weight, "
		      CPU_EVENT_ID ", 0, 0, 0, 0, 0, time_ns, 0, flags, 1, weight, 0",  sample_row,   1, 2 },
	{ "sample",   "id, thread, native, runtime, value, event, "
		      "state, lock, syscall, link, object, time_ns, 0, flags, 1, value, 0",     sample_row,   3, 4 },
	{ "sample",   "id, thread, native, runtime, value, event, "
		      "state, lock, syscall, link, object, time_ns, task, flags, 1, value, 0",  sample_row,   5, 6 },
	{ "sample",   "id, thread, native, runtime, value, event, "
		      "state, lock, syscall, link, object, time_ns, task, flags, "
		      "weight, total, 0",                                                    sample_row,   7, 7 },
	{ "sample",   "id, thread, native, runtime, value, event, "
		      "state, lock, syscall, link, object, time_ns, task, flags, "
		      "weight, total, context",                                              sample_row,   8, NOW },
};
/* clang-format on */

/* Returns the maximum number of rows with one id, less 1. */
static int repeats_max(const struct reader *reader)
{
	if (reader->row == location_row)
		return RECORDED_LEVEL_MAX - 1;
	return reader->row == attribute_row || reader->row == label_row ? LABELS_MAX : 0;
}

/* Detects a damaged b-tree, which can lead in circles or repeat rows: its ids do not ascend. Some
 * tables have several rows per id. */
static int check_id(const struct reader *reader, sqlite3_stmt *stmt, int64_t *last, int *repeats)
{
	int64_t id = column_i64(stmt, 0, -1);
	bool repeat = repeats_max(reader) && id == *last;

	*repeats = repeat ? *repeats + 1 : 0;
	if (id < 0 || (id <= *last && !repeat) || *repeats > repeats_max(reader))
		return -EBADMSG;
	if (reader->row != sample_row && id > UINT32_MAX)
		return -EBADMSG;
	*last = id;
	return 0;
}

/* Prepares a scan of the table. An index is never used, as it could have another order. Returns
 * SQLite's error code. */
static int prepare(struct reading *reading, const struct reader *reader, sqlite3_stmt **ret)
{
	char sql[200];

	snprintf(sql, sizeof(sql), "SELECT %s FROM main.%s NOT INDEXED", reader->columns,
		 reader->table);
	return sqlite3_prepare_v2(reading->db, sql, -1, ret, NULL);
}

static int damaged(const struct reading *reading, const struct reader *reader, int64_t last,
		   struct err *err)
{
	return err__set(err, -EBADMSG, "%s is damaged: table %s, after row %lld", reading->path,
			reader->table, (long long)last);
}

static int read_table(struct reading *reading, const struct reader *reader, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int code = prepare(reading, reader, &stmt), ret = 0, repeats = 0;
	int64_t last = -1;

	while (!code && !ret) {
		code = sqlite3_step(stmt);
		if (code != SQLITE_ROW)
			break;
		code = 0;
		ret = check_id(reader, stmt, &last, &repeats);
		if (!ret)
			ret = reader->row(&reading->recorded, stmt);
	}
	if (ret == -EBADMSG)
		damaged(reading, reader, last, err);
	else if (ret)
		err__set(err, ret, "out of memory");
	else if (code != SQLITE_DONE)
		ret = load_file__failed(reading->path, code, err);
	sqlite3_finalize(stmt);
	return ret;
}

/* Divides the time from the first sample to the last into columns. */
static int find_columns(struct reading *reading, bool instants, struct err *err)
{
	struct recorded_columns *columns = &reading->recorded.columns;
	sqlite3_stmt *stmt = NULL;
	uint64_t first, last;
	int code =
		sqlite3_prepare_v2(reading->db,
				   "SELECT min(time_ns), max(time_ns) FROM main.sample NOT INDEXED "
				   "WHERE typeof(time_ns) = 'integer'",
				   -1, &stmt, NULL);

	if (!code)
		code = sqlite3_step(stmt);
	if (code != SQLITE_ROW) {
		sqlite3_finalize(stmt);
		return load_file__failed(reading->path, code, err);
	}
	first = column_count(stmt, 0);
	last = max_of(column_count(stmt, 1), first);
	sqlite3_finalize(stmt);
	load_columns__divide(first, last, instants, columns);
	return 0;
}

/* Selects the part of contexts by which stacks are grouped. Returns 0 or -ENOMEM. */
static int group_contexts(struct recorded *recorded, const struct profile_filter *filter)
{
	recorded->groups = filter->by == PROFILE_BY_TRACE     ? RECORDED_GROUPS_TRACE
			   : filter->by == PROFILE_BY_SPAN    ? RECORDED_GROUPS_SPAN
			   : filter->by == PROFILE_BY_REQUEST ? RECORDED_GROUPS_REQUEST
			   : filter->by == PROFILE_BY_LABEL   ? RECORDED_GROUPS_LABEL
							      : RECORDED_GROUPS_NONE;
	if (filter->histogram_of &&
	    recorded__word(recorded, filter->histogram_of, &recorded->bucket_key))
		return -ENOMEM;
	return filter->label ? recorded__word(recorded, filter->label, &recorded->group_key) : 0;
}

/* Reads all tables. If @ret_samples is not NULL, leaves out the samples and stores the reader for
 * them. */
static int read_all(struct reading *reading, const struct profile_filter *filter,
		    const struct reader **ret_samples, struct err *err)
{
	uint32_t version = 0;
	int ret = load_file__open(reading->path, &reading->db, &version, err);

	if (!ret && (recorded__init(&reading->recorded) ||
		     (version < 3 && recorded__add_event(&reading->recorded, CPU_EVENT, "cpu",
							 SINK_UNIT_SAMPLES))))
		ret = err__set(err, -ENOMEM, "out of memory");
	if (reading->times)
		reading->recorded.times = *reading->times;
	reading->recorded.keeps_buckets = filter->histogram;
	reading->recorded.keeps_wakers = filter->wakers;
	reading->recorded.keeps_tasks = filter->tasks || filter->by == PROFILE_BY_TASK;
	reading->recorded.min_age_ns = filter->min_age_ns;
	reading->recorded.where = filter->where;
	if (!ret && group_contexts(&reading->recorded, filter))
		ret = err__set(err, -ENOMEM, "out of memory");
	if (!ret && (filter->times || filter->instants) && reading->columns)
		reading->recorded.columns = *reading->columns;
	else if (!ret && (filter->times || filter->instants))
		ret = find_columns(reading, filter->instants, err);
	for (size_t i = 0; !ret && i < ARRAY_SIZE(readers); i++) {
		if (version < readers[i].from || version > readers[i].to ||
		    ((readers[i].row == context_row || readers[i].row == label_row) &&
		     !reading->recorded.groups && !ret_samples && !filter->histogram_of &&
		     !where_match__needs_contexts(filter->where)))
			continue;
		if (ret_samples && readers[i].row == sample_row)
			*ret_samples = &readers[i];
		else
			ret = read_table(reading, &readers[i], err);
	}
	return ret;
}

int load__file(const char *path, const struct profile_filter *filter,
	       const struct recorded_times *times, const struct recorded_columns *columns,
	       struct recorded *ret, struct err *err)
{
	struct reading reading = { .path = path, .times = times, .columns = columns };
	int code = read_all(&reading, filter, NULL, err);

	sqlite3_close(reading.db);
	*ret = reading.recorded;
	return code;
}

static int load(const char *path, const struct profile_filter *filter, struct recorded *ret,
		struct err *err)
{
	return load_range__is_set(path, filter) ? load_range__of(path, filter, ret, err)
						: load__file(path, filter, NULL, NULL, ret, err);
}

int load__profile(const char *path, const struct profile_filter *filter, struct profile **ret,
		  struct merge_report *report, struct err *err)
{
	struct recorded recorded;
	int code = load(path, filter, &recorded, err);

	if (!code)
		code = build__profile(&recorded, path, filter, ret, report, err);
	recorded__done(&recorded);
	return code;
}

int load__profiles(const char *path, const struct profile_filter *filter, struct profile **ret,
		   struct profile ***ret_others, size_t *ret_n, struct err *err)
{
	struct recorded recorded;
	int code = load(path, filter, &recorded, err);

	if (!code)
		code = build__profiles(&recorded, path, filter, ret, ret_others, ret_n, err);
	recorded__done(&recorded);
	return code;
}

/* ---- sample by sample ---- */

struct load_samples {
	struct reading reading;
	const struct reader *reader;
	sqlite3_stmt *stmt;
	int64_t last;
	int repeats;
	bool ended; /* a further step would start the scan again */
};

int load_samples__open(const char *path, struct load_samples **ret, struct err *err)
{
	const struct profile_filter all = {};
	struct load_samples *samples = calloc(1, sizeof(*samples));
	int code;

	*ret = samples;
	if (!samples || !(samples->reading.path = strdup(path)))
		return err__set(err, -ENOMEM, "out of memory");
	samples->last = -1;
	code = read_all(&samples->reading, &all, &samples->reader, err);
	if (code)
		return code;
	code = prepare(&samples->reading, samples->reader, &samples->stmt);
	return code ? load_file__failed(path, code, err) : 0;
}

struct recorded *load_samples__recorded(struct load_samples *samples)
{
	return &samples->reading.recorded;
}

int load_samples__next(struct load_samples *samples, struct sink_sample *ret, struct err *err)
{
	int code = samples->ended ? SQLITE_DONE : sqlite3_step(samples->stmt);

	samples->ended = code == SQLITE_DONE;
	if (samples->ended)
		return 0;
	if (code != SQLITE_ROW)
		return load_file__failed(samples->reading.path, code, err);
	code = check_id(samples->reader, samples->stmt, &samples->last, &samples->repeats);
	if (code)
		return damaged(&samples->reading, samples->reader, samples->last, err);
	*ret = sample_of(samples->stmt);
	return 1;
}

void load_samples__close(struct load_samples *samples)
{
	if (!samples)
		return;
	sqlite3_finalize(samples->stmt);
	sqlite3_close(samples->reading.db);
	recorded__done(&samples->reading.recorded);
	free((char *)samples->reading.path);
	free(samples);
}
