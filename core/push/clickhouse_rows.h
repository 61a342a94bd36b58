/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CLICKHOUSE_ROWS_H
#define BRAID_CLICKHOUSE_ROWS_H

#include "core/base/intern.h"
#include "core/base/u64map.h"
#include "core/push/push_recording.h"
#include "core/push/row_binary.h"

/* Samples of a recording as rows of the tables of assets/clickhouse.sql. */

#define STACK_PLACE_APART    UINT16_MAX /* of a frame that waits on another stack */
#define STACK_PLACE_INFERRED 0x8000	/* in the other places: the frame is inferred */
#define FRAME_IS_LOOP	     1
#define FRAME_IS_NOWHERE     2 /* no code of a file */

/* What has been sent of definitions: nothing of it is sent again on the same day. */
struct clickhouse_known {
	struct u64map series, stacks, frames;
	uint16_t day; /* from 1970 */
};

/* Ids that were made already, of one recording. */
struct clickhouse_rows {
	struct push_recording *recording; /* NULL: none */
	struct clickhouse_known *known;
	const char *salt;
	uint64_t *frame_ids; /* by frame; the last one is of those that lead nowhere */
	struct intern stack_index, series_index; /* of ids below, + 1 */
	uint64_t *stack_ids, *series_ids;
	size_t n_stacks, cap_stacks, n_series, cap_series;
	/* Scratch: a stack's frames and addresses. */
	struct row_writer content;
	uint64_t *addresses, *sorted;
	uint32_t *frames;
	bool *inferred;
	size_t cap_addresses, cap_sorted, cap_frames, cap_inferred;

	/* Rows of one batch. */
	struct row_writer series, stacks, frames_out, samples;
	uint32_t earliest_s, latest_s;
};

/* `salt`, `known`: borrowed. -ENOMEM. Call clickhouse_rows__done in any case. */
int clickhouse_rows__init(struct clickhouse_rows *rows, struct push_recording *recording,
			  const char *salt, struct clickhouse_known *known);
void clickhouse_rows__done(struct clickhouse_rows *rows);

/* Makes the rows of a batch, and those of definitions that are not known yet, which then count as
 * known. `load` is for samples. 0 or -ENOMEM. */
int clickhouse_rows__make(struct clickhouse_rows *rows, const struct push_batch *batch,
			  uint64_t load);

/* The samples alone once more, for another load. */
void clickhouse_rows__set_load(struct clickhouse_rows *rows, uint64_t load);

/* Definitions did not arrive, or may not have. */
void clickhouse_known__forget(struct clickhouse_known *known);

#endif
