// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/base/escape.h"
#include "core/base/protobuf.h"
#include "core/base/strtab.h"
#include "core/base/u64map.h"
#include "core/base/util.h"
#include "core/profile/out_common.h"
#include "core/profile/pprof_values.h"

/* The messages of github.com/google/pprof, proto/profile.proto, written in the order of their
 * numbers and without the fields that are 0, as protobuf's own encoder does. Ids are not 0. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING_TABLE = 6,
	PROFILE_DURATION_NANOS = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,

	VALUE_TYPE_TYPE = 1,
	VALUE_TYPE_UNIT = 2,

	SAMPLE_LOCATION_ID = 1, /* packed, leaf first */
	SAMPLE_VALUE = 2,	/* packed */
	SAMPLE_LABEL = 3,
	LABEL_KEY = 1,
	LABEL_STR = 2,
	MAPPING_ID = 1,
	MAPPING_HAS_FUNCTIONS = 7, /* then filenames, line numbers */
	MAPPING_HAS_INLINE_FRAMES = 10,

	LOCATION_ID = 1,
	LOCATION_MAPPING_ID = 2,
	LOCATION_LINE = 4, /* innermost of the inlined functions first */

	LINE_FUNCTION_ID = 1,
	LINE_LINE = 2,

	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
	FUNCTION_FILENAME = 4,

	THE_MAPPING = 1,
};

/* Without a system_name: where that is the same as the name, pprof takes the name for one of C++
 * and drops what is in angle brackets, all of "<module>". */
struct function {
	uint32_t name, file; /* strings */
};

/* A native frame with the functions that were inlined into it is one location: they are one place
 * in the code, and only so do pprof's -noinlines and its "(inline)" marks work. */
struct location {
	uint32_t outer; /* place + 1 of the location into which this one's frame is inlined, or 0 */
	uint32_t function;
	uint32_t line;
	uint32_t id; /* 0: no stack needs it but as a part of others */
};

struct pprof {
	const struct profile *profile;
	struct out_tree tree;
	struct strtab *strings; /* becomes the string table, which also begins with "" */
	struct function *functions;
	struct location *locations;
	size_t n_functions, cap_functions, n_locations, cap_locations, n_ids;
	struct u64map function_index, location_index;
	uint32_t *function_of; /* by frame: ids */
	uint32_t *location_of; /* by node: place + 1 */
	uint64_t period_ns;    /* 0: not known */
	struct pprof_value values[PPROF_VALUES_MAX];
	size_t n_values;

	FILE *out;
	z_stream zip;
	struct protobuf message, part, list;
	struct protobuf tail; /* what follows the string table, but needs strings */
};

/* Of a number that comes from a file. */
static uint64_t to_nanos(double value)
{
	if (!(value >= 1))
		return 0;
	return value < 9e18 ? (uint64_t)(value + 0.5) : (uint64_t)INT64_MAX;
}

/* Writes the message so far; Z_FINISH ends the stream. */
static int compress_message(struct pprof *pprof, int flush)
{
	enum { AT_ONCE = 1 << 30 }; /* zlib counts in 32 bits */
	unsigned char chunk[16384];
	struct protobuf *message = &pprof->message;
	z_stream *zip = &pprof->zip;
	size_t at = 0, n;

	if (message->failed)
		return -ENOMEM;
	do {
		zip->next_in = message->data + at;
		zip->avail_in = min_of(message->len - at, (size_t)AT_ONCE);
		at += zip->avail_in;
		do {
			zip->next_out = chunk;
			zip->avail_out = sizeof(chunk);
			deflate(zip, at < message->len ? Z_NO_FLUSH : flush);
			n = sizeof(chunk) - zip->avail_out;
			if (fwrite(chunk, 1, n, pprof->out) != n)
				return -errno;
		} while (!zip->avail_out);
	} while (at < message->len);
	message->len = 0;
	return 0;
}

static int flush_message(struct pprof *pprof)
{
	enum { WORTH_IT = 1 << 16 };

	return pprof->message.len < WORTH_IT ? 0 : compress_message(pprof, Z_NO_FLUSH);
}

/* ---- what stacks are made of ---- */

/* `text` is any bytes; strings of the format are UTF-8. */
static int add_string(struct pprof *pprof, const char *text, const char *suffix, uint32_t *ret)
{
	char *copy;
	int err;

	if (asprintf(&copy, "%s%s", text, suffix) < 0)
		return -ENOMEM;
	escape__printable(copy);
	err = strtab__intern(pprof->strings, copy, ret);
	free(copy);
	return err;
}

static int add_function(struct pprof *pprof, const char *name, const char *suffix, const char *file,
			uint32_t *ret_id)
{
	struct function function;
	uint64_t key;

	if (add_string(pprof, name, suffix, &function.name) ||
	    add_string(pprof, file, "", &function.file))
		return -ENOMEM;
	key = (uint64_t)function.name << 32 | function.file;
	*ret_id = u64map__get(&pprof->function_index, key);
	if (*ret_id)
		return 0;
	if (array__reserve(&pprof->functions, &pprof->cap_functions, pprof->n_functions + 1,
			   sizeof(*pprof->functions)))
		return -ENOMEM;
	pprof->functions[pprof->n_functions++] = function;
	*ret_id = pprof->n_functions;
	return u64map__put(&pprof->function_index, key, *ret_id);
}

static int push_location(struct pprof *pprof, const struct location *location, uint32_t *ret_place)
{
	if (array__reserve(&pprof->locations, &pprof->cap_locations, pprof->n_locations + 1,
			   sizeof(*pprof->locations)))
		return -ENOMEM;
	pprof->locations[pprof->n_locations++] = *location;
	*ret_place = pprof->n_locations;
	return 0;
}

static int add_location(struct pprof *pprof, uint32_t outer, uint32_t frame, uint32_t *ret_place)
{
	uint64_t key = (uint64_t)outer << 32 | frame;
	struct location location = { .outer = outer,
				     .function = pprof->function_of[frame],
				     .line = pprof->profile->frames[frame].line };

	*ret_place = u64map__get(&pprof->location_index, key);
	if (*ret_place)
		return 0;
	if (push_location(pprof, &location, ret_place))
		return -ENOMEM;
	return u64map__put(&pprof->location_index, key, *ret_place);
}

/* Every stack needs a location to be counted. */
static int add_no_stack(struct pprof *pprof)
{
	struct location location = { 0 };

	if (add_function(pprof, "[no stack]", "", "", &location.function))
		return -ENOMEM;
	return push_location(pprof, &location, &pprof->location_of[0]);
}

/* Whether the node's frame was inlined into its parent's. */
static bool is_inlined(const struct profile *profile, const struct profile_node *node)
{
	int kind;

	if (!node->parent || profile->frames[node->frame].kind != KIND_INLINED)
		return false;
	kind = profile->frames[profile->nodes[node->parent].frame].kind;
	return kind == KIND_NATIVE || kind == KIND_INLINED;
}

/* In the order in which stacks are shown, so that the bytes do not depend on how the profile came
 * about. */
static int add_node(struct pprof *pprof, uint32_t number, int annotate)
{
	const struct profile *profile = pprof->profile;
	const struct profile_node *node = &profile->nodes[number];
	const struct profile_frame *frame;
	uint32_t *function, outer = 0;

	if (!number)
		return node->self || node->calls ? add_no_stack(pprof) : 0;
	frame = &profile->frames[node->frame];
	function = &pprof->function_of[node->frame];
	if (!*function && add_function(pprof, strtab__get(profile->strings, frame->name),
				       annotate ? profile->kinds[frame->kind].suffix : "",
				       strtab__get(profile->strings, frame->file), function))
		return -ENOMEM;
	if (is_inlined(profile, node))
		outer = pprof->location_of[node->parent];
	return add_location(pprof, outer, node->frame, &pprof->location_of[number]);
}

/* ---- messages ---- */

static int put_value_type(struct pprof *pprof, struct protobuf *to, int field, const char *type,
			  const char *unit)
{
	uint32_t type_id, unit_id;

	if (add_string(pprof, type, "", &type_id) || add_string(pprof, unit, "", &unit_id))
		return -ENOMEM;
	protobuf__number(&pprof->part, VALUE_TYPE_TYPE, type_id);
	protobuf__number(&pprof->part, VALUE_TYPE_UNIT, unit_id);
	protobuf__part(to, field, &pprof->part);
	return 0;
}

static int put_sample_types(struct pprof *pprof)
{
	int err = 0;

	pprof->n_values = pprof_values__of(pprof->profile, pprof->period_ns, pprof->values);
	for (size_t i = 0; !err && i < pprof->n_values; i++)
		err = put_value_type(pprof, &pprof->message, PROFILE_SAMPLE_TYPE,
				     pprof->values[i].type, pprof->values[i].unit);
	return err;
}

/* The ids of the stack's locations, leaf first. */
static void put_stack(struct pprof *pprof, uint32_t number)
{
	const struct profile_node *nodes = pprof->profile->nodes;

	do {
		struct location *location = &pprof->locations[pprof->location_of[number] - 1];

		if (!location->id)
			location->id = ++pprof->n_ids;
		protobuf__varint(&pprof->list, location->id);
		for (; location->outer; location = &pprof->locations[location->outer - 1])
			number = nodes[number].parent;
		number = nodes[number].parent;
	} while (number);
	protobuf__part(&pprof->part, SAMPLE_LOCATION_ID, &pprof->list);
}

static int put_label(struct pprof *pprof, const char *text)
{
	uint32_t key, str;

	if (!text)
		return 0;
	if (add_string(pprof, "state", "", &key) || add_string(pprof, text, "", &str))
		return -ENOMEM;
	protobuf__number(&pprof->list, LABEL_KEY, key);
	protobuf__number(&pprof->list, LABEL_STR, str);
	protobuf__part(&pprof->part, SAMPLE_LABEL, &pprof->list);
	return 0;
}

static int put_part(struct pprof *pprof, uint32_t number, enum pprof_part part)
{
	const struct profile_node node = pprof_part__of(&pprof->profile->nodes[number], part);

	if (!node.self && !node.calls)
		return 0;
	put_stack(pprof, number);
	for (size_t i = 0; i < pprof->n_values; i++)
		protobuf__varint(&pprof->list,
				 pprof_values__get(&pprof->values[i], &node, pprof->period_ns));
	protobuf__part(&pprof->part, SAMPLE_VALUE, &pprof->list);
	if (put_label(pprof, pprof_part__name(part)))
		return -ENOMEM;
	protobuf__part(&pprof->message, PROFILE_SAMPLE, &pprof->part);
	return flush_message(pprof);
}

static int put_sample(struct pprof *pprof, uint32_t number)
{
	int err = 0;

	for (enum pprof_part part = PPROF_ALL; part < PPROF_PARTS_N && !err; part++)
		if (pprof_part__used(pprof->profile, part))
			err = put_part(pprof, number, part);
	return err;
}

/* Tells pprof that there is nothing left to be named, so that it looks for no program. */
static void put_mapping(struct pprof *pprof)
{
	int field;

	protobuf__number(&pprof->part, MAPPING_ID, THE_MAPPING);
	for (field = MAPPING_HAS_FUNCTIONS; field <= MAPPING_HAS_INLINE_FRAMES; field++)
		protobuf__number(&pprof->part, field, true);
	protobuf__part(&pprof->message, PROFILE_MAPPING, &pprof->part);
}

static int put_location(struct pprof *pprof, const struct location *location)
{
	if (!location->id)
		return 0;
	protobuf__number(&pprof->part, LOCATION_ID, location->id);
	protobuf__number(&pprof->part, LOCATION_MAPPING_ID, THE_MAPPING);
	for (;; location = &pprof->locations[location->outer - 1]) {
		protobuf__number(&pprof->list, LINE_FUNCTION_ID, location->function);
		protobuf__number(&pprof->list, LINE_LINE, location->line);
		protobuf__part(&pprof->part, LOCATION_LINE, &pprof->list);
		if (!location->outer)
			break;
	}
	protobuf__part(&pprof->message, PROFILE_LOCATION, &pprof->part);
	return flush_message(pprof);
}

static int put_function(struct pprof *pprof, size_t place)
{
	const struct function *function = &pprof->functions[place];

	protobuf__number(&pprof->part, FUNCTION_ID, place + 1);
	protobuf__number(&pprof->part, FUNCTION_NAME, function->name);
	protobuf__number(&pprof->part, FUNCTION_FILENAME, function->file);
	protobuf__part(&pprof->message, PROFILE_FUNCTION, &pprof->part);
	return flush_message(pprof);
}

static int put_comment(struct pprof *pprof, const char *text)
{
	uint32_t comment;

	if (add_string(pprof, text, "", &comment))
		return -ENOMEM;
	protobuf__varint(&pprof->list, comment);
	return 0;
}

static int put_notes(struct pprof *pprof)
{
	char notes[OUTPUT_NOTES_MAX][OUTPUT_NOTE_BYTES];
	size_t n = output__notes(pprof->profile, notes);
	int err = 0;

	for (size_t i = 0; i < n && !err; i++)
		err = put_comment(pprof, notes[i]);
	return err;
}

/* The comments are the target, notes and what was lost; `pprof -comments` shows them. */
static int put_tail(struct pprof *pprof)
{
	const struct profile *profile = pprof->profile;
	const struct pprof_value *last = &pprof->values[pprof->n_values - 1];
	uint64_t period = pprof_values__period(profile, pprof->period_ns);
	int err = 0;
	size_t i;

	protobuf__number(&pprof->tail, PROFILE_DURATION_NANOS, to_nanos(profile->duration_s * 1e9));
	if (period)
		err = put_value_type(pprof, &pprof->tail, PROFILE_PERIOD_TYPE, last->type,
				     last->unit);
	protobuf__number(&pprof->tail, PROFILE_PERIOD, period);
	if (!err && profile->target && *profile->target)
		err = put_comment(pprof, profile->target);
	if (!err)
		err = put_notes(pprof);
	for (i = 0; i < profile->n_losses && !err; i++) {
		const struct profile_loss *loss = &profile->losses[i];
		char *text;

		if (asprintf(&text, "lost: %s: %" PRIu64, loss->name, loss->count) < 0)
			return -ENOMEM;
		err = put_comment(pprof, text);
		free(text);
	}
	if (pprof->list.len)
		protobuf__part(&pprof->tail, PROFILE_COMMENT, &pprof->list);
	return err;
}

static int put_all(struct pprof *pprof)
{
	size_t i;
	int err;

	err = put_sample_types(pprof);
	if (!err)
		err = put_tail(pprof);
	for (i = 0; i < pprof->tree.n_order && !err; i++)
		err = put_sample(pprof, pprof->tree.order[i]);
	put_mapping(pprof);
	for (i = 0; i < pprof->n_locations && !err; i++)
		err = put_location(pprof, &pprof->locations[i]);
	for (i = 0; i < pprof->n_functions && !err; i++)
		err = put_function(pprof, i);
	for (i = 0; i < strtab__count(pprof->strings) && !err; i++) {
		const char *text = strtab__get(pprof->strings, i);

		protobuf__text(&pprof->message, PROFILE_STRING_TABLE, text, strlen(text));
		err = flush_message(pprof);
	}
	protobuf__append(&pprof->message, &pprof->tail);
	return err;
}

static int pprof_init(struct pprof *pprof, int annotate)
{
	const struct profile *profile = pprof->profile;
	size_t i;
	int err;

	if (profile->unit == PROFILE_SAMPLES && profile->frequency_hz > 0)
		pprof->period_ns = to_nanos(1e9 / profile->frequency_hz);
	err = out_tree__init(&pprof->tree, profile);
	if (err)
		return err;
	pprof->strings = strtab__new();
	pprof->function_of = calloc(profile->n_frames + 1, sizeof(*pprof->function_of));
	pprof->location_of = calloc(profile->n_nodes, sizeof(*pprof->location_of));
	if (!pprof->strings || !pprof->function_of || !pprof->location_of)
		return -ENOMEM;
	for (i = 0; i < pprof->tree.n_order && !err; i++)
		err = add_node(pprof, pprof->tree.order[i], annotate);
	return err;
}

static void pprof_done(struct pprof *pprof)
{
	out_tree__done(&pprof->tree);
	strtab__free(pprof->strings);
	free(pprof->functions);
	free(pprof->locations);
	u64map__done(&pprof->function_index);
	u64map__done(&pprof->location_index);
	free(pprof->function_of);
	free(pprof->location_of);
	protobuf__done(&pprof->message);
	protobuf__done(&pprof->part);
	protobuf__done(&pprof->list);
	protobuf__done(&pprof->tail);
	deflateEnd(&pprof->zip);
}

int output__pprof(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	enum { GZIP = 16 }; /* a gzip header, whose time is 0 */
	struct pprof pprof = { .profile = profile, .out = out };
	int err;

	if (deflateInit2(&pprof.zip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + GZIP,
			 MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	err = pprof_init(&pprof, opts->annotate);
	if (!err)
		err = put_all(&pprof);
	if (!err)
		err = compress_message(&pprof, Z_FINISH);
	if (!err)
		err = output__finish(out);
	pprof_done(&pprof);
	return err;
}
