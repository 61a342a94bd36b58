// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/merge.h"

#include <assert.h>
#include <stdlib.h>

/* A thread may run on several stacks: a signal handler on an alternate stack, a callback on a stack
 * that a library has made. Addresses grow outwards on one stack only, and between two stacks they
 * fall or rise.
 *
 * If native frame F runs the runtime frame at address A, then no other native frame has its CFA
 * between A and that of F. On the same stack such a frame would lie within F. Another stack would
 * lie within the stack of F. So at most one native frame can run the runtime frame: the one with
 * the lowest CFA above A, on whatever stack. That candidate is refused if an earlier runtime frame
 * lies further out, as both chains have their order.
 *
 * Runtime frames are first assigned to native frames, then both are written out. */

#define OUTSIDE UINT32_MAX

struct spot {
	uint32_t native; /* the native frame that the runtime frame precedes, or OUTSIDE */
	uint8_t placement;
	bool inferred;
	bool unplaced; /* no native frame is proven to run it */
};

struct state {
	const struct merge_frame *native, *runtime;
	size_t n_native, n_runtime;
	bool complete;
	struct merge_placed *placed;
	size_t n_placed;
	struct merge_report report;
	size_t n_spans;
	bool falls;	    /* some CFA is below that of the callee */
	uint32_t current;   /* no runtime frame is assigned further in */
	uint64_t last;	    /* address of the last runtime frame that was assigned; 0: none */
	uint32_t next;	    /* runtime frame to be written out */
	size_t anchored;    /* first runtime frame from `next` on that has an address, or belongs to
		       another runtime */
	uint32_t outermost; /* the last frame with a CFA */
	uint32_t spans[MERGE_DEPTH_MAX]; /* native frames with a CFA, by CFA */
	struct spot spots[MERGE_DEPTH_MAX];
};

static bool spans(const struct merge_frame *native)
{
	return !native->kernel && native->address != MERGE_NO_ADDRESS;
}

static int by_cfa(const void *a, const void *b, void *ctx)
{
	const struct merge_frame *native = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (native[x].address != native[y].address)
		return native[x].address < native[y].address ? -1 : 1;
	return x < y ? -1 : x > y;
}

static void sort_spans(struct state *state)
{
	uint64_t before = 0;

	for (size_t i = 0; i < state->n_native; i++) {
		if (!spans(&state->native[i]))
			continue;
		state->falls |= state->native[i].address < before;
		before = state->native[i].address;
		state->outermost = i;
		state->spans[state->n_spans++] = i;
	}
	if (state->falls)
		qsort_r(state->spans, state->n_spans, sizeof(*state->spans), by_cfa,
			(void *)state->native);
}

/* Returns the start of the frame, which is the CFA of its callee. If it is the frame's own CFA, the
 * frame begins on another stack. */
static uint64_t start_of(const struct state *state, uint32_t i)
{
	uint64_t high = state->native[i].address;

	for (uint32_t callee = i; callee-- > 0;) {
		uint64_t cfa = state->native[callee].address;

		if (spans(&state->native[callee]))
			return cfa < high ? cfa : high;
	}
	return 0;
}

/* Returns the native frame that may run a runtime frame at @address, or OUTSIDE. */
static uint32_t find_candidate(const struct state *state, uint64_t address)
{
	size_t low = 0, high = state->n_spans;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (state->native[state->spans[middle]].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < state->n_spans ? state->spans[low] : OUTSIDE;
}

/* Returns true if @candidate is the innermost frame of an incomplete stack whose thread changes
 * stacks. The start of that frame is not recorded, so that @address may lie in a missing frame.
 * Loops and compiled code are accepted, unless @address lies below that of the last runtime frame.
 */
static bool is_doubtful(const struct state *state, uint32_t candidate, uint64_t address)
{
	const struct merge_frame *native = &state->native[candidate];

	return !state->complete && state->falls && !start_of(state, candidate) &&
	       ((!native->loop && !native->jit) || address < state->last);
}

static struct spot unplaced_spot(const struct state *state, bool inferred)
{
	return (struct spot) { .native = state->current,
			       .placement = MERGE_PLACED_ORDER,
			       .inferred = inferred || state->complete,
			       .unplaced = true };
}

static struct spot spot_of(struct state *state, uint64_t address)
{
	uint32_t candidate = find_candidate(state, address);
	struct spot spot = { .native = candidate, .placement = MERGE_PLACED_ADDRESS };

	if (candidate == OUTSIDE) {
		if (state->complete)
			return unplaced_spot(state, true);
		spot.placement = MERGE_PLACED_APPENDED;
	} else if (candidate < state->current || is_doubtful(state, candidate, address)) {
		return unplaced_spot(state, true);
	} else if (candidate && start_of(state, candidate) == state->native[candidate].address &&
		   state->native[candidate].address) {
		/* The candidate switched stacks: its callees lie on another one. */
		if (candidate + 1 == state->n_native)
			return unplaced_spot(state, true);
		spot.native = candidate + 1;
		spot.placement = MERGE_PLACED_ORDER;
	}
	state->current = spot.native;
	state->last = address;
	return spot;
}

/* Assigns the frames from @i on to before @anchored, which have no address, as their neighbour: the
 * one outwards, or the one inwards if only that is of their runtime. Returns how many frames were
 * assigned. */
static size_t assign_run(struct state *state, size_t i, size_t anchored)
{
	const struct merge_frame *runtime = state->runtime;
	bool outwards = anchored < state->n_runtime &&
			runtime[anchored].address != MERGE_NO_ADDRESS &&
			runtime[anchored].address != MERGE_APART;
	struct spot spot;
	size_t n = anchored - i;

	if (outwards && i > 0 && runtime[anchored].kind != runtime[i].kind &&
	    runtime[i - 1].kind == runtime[i].kind)
		outwards = false;
	if (outwards) {
		spot = spot_of(state, runtime[anchored].address);
		state->spots[anchored] = spot;
		n++;
	} else {
		spot = i > 0 ? state->spots[i - 1] : unplaced_spot(state, false);
	}
	if (spot.placement == MERGE_PLACED_ADDRESS)
		spot.placement = MERGE_PLACED_ORDER;
	for (; i < anchored; i++)
		state->spots[i] = spot;
	return n;
}

/* Assigns all frames that have native frames in this stack. Returns their number. */
static size_t assign(struct state *state)
{
	const struct merge_frame *runtime = state->runtime;
	size_t i = 0, anchored;

	while (i < state->n_runtime && runtime[i].address != MERGE_APART) {
		anchored = i;
		while (anchored < state->n_runtime &&
		       runtime[anchored].address == MERGE_NO_ADDRESS &&
		       runtime[anchored].kind == runtime[i].kind)
			anchored++;
		if (anchored > i) {
			i += assign_run(state, i, anchored);
			continue;
		}
		state->spots[i] = spot_of(state, runtime[i].address);
		i++;
	}
	return i;
}

/* Moves the outermost of the runtime frames without a native frame to the outside. Native frames
 * that are missing may run them. In a complete stack any native frame may, so that they go inside
 * the outermost one. */
static void move_unplaced(struct state *state, size_t n)
{
	while (n-- > 0 && state->spots[n].unplaced) {
		state->spots[n].placement = MERGE_PLACED_APPENDED;
		state->spots[n].native = OUTSIDE;
		if (state->complete && state->n_spans && state->current <= state->outermost)
			state->spots[n].native = state->outermost;
	}
}

static void place_native(struct state *state, uint32_t i)
{
	state->placed[state->n_placed++] =
		(struct merge_placed) { .frame = state->native[i].frame,
					.placement = MERGE_PLACED_NATIVE,
					.inferred = state->native[i].inferred };
}

/* Places the next runtime frame. @code is set if its native frame, which is shown for it, was
 * reached by an inferred step. */
static void place_next(struct state *state, enum merge_placement placement, bool inferred,
		       bool code)
{
	const struct merge_frame *runtime = &state->runtime[state->next++];

	state->report.by_address += placement == MERGE_PLACED_ADDRESS;
	state->report.by_order += placement == MERGE_PLACED_ORDER;
	state->report.appended += placement == MERGE_PLACED_APPENDED;
	state->report.apart += placement == MERGE_PLACED_APART;
	state->report.unproven += inferred;
	state->placed[state->n_placed++] =
		(struct merge_placed) { .frame = runtime->frame,
					.placement = placement,
					.inferred = inferred || code || runtime->inferred };
}

/* Places the runtime frames of native frame @i. Compiled code itself is placed among them. Returns
 * true if the native frame runs any. */
static bool place_runtime(struct state *state, uint32_t i, size_t n)
{
	bool inside = spans(&state->native[i]) && state->native[i].jit, loop = false;
	uint64_t start = inside ? start_of(state, i) : 0;

	while (state->next < n && state->spots[state->next].native == i) {
		const struct spot *spot = &state->spots[state->next];
		uint64_t address = state->runtime[state->next].address;

		if (inside && address != MERGE_NO_ADDRESS && address != start) {
			place_native(state, i);
			inside = false;
		}
		loop |= spot->placement == MERGE_PLACED_ADDRESS;
		place_next(state, spot->placement, spot->inferred,
			   state->native[i].inferred &&
				   (state->native[i].jit || state->native[i].loop));
	}
	if (inside)
		place_native(state, i);
	return loop;
}

static void add_report(struct merge_report *to, const struct merge_report *report)
{
	to->by_address += report->by_address;
	to->by_order += report->by_order;
	to->appended += report->appended;
	to->apart += report->apart;
	to->unproven += report->unproven;
	to->loops += report->loops;
}

size_t merge__run(const struct merge_stacks *stacks, bool keep_vm, struct merge_placed *ret,
		  struct merge_report *report)
{
	struct state state; /* large: its arrays are not cleared */
	const struct merge_frame *native = stacks->native, *runtime = stacks->runtime;
	bool loop = false; /* the previous native frame was a loop, or a part of one */
	size_t n, i;

	assert(stacks->n_native <= MERGE_DEPTH_MAX && stacks->n_runtime <= MERGE_DEPTH_MAX);
	state.native = native;
	state.runtime = runtime;
	state.n_native = stacks->n_native;
	state.n_runtime = stacks->n_runtime;
	state.complete = stacks->complete;
	state.placed = ret;
	state.n_placed = state.n_spans = 0;
	state.falls = false;
	state.last = 0;
	state.current = state.next = state.outermost = 0;
	state.report = (struct merge_report) { 0 };
	sort_spans(&state);
	n = assign(&state);
	move_unplaced(&state, n);
	for (i = 0; i < state.n_native; i++) {
		bool runs = place_runtime(&state, i, n);

		state.report.loops += runs;
		loop = runs || (loop && native[i].loop);
		if (native[i].jit && spans(&native[i]))
			continue;
		if (loop && !keep_vm)
			continue;
		place_native(&state, i);
		state.placed[state.n_placed - 1].loop = loop;
	}
	while (state.next < state.n_runtime) {
		bool apart = runtime[state.next].address == MERGE_APART, anchored = state.next < n;

		place_next(&state, apart ? MERGE_PLACED_APART : MERGE_PLACED_APPENDED,
			   !apart && (anchored ? state.spots[state.next].inferred : state.complete),
			   false);
	}
	if (report)
		add_report(report, &state.report);
	return state.n_placed;
}
