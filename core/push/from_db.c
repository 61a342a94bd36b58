// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/push/from_db.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/util.h"
#include "core/profile/select.h"
#include "core/push/clickhouse.h"
#include "core/push/from_db_code.h"
#include "core/push/where.h"

#define LISTED_EVENTS_MAX 1000
#define STACKS_MAX	  100000 /* the largest of an event; the others are shown without frames */
#define VOID_MAX	  500	 /* loads that a query names */
#define IDS_MAX		  100000 /* ids of one request */
#define MAX_WAIT_S	  5

/* A sum for each stack, and for each series if threads matter. */
struct sum {
	uint64_t stack, series; /* 0: unknown */
	uint64_t value, samples, occurrences;
	uint32_t event; /* recorded id */
};

/* a rate of the ticks of an event */
struct rate {
	uint32_t event; /* index */
	double hz;	/* 0: unknown */
};

struct from_db {
	const struct profile_filter *filter;
	struct clickhouse clickhouse;
	struct where where;
	struct recorded *recorded;
	struct from_db_code code;
	bool threads;		  /* threads matter */
	struct u64map threads_of; /* series: recorded ids */
	char *voids;		  /* condition on a row of braid_samples for samples that count */
	struct rate *rates;	  /* rates of events in ticks, in the order of events */
	size_t n_rates, cap_rates;
	bool timed;	  /* convert ticks to times, as there are several rates */
	double rate_hz;	  /* rate of the ticks in the present answer; 0: no conversion */
	uint64_t unrated; /* samples left out as their rate is unknown */
	struct sum *sums;
	size_t n_sums, cap_sums;
	uint64_t beyond; /* samples of stacks beyond STACKS_MAX */
	struct err *err;
};

static int no_memory(struct from_db *db)
{
	return err__set(db->err, -ENOMEM, "out of memory");
}

static int damaged(struct from_db *db)
{
	return err__set(db->err, -EBADMSG, "cannot read the answer of %s: it is malformed",
			db->clickhouse.what);
}

/* Sets the message for an error in an answer. */
static int fail(struct from_db *db, int code)
{
	if (code == -E2BIG)
		return err__set(db->err, code,
				"cannot read the samples in %s: there are too many. Use --where to "
				"select fewer",
				db->clickhouse.what);
	return code == -EBADMSG ? damaged(db) : code == -ENOMEM ? no_memory(db) : code;
}

/* Sends the formatted query, and calls @row for each row of the answer. */
typedef int (*row_fn)(struct from_db *db, struct row_reader *rows);

static int ask(struct from_db *db, const struct clickhouse_ids *ids, row_fn row, const char *fmt,
	       ...) __attribute__((format(printf, 4, 5)));

static int ask(struct from_db *db, const struct clickhouse_ids *ids, row_fn row, const char *fmt,
	       ...)
{
	struct http_reply reply;
	struct row_reader rows;
	enum sent sent;
	va_list args;
	char *sql;
	int ret;

	va_start(args, fmt);
	ret = vasprintf(&sql, fmt, args);
	va_end(args);
	if (ret < 0)
		return no_memory(db);
	sent = clickhouse__ask(&db->clickhouse, sql, ids, &reply, db->err);
	free(sql);
	if (sent != SENT_OK)
		return sent == SENT_STOPPED ? err__set(db->err, -EINTR, "stopped")
		       : sent == SENT_TOO_LARGE
			       ? err__set(db->err, -EREMOTEIO,
					  "cannot query %s: the server has too little memory. Use "
					  "--where to select fewer samples",
					  db->clickhouse.what)
			       : -EREMOTEIO;
	rows = clickhouse__rows(&reply);
	for (ret = 0; !ret && row_reader__more(&rows);)
		ret = row(db, &rows);
	if (!ret && rows.failed)
		ret = -EBADMSG;
	http_reply__done(&reply);
	return ret ? fail(db, ret) : 0;
}

/* ---- events, time and loads ---- */

static bool is_last_event(const struct recorded *recorded, const char *name, const char *unit)
{
	const struct recorded_event *last;

	if (!recorded->events.n)
		return false;
	last = &recorded->events.rows[recorded->events.n - 1];
	return !strcmp(recorded__text(recorded, last->name), name) &&
	       !strcmp(recorded__text(recorded, last->unit), unit);
}

static int event_row(struct from_db *db, struct row_reader *rows)
{
	char *name = row_reader__text(rows), *unit = row_reader__text(rows);
	double hz = row_reader__double(rows);
	struct recorded *recorded = db->recorded;
	int ret = rows->failed ? -EBADMSG : -ENOMEM;

	if (name && unit && !rows->failed)
		ret = is_last_event(recorded, name, unit)
			      ? 0
			      : recorded__add_event(recorded, recorded->events.n + 1, name, unit);
	if (!ret && recorded__is_ticks(recorded, recorded->events.n - 1)) {
		ret = array__reserve(&db->rates, &db->cap_rates, db->n_rates + 1,
				     sizeof(*db->rates));
		if (!ret)
			db->rates[db->n_rates++] = (struct rate) { recorded->events.n - 1,
								   hz > 0 && hz < 1e9 ? hz : 0 };
	}
	free(name);
	free(unit);
	return ret;
}

/* Uses ticks if there is only one rate. */
static void compare_rates(struct from_db *db)
{
	for (size_t i = 0; i < db->n_rates; i++)
		db->timed |= db->rates[i].hz != db->rates[0].hz;
	db->recorded->frequency_hz = db->n_rates && !db->timed ? db->rates[0].hz : 0;
}

static int find_events(struct from_db *db)
{
	int ret = ask(db, NULL, event_row,
		      "SELECT event, unit, hz FROM braid_series WHERE %s "
		      "GROUP BY event, unit, hz ORDER BY event, unit, hz LIMIT %d FORMAT RowBinary",
		      db->where.series, LISTED_EVENTS_MAX);

	compare_rates(db);
	if (!ret && !db->recorded->events.n)
		ret = err__set(db->err, -ENOENT, "%s has no samples that match --where",
			       db->clickhouse.what);
	return ret;
}

static int span_row(struct from_db *db, struct row_reader *rows)
{
	int64_t earliest = row_reader__number(rows, 4), latest = row_reader__number(rows, 4);
	int64_t from_s = max_of(earliest, db->where.from_s);
	int64_t to_s = min_of(latest, db->where.to_s);

	db->recorded->duration_s = max_of(to_s - from_s + 1, 0);
	return 0;
}

/* Computes the time from the first recording to the last, within the limits of --where, for
 * recordings with a selected sample. */
static int find_span(struct from_db *db)
{
	return ask(db, NULL, span_row,
		   "SELECT min(earliest), max(latest) FROM braid_loads WHERE committed = 1 AND "
		   "latest >= toDateTime(%" PRId64 ") AND earliest <= toDateTime(%" PRId64
		   ") AND load GLOBAL IN (SELECT load FROM braid_samples WHERE series GLOBAL IN "
		   "(SELECT series FROM braid_series WHERE %s) AND %s AND %s GROUP BY load) "
		   "FORMAT RowBinary",
		   db->where.from_s, min_of(db->where.to_s, (int64_t)UINT32_MAX), db->where.series,
		   db->where.samples, db->voids);
}

static int void_row(struct from_db *db, struct row_reader *rows)
{
	char *more;

	if (asprintf(&more, "%s%s%" PRIu64, db->voids, *db->voids ? "," : "",
		     row_reader__number(rows, 8)) < 0)
		return -ENOMEM;
	free(db->voids);
	db->voids = more;
	return 0;
}

/* Finds the loads that do not count. Mostly there are few or none, so that samples need no
 * look-up. */
static int find_void(struct from_db *db)
{
	char *list;
	size_t n = 1;
	int ret;

	db->voids = strdup("");
	ret = db->voids ? ask(db, NULL, void_row,
			      "SELECT load FROM braid_void LIMIT %d FORMAT RowBinary", VOID_MAX)
			: no_memory(db);
	if (ret)
		return ret;
	list = db->voids;
	for (const char *at = list; (at = strchr(at, ',')); at++)
		n++;
	if (!*list)
		db->voids = strdup("1");
	else if (n >= VOID_MAX)
		db->voids = strdup("load GLOBAL NOT IN (SELECT load FROM braid_void)");
	else if (asprintf(&db->voids, "load NOT IN (%s)", list) < 0)
		db->voids = NULL;
	free(list);
	return db->voids ? 0 : no_memory(db);
}

/* ---- sums ---- */

static int sum_row(struct from_db *db, struct row_reader *rows)
{
	struct sum sum = { .stack = row_reader__number(rows, 8),
			   .series = row_reader__number(rows, 8),
			   .value = row_reader__number(rows, 8),
			   .samples = row_reader__number(rows, 8),
			   .occurrences = row_reader__number(rows, 8) };

	if (db->rate_hz > 0) {
		sum.value = recorded__ticks_ns(sum.value, db->rate_hz);
		sum.occurrences = 0; /* ticks are not occurrences */
	}
	if (array__reserve(&db->sums, &db->cap_sums, db->n_sums + 1, sizeof(sum)))
		return -ENOMEM;
	db->sums[db->n_sums++] = sum;
	return 0;
}

/* Returns the condition on a row of braid_series for the event. NULL: out of memory. */
static char *series_of(const struct from_db *db, const struct recorded_event *event,
		       const struct rate *rate)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fputs("event = ", out);
	where__quote(out, recorded__text(db->recorded, event->name));
	fputs(" AND unit = ", out);
	where__quote(out, recorded__text(db->recorded, event->unit));
	if (rate)
		fprintf(out, " AND hz = %.17g", rate->hz);
	fclose(out);
	return text;
}

/* Sums the event's series; @rate: only ticks of that rate; NULL: all. */
static int sum_series(struct from_db *db, uint32_t index, const struct rate *rate)
{
	const struct recorded_event *event = &db->recorded->events.rows[index];
	char *series = series_of(db, event, rate);
	size_t before = db->n_sums;
	int ret;

	if (!series)
		return no_memory(db);
	db->rate_hz = rate ? rate->hz : 0;
	ret = ask(db, NULL, sum_row,
		  "SELECT stack, %s, sum(total) AS sum, count(), sum(weight) "
		  "FROM braid_samples "
		  "WHERE series GLOBAL IN (SELECT series FROM braid_series WHERE %s AND %s) "
		  "AND %s AND %s GROUP BY stack%s ORDER BY sum DESC FORMAT RowBinary",
		  db->threads ? "series" : "toUInt64(0)", series, db->where.series,
		  db->where.samples, db->voids, db->threads ? ", series" : "");
	free(series);
	for (size_t i = before; i < db->n_sums; i++) {
		db->sums[i].event = event->id;
		if (i - before < STACKS_MAX || !db->sums[i].stack)
			continue;
		db->sums[i].stack = 0;
		db->beyond += db->sums[i].samples;
	}
	return ret;
}

/* Leaves out ticks without a rate, which represent no time. */
static void leave_out(struct from_db *db, size_t from)
{
	for (size_t i = from; i < db->n_sums; i++)
		db->unrated += db->sums[i].samples;
	db->n_sums = from;
}

static int sum_event(struct from_db *db, uint32_t index)
{
	int ret = 0;

	if (!db->timed || !recorded__is_ticks(db->recorded, index))
		return sum_series(db, index, NULL);
	for (size_t i = 0; !ret && i < db->n_rates; i++) {
		size_t before = db->n_sums;

		if (db->rates[i].event != index)
			continue;
		ret = sum_series(db, index, &db->rates[i]);
		if (!(db->rates[i].hz > 0))
			leave_out(db, before);
	}
	return ret;
}

static int find_sums(struct from_db *db, bool all_events)
{
	const bool all = all_events && !db->filter->event;
	struct selection selection = {};
	int ret = selection__events(&selection, db->recorded, db->clickhouse.what, db->filter,
				    db->err);

	for (uint32_t i = 0; !ret && i < db->recorded->events.n; i++)
		if (all || selection.events[i])
			ret = sum_event(db, i);
	selection__done(&selection);
	return ret;
}

/* ---- definitions ---- */

static int stack_row(struct from_db *db, struct row_reader *rows)
{
	return from_db_code__read_stack(&db->code, rows);
}

static int frame_row(struct from_db *db, struct row_reader *rows)
{
	return from_db_code__read_frame(&db->code, rows);
}

static int ask_for(struct from_db *db, const uint64_t *ids, size_t n, row_fn row,
		   const char *columns, const char *table, const char *key)
{
	int ret = 0;

	for (size_t at = 0; !ret && at < n; at += IDS_MAX) {
		const struct clickhouse_ids some = { ids + at, min_of(n - at, (size_t)IDS_MAX) };

		ret = ask(db, &some, row,
			  "SELECT %s FROM %s WHERE %s GLOBAL IN (SELECT id FROM ids) "
			  "FORMAT RowBinary",
			  columns, table, key);
	}
	return ret;
}

/* Returns the distinct stacks or series of the sums, without 0. */
static uint64_t *distinct(const struct from_db *db, bool series, size_t *ret_n)
{
	uint64_t *ids = calloc(db->n_sums + 1, sizeof(*ids));
	struct u64map seen = {};
	size_t n = 0;

	for (size_t i = 0; ids && i < db->n_sums; i++) {
		uint64_t id = series ? db->sums[i].series : db->sums[i].stack;

		if (!id || u64map__get(&seen, id))
			continue;
		ids[n++] = id;
		if (u64map__put(&seen, id, 1)) {
			free(ids);
			ids = NULL;
		}
	}
	u64map__done(&seen);
	*ret_n = n;
	return ids;
}

static int find_code(struct from_db *db)
{
	size_t n;
	uint64_t *ids = distinct(db, false, &n);
	int ret = ids ? ask_for(db, ids, n, stack_row, FROM_DB_STACKS, "braid_stacks", "stack")
		      : no_memory(db);

	free(ids);
	if (ret)
		return ret;
	ids = from_db_code__frames(&db->code, &n);
	ret = ids ? ask_for(db, ids, n, frame_row, FROM_DB_FRAMES, "braid_frames", "frame")
		  : no_memory(db);
	free(ids);
	return ret;
}

/* Adds a process with its host's name: processes of different machines are distinct, even with
 * equal ids. */
static int series_row(struct from_db *db, struct row_reader *rows)
{
	struct recorded *recorded = db->recorded;
	uint64_t series = row_reader__number(rows, 8);
	char *host = row_reader__text(rows), *container = row_reader__text(rows);
	char *process = row_reader__text(rows);
	uint32_t pid = row_reader__number(rows, 4), tid = row_reader__number(rows, 4);
	char *thread = row_reader__text(rows), *name = NULL;
	uint32_t id = recorded->threads.n + 1;
	int ret = rows->failed ? -EBADMSG : -ENOMEM;

	if (!rows->failed && host && container && process && thread &&
	    asprintf(&name, "%s%s%s", process, *host ? " on " : "", host) >= 0)
		ret = recorded__add_process(recorded, id, pid, name, NULL, container);
	if (!ret)
		ret = recorded__add_thread(recorded, id, id, tid, thread);
	if (!ret)
		ret = u64map__put(&db->threads_of, series, id);
	free(host);
	free(container);
	free(process);
	free(thread);
	free(name);
	return ret;
}

static int find_series(struct from_db *db)
{
	size_t n;
	uint64_t *ids;
	int ret;

	if (!db->threads)
		return 0;
	ids = distinct(db, true, &n);
	ret = ids ? ask_for(db, ids, n, series_row,
			    "series, host, container, process, pid, tid, thread", "braid_series",
			    "series")
		  : no_memory(db);
	free(ids);
	return ret;
}

/* ---- result ---- */

#define UNKNOWN_STACKS "stacks missing in the database"
#define UNRATED	       "samples left out: their rate is unknown"
#define BEYOND	       "stacks left out: they are not among the 100,000 largest"

static int add_sum(struct from_db *db, const struct sum *sum, uint64_t *unknown)
{
	uint32_t number = u64map__get(&db->code.stack_index, sum->stack);
	struct sink_sample sample = { .event = sum->event,
				      .thread = u64map__get(&db->threads_of, sum->series),
				      .condition.syscall = NO_SYSCALL };
	struct from_db_stack *stack = number ? &db->code.stacks[number - 1] : NULL;
	struct recorded_stack *row;
	int ret = stack ? from_db_code__make_nodes(&db->code, stack) : 0;

	if (ret)
		return fail(db, ret);
	if (stack) {
		sample.native = stack->native;
		sample.runtime = stack->runtime;
		sample.condition = stack->condition;
		if (stack->age == CLICKHOUSE_REST)
			sample.flags = SAMPLE_REST;
		else if (stack->age)
			sample.object = recorded__least_age(stack->age);
	}
	if (!stack && sum->stack)
		*unknown += sum->samples;
	if (sample.object < db->filter->min_age_ns &&
	    recorded__is_outstanding(db->recorded,
				     recorded__find(&db->recorded->events, sum->event)))
		return 0;
	if (recorded__stack(db->recorded, &sample, &row))
		return no_memory(db);
	row->samples += row->rest ? 0 : sum->samples;
	row->occurrences += sum->occurrences;
	if (__builtin_add_overflow(row->value, sum->value, &row->value))
		row->value = UINT64_MAX;
	db->recorded->n_samples += sum->samples;
	row->last = db->recorded->n_samples;
	return 0;
}

static int add_sums(struct from_db *db)
{
	uint64_t unknown = 0;
	int ret = 0;

	for (size_t i = 0; !ret && i < db->n_sums; i++)
		ret = add_sum(db, &db->sums[i], &unknown);
	if (!ret && unknown && recorded__add_counter(db->recorded, UNKNOWN_STACKS, unknown))
		ret = no_memory(db);
	if (!ret && db->unrated && recorded__add_counter(db->recorded, UNRATED, db->unrated))
		ret = no_memory(db);
	if (!ret && db->timed && recorded__call_ticks_ns(db->recorded))
		ret = no_memory(db);
	if (!ret && db->beyond && recorded__add_counter(db->recorded, BEYOND, db->beyond))
		ret = no_memory(db);
	return ret;
}

static int load(struct from_db *db, const char *where, bool all_events)
{
	char salt[CLICKHOUSE_SALT_MAX];
	int ret = where__parse(where, time(NULL), &db->where, db->err);

	if (ret)
		return ret;
	if (clickhouse__salt(&db->clickhouse, salt, db->err) != SENT_OK)
		return -EREMOTEIO;
	ret = find_events(db);
	if (!ret)
		ret = find_void(db);
	if (!ret)
		ret = find_span(db);
	if (!ret)
		ret = find_sums(db, all_events);
	if (!ret)
		ret = find_code(db);
	if (!ret)
		ret = find_series(db);
	return ret ? ret : add_sums(db);
}

int from_db__load(const struct from_db_opts *opts, const struct profile_filter *filter,
		  bool all_events, struct recorded *ret, struct err *err)
{
	struct sender sender = { .max_wait_s = MAX_WAIT_S,
				 .give_up_s = opts->http.timeout_s,
				 .stops = opts->http.stops,
				 .on_wait = opts->on_wait,
				 .ctx = opts->http.ctx };
	struct from_db db = { .filter = filter,
			      .recorded = ret,
			      .err = err,
			      .threads = filter->threads || filter->pid || filter->thread ||
					 filter->not_thread || filter->by == PROFILE_BY_PROCESS ||
					 filter->by == PROFILE_BY_THREAD ||
					 filter->by == PROFILE_BY_CONTAINER };
	int code = recorded__init(ret);

	if (code || from_db_code__init(&db.code, ret)) {
		code = no_memory(&db);
		goto out;
	}
	code = http__new(&opts->http, &sender.http, err);
	if (!code)
		code = clickhouse__init(&db.clickhouse, &opts->url, &sender, err);
	if (!code)
		code = recorded__add_text(ret, db.clickhouse.what, &ret->target);
	if (!code)
		code = load(&db, opts->where, all_events);
out:
	http__free(sender.http);
	from_db_code__done(&db.code);
	where__done(&db.where);
	u64map__done(&db.threads_of);
	free(db.voids);
	free(db.rates);
	free(db.sums);
	return code;
}
