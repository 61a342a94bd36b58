// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/merge.h"

/* One pass over both stacks, from the innermost frames outwards. Before a native frame is placed,
 * the runtime frames that it runs are.
 *
 * A thread's stack addresses grow outwards but for one case, a signal handler on an alternate
 * stack: the frame that it interrupted can lie lower. Such a fall starts a new region of the
 * stack. Where the innermost frame of the first region begins is not known; if the stack falls
 * later on, all addresses below the region that follows belong there. */

struct state {
	const struct merge_frame *native, *runtime;
	size_t n_native, n_runtime;
	struct merge_placed *placed;
	size_t n_placed;
	struct merge_report report;
	size_t next; /* runtime frame to be placed */
	/* The first one from there on that has an address, or is another runtime's. */
	size_t known;
	uint64_t low;	 /* start of the native frame's span */
	size_t falls_at; /* native frame that starts the last region; 0: there is but one */
};

static bool spans(const struct merge_frame *native)
{
	return !native->kernel && native->address != MERGE_NO_ADDRESS;
}

/* Finds the regions and where the innermost frame begins. */
static void look_ahead(struct state *state)
{
	uint64_t first = 0, before = 0, below = 0;
	size_t i;

	for (i = 0; i < state->n_native; i++) {
		const struct merge_frame *native = &state->native[i];

		if (!spans(native))
			continue;
		if (!first)
			first = native->address;
		if (native->address < before)
			state->falls_at = i;
		if (state->falls_at && native->address < first && native->address > below)
			below = native->address;
		before = native->address;
	}
	state->low = below;
}

static void place(struct state *state, const struct merge_frame *frame,
		  enum merge_placement placement)
{
	state->placed[state->n_placed++] = (struct merge_placed) { .frame = frame->frame,
								   .placement = placement,
								   .inferred = frame->inferred };
}

/* The address that shows where the next runtime frame belongs: its own; or that of the neighbour
 * outwards, unless it is another runtime's and there is one of its own runtime inwards.
 * MERGE_APART: none. */
static uint64_t evident_address(struct state *state)
{
	const struct merge_frame *runtime = state->runtime, *next = &runtime[state->next], *known;

	if (state->known < state->next)
		state->known = state->next;
	while (state->known < state->n_runtime &&
	       runtime[state->known].address == MERGE_NO_ADDRESS &&
	       runtime[state->known].kind == next->kind)
		state->known++;
	known = &runtime[state->known];
	if (state->known == state->n_runtime || known->address == MERGE_NO_ADDRESS)
		return MERGE_APART;
	if (known->kind != next->kind && state->next > 0 && next[-1].kind == next->kind)
		return MERGE_APART;
	return known->address;
}

/* Is the next runtime frame run by this native frame, which ends at `high`? One without an
 * address goes with its neighbour, outwards if that has one, else inwards. */
static bool belongs(struct state *state, uint64_t high, bool last_region,
		    enum merge_placement *ret_placement)
{
	uint64_t address = evident_address(state);

	*ret_placement = MERGE_PLACED_ORDER;
	if (address == MERGE_APART) /* no neighbour outwards that is on this stack */
		return state->next > 0 && state->next < state->known;
	if (address < state->low)
		return last_region;
	if (address >= high)
		return false;
	if (state->known == state->next)
		*ret_placement = MERGE_PLACED_ADDRESS;
	return true;
}

/* Places the runtime frames of native frame `i`, in the midst of them compiled code itself. Returns
 * whether it runs any. */
static bool place_runtime(struct state *state, size_t i)
{
	uint64_t high = state->native[i].address, low = state->low;
	bool loop = false, inside = state->native[i].jit;
	enum merge_placement placement;

	if (high < state->low) { /* starts a region */
		if (inside)
			place(state, &state->native[i], MERGE_PLACED_NATIVE);
		state->low = high;
		return false;
	}
	while (state->next < state->n_runtime &&
	       belongs(state, high, i >= state->falls_at, &placement)) {
		uint64_t address = state->runtime[state->next].address;

		if (inside && address != MERGE_NO_ADDRESS && address != low) {
			place(state, &state->native[i], MERGE_PLACED_NATIVE);
			inside = false;
		}
		place(state, &state->runtime[state->next++], placement);
		if (placement == MERGE_PLACED_ADDRESS) {
			state->report.by_address++;
			loop = true;
		} else {
			state->report.by_order++;
		}
	}
	if (inside)
		place(state, &state->native[i], MERGE_PLACED_NATIVE);
	state->low = high;
	return loop;
}

/* What no native frame runs. */
static void place_rest(struct state *state)
{
	for (; state->next < state->n_runtime; state->next++) {
		bool apart = state->runtime[state->next].address == MERGE_APART;

		place(state, &state->runtime[state->next],
		      apart ? MERGE_PLACED_APART : MERGE_PLACED_APPENDED);
		state->report.apart += apart;
		state->report.appended += !apart;
	}
}

size_t merge__run(const struct merge_frame *native, size_t n_native,
		  const struct merge_frame *runtime, size_t n_runtime, bool keep_vm,
		  struct merge_placed *ret, struct merge_report *report)
{
	struct state state = { .native = native,
			       .runtime = runtime,
			       .n_native = n_native,
			       .n_runtime = n_runtime,
			       .placed = ret };
	bool loop = false; /* the frame before was (part of) one */
	size_t i;

	look_ahead(&state);
	for (i = 0; i < n_native; i++) {
		bool runs = spans(&native[i]) && place_runtime(&state, i);

		state.report.loops += runs;
		loop = runs || (loop && native[i].loop);
		if (native[i].jit && spans(&native[i]))
			continue;
		if (loop && !keep_vm)
			continue;
		place(&state, &native[i], MERGE_PLACED_NATIVE);
		state.placed[state.n_placed - 1].loop = loop;
	}
	place_rest(&state);
	if (report) {
		report->by_address += state.report.by_address;
		report->by_order += state.report.by_order;
		report->appended += state.report.appended;
		report->apart += state.report.apart;
		report->loops += state.report.loops;
	}
	return state.n_placed;
}
