// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/live/live_window.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "core/base/util.h"

static void slot_begin(struct live_window_slot *slot, uint64_t now_ns)
{
	slot->start_ns = now_ns;
	slot->n = 0;
	intern__init(&slot->index, RECORDED_NONE);
}

static void slot_done(struct live_window_slot *slot)
{
	intern__done(&slot->index);
	free(slot->parts);
	*slot = (struct live_window_slot) {};
}

/* Returns the slot of an age; 0 is the newest, 1 the one before it. */
static struct live_window_slot *slot_at(const struct live_window *window, unsigned age)
{
	return &window->slots[(window->newest + window->n_max - age) % window->n_max];
}

int live_window__init(struct live_window *window, unsigned slots, uint64_t now_ns)
{
	assert(slots >= 1 && slots <= LIVE_WINDOW_SLOTS_MAX);
	*window = (struct live_window) { .n_max = slots + 1, .n = 1 };
	window->slots = calloc(window->n_max, sizeof(*window->slots));
	if (!window->slots)
		return -ENOMEM;
	slot_begin(&window->slots[0], now_ns);
	slot_begin(&window->under_way, now_ns);
	return 0;
}

void live_window__done(struct live_window *window)
{
	for (unsigned age = 0; age < window->n; age++)
		slot_done(slot_at(window, age));
	slot_done(&window->under_way);
	free(window->slots);
	*window = (struct live_window) {};
}

static void take_off(struct recorded *recorded, const struct live_window_slot *slot)
{
	for (size_t i = 0; i < slot->n; i++) {
		const struct live_window_part *part = &slot->parts[i];
		struct recorded_stack *row = &recorded->stacks.rows[part->stack];

		row->samples -= part->samples;
		row->occurrences -= part->occurrences;
		row->value -= part->value;
	}
}

void live_window__advance(struct live_window *window, struct recorded *recorded, uint64_t now_ns)
{
	window->newest = (window->newest + 1) % window->n_max;
	if (window->n == window->n_max) {
		take_off(recorded, &window->slots[window->newest]);
		window->n_parts -= window->slots[window->newest].n;
		slot_done(&window->slots[window->newest]);
	} else {
		window->n++;
	}
	slot_begin(&window->slots[window->newest], now_ns);
}

static int add_part(struct live_window *window, struct live_window_slot *slot,
		    struct recorded_stack *row, uint32_t stack, uint64_t samples,
		    uint64_t occurrences, uint64_t value)
{
	uint32_t *place = intern__at(&slot->index, stack, 0);
	struct live_window_part *part;

	if (!place)
		return -ENOMEM;
	if (!*place) {
		if (array__reserve(&slot->parts, &slot->cap, slot->n + 1, sizeof(*slot->parts)))
			return -ENOMEM;
		window->n_parts++;
		slot->parts[slot->n++] = (struct live_window_part) { .stack = stack };
		*place = slot->n;
	}
	part = &slot->parts[*place - 1];
	value = min_of(value, UINT64_MAX - row->value); /* then the part cannot overflow either */
	occurrences = min_of(occurrences, UINT64_MAX - row->occurrences);
	part->samples += samples;
	part->occurrences += occurrences;
	part->value += value;
	row->samples += samples;
	row->occurrences += occurrences;
	row->value += value;
	return 0;
}

/* Returns the share of the sample's total that belongs to @part of its own value. */
static uint64_t part_of(const struct sink_sample *sample, uint64_t part)
{
	return sample->value == sample->total || !sample->value
		       ? part
		       : (uint64_t)((unsigned __int128)sample->total * part / sample->value);
}

int live_window__add(struct live_window *window, struct recorded *recorded, uint32_t stack,
		     const struct sink_sample *sample, bool interval)
{
	uint64_t until = sample->time_ns;
	uint64_t from = interval ? until - min_of(until, sample->value) : until;
	uint64_t samples = 1, end = UINT64_MAX;
	int ret = 0;

	for (unsigned age = 0; !ret && age < window->n && end > from; age++) {
		struct live_window_slot *slot = slot_at(window, age);
		uint64_t begin = max_of(from, slot->start_ns), value = sample->total;

		if (slot->start_ns <= until) {
			if (interval)
				value = part_of(sample, min_of(until, end) - min_of(begin, until));
			ret = add_part(window, slot, &recorded->stacks.rows[stack], stack, samples,
				       samples * sample->weight, value);
			samples = 0;
			if (!interval)
				break;
		}
		end = slot->start_ns;
	}
	return ret;
}

int live_window__add_under_way(struct live_window *window, struct recorded *recorded,
			       uint32_t stack, const struct sink_sample *sample)
{
	uint64_t from = sample->time_ns - min_of(sample->time_ns, sample->value);

	from = max_of(from, slot_at(window, window->n - 1)->start_ns);
	return add_part(window, &window->under_way, &recorded->stacks.rows[stack], stack, 1, 1,
			sample->time_ns - min_of(from, sample->time_ns));
}

void live_window__drop_under_way(struct live_window *window, struct recorded *recorded)
{
	take_off(recorded, &window->under_way);
	window->n_parts -= window->under_way.n;
	slot_done(&window->under_way);
	slot_begin(&window->under_way, 0);
}

/* Removes the parts of stacks that do not move, and renumbers the others. */
static void keep_parts(struct live_window *window, struct live_window_slot *slot,
		       const uint32_t *moved)
{
	size_t n_parts = slot->n;

	window->n_parts -= slot->n;
	slot->n = 0;
	intern__done(&slot->index);
	intern__init(&slot->index, RECORDED_NONE);
	for (size_t i = 0; i < n_parts; i++) {
		slot->parts[slot->n] = slot->parts[i];
		slot->parts[slot->n].stack = moved[slot->parts[i].stack];
		slot->n += slot->parts[slot->n].stack != RECORDED_NONE;
	}
	window->n_parts += slot->n;
}

int live_window__keep(struct live_window *window, const bool *stacks, size_t n)
{
	uint32_t *moved = malloc((n + 1) * sizeof(*moved));
	uint32_t retained = 0;

	if (!moved)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		moved[i] = stacks[i] ? retained++ : RECORDED_NONE;
	for (unsigned age = 0; age < window->n; age++)
		keep_parts(window, slot_at(window, age), moved);
	keep_parts(window, &window->under_way, moved);
	free(moved);
	return 0;
}

size_t live_window__bytes(const struct live_window *window)
{
	return window->n_parts * sizeof(struct live_window_part);
}
