// SPDX-License-Identifier: GPL-2.0-or-later
/* Places: the code that an address of a process stands for.
 *
 * Problem. The same address may be code of a file, then nothing, then code of another file. A JIT
 * compiler replaces its code while samples are on their way. A sample carries addresses and a time;
 * names are looked up to a second later. So an address alone is no identity, and the lookup of
 * mappings and maps for each frame of each sample would be too slow.
 *
 * A place is one piece of code at one address, with a dense number. Code that replaces other code
 * at the address gets a new place with the next generation. Users (core/capture) store their
 * results about a place in arrays by its number.
 *
 *   by_address   address -> number of the newest place there
 *   slots        number - 1 -> place, and the round in which it was checked last
 *   lives        for code without a file: the code of the process's maps, and its start time
 *
 * Rounds. A place is valid as long as nothing changed that it was made of: the process's mappings
 * (changed_ns), the span of time between two changes in which the sample lies (span_ns), and the
 * attached runtimes. Any change begins a new round. The first lookup of an address in a round runs
 * look_at() again; all later ones are one hash lookup. If its file and link-time address are
 * unchanged, a place has the same number as before, so that its cached frames stay valid.
 *
 * Code without a file may be replaced within a round, too. On every lookup, follow() compares the
 * entry of the process's maps (perf map, jitdump) at the sample's time with the place's life. It
 * adds a place if another entry has taken over.
 *
 * Epochs bound the memory. At PLACES_MAX places all are dropped, and the epoch number grows. A
 * number is meaningful only together with its epoch: users compare places__epoch() and drop their
 * arrays when it differs. Generations continue to grow across epochs, so that (address, generation)
 * never names two pieces of code.
 *
 * Invariants: a number in by_address is the newest place of its address. Generations of one address
 * grow with time. A place has either an image or a life. */
#include "core/target/place.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "core/base/u64map.h"
#include "core/base/util.h"
#include "core/target/compiled_code.h"
#include "core/target/mapping_times.h"

struct slot {
	struct place place;
	uint32_t round;	     /* round of the last lookup */
	uint32_t life;	     /* index in places->lives, from 1; 0: code of an image */
	uint64_t function;   /* start of the function; 0: unknown */
	bool knows_function; /* `function` was looked up */
};

struct places {
	struct u64map by_address; /* number of the newest place of an address */
	struct slot *slots;	  /* by number - 1 */
	size_t n, cap;
	struct jit_life *lives;
	size_t n_lives, cap_lives;
	uint32_t epoch;
	uint32_t generation; /* generation of new addresses: above all of former epochs */
	uint32_t last_generation;
	uint32_t renamed; /* for places__renamed() */
	/* Number of the round, which ends when an address may have other code. */
	uint32_t round;
	uint64_t changed_ns; /* last change of the process's mappings, in this round */
	uint64_t span_ns;    /* span of time of the lookups (mapping_times__span()) */
	uint32_t attached;   /* attached runtimes, bit n */
};

static void forget_all(struct places *places)
{
	u64map__done(&places->by_address);
	free(places->slots);
	free(places->lives);
	*places = (struct places) { .epoch = places->epoch + 1,
				    .generation = places->last_generation + 1,
				    .last_generation = places->last_generation + 1,
				    .renamed = places->renamed,
				    .round = places->round,
				    .changed_ns = places->changed_ns,
				    .span_ns = places->span_ns,
				    .attached = places->attached };
}

void places__free(struct places *places)
{
	if (!places)
		return;
	forget_all(places);
	free(places);
}

void places__use_images(const struct places *places, uint64_t now_ns)
{
	for (size_t i = 0; places && i < places->n; i++)
		if (places->slots[i].place.image)
			image__use(places->slots[i].place.image, now_ns);
}

/* Returns the process's places, in the round of @time_ns, or NULL without memory. */
static struct places *places_of(struct process *process, uint64_t time_ns)
{
	struct places *places = process->places;
	uint32_t attached = process__attached(process);
	uint64_t span_ns = mapping_times__span(process, time_ns);

	if (!places) {
		places = process->places = calloc(1, sizeof(*places));
		if (!places)
			return NULL;
		places->epoch = 1;
	}
	if (!places->round || places->changed_ns != process->changed_ns ||
	    places->span_ns != span_ns || places->attached != attached) {
		places->round++;
		places->span_ns = span_ns;
		places->changed_ns = process->changed_ns;
		places->attached = attached;
	}
	return places;
}

/* --- evaluation --- */

static bool in_ranges(const struct runtime_range *ranges, size_t n, uint64_t vaddr)
{
	for (size_t i = 0; i < n; i++)
		if (vaddr >= ranges[i].start && vaddr < ranges[i].end)
			return true;
	return false;
}

static void find_runtimes(const struct process *process, struct place *place)
{
	const struct runtime *const *runtimes = process->runtimes->list;
	const struct runtime_range *ranges;
	size_t n;

	for (int i = 0; runtimes[i] && i < RUNTIMES_MAX; i++) {
		const struct runtime_image *image = place->image->runtimes[i].image;

		if (!image)
			continue;
		place->runtimes |= 1U << i;
		n = runtime__has(runtimes[i], files, loops)
			    ? runtimes[i]->files->loops(image, &ranges)
			    : 0;
		if (n && in_ranges(ranges, n, place->vaddr))
			place->loops |= 1U << i;
	}
}

static struct place look_at(const struct process *process, uint64_t address, uint64_t time_ns)
{
	const struct mapped *mapped = mapping_times__find(process, address, time_ns);
	struct place place = { .address = address, .compiler = -1 };

	if (mapped && mapped->image) {
		place.kind = PLACE_IMAGE;
		place.image = mapped->image;
		place.vaddr = address - mapped->bias;
		find_runtimes(process, &place);
		return place;
	}
	place.compiler = compiled_code__compiler(process, mapped);
	place.kind = place.compiler >= 0		   ? PLACE_COMPILED
		     : compiled_code__is_generated(mapped) ? PLACE_ANONYMOUS
							   : PLACE_UNKNOWN;
	return place;
}

/* --- cache --- */

static struct jit_life *life_of(struct places *places, const struct slot *slot)
{
	assert(slot->life && slot->life <= places->n_lives);
	return &places->lives[slot->life - 1];
}

/* Adds a new place after the place number @before at its address (0: none). */
static struct slot *add(struct places *places, struct place place, uint32_t before,
			const struct jit_life *life)
{
	struct slot *slot;

	if (array__reserve(&places->slots, &places->cap, places->n + 1, sizeof(*places->slots)) ||
	    (life && array__reserve(&places->lives, &places->cap_lives, places->n_lives + 1,
				    sizeof(*places->lives))) ||
	    u64map__put(&places->by_address, place.address, places->n + 1))
		return NULL;
	place.generation =
		before ? places->slots[before - 1].place.generation + 1 : places->generation;
	places->last_generation = max_of(places->last_generation, place.generation);
	place.number = places->n + 1;
	slot = &places->slots[places->n++];
	*slot = (struct slot) { .place = place, .round = places->round };
	if (life) {
		places->lives[places->n_lives++] = *life;
		slot->life = places->n_lives;
	}
	return slot;
}

/* Evaluates the address of place @number (0: new) again, as it may have other code now. */
static int look_again(struct process *process, struct places *places, uint64_t address,
		      uint64_t time_ns, uint32_t number, struct slot **ret)
{
	struct slot *slot = number ? &places->slots[number - 1] : NULL;
	struct place now = look_at(process, address, time_ns);
	struct jit_life life;

	if (slot && slot->place.image == now.image && slot->place.vaddr == now.vaddr) {
		now.number = number;
		now.generation = slot->place.generation;
		slot->place = now;
		slot->round = places->round;
		*ret = slot;
		return 0;
	}
	if (!now.image && compiled_code__meet(process, address, time_ns, &life))
		return -ENOMEM;
	if (places->n == PLACES_MAX) {
		forget_all(places);
		number = 0;
	}
	*ret = add(places, now, number, now.image ? NULL : &life);
	return *ret ? 0 : -ENOMEM;
}

static void set_compiled(struct places *places, struct slot *slot)
{
	places->renamed += slot->place.kind != PLACE_COMPILED;
	slot->place.kind = PLACE_COMPILED;
}

/* Sets *@ret to the place of the code without an image that was there at @time_ns. */
static int follow(struct process *process, struct places *places, uint64_t time_ns,
		  struct slot **ret)
{
	struct slot *slot = *ret;
	struct jit_life *life = life_of(places, slot), now;
	struct place place = slot->place;
	int rc = compiled_code__follow(process, place.address, time_ns, life, &now);
	uint32_t number = place.number;

	if (rc > 0) {
		if (places->n == PLACES_MAX) {
			forget_all(places);
			number = 0;
		}
		slot = *ret = add(places, place, number, &now);
		if (!slot)
			return -ENOMEM;
		life = life_of(places, slot);
	}
	if (life->in_map.entry.text)
		set_compiled(places, slot);
	return min_of(rc, 0);
}

int place__at(struct process *process, uint64_t address, uint64_t time_ns, const struct place **ret)
{
	struct places *places = places_of(process, time_ns);
	struct slot *slot;
	uint32_t number;
	int rc = 0;

	if (!places)
		return -ENOMEM;
	number = u64map__get(&places->by_address, address);
	slot = number ? &places->slots[number - 1] : NULL;
	if (!slot || slot->round != places->round)
		rc = look_again(process, places, address, time_ns, number, &slot);
	if (!rc && !slot->place.image)
		rc = follow(process, places, time_ns, &slot);
	if (!rc)
		*ret = &slot->place;
	return rc;
}

/* --- further properties of places --- */

static struct slot *slot_of(struct process *process, uint32_t number)
{
	assert(process->places && number && number <= process->places->n);
	return &process->places->slots[number - 1];
}

uint64_t place__function(struct process *process, uint32_t number)
{
	struct slot *slot = slot_of(process, number);
	const struct place *place = &slot->place;
	uint64_t start;

	if (!slot->knows_function && place->image &&
	    !symbols__function_start(place->image->symbols, place->vaddr, &start))
		slot->function = place->address - (place->vaddr - start);
	slot->knows_function = true;
	return slot->function;
}

bool place__symbol(struct process *process, uint32_t number, struct jit_symbol *ret)
{
	struct slot *slot = slot_of(process, number);
	bool found;

	assert(!slot->place.image);
	found = compiled_code__symbol(process, slot->place.address, life_of(process->places, slot),
				      ret);
	if (found)
		set_compiled(process->places, slot);
	return found;
}

const struct place *place__numbered(struct process *process, uint32_t number)
{
	struct places *places = places_of(process, UINT64_MAX);
	struct slot *slot = slot_of(process, number);
	struct place now;

	/* Only the newest place of an address can be evaluated again. */
	if (slot->round == places->round ||
	    u64map__get(&places->by_address, slot->place.address) != number)
		return &slot->place;
	now = look_at(process, slot->place.address, UINT64_MAX);
	if (!now.image && !slot->place.image) {
		slot->place.compiler = now.compiler;
		if (!slot->life || !life_of(places, slot)->in_map.entry.text)
			slot->place.kind = now.kind;
	}
	return &slot->place;
}

uint32_t places__epoch(const struct process *process)
{
	return process->places ? process->places->epoch : 0;
}

uint32_t places__count(const struct process *process)
{
	return process->places ? process->places->n : 0;
}

uint32_t places__renamed(const struct process *process)
{
	return process->places ? process->places->renamed : 0;
}
