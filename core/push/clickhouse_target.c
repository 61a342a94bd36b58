// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/util.h"
#include "core/push/clickhouse.h"
#include "core/push/clickhouse_rows.h"
#include "core/push/push_target.h"

/* Sends each sample exactly once, also if messages are lost. An attempt to send a batch is a load
 * with a random number. The load is announced, its samples are sent, and it is committed; each step
 * follows the answer to the previous one. Samples of a load that is not committed, or not the first
 * of its range, do not count (braid_void). An attempt with an unknown result is thus abandoned and
 * repeated. */

struct range {
	uint64_t first, n;
};

struct clickhouse_target {
	struct push_target base;
	struct clickhouse clickhouse;
	char salt[CLICKHOUSE_SALT_MAX]; /* "": not requested yet */
	struct clickhouse_sent sent_rows;
	struct clickhouse_rows rows;
	struct range *committed; /* committed ranges of the recording */
	size_t n_committed, cap_committed;
};

static enum sent no_memory(struct err *err)
{
	err__set(err, -ENOMEM, "out of memory");
	return SENT_FAILED;
}

static enum sent ask_committed(struct clickhouse_target *target, const char *recording,
			       struct err *err)
{
	struct http_reply reply;
	struct row_reader rows;
	enum sent sent;
	char sql[300];

	snprintf(sql, sizeof(sql),
		 "SELECT first_sample, samples FROM braid_loads WHERE recording = '%s' AND "
		 "committed = 1 GROUP BY first_sample, samples FORMAT RowBinary",
		 recording);
	target->n_committed = 0;
	sent = clickhouse__ask(&target->clickhouse, sql, NULL, &reply, err);
	if (sent != SENT_OK)
		return sent;
	rows = clickhouse__rows(&reply);
	while (sent == SENT_OK && row_reader__more(&rows)) {
		struct range range = { .first = row_reader__number(&rows, 8),
				       .n = row_reader__number(&rows, 8) };

		if (array__reserve(&target->committed, &target->cap_committed,
				   target->n_committed + 1, sizeof(range)))
			sent = no_memory(err);
		else
			target->committed[target->n_committed++] = range;
	}
	http_reply__done(&reply);
	return sent;
}

static enum sent begin(struct push_target *base, struct push_recording *recording, struct err *err)
{
	struct clickhouse_target *target = (struct clickhouse_target *)base;
	enum sent sent = SENT_OK;

	if (!*target->salt)
		sent = clickhouse__salt(&target->clickhouse, target->salt, err);
	if (sent == SENT_OK)
		sent = ask_committed(target, recording->id, err);
	if (sent != SENT_OK)
		return sent == SENT_REFUSED ? SENT_DENIED : sent;
	clickhouse_rows__done(&target->rows);
	if (clickhouse_rows__init(&target->rows, recording, target->salt, &target->sent_rows))
		return no_memory(err);
	return SENT_OK;
}

/* Returns SENT_OK if the batch was committed before, or SENT_AGAIN if no part of the batch was
 * committed. Returns SENT_TOO_LARGE if a part was committed, so that the caller divides the batch.
 * Two ranges are nested or disjoint (push.c). */
static enum sent find_committed(const struct clickhouse_target *target,
				const struct push_batch *batch)
{
	uint64_t end = batch->first + batch->n;

	for (size_t i = 0; i < target->n_committed; i++) {
		const struct range *range = &target->committed[i];

		if (range->first <= batch->first && end - range->first <= range->n)
			return SENT_OK;
		if (range->first < end && range->first + range->n > batch->first)
			return SENT_TOO_LARGE;
	}
	return SENT_AGAIN;
}

static void put_load(const struct clickhouse_target *target, const struct push_batch *batch,
		     uint64_t load, bool committed, struct row_writer *out)
{
	const struct push_recording *recording = batch->of;
	const struct recorded *recorded = recording->recorded;

	row_writer__number(out, uint64_t, load);
	row_writer__text(out, recording->id);
	row_writer__number(out, uint64_t, batch->first);
	row_writer__number(out, uint64_t, batch->n);
	row_writer__number(out, uint8_t, committed);
	row_writer__number(out, uint32_t, target->rows.earliest_s);
	row_writer__number(out, uint32_t, target->rows.latest_s);
	row_writer__text(out, recording->service ? recording->service : "");
	row_writer__text(out, recording->host);
	row_writer__text(out, recorded__text(recorded, recorded->target));
	row_writer__number(out, uint32_t, time(NULL));
	row_writer__length(out, recorded->counters.n);
	for (size_t i = 0; i < recorded->counters.n; i++)
		row_writer__text(out, recorded__text(recorded, recorded->counters.rows[i].name));
	row_writer__length(out, recorded->counters.n);
	for (size_t i = 0; i < recorded->counters.n; i++)
		row_writer__number(out, uint64_t, recorded->counters.rows[i].value);
}

static enum sent insert_load(struct clickhouse_target *target, const struct push_batch *batch,
			     uint64_t load, bool committed, struct err *err)
{
	struct row_writer row = {};
	enum sent sent;

	put_load(target, batch, load, committed, &row);
	sent = clickhouse__insert(&target->clickhouse, "INSERT INTO braid_loads FORMAT RowBinary",
				  &row, err);
	row_writer__done(&row);
	return sent;
}

static enum sent insert_definitions(struct clickhouse_target *target, struct err *err)
{
	struct clickhouse *clickhouse = &target->clickhouse;
	enum sent sent;

	sent = clickhouse__insert(clickhouse, "INSERT INTO braid_frames FORMAT RowBinary",
				  &target->rows.frames_out, err);
	if (sent == SENT_OK)
		sent = clickhouse__insert(clickhouse, "INSERT INTO braid_stacks FORMAT RowBinary",
					  &target->rows.stacks, err);
	if (sent == SENT_OK)
		sent = clickhouse__insert(clickhouse, "INSERT INTO braid_series FORMAT RowBinary",
					  &target->rows.series, err);
	return sent;
}

static uint64_t new_load(void)
{
	uint64_t load;

	arc4random_buf(&load, sizeof(load));
	return load + !load;
}

/* Sends the samples. Each attempt is a load of its own, as data of a failed attempt may have
 * arrived, or may arrive later. */
static enum sent insert_samples(struct clickhouse_target *target, const struct push_batch *batch,
				uint64_t load, struct err *err)
{
	struct clickhouse *clickhouse = &target->clickhouse;

	for (;;) {
		enum sent sent = insert_load(target, batch, load, false, err);

		if (sent == SENT_OK)
			sent = clickhouse__insert_once(clickhouse,
						       "INSERT INTO braid_samples FORMAT RowBinary",
						       &target->rows.samples, err);
		if (sent == SENT_OK)
			return insert_load(target, batch, load, true, err);
		if (sent != SENT_AGAIN)
			return sent;
		sent = sender__wait(clickhouse->sender, clickhouse->what, err);
		if (sent != SENT_OK)
			return sent;
		load = new_load();
		clickhouse_rows__set_load(&target->rows, load);
	}
}

static enum sent send(struct push_target *base, const struct push_batch *batch, struct err *err)
{
	struct clickhouse_target *target = (struct clickhouse_target *)base;
	enum sent sent = find_committed(target, batch);
	uint64_t load = new_load();

	if (sent != SENT_AGAIN)
		return sent;
	if (clickhouse_rows__make(&target->rows, batch, load))
		sent = no_memory(err);
	else
		sent = insert_definitions(target, err);
	if (sent == SENT_OK)
		sent = insert_samples(target, batch, load, err);
	if (sent != SENT_OK)
		clickhouse_sent__forget(&target->sent_rows);
	return sent;
}

static void free_target(struct push_target *base)
{
	struct clickhouse_target *target = (struct clickhouse_target *)base;

	clickhouse_rows__done(&target->rows);
	clickhouse_sent__forget(&target->sent_rows);
	free(target->committed);
	free(target);
}

int clickhouse_target__new(const struct url *url, struct sender *sender, struct push_target **ret,
			   struct err *err)
{
	static const struct push_target_ops ops = { .begin = begin,
						    .send = send,
						    .free = free_target };
	struct clickhouse_target *target = calloc(1, sizeof(*target));
	int code;

	if (!target)
		return err__set(err, -ENOMEM, "out of memory");
	target->base.ops = &ops;
	code = clickhouse__init(&target->clickhouse, url, sender, err);
	if (code)
		free(target);
	else
		*ret = &target->base;
	return code;
}
