// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/out/out_otlp.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/out/out_tracks.h"

/* The field numbers of opentelemetry/proto/profiles/v1development/profiles.proto at 1.10. */
enum {
	DICTIONARY_MAPPING = 1,
	DICTIONARY_LOCATION = 2,
	DICTIONARY_FUNCTION = 3,
	DICTIONARY_LINK = 4,
	DICTIONARY_STRING = 5,
	DICTIONARY_ATTRIBUTE = 6,
	DICTIONARY_STACK = 7,
	MAPPING_FILENAME = 4,
	LOCATION_MAPPING = 1,
	LOCATION_LINES = 3,
	LOCATION_ATTRIBUTES = 4,
	LINE_FUNCTION = 1,
	LINE_LINE = 2,
	FUNCTION_NAME = 1,
	FUNCTION_FILENAME = 3,
	ATTRIBUTE_KEY = 1,
	ATTRIBUTE_VALUE = 2,
	STACK_LOCATIONS = 1, /* packed, leaf first */

	LINK_TRACE_ID = 1,
	LINK_SPAN_ID = 2,

	ANY_STRING = 1,
	ANY_INT = 3,
};

/* Returns the entry of a key in *@ret. *@ret_new is set if the caller must write it to
 * table->entries. */
static int find(struct otlp_table *table, const char *key, uint32_t *ret, bool *ret_new)
{
	uint32_t n = strtab__count(table->keys);

	if (strtab__intern(table->keys, key, ret))
		return -ENOMEM;
	*ret_new = *ret == n;
	return 0;
}

int otlp__string(struct otlp *otlp, const char *text, uint32_t *ret)
{
	char *copy = strdup(text);
	bool new;
	int code;

	if (!copy)
		return -ENOMEM;
	escape__printable(copy);
	code = find(&otlp->strings, copy, ret, &new);
	if (!code && new)
		protobuf__text(&otlp->strings.entries, DICTIONARY_STRING, copy, strlen(copy));
	free(copy);
	return code;
}

void otlp__value(struct protobuf *message, int field, const char *text, uint64_t number)
{
	struct protobuf value = {};

	if (text)
		protobuf__text(&value, ANY_STRING, text, strlen(text));
	else
		protobuf__number(&value, ANY_INT, number);
	protobuf__submessage(message, field, &value);
	protobuf__done(&value);
}

int otlp__attribute(struct otlp *otlp, const char *key, const char *text, uint64_t number,
		    uint32_t *ret)
{
	char *copy = text ? strdup(text) : NULL, *of = NULL;
	uint32_t name;
	bool new;
	int code = -ENOMEM;

	if (text && !copy)
		return -ENOMEM;
	if (copy)
		escape__printable(copy);
	if (asprintf(&of, "%s\n%s%" PRIu64, key, copy ? copy : "", number) < 0)
		of = NULL;
	else
		code = find(&otlp->attributes, of, ret, &new);
	if (!code && new) {
		code = otlp__string(otlp, key, &name);
		protobuf__number(&otlp->part, ATTRIBUTE_KEY, name);
		otlp__value(&otlp->part, ATTRIBUTE_VALUE, copy, number);
		protobuf__submessage(&otlp->attributes.entries, DICTIONARY_ATTRIBUTE, &otlp->part);
	}
	free(of);
	free(copy);
	return code;
}

static int add_function(struct otlp *otlp, const struct profile *profile,
			const struct profile_frame *frame, uint32_t *ret)
{
	char *label = out_tracks__name(profile, frame, otlp->opts->annotate), key[32];
	uint32_t name, file;
	bool new;
	int code = label ? otlp__string(otlp, label, &name) : -ENOMEM;

	free(label);
	if (!code)
		code = otlp__string(otlp, strtab__get(profile->strings, frame->file), &file);
	*ret = 0;
	if (code || (!name && !file))
		return code;
	snprintf(key, sizeof(key), "%u %u", name, file);
	code = find(&otlp->functions, key, ret, &new);
	if (code || !new)
		return code;
	protobuf__number(&otlp->part, FUNCTION_NAME, name);
	protobuf__number(&otlp->part, FUNCTION_FILENAME, file);
	protobuf__submessage(&otlp->functions.entries, DICTIONARY_FUNCTION, &otlp->part);
	return 0;
}

static int add_mapping(struct otlp *otlp, const char *library, uint32_t *ret)
{
	uint32_t name;
	bool new;
	int code;

	*ret = 0;
	if (!*library)
		return 0;
	code = otlp__string(otlp, library, &name);
	if (!code)
		code = find(&otlp->mappings, strtab__get(otlp->strings.keys, name), ret, &new);
	if (code || !new)
		return code;
	protobuf__number(&otlp->part, MAPPING_FILENAME, name);
	protobuf__submessage(&otlp->mappings.entries, DICTIONARY_MAPPING, &otlp->part);
	return 0;
}

static int add_location(struct otlp *otlp, const struct profile *profile, uint32_t number,
			uint32_t *ret)
{
	const struct profile_frame *frame = &profile->frames[number];
	uint32_t function, mapping, type;
	char key[64];
	bool new;
	int code = add_function(otlp, profile, frame, &function);

	if (!code)
		code = add_mapping(otlp, strtab__get(profile->strings, frame->library), &mapping);
	if (!code)
		code = otlp__attribute(otlp, "profile.frame.type", profile->kinds[frame->kind].name,
				       0, &type);
	if (code)
		return code;
	snprintf(key, sizeof(key), "%u %u %u %u", function, frame->line, mapping, type);
	code = find(&otlp->locations, key, ret, &new);
	if (code || !new)
		return code;
	protobuf__number(&otlp->inner, LINE_FUNCTION, function);
	protobuf__number(&otlp->inner, LINE_LINE, frame->line);
	protobuf__varint(&otlp->list, type);
	protobuf__number(&otlp->part, LOCATION_MAPPING, mapping);
	protobuf__submessage(&otlp->part, LOCATION_LINES, &otlp->inner);
	protobuf__submessage(&otlp->part, LOCATION_ATTRIBUTES, &otlp->list);
	protobuf__submessage(&otlp->locations.entries, DICTIONARY_LOCATION, &otlp->part);
	return 0;
}

int otlp__enter(struct otlp *otlp, const struct profile *profile)
{
	free(otlp->location_of);
	otlp->location_of = calloc(profile->n_frames + 1, sizeof(*otlp->location_of));
	return otlp->location_of ? 0 : -ENOMEM;
}

int otlp__stack(struct otlp *otlp, const struct profile *profile, const uint32_t *frames, size_t n,
		uint32_t *locations, uint32_t *ret)
{
	uint32_t path = 0;
	char key[32] = "";
	bool new;
	int code = 0;

	for (size_t i = 0; !code && i < n; i++) {
		uint32_t *location = &otlp->location_of[frames[i]];

		if (!*location)
			code = add_location(otlp, profile, frames[i], location);
		locations[i] = *location;
		snprintf(key, sizeof(key), "%u %u", path, locations[i]);
		if (!code && strtab__intern(otlp->paths, key, &path))
			code = -ENOMEM;
	}
	if (n)
		snprintf(key, sizeof(key), "%u", path);
	if (!code)
		code = find(&otlp->stacks, key, ret, &new);
	if (code || !new)
		return code;
	while (n-- > 0)
		protobuf__varint(&otlp->list, locations[n]);
	protobuf__submessage(&otlp->part, STACK_LOCATIONS, &otlp->list);
	protobuf__submessage(&otlp->stacks.entries, DICTIONARY_STACK, &otlp->part);
	return 0;
}

/* Returns the tables by their fields. There are no links except an empty one. */
static void list_tables(struct otlp *otlp, struct otlp_table *ret[DICTIONARY_STACK + 1])
{
	memset(ret, 0, (DICTIONARY_STACK + 1) * sizeof(*ret));
	ret[DICTIONARY_MAPPING] = &otlp->mappings;
	ret[DICTIONARY_LOCATION] = &otlp->locations;
	ret[DICTIONARY_FUNCTION] = &otlp->functions;
	ret[DICTIONARY_STRING] = &otlp->strings;
	ret[DICTIONARY_ATTRIBUTE] = &otlp->attributes;
	ret[DICTIONARY_STACK] = &otlp->stacks;
}

void otlp__dictionary(struct otlp *otlp, int field, struct protobuf *message)
{
	struct otlp_table *tables[DICTIONARY_STACK + 1];
	struct protobuf dictionary = {}, empty = {};
	static const char zeros[16];

	list_tables(otlp, tables);
	for (int i = DICTIONARY_MAPPING; i <= DICTIONARY_STACK; i++) {
		if (i == DICTIONARY_LINK) {
			protobuf__text(&empty, LINK_TRACE_ID, zeros, 16);
			protobuf__text(&empty, LINK_SPAN_ID, zeros, 8);
		}
		protobuf__submessage(&dictionary, i, &empty);
		if (tables[i])
			protobuf__append(&dictionary, &tables[i]->entries);
	}
	protobuf__submessage(message, field, &dictionary);
	protobuf__done(&dictionary);
	protobuf__done(&empty);
}

int otlp__init(struct otlp *otlp, const struct output_opts *opts)
{
	struct otlp_table *tables[DICTIONARY_STACK + 1];

	*otlp = (struct otlp) { .opts = opts, .paths = strtab__new() };
	list_tables(otlp, tables);
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		if (!tables[i])
			continue;
		tables[i]->keys = strtab__new();
		if (!tables[i]->keys)
			return -ENOMEM;
	}
	return otlp->paths ? 0 : -ENOMEM;
}

void otlp__done(struct otlp *otlp)
{
	struct otlp_table *tables[DICTIONARY_STACK + 1];

	list_tables(otlp, tables);
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		if (!tables[i])
			continue;
		strtab__free(tables[i]->keys);
		protobuf__done(&tables[i]->entries);
	}
	strtab__free(otlp->paths);
	free(otlp->location_of);
	protobuf__done(&otlp->part);
	protobuf__done(&otlp->list);
	protobuf__done(&otlp->inner);
}
