// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture/sections.h"

#include <assert.h>
#include <stdlib.h>

#include "core/profile/merge.h"

/* The position of a runtime's frame: a native frame, as the profile will find it
 * (core/profile/merge.c), and an address within that native frame. */
struct place {
	uint32_t native; /* native frame that runs it; number of native frames: none does */
	uint64_t address;
};

/* Addresses of frames outside of all native frames. Frames that wait on another stack come first,
 * inside a runtime whose frames have addresses. Frames without an address come last. */
#define ADDRESS_APART	1
#define ADDRESS_UNKNOWN UINT64_MAX

/* a section during the merge */
struct cursor {
	const struct section *section;
	const struct place *places; /* places of its frames */
	size_t next;
};

struct sections {
	struct merge_frame natives[NATIVE_FRAMES_MAX];
	struct merge_frame frames[RUNTIME_STACK_MAX]; /* frames of one section */
	struct merge_placed placed[NATIVE_FRAMES_MAX + RUNTIME_STACK_MAX];
	struct place places[RUNTIME_STACK_MAX]; /* places of all sections, consecutive */
};

struct sections *sections__new(void)
{
	return calloc(1, sizeof(struct sections));
}

void sections__free(struct sections *sections)
{
	free(sections);
}

/* Finds the native frame of each frame of a section. Ids are indexes: native frames first, then
 * runtime frames. */
static void place_among_natives(struct sections *sections, const struct section *section,
				const struct section_natives *natives, struct place *places)
{
	size_t n, i, n_natives = natives->n;
	uint32_t native = 0;

	for (i = 0; i < section->n; i++) {
		uint64_t address = section->pairs[i].address;

		sections->frames[i] = (struct merge_frame) {
			.frame = n_natives + i,
			.address = address == RUNTIME_APART ? MERGE_APART : address,
		};
	}
	n = merge__run(&(struct merge_stacks) { .native = sections->natives,
						.runtime = sections->frames,
						.n_native = n_natives,
						.n_runtime = section->n,
						.complete = natives->complete },
		       true, sections->placed, NULL);
	for (i = 0; i < n; i++) {
		const struct merge_placed *placed = &sections->placed[i];

		if (placed->placement == MERGE_PLACED_NATIVE)
			native = placed->frame + 1;
		else
			places[placed->frame - n_natives].native = native;
	}
}

/* Sets the address of each frame that has none to its outer neighbour's address, or else to its
 * inner neighbour's, as merge__run() does. Returns the number of frames that still have none. */
static size_t place_within_natives(const struct section *section, struct place *places)
{
	uint64_t address = 0, unknown = 0;
	size_t i;

	for (i = section->n; i-- > 0;) {
		uint64_t own = section->pairs[i].address;

		address = own == RUNTIME_APART ? 0 : own ? own : address;
		places[i].address = own == RUNTIME_APART ? ADDRESS_APART : address;
	}
	for (address = 0, i = 0; i < section->n; i++) {
		if (!places[i].address)
			places[i].address = address;
		if (places[i].address != ADDRESS_APART)
			address = places[i].address;
		if (!places[i].address) {
			places[i].address = ADDRESS_UNKNOWN;
			unknown++;
		}
	}
	return unknown;
}

static bool is_inside(const struct cursor *a, const struct cursor *b)
{
	const struct place *x = &a->places[a->next], *y = &b->places[b->next];

	return x->native != y->native ? x->native < y->native : x->address < y->address;
}

/* Returns the cursor with the innermost next frame; among equals the first. NULL: all cursors are
 * at their end. */
static struct cursor *innermost(struct cursor *cursors, size_t n)
{
	struct cursor *found = NULL;

	for (size_t i = 0; i < n; i++)
		if (cursors[i].next < cursors[i].section->n &&
		    (!found || is_inside(&cursors[i], found)))
			found = &cursors[i];
	return found;
}

static void append(struct runtime_stack *stack, const struct section *section, size_t i)
{
	assert(stack->n < RUNTIME_STACK_MAX);
	stack->pairs[stack->n] = section->pairs[i];
	stack->evidence[stack->n] = section->evidence;
	stack->runtimes[stack->n++] = section->runtime;
}

size_t sections__merge(struct sections *sections, const struct section *list, size_t n,
		       const struct section_natives *natives, struct runtime_stack *ret)
{
	struct cursor cursors[SECTIONS_MAX], *next;
	size_t unknown = 0, used = 0, i;

	assert(n <= SECTIONS_MAX && natives->n <= NATIVE_FRAMES_MAX);
	ret->n = 0;
	if (n == 1) { /* by far the most frequent case */
		for (i = 0; i < list->n; i++)
			append(ret, list, i);
		return 0;
	}
	for (i = 0; i < natives->n; i++)
		sections->natives[i] =
			(struct merge_frame) { .frame = i, .address = natives->frames[i].cfa };
	for (i = 0; i < n; i++) {
		assert(used + list[i].n <= RUNTIME_STACK_MAX);
		cursors[i] = (struct cursor) { &list[i], sections->places + used, 0 };
		place_among_natives(sections, &list[i], natives, sections->places + used);
		unknown += place_within_natives(&list[i], sections->places + used);
		used += list[i].n;
	}
	while ((next = innermost(cursors, n)))
		append(ret, next->section, next->next++);
	return unknown;
}
