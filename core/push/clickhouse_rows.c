// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/push/clickhouse_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/util.h"
#include "core/profile/group.h"
#include "core/profile/merge.h"
#include "core/push/clickhouse.h"

#define REMEMBERED_MAX 4000000 /* maximum number of ids of each sort in struct clickhouse_sent */
#define SPAN_MAX_S     (31 * 86400)
#define SECONDS_A_DAY  86400

int clickhouse_rows__init(struct clickhouse_rows *rows, struct push_recording *recording,
			  const char *salt, struct clickhouse_sent *sent_rows)
{
	*rows = (struct clickhouse_rows) { .recording = recording,
					   .salt = salt,
					   .sent_rows = sent_rows };
	intern__init(&rows->stack_index, UINT32_MAX);
	intern__init(&rows->series_index, UINT32_MAX);
	rows->frame_ids = calloc(recording->recorded->frames.n + 1, sizeof(*rows->frame_ids));
	return rows->frame_ids ? 0 : -ENOMEM;
}

static void done_batch(struct clickhouse_rows *rows)
{
	row_writer__done(&rows->series);
	row_writer__done(&rows->stacks);
	row_writer__done(&rows->frames_out);
	row_writer__done(&rows->samples);
}

void clickhouse_rows__done(struct clickhouse_rows *rows)
{
	intern__done(&rows->stack_index);
	intern__done(&rows->series_index);
	free(rows->frame_ids);
	free(rows->stack_ids);
	free(rows->series_ids);
	row_writer__done(&rows->content);
	free(rows->addresses);
	free(rows->inferred);
	free(rows->sorted);
	free(rows->frames);
	done_batch(rows);
	*rows = (struct clickhouse_rows) {};
}

void clickhouse_sent__forget(struct clickhouse_sent *sent_rows)
{
	u64map__done(&sent_rows->series);
	u64map__done(&sent_rows->stacks);
	u64map__done(&sent_rows->frames);
}

/* Drops the definitions on a new day, so that those in use are sent again and do not expire. */
static void keep_sent(struct clickhouse_sent *sent_rows)
{
	uint16_t today = time(NULL) / SECONDS_A_DAY;

	if (sent_rows->day != today || sent_rows->series.n > REMEMBERED_MAX ||
	    sent_rows->stacks.n > SENT_STACKS_MAX || sent_rows->frames.n > REMEMBERED_MAX)
		clickhouse_sent__forget(sent_rows);
	sent_rows->day = today;
}

/* Computes the id of the row in rows->content. Appends the row to @out unless it was sent
 * before. */
static int put_definition(struct clickhouse_rows *rows, struct u64map *sent_rows,
			  struct row_writer *out, uint64_t *ret_id)
{
	struct row_writer *content = &rows->content;

	if (content->failed || content_hash__id(rows->salt, content->data, content->len, ret_id))
		return -ENOMEM;
	if (u64map__get(sent_rows, *ret_id))
		return 0;
	row_writer__number(out, uint64_t, *ret_id);
	row_writer__bytes(out, content->data, content->len);
	row_writer__number(out, uint16_t, rows->sent_rows->day);
	return u64map__put(sent_rows, *ret_id, 1);
}

/* ---- frames ---- */

static const char *kind_of(const struct recorded *recorded, uint8_t kind, bool suffix)
{
	const recorded_text *texts = suffix ? recorded->kind_suffixes : recorded->kind_names;

	return kind < KINDS_MAX ? recorded__text(recorded, texts[kind]) : "";
}

static const char *function_text(const struct recorded *recorded,
				 const struct recorded_location *location, bool file)
{
	const struct recorded_function *function;

	if (location->function == RECORDED_NONE)
		return "";
	function = &recorded->functions.rows[location->function];
	return recorded__text(recorded, file ? function->file : function->name);
}

static void put_locations(struct row_writer *out, const struct recorded *recorded,
			  const struct recorded_frame *frame)
{
	const struct recorded_location *first = &recorded->locations.rows[frame->location];
	uint32_t n = frame->n_locations;

	row_writer__length(out, n);
	for (uint32_t i = 0; i < n; i++)
		row_writer__text(out, kind_of(recorded, first[i].kind, false));
	row_writer__length(out, n);
	for (uint32_t i = 0; i < n; i++)
		row_writer__text(out, kind_of(recorded, first[i].kind, true));
	row_writer__length(out, n);
	for (uint32_t i = 0; i < n; i++)
		row_writer__text(out, function_text(recorded, &first[i], false));
	row_writer__length(out, n);
	for (uint32_t i = 0; i < n; i++)
		row_writer__text(out, function_text(recorded, &first[i], true));
	row_writer__length(out, n);
	for (uint32_t i = 0; i < n; i++)
		row_writer__number(out, uint32_t, first[i].line);
}

/* Returns the id of a frame. Its address is included only if nothing else identifies the code.
 * Frames of one line are thus one frame. */
static int frame_id(struct clickhouse_rows *rows, uint32_t index, uint64_t *ret)
{
	static const struct recorded_frame none = { .kind = KINDS_MAX,
						    .image = RECORDED_NONE,
						    .anonymous = true };
	const struct recorded *recorded = rows->recording->recorded;
	const struct recorded_frame *frame =
		index == RECORDED_NONE ? &none : &recorded->frames.rows[index];
	size_t place = index == RECORDED_NONE ? recorded->frames.n : index;
	struct row_writer *content = &rows->content;
	bool named = frame->n_locations || frame->kind >= KIND_RUNTIME;
	int code;

	*ret = rows->frame_ids[place];
	if (*ret)
		return 0;
	content->len = 0;
	row_writer__text(content, kind_of(recorded, frame->kind, false));
	row_writer__text(content, kind_of(recorded, frame->kind, true));
	row_writer__text(content,
			 frame->image == RECORDED_NONE
				 ? ""
				 : recorded__text(recorded,
						  recorded->images.rows[frame->image].name));
	row_writer__number(content, uint64_t, named ? 0 : frame->address);
	row_writer__number(content, uint8_t,
			   (frame->loop ? FRAME_IS_LOOP : 0) |
				   (frame->anonymous ? FRAME_IS_NOWHERE : 0));
	put_locations(content, recorded, frame);
	code = put_definition(rows, &rows->sent_rows->frames, &rows->frames_out, ret);
	rows->frame_ids[place] = *ret;
	return code;
}

/* ---- stacks ---- */

static int compare_addresses(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Appends the frames from a node outwards, and their addresses, after the first @n ones. */
static int take_chain(struct clickhouse_rows *rows, uint32_t node, size_t n, size_t *ret_n)
{
	const struct recorded *recorded = rows->recording->recorded;
	size_t depth = node == RECORDED_NONE ? 0 : recorded->nodes.rows[node].depth;

	if (array__reserve(&rows->addresses, &rows->cap_addresses, n + depth + 1,
			   sizeof(*rows->addresses)) ||
	    array__reserve(&rows->sorted, &rows->cap_sorted, n + depth + 1,
			   sizeof(*rows->sorted)) ||
	    array__reserve(&rows->inferred, &rows->cap_inferred, n + depth + 1,
			   sizeof(*rows->inferred)) ||
	    array__reserve(&rows->frames, &rows->cap_frames, n + depth + 1, sizeof(*rows->frames)))
		return -ENOMEM;
	for (; node != RECORDED_NONE; node = recorded->nodes.rows[node].parent, n++) {
		rows->addresses[n] = recorded->nodes.rows[node].address;
		rows->frames[n] = recorded->nodes.rows[node].frame;
		rows->inferred[n] = recorded->nodes.rows[node].evidence == EVIDENCE_INFERRED;
	}
	*ret_n = n;
	return 0;
}

/* Replaces addresses by their ranks. The merge only compares addresses, so that ranks suffice.
 * Stacks are thus the same on all machines, whatever the size of a program's environment. */
static void rank_addresses(struct clickhouse_rows *rows, size_t n)
{
	uint64_t *sorted = rows->sorted;
	size_t distinct = 0;

	memcpy(sorted, rows->addresses, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare_addresses);
	for (size_t i = 0; i < n; i++)
		if (sorted[i] != MERGE_NO_ADDRESS && sorted[i] != MERGE_APART &&
		    (!distinct || sorted[i] != sorted[distinct - 1]))
			sorted[distinct++] = sorted[i];
	for (size_t i = 0; i < n; i++) {
		uint64_t address = rows->addresses[i], *at;

		if (address == MERGE_NO_ADDRESS || address == MERGE_APART) {
			rows->addresses[i] = address == MERGE_APART ? STACK_PLACE_APART : 0;
			continue;
		}
		at = bsearch(&address, sorted, distinct, sizeof(*sorted), compare_addresses);
		rows->addresses[i] = at - sorted + 1;
	}
}

static int make_stack(struct clickhouse_rows *rows, const struct sink_sample *sample, uint8_t age,
		      uint64_t *ret)
{
	const struct recorded *recorded = rows->recording->recorded;
	struct row_writer *content = &rows->content;
	struct row_writer ids = {};
	size_t n_native, n;
	int code;

	code = take_chain(rows, recorded__find(&recorded->nodes, sample->native), 0, &n_native);
	if (!code)
		code = take_chain(rows, recorded__find(&recorded->nodes, sample->runtime), n_native,
				  &n);
	if (code)
		return code;
	rank_addresses(rows, n);
	for (size_t i = 0; !code && i < n; i++) {
		uint64_t id = 0;

		code = frame_id(rows, rows->frames[i], &id);
		row_writer__number(&ids, uint64_t, id);
	}
	content->len = 0;
	row_writer__number(content, uint8_t, sample->condition.state);
	row_writer__number(content, uint8_t, sample->condition.lock);
	row_writer__number(content, uint16_t, sample->condition.syscall + 1);
	row_writer__number(content, uint8_t, age);
	row_writer__number(content, uint16_t, n_native);
	row_writer__length(content, n);
	row_writer__bytes(content, ids.data, ids.len);
	row_writer__length(content, n);
	for (size_t i = 0; i < n; i++)
		row_writer__number(content, uint16_t,
				   rows->addresses[i] |
					   (rows->inferred[i] ? STACK_PLACE_INFERRED : 0));
	if (!code && ids.failed)
		code = -ENOMEM;
	row_writer__done(&ids);
	return code ? code : put_definition(rows, &rows->sent_rows->stacks, &rows->stacks, ret);
}

/* Returns the place of an id. Sets *@ret_new if the id is new. */
static uint64_t *find_id(struct intern *index, uint64_t a, uint64_t b, uint64_t **ids, size_t *n,
			 size_t *cap, bool *ret_new)
{
	uint32_t *place = intern__at(index, a, b);

	if (!place)
		return NULL;
	*ret_new = !*place;
	if (!*place) {
		if (array__reserve(ids, cap, *n + 1, sizeof(**ids)))
			return NULL;
		(*ids)[*n] = 0;
		*place = ++*n;
	}
	return &(*ids)[*place - 1];
}

static int stack_id(struct clickhouse_rows *rows, const struct sink_sample *sample, uint64_t *ret)
{
	const struct recorded *recorded = rows->recording->recorded;
	uint32_t event = recorded__find(&recorded->events, sample->event);
	uint8_t age = sample->flags & SAMPLE_REST ? CLICKHOUSE_REST
		      : sample->object && recorded__is_outstanding(recorded, event)
			      ? recorded__age(sample->object)
			      : 0;
	uint64_t condition = (uint64_t)age << 32 | (uint64_t)sample->condition.state << 24 |
			     (uint64_t)sample->condition.lock << 16 |
			     (uint16_t)sample->condition.syscall;
	bool is_new;
	uint64_t *place =
		find_id(&rows->stack_index, (uint64_t)sample->native << 32 | sample->runtime,
			condition, &rows->stack_ids, &rows->n_stacks, &rows->cap_stacks, &is_new);
	int code = !place ? -ENOMEM : is_new ? make_stack(rows, sample, age, place) : 0;

	*ret = place ? *place : 0;
	return code;
}

/* ---- series ---- */

static int make_series(struct clickhouse_rows *rows, const struct sink_sample *sample,
		       uint64_t *ret)
{
	const struct push_recording *recording = rows->recording;
	const struct recorded *recorded = recording->recorded;
	struct profile_thread_of of =
		group__thread(recorded, recorded__find(&recorded->threads, sample->thread));
	uint32_t event = recorded__find(&recorded->events, sample->event);
	struct row_writer *content = &rows->content;
	const char *unit = "";

	content->len = 0;
	row_writer__text(content, push_recording__service(recording, sample->thread));
	row_writer__text(content, recording->host);
	row_writer__text(content, push_recording__container(recording, sample->thread));
	row_writer__number(content, uint32_t, of.pid);
	row_writer__text(content, of.process);
	row_writer__number(content, uint32_t, of.tid);
	row_writer__text(content, of.name);
	if (event != RECORDED_NONE) {
		const struct recorded_event *row = &recorded->events.rows[event];

		unit = recorded__text(recorded, row->unit);
		row_writer__text(content, recorded__text(recorded, row->name));
	} else {
		row_writer__text(content, "");
	}
	row_writer__text(content, unit);
	row_writer__number(content, double,
			   !strcmp(unit, SINK_UNIT_SAMPLES) ? recorded->frequency_hz : 0);
	return put_definition(rows, &rows->sent_rows->series, &rows->series, ret);
}

static int series_id(struct clickhouse_rows *rows, const struct sink_sample *sample, uint64_t *ret)
{
	bool is_new;
	uint64_t *place = find_id(&rows->series_index, sample->thread, sample->event,
				  &rows->series_ids, &rows->n_series, &rows->cap_series, &is_new);
	int code = !place ? -ENOMEM : is_new ? make_series(rows, sample, place) : 0;

	*ret = place ? *place : 0;
	return code;
}

/* ---- samples ---- */

#define SAMPLE_ROW_BYTES   56 /* time, ns, load, series, stack, value, weight, total */
#define SAMPLE_LOAD_OFFSET 8

/* Replaces an implausible time. Each day is a partition, and scattered times in a damaged recording
 * must not create thousands of partitions. */
static int64_t plausible(int64_t time_ns, int64_t first_ns)
{
	int64_t span_ns = SPAN_MAX_S * (int64_t)NSEC_PER_SEC;

	return time_ns > first_ns - span_ns && time_ns < first_ns + span_ns ? time_ns : first_ns;
}

static int put_sample(struct clickhouse_rows *rows, const struct sink_sample *sample,
		      int64_t time_ns, uint64_t load)
{
	uint32_t second = time_ns / NSEC_PER_SEC;
	uint64_t series, stack;

	if (series_id(rows, sample, &series) || stack_id(rows, sample, &stack))
		return -ENOMEM;
	rows->earliest_s = min_of(rows->earliest_s, second);
	rows->latest_s = max_of(rows->latest_s, second);
	row_writer__number(&rows->samples, uint32_t, second);
	row_writer__number(&rows->samples, uint32_t, time_ns % NSEC_PER_SEC);
	row_writer__number(&rows->samples, uint64_t, load);
	row_writer__number(&rows->samples, uint64_t, series);
	row_writer__number(&rows->samples, uint64_t, stack);
	row_writer__number(&rows->samples, uint64_t, sample->value);
	row_writer__number(&rows->samples, uint64_t, sample->weight);
	row_writer__number(&rows->samples, uint64_t, sample->total);
	return rows->samples.failed ? -ENOMEM : 0;
}

int clickhouse_rows__make(struct clickhouse_rows *rows, const struct push_batch *batch,
			  uint64_t load)
{
	int64_t first_ns = push_recording__time_ns(batch->of, &batch->samples[0]);
	int code = 0;

	done_batch(rows);
	keep_sent(rows->sent_rows);
	if (!rows->sent_rows->frames.n) { /* dropped: the recording's ids are invalid, too */
		struct clickhouse_sent *sent_rows = rows->sent_rows;
		struct push_recording *recording = rows->recording;
		const char *salt = rows->salt;

		clickhouse_rows__done(rows);
		code = clickhouse_rows__init(rows, recording, salt, sent_rows);
	}
	rows->earliest_s = UINT32_MAX;
	rows->latest_s = 0;
	for (size_t i = 0; !code && i < batch->n; i++)
		code = put_sample(rows, &batch->samples[i],
				  plausible(push_recording__time_ns(batch->of, &batch->samples[i]),
					    first_ns),
				  load);
	if (rows->series.failed || rows->stacks.failed || rows->frames_out.failed)
		code = -ENOMEM;
	return code;
}

void clickhouse_rows__set_load(struct clickhouse_rows *rows, uint64_t load)
{
	for (size_t at = 0; at < rows->samples.len; at += SAMPLE_ROW_BYTES)
		memcpy(rows->samples.data + at + SAMPLE_LOAD_OFFSET, &load, sizeof(load));
}
