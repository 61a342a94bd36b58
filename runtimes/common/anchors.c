// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/common/anchors.h"

#include <string.h>

#include "bpf/shared.h"
#include "core/base/util.h"

size_t anchors__settle(struct runtime_pair *pairs, size_t n)
{
	size_t settled = 0, retained = 0, i;

	for (i = 0; i < n; i++) {
		if (pairs[i].key != FRAME_ANCHOR) {
			pairs[retained++] = pairs[i];
			continue;
		}
		for (; settled < retained; settled++)
			if (!pairs[settled].address)
				pairs[settled].address = pairs[i].address;
	}
	return retained;
}

/* The native frames of one kind that have a CFA. */
struct spans {
	uint64_t
		starts[NATIVE_FRAMES_MAX]; /* CFA of the native frame inside; 0: unknown, or none */
	uint64_t ends[NATIVE_FRAMES_MAX];  /* their own CFAs */
	size_t n;
};

static void spans__read(struct spans *spans, const struct runtime_natives *natives, bool compiled)
{
	uint64_t inside = 0;

	spans->n = 0;
	for (size_t i = 0; i < natives->n && i < NATIVE_FRAMES_MAX; i++) {
		const struct runtime_native *native = &natives->list[i];

		if (native->cfa && (compiled ? native->compiled : native->loop)) {
			spans->starts[spans->n] = inside;
			spans->ends[spans->n++] = native->cfa;
		}
		inside = native->cfa;
	}
}

void anchors__pair(struct runtime_pair *pairs, size_t n, const struct runtime_natives *natives,
		   bool complete)
{
	struct spans loops;
	size_t both, i;

	spans__read(&loops, natives, false);
	both = min_of(n, loops.n);

	/* The word below a frame's CFA, its return address, is part of that frame. */
	for (i = 0; i < both; i++) {
		struct runtime_pair *pair = complete ? &pairs[n - 1 - i] : &pairs[i];

		if (pair->address)
			break;
		pair->address = loops.ends[complete ? loops.n - 1 - i : i] - 8;
	}
}

void anchors__rest(struct runtime_pair *pairs, size_t n, const struct runtime_natives *natives)
{
	struct spans loops;
	size_t first = n, loop = 0;

	spans__read(&loops, natives, false);
	while (first && !pairs[first - 1].address)
		first--;
	/* The first CFA above an address is that of the loop which contains it. */
	while (first && loop < loops.n && loops.ends[loop] <= pairs[first - 1].address)
		loop++;
	if (first)
		loop++;
	for (; first < n && loop < loops.n; first++)
		pairs[first].address = loops.ends[loop] - 8;
}

size_t anchors__prune(struct runtime_pair *pairs, size_t n, const struct runtime_natives *natives)
{
	struct spans loops;
	size_t dead, loop;

	spans__read(&loops, natives, false);
	for (dead = 0; dead < n && pairs[dead].address; dead++) {
		for (loop = 0; loop < loops.n; loop++)
			if (pairs[dead].address >= loops.starts[loop] &&
			    pairs[dead].address < loops.ends[loop])
				break;
		if (loop < loops.n)
			break;
	}
	memmove(pairs, pairs + dead, (n - dead) * sizeof(*pairs));
	return n - dead;
}

/* --- loops that run the frames up to a mark --- */

/* Returns the innermost native frame of the loop that ends before @end (exclusive, outwards), or
 * @end if there is none. *@ret_outer is the frame after the loop's outermost frame. */
static size_t loop__before(const struct runtime_native *natives, size_t end, size_t *ret_outer)
{
	while (end && !natives[end - 1].loop)
		end--;
	*ret_outer = end;
	while (end && natives[end - 1].loop)
		end--;
	return end;
}

/* Like loop__before(), for the loop that begins at @from or further out. */
static size_t loop__after(const struct runtime_native *natives, size_t n, size_t from,
			  size_t *ret_outer)
{
	while (from < n && !natives[from].loop)
		from++;
	for (*ret_outer = from; *ret_outer < n && natives[*ret_outer].loop;)
		(*ret_outer)++;
	return from;
}

/* Finds native methods, innermost first, among the native frames [low, high). The search begins at
 * the outermost frame: if a function calls itself, the runtime's frame is that of the outermost
 * call. */
static void match_methods(struct runtime_pair *pairs, const uint64_t *functions, size_t n,
			  const struct runtime_native *natives, size_t low, size_t high)
{
	while (n--) {
		size_t at = high;

		if (!functions[n] || functions[n] == ANCHOR_FUNCTION_UNKNOWN)
			continue;
		while (at > low && natives[at - 1].function != functions[n])
			at--;
		if (at == low)
			continue;
		pairs[n].address = natives[at - 1].cfa;
		high = at - 1;
	}
}

/* The frames [first, end) that one loop runs. Those before `loop` are native methods that it
 * called.
 */
struct segment {
	size_t first, loop, end;
	bool begun; /* no loop runs them yet, and no mark follows them */
};

/* Returns true if the innermost frame ends a segment although no mark follows it: a native method
 * calls frames by another loop. */
static bool lacks_mark(const uint64_t *functions, size_t n, enum anchors_start start)
{
	return start == ANCHORS_MARK_LAST && n > 1 && !functions[0] && functions[1];
}

static struct segment segment__at(const uint64_t *functions, size_t first, size_t end, size_t n,
				  enum anchors_start start)
{
	struct segment segment = { .first = first, .loop = first, .end = end };

	while (segment.loop < end && functions[segment.loop])
		segment.loop++;
	segment.begun = end == 1 && lacks_mark(functions, n, start);
	return segment;
}

static void segment__place(const struct segment *segment, struct runtime_pair *pairs,
			   const uint64_t *functions, const struct runtime_native *natives,
			   size_t low, size_t loop, bool found)
{
	match_methods(pairs + segment->first, functions + segment->first,
		      segment->loop - segment->first, natives, low, loop);
	if (!found || !natives[loop].cfa)
		return;
	for (size_t i = segment->loop; i < segment->end; i++)
		pairs[i].address = natives[loop].cfa - 8;
}

/* Places frames whose loop has not begun, although the runtime has linked them. All native frames
 * inside of the last match are about to run them, so they go inside the innermost native frame.
 * @high: the last match; 0: no native frame is inside. */
static void segment__place_begun(const struct segment *segment, struct runtime_pair *pairs,
				 const struct runtime_native *natives, size_t high)
{
	if (!high || !natives[0].cfa)
		return;
	for (size_t i = segment->loop; i < segment->end; i++)
		pairs[i].address = natives[0].cfa - 8;
}

static void match_inwards(struct runtime_pair *pairs, const uint64_t *functions, size_t n,
			  const struct runtime_native *natives, size_t n_natives,
			  enum anchors_start start)
{
	size_t high = n_natives, end = n, first, outer, loop, low;

	while (end) {
		struct segment segment;

		end -= pairs[end - 1].key == FRAME_LOOP_END;
		for (first = end; first && pairs[first - 1].key != FRAME_LOOP_END;)
			first--;
		if (!first && end > 1 && lacks_mark(functions, n, start))
			first = 1;
		segment = segment__at(functions, first, end, n, start);
		end = first;
		if (segment.first == segment.end)
			continue;
		loop = loop__before(natives, high, &outer);
		if (segment.loop == segment.end) { /* none but native methods */
			segment__place(&segment, pairs, functions, natives, outer, high, false);
			continue;
		}
		if (segment.begun || (start != ANCHORS_LOOP_FIRST && outer == loop)) {
			segment__place_begun(&segment, pairs, natives, high);
			continue;
		}
		loop__before(natives, loop, &low);
		segment__place(&segment, pairs, functions, natives, low, loop, outer > loop);
		high = loop;
	}
}

static void match_outwards(struct runtime_pair *pairs, const uint64_t *functions, size_t n,
			   const struct runtime_native *natives, size_t n_natives,
			   enum anchors_start start)
{
	size_t low = 0, first, end, loop, outer;

	for (first = 0; first < n; first = end + 1) {
		struct segment segment;

		if (!first && lacks_mark(functions, n, start)) {
			segment = segment__at(functions, 0, 1, n, start);
			segment__place_begun(&segment, pairs, natives, n_natives);
			first = 1;
		}
		for (end = first; end < n && pairs[end].key != FRAME_LOOP_END;)
			end++;
		segment = segment__at(functions, first, end, n, start);
		loop = loop__after(natives, n_natives, low, &outer);
		segment__place(&segment, pairs, functions, natives, low, loop,
			       segment.loop < segment.end && outer > loop);
		if (segment.loop < segment.end)
			low = outer;
	}
}

size_t anchors__match(struct runtime_pair *pairs, const uint64_t *functions, size_t n,
		      const struct runtime_natives *natives, bool complete,
		      enum anchors_start start)
{
	size_t here = 0, retained = 0, i;

	while (here < n && pairs[here].key != FRAME_APART)
		here++;
	for (i = here; i < n; i++)
		pairs[i].address = RUNTIME_APART;
	if (complete)
		match_inwards(pairs, functions, here, natives->list, natives->n, start);
	else
		match_outwards(pairs, functions, here, natives->list, natives->n, start);
	for (i = 0; i < n; i++)
		if (!FRAME_IS_MARK(pairs[i].key))
			pairs[retained++] = pairs[i];
	return retained;
}

void anchors__outwards(struct runtime_pair *pairs, size_t n, const struct runtime_natives *natives)
{
	struct spans codes;
	size_t at = 0, i;

	spans__read(&codes, natives, true);
	for (i = 0; i < n; i++) { /* outer frames have higher addresses */
		while (at < codes.n && codes.ends[at] <= pairs[i].address)
			at++;
		if (pairs[i].address && at < codes.n)
			pairs[i].address = codes.ends[at] - 8;
	}
}

void anchors__inwards(struct runtime_pair *pairs, size_t n, const struct runtime_natives *natives)
{
	const struct runtime_native *list = natives->list;
	size_t at = 0, i;

	for (i = 0; i < n; i++) { /* outer frames have higher addresses */
		while (at + 1 < natives->n && list[at].cfa < pairs[i].address)
			at++;
		if (at + 1 < natives->n && list[at].cfa == pairs[i].address && list[at].loop &&
		    list[at + 1].loop)
			pairs[i].address -= 8;
	}
}

/* Returns the innermost part of the loop to which native frame `at` belongs. No part begins below
 * `inside`, the address of a frame that another loop runs. */
static size_t innermost_part(const struct runtime_native *list, size_t at, uint64_t inside,
			     bool called)
{
	while (at && (called || list[at - 1].loop) && (at < 2 || list[at - 2].cfa > inside)) {
		at--;
		called = false;
	}
	return at;
}

void anchors__inside(struct runtime_pair *pairs, size_t n, const struct runtime_natives *natives,
		     bool called)
{
	const struct runtime_native *list = natives->list;
	uint64_t inside = 0, before = 0, to = 0;
	size_t at = 0, part;

	for (size_t i = 0; i < n; i++) { /* outer frames have higher addresses */
		if (!pairs[i].address || pairs[i].address == RUNTIME_APART)
			continue;
		if (pairs[i].address != before) {
			inside = before;
			before = to = pairs[i].address;
			while (at < natives->n && list[at].cfa <= before)
				at++;
			if (at < natives->n && list[at].loop) {
				part = innermost_part(list, at, inside, called);
				to = part < at ? list[part].cfa - 8 : before;
			}
		}
		pairs[i].address = to;
	}
}
