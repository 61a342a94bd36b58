// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture/captured.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

struct captured *captured__find(const struct captured_set *set, uint32_t serial)
{
	struct captured *captured;

	HASH_FIND(hh, set->first, &serial, sizeof(serial), captured);
	return captured;
}

struct captured *captured__get(struct captured_set *set, struct process *process)
{
	struct captured *captured = captured__find(set, process->serial);

	assert(!captured || captured->process == process);
	if (captured)
		return captured;
	captured = calloc(1, sizeof(*captured));
	if (!captured)
		return NULL;
	captured->serial = process->serial;
	captured->process = process;
	HASH_ADD(hh, set->first, serial, sizeof(captured->serial), captured);
	return captured;
}

static void source_free(struct captured_source *source)
{
	if (!source)
		return;
	free((char *)source->row.runtime);
	free((char *)source->row.version);
	free((char *)source->row.source);
	free((char *)source->row.reason);
	free(source);
}

/* Returns a copy of @text. Clears *@ok if that fails. */
static char *copy_of(const char *text, bool *ok)
{
	char *copy = text ? strdup(text) : NULL;

	*ok = *ok && (copy || !text);
	return copy;
}

int captured__source(struct captured *captured, const struct sink_source *row)
{
	struct captured_source *source = calloc(1, sizeof(*source)), **at, *old;
	bool ok = source != NULL;

	if (!source)
		return -ENOMEM;
	source->row.runtime = copy_of(row->runtime, &ok);
	source->row.version = copy_of(row->version, &ok);
	source->row.source = copy_of(row->source, &ok);
	source->row.reason = copy_of(row->reason, &ok);
	if (!ok) {
		source_free(source);
		return -ENOMEM;
	}
	for (at = &captured->sources; *at; at = &(*at)->next)
		if (!strcmp((*at)->row.runtime, row->runtime))
			break;
	old = *at;
	source->next = old ? old->next : NULL;
	*at = source;
	source_free(old);
	return 0;
}

void captured_set__renew(struct captured_set *set)
{
	struct captured *captured;

	for (captured = set->first; captured; captured = captured->hh.next) {
		captured->id = 0;
		captured->n_places = captured->n_unknown = 0;
		captured->context_version = 0;
	}
}

void captured__forget(struct captured_set *set, struct captured *captured)
{
	struct captured_source *source;

	while ((source = captured->sources)) {
		captured->sources = source->next;
		source_free(source);
	}
	HASH_DEL(set->first, captured);
	process_names__done(&captured->names);
	free(captured->places);
	free(captured->unknown);
	free(captured);
}

void captured_set__done(struct captured_set *set)
{
	struct captured *captured, *next;

	HASH_ITER (hh, set->first, captured, next)
		captured__forget(set, captured);
}

struct place_frame *captured__place(struct captured *captured, uint32_t number)
{
	uint32_t epoch = places__epoch(captured->process);
	size_t before = captured->n_places;

	if (captured->epoch != epoch) {
		captured->epoch = epoch;
		captured->n_places = captured->n_unknown = before = 0;
	}
	if (number > before) {
		if (array__reserve(&captured->places, &captured->cap_places, number,
				   sizeof(*captured->places)))
			return NULL;
		memset(&captured->places[before], 0, (number - before) * sizeof(*captured->places));
		captured->n_places = number;
	}
	return &captured->places[number - 1];
}
