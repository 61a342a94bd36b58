// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/pairing.h"

#include <stdlib.h>

#include "bpf/shared.h"
#include "core/symbols.h"
#include "core/util.h"

/* What is known of an ip of an image. */
struct place {
	bool in_loop, has_function;
	int how;	   /* the loops of its image: enum runtime_loops, or HOW_UNKNOWN */
	uint64_t function; /* address where it starts; 0: unknown */
};

/* All ips of one process that were met, seen with the eyes of one runtime. */
struct places {
	uint32_t process; /* its row */
	int runtime;
	uint64_t changed_ns; /* of its mappings */
	struct u64map by_ip; /* place in the list + 1 */
	struct place *list;
	size_t n, cap;
};

#define HOW_UNKNOWN -1
#define PLACES_OF   16	       /* processes and runtimes */
#define PLACES_MAX  (1U << 14) /* of each; then they are met anew */

struct pairing {
	struct places places[PLACES_OF];
	uint64_t loop_cfas[NATIVE_FRAMES_MAX];	 /* of interpreter loops, and ... */
	uint64_t loop_starts[NATIVE_FRAMES_MAX]; /* ... of the frames inside them */
	struct anchor_native natives[NATIVE_FRAMES_MAX];
	uint64_t functions[RUNTIME_PAIRS_MAX];
};

struct pairing *pairing__new(void)
{
	return calloc(1, sizeof(struct pairing));
}

static void forget(struct places *places)
{
	u64map__done(&places->by_ip);
	free(places->list);
	*places = (struct places) {};
}

void pairing__free(struct pairing *pairing)
{
	for (size_t i = 0; pairing && i < PLACES_OF; i++)
		forget(&pairing->places[i]);
	free(pairing);
}

uint64_t native_frame__address(const struct native_frame *frame)
{
	return (frame->ip & ~NATIVE_EXACT) - !(frame->ip & NATIVE_EXACT);
}

bool pairing__in_loop(const struct process *process, const struct runtime *runtime, int index,
		      uint64_t address, enum runtime_loops *ret_how)
{
	const struct mapped *mapped = process__find(process, address);
	const struct runtime_range *ranges;
	size_t n, i;

	if (!runtime->loops || !mapped || !mapped->image || !mapped->image->runtimes[index].image)
		return false;
	n = runtime->loops(mapped->image->runtimes[index].image, &ranges, ret_how);
	address -= mapped->bias;
	for (i = 0; i < n; i++)
		if (address >= ranges[i].start && address < ranges[i].end)
			return true;
	return false;
}

/* The sample's process and runtime; those that were in its place are forgotten. */
static struct places *places__of(struct pairing *pairing, const struct pairing_sample *sample)
{
	const struct process *process = sample->process;
	struct places *places =
		&pairing->places[(process->recording_id + sample->index) % PLACES_OF];

	if (places->process != process->recording_id || places->runtime != sample->index ||
	    places->changed_ns != process->changed_ns || places->n == PLACES_MAX) {
		forget(places);
		places->process = process->recording_id;
		places->runtime = sample->index;
		places->changed_ns = process->changed_ns;
	}
	return places;
}

static struct place look_up(const struct pairing_sample *sample, uint64_t address, bool function)
{
	const struct mapped *mapped = process__find(sample->process, address);
	enum runtime_loops how = HOW_UNKNOWN;
	struct place place = { .has_function = function };
	uint64_t start;

	place.in_loop =
		pairing__in_loop(sample->process, sample->runtime, sample->index, address, &how);
	place.how = how;
	if (function && mapped && mapped->image &&
	    !symbols__function_start(mapped->image->symbols, address - mapped->bias, &start))
		place.function = start + mapped->bias;
	return place;
}

/* `function`: it is wanted, too. */
static struct place place__get(struct places *places, const struct pairing_sample *sample,
			       const struct native_frame *frame, bool function)
{
	uint32_t at = u64map__get(&places->by_ip, frame->ip);
	struct place place;

	if (at && (!function || places->list[at - 1].has_function))
		return places->list[at - 1];
	place = look_up(sample, native_frame__address(frame), function);
	if (at)
		places->list[at - 1] = place;
	else if (!array__reserve(&places->list, &places->cap, places->n + 1,
				 sizeof(*places->list)) &&
		 !u64map__put(&places->by_ip, frame->ip, places->n + 1))
		places->list[places->n++] = place;
	return place;
}

static size_t find_loops(struct pairing *pairing, const struct pairing_sample *sample,
			 enum runtime_loops *ret_how)
{
	struct places *places = places__of(pairing, sample);
	uint64_t inside = 0;
	size_t n = 0, i;

	for (i = 0; i < sample->n_natives; i++) {
		const struct native_frame *frame = &sample->natives[i];
		struct place place = place__get(places, sample, frame, false);

		if (frame->cfa && place.how != HOW_UNKNOWN)
			*ret_how = place.how;
		if (frame->cfa && place.in_loop) {
			pairing->loop_starts[n] = inside;
			pairing->loop_cfas[n++] = frame->cfa;
		}
		inside = frame->cfa;
	}
	return n;
}

static void find_natives(struct pairing *pairing, const struct pairing_sample *sample)
{
	struct places *places = places__of(pairing, sample);
	size_t i;

	for (i = 0; i < sample->n_natives; i++) {
		const struct native_frame *frame = &sample->natives[i];
		struct place place = place__get(places, sample, frame, true);

		pairing->natives[i] = (struct anchor_native) { .cfa = frame->cfa,
							       .function = place.function,
							       .loop = place.in_loop };
	}
}

static size_t match(struct pairing *pairing, const struct pairing_sample *sample,
		    struct runtime_pair *pairs, size_t n)
{
	bool cut = sample->flags & (SAMPLE_RUNTIME_TRUNCATED | SAMPLE_RUNTIME_BROKEN);
	size_t i;

	find_natives(pairing, sample);
	for (i = 0; i < n; i++)
		pairing->functions[i] =
			FRAME_IS_MARK(pairs[i].key)
				? 0
				: sample->runtime->native(sample->session, pairs[i].key);
	return anchors__match(pairs, pairing->functions, n, pairing->natives, sample->n_natives,
			      sample->native_complete && !cut);
}

static size_t find_own_code(struct pairing *pairing, const struct pairing_sample *sample)
{
	size_t n = 0, i;

	for (i = 0; i < sample->n_natives; i++) {
		const struct native_frame *frame = &sample->natives[i];
		const struct mapped *mapped =
			process__find(sample->process, native_frame__address(frame));

		if (frame->cfa && mapped && !mapped->image)
			pairing->loop_cfas[n++] = frame->cfa;
	}
	return n;
}

/* Probes tell each frame's address. */
static bool has_addresses(const struct runtime_pair *pairs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (pairs[i].address)
			return true;
	return false;
}

size_t pairing__run(struct pairing *pairing, const struct pairing_sample *sample,
		    struct runtime_pair *pairs, size_t n)
{
	bool cut = sample->flags & (SAMPLE_RUNTIME_TRUNCATED | SAMPLE_RUNTIME_BROKEN);
	enum runtime_loops how = RUNTIME_LOOPS_SHARED;
	size_t n_cfas;

	if (sample->runtime->native && !has_addresses(pairs, n))
		return match(pairing, sample, pairs, n);
	if (sample->runtime->native) {
		find_natives(pairing, sample);
		anchors__inwards(pairs, n, pairing->natives, sample->n_natives);
	}
	if (sample->runtime->runs_own_code && sample->process->probed) {
		n_cfas = find_own_code(pairing, sample);
		anchors__outwards(pairs, n, pairing->loop_cfas, n_cfas);
	}
	n = anchors__settle(pairs, n);
	if (!n || !sample->runtime->loops || (pairs[n - 1].address && !sample->process->probed))
		return n;
	n_cfas = find_loops(pairing, sample, &how);
	if (how == RUNTIME_LOOPS_ONE_EACH && sample->native_complete)
		n = anchors__prune(pairs, n, pairing->loop_starts, pairing->loop_cfas, n_cfas);
	if (how == RUNTIME_LOOPS_ONE_EACH)
		anchors__pair(pairs, n, pairing->loop_cfas, n_cfas,
			      sample->native_complete && !cut);
	else
		anchors__rest(pairs, n, pairing->loop_cfas, n_cfas);
	return n;
}
