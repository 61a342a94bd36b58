/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CLICKHOUSE_ROWS_H
#define BRAID_CLICKHOUSE_ROWS_H

#include "core/base/intern.h"
#include "core/base/u64map.h"
#include "core/push/push_recording.h"
#include "core/push/row_binary.h"

/* Converts samples of a recording to rows of the tables in assets/clickhouse.sql. */

#define STACK_PLACE_APART    UINT16_MAX /* place of a frame that waits on another stack */
#define STACK_PLACE_INFERRED 0x8000	/* bit of the other places: the frame is inferred */
#define FRAME_IS_LOOP	     1
#define FRAME_IS_NOWHERE     2 /* code without a file */

/* The definitions that were sent. They are not sent again on the same day. */
struct clickhouse_sent {
	struct u64map series, stacks, frames;
	uint16_t day; /* days since 1970 */
};

/* The ids of one recording so far. */
struct clickhouse_rows {
	struct push_recording *recording; /* NULL: none */
	struct clickhouse_sent *sent_rows;
	const char *salt;
	uint64_t *frame_ids;			 /* by frame; the last one is for invalid frames */
	struct intern stack_index, series_index; /* index + 1 of the ids below */
	uint64_t *stack_ids, *series_ids;
	size_t n_stacks, cap_stacks, n_series, cap_series;
	/* Buffers: the frames and addresses of a stack. */
	struct row_writer content;
	uint64_t *addresses, *sorted;
	uint32_t *frames;
	bool *inferred;
	size_t cap_addresses, cap_sorted, cap_frames, cap_inferred;

	/* The rows of one batch. */
	struct row_writer series, stacks, frames_out, samples;
	uint32_t earliest_s, latest_s;
};

/* @salt and @sent_rows are borrowed. Returns 0 or -ENOMEM. The caller must call
 * clickhouse_rows__done() also on failure. */
int clickhouse_rows__init(struct clickhouse_rows *rows, struct push_recording *recording,
			  const char *salt, struct clickhouse_sent *sent_rows);
void clickhouse_rows__done(struct clickhouse_rows *rows);

/* Creates the rows of a batch, with the definitions that were not sent yet, which then count as
 * sent. @load is the load of the samples. Returns 0 or -ENOMEM. */
int clickhouse_rows__make(struct clickhouse_rows *rows, const struct push_batch *batch,
			  uint64_t load);

/* Changes the load of the samples. */
void clickhouse_rows__set_load(struct clickhouse_rows *rows, uint64_t load);

/* Drops all definitions, if some did not arrive, or may not have arrived. */
void clickhouse_sent__forget(struct clickhouse_sent *sent_rows);

#endif
