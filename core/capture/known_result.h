/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_KNOWN_RESULT_H
#define BRAID_KNOWN_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "core/capture/capture.h"
#include "core/capture/captured.h"

/* What became of a stack that crosses the ring once (core/capture/known_stacks.h), so that its next
 * sample costs a few comparisons and not a look at each of its frames. It holds as long as all that
 * it was made from is the same. */

struct known_basis {
	uint32_t serial;     /* of the process */
	uint32_t process;    /* its id */
	uint32_t attached;   /* runtimes */
	uint32_t epoch;	     /* of its places */
	uint32_t renamed;    /* places__renamed */
	uint32_t version;    /* of what its maps tell of code, if `moving`; else 0 */
	uint64_t changed_ns; /* of its mappings */
	uint64_t span_ns;    /* mapping_times__span at the sample */
	uint64_t n_codes;    /* records of code that had come, which runtimes may pair frames by */
	uint8_t state;	     /* kernel frames of a thread that waits are cut ... */
	bool of_nobody;	     /* ... and those of an interrupt (tid 0) */
};

struct known_result {
	/* --- of the kept one only --- */
	bool is_there;
	bool moving; /* some frame is of code that no image holds */
	struct known_basis basis;

	/* --- all that a sample needs of its stack --- */
	uint32_t flags;		  /* SAMPLE_* */
	uint32_t native, runtime; /* nodes */
	uint32_t kernel_frames, native_frames, inferred_frames, inferred_runtimes, unplaced;
	uint32_t stale; /* as in struct capture_stats */
	bool missing;	/* a loop of a runtime runs in it, and none of that runtime's frames */
	uint32_t n_sections;
	struct {
		uint32_t runtime, frames;
	} sections[SECTIONS_MAX]; /* that have frames */
};

/* Does the result hold for this sample, which has its stack? May read what the process has told of
 * its code since. 1, 0 or -ENOMEM. */
int known_result__holds(const struct known_result *known, const struct rec_sample *rec,
			const struct captured *captured, uint64_t n_codes);

/* Keeps what was just made of the sample's stack. `moving` as above. -ENOMEM. */
int known_result__keep(struct known_result *known, const struct rec_sample *rec,
		       const struct captured *captured, uint64_t n_codes, bool moving,
		       const struct known_result *result);

/* Adds one sample of that stack. */
void known_result__count(const struct known_result *result, bool tick, struct capture_stats *stats);

#endif
