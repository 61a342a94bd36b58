/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CACHED_RESULT_H
#define BRAID_CACHED_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "core/capture/capture.h"
#include "core/capture/captured.h"

/* The cached result of a stack that the kernel half sends once (core/capture/sent_stacks.h). The
 * next sample of the stack costs a few comparisons instead of a look-up of each frame. The result
 * is valid as long as its basis is unchanged. */

struct result_basis {
	uint32_t serial;     /* serial number of the process */
	uint32_t process;    /* id of the process */
	uint32_t attached;   /* attached runtimes */
	uint32_t epoch;	     /* epoch of the process's places */
	uint32_t renamed;    /* places__renamed */
	uint32_t version;    /* version of the process's maps of code, if `moving`; else 0 */
	uint64_t changed_ns; /* last change of its mappings */
	uint64_t span_ns;    /* mapping_times__span() at the sample */
	uint64_t n_codes;    /* number of code records so far, which runtimes may use in pairing */
	uint8_t state;	     /* thread's state: a waiting thread's kernel frames are cut */
	bool of_nobody;	     /* sample of an interrupt (tid 0), whose kernel frames are cut */
};

struct cached_result {
	/* --- in the cached result only --- */
	bool is_there;
	bool moving; /* some frame is in code without an image */
	struct result_basis basis;

	/* --- the data that a sample needs from its stack --- */
	uint32_t flags;		  /* SAMPLE_* */
	uint32_t native, runtime; /* nodes */
	uint32_t kernel_frames, native_frames, inferred_frames, inferred_runtimes, unplaced;
	uint32_t stale; /* as in struct capture_stats */
	bool missing;	/* the stack runs through a runtime's loop, but has no frames of it */
	uint32_t n_sections;
	struct {
		uint32_t runtime, frames;
	} sections[SECTIONS_MAX]; /* sections with frames */
};

/* Returns 1 if the result is valid for this sample of the stack, 0 if it is not, or -ENOMEM. May
 * read new entries in the process's maps. */
int cached_result__holds(const struct cached_result *cached, const struct rec_sample *rec,
			 const struct captured *captured, uint64_t n_codes);

/* Caches the result of the sample's stack. @moving is as in struct cached_result. Returns 0 or
 * -ENOMEM. */
int cached_result__store(struct cached_result *cached, const struct rec_sample *rec,
			 const struct captured *captured, uint64_t n_codes, bool moving,
			 const struct cached_result *result);

/* Adds one sample of the stack to @stats. */
void cached_result__count(const struct cached_result *result, bool tick,
			  struct capture_stats *stats);

#endif
