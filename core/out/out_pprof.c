// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/out/out_pprof.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/out/output.h"

/* Writes the message so far. If @flush is Z_FINISH, ends the stream. */
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

/* ---- messages ---- */

static int put_value_type(struct pprof *pprof, struct protobuf *to, int field, const char *type,
			  const char *unit)
{
	uint32_t type_id, unit_id;

	if (pprof__string(pprof, type, "", &type_id) || pprof__string(pprof, unit, "", &unit_id))
		return -ENOMEM;
	protobuf__number(&pprof->part, VALUE_TYPE_TYPE, type_id);
	protobuf__number(&pprof->part, VALUE_TYPE_UNIT, unit_id);
	protobuf__submessage(to, field, &pprof->part);
	return 0;
}

/* Returns the type of a value. Events differ in their names, but types such as "samples" may be
 * equal. A type that occurred before is prefixed with the event. */
static const char *type_of(const struct pprof *pprof, size_t i, char *buf, size_t size)
{
	const struct pprof_value *value = &pprof->values[i];

	for (size_t k = 0; k < i; k++) {
		if (strcmp(pprof->values[k].type, value->type) != 0)
			continue;
		snprintf(buf, size, "%.80s:%.80s", value->event, value->type);
		return buf;
	}
	return value->type;
}

static int put_sample_types(struct pprof *pprof, const struct profile *const *profiles, size_t n)
{
	struct pprof_value values[PPROF_VALUES_MAX];
	char type[200];
	int err = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t period_ns = pprof_values__period_ns(profiles[i]);
		size_t own = pprof_values__of(profiles[i], period_ns, values);

		if (array__reserve(&pprof->values, &pprof->cap_values, pprof->n_values + own,
				   sizeof(*values)))
			return -ENOMEM;
		memcpy(&pprof->values[pprof->n_values], values, own * sizeof(*values));
		pprof->n_values += own;
	}
	for (size_t i = 0; !err && i < pprof->n_values; i++)
		err = put_value_type(pprof, &pprof->message, PROFILE_SAMPLE_TYPE,
				     type_of(pprof, i, type, sizeof(type)), pprof->values[i].unit);
	return err;
}

/* Writes the ids of the stack's locations, leaf first. */
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
	protobuf__submessage(&pprof->part, SAMPLE_LOCATION_ID, &pprof->list);
}

static int put_label(struct pprof *pprof, const char *name, const char *text)
{
	uint32_t key, str;

	if (!text || !*text)
		return 0;
	if (pprof__string(pprof, name, "", &key) || pprof__string(pprof, text, "", &str))
		return -ENOMEM;
	protobuf__number(&pprof->list, LABEL_KEY, key);
	protobuf__number(&pprof->list, LABEL_STR, str);
	protobuf__submessage(&pprof->part, SAMPLE_LABEL, &pprof->list);
	return 0;
}

static int put_number_label(struct pprof *pprof, const char *name, uint64_t number)
{
	uint32_t key;

	if (!number)
		return 0;
	if (pprof__string(pprof, name, "", &key))
		return -ENOMEM;
	protobuf__number(&pprof->list, LABEL_KEY, key);
	protobuf__number(&pprof->list, LABEL_NUM, number);
	protobuf__submessage(&pprof->part, SAMPLE_LABEL, &pprof->list);
	return 0;
}

static int put_thread(struct pprof *pprof, const struct profile_thread *thread)
{
	const char *task = pprof->profile->task_name ?: "";
	int err = put_number_label(pprof, "pid", thread->pid);

	if (!err)
		err = put_label(pprof, "process", thread->process);
	if (!err)
		err = put_number_label(pprof, "tid", thread->tid);
	if (!err)
		err = put_label(pprof, "thread", thread->name);
	if (!err)
		err = put_number_label(pprof, *task ? task : "task", thread->task);
	if (!err)
		err = put_label(pprof, "service", thread->service);
	if (!err)
		err = put_label(pprof, "container", thread->container);
	return err ? err : put_label(pprof, "cgroup", thread->cgroup);
}

/* Writes one part of a stack's values as a sample. @thread NULL: unknown. */
static int put_part(struct pprof *pprof, uint32_t number, const struct profile_node *whole,
		    enum pprof_part part, const struct profile_thread *thread)
{
	const struct profile_node node = pprof_part__of(whole, part);
	size_t own = pprof->n_own, first = pprof->first_value;

	if (!node.self && !node.calls && !node.occurrences)
		return 0;
	put_stack(pprof, number);
	for (size_t i = 0; i < pprof->n_values; i++)
		protobuf__varint(&pprof->list, i < first || i >= first + own
						       ? 0
						       : pprof_values__get(&pprof->values[i], &node,
									   pprof->period_ns));
	protobuf__submessage(&pprof->part, SAMPLE_VALUE, &pprof->list);
	if (put_label(pprof, "state", pprof_part__name(part)) ||
	    (thread && put_thread(pprof, thread)))
		return -ENOMEM;
	protobuf__submessage(&pprof->message, PROFILE_SAMPLE, &pprof->part);
	return flush_message(pprof);
}

static int put_parts(struct pprof *pprof, uint32_t number, const struct profile_node *whole,
		     const struct profile_thread *thread)
{
	int err = 0;

	for (enum pprof_part part = PPROF_ALL; part < PPROF_PARTS_N && !err; part++)
		if (pprof_part__used(pprof->profile, part))
			err = put_part(pprof, number, whole, part, thread);
	return err;
}

static int put_sample(struct pprof *pprof, uint32_t number)
{
	const struct profile_share *share;
	size_t n = 0;
	int err = 0;

	if (!pprof->n_shares)
		return put_parts(pprof, number, &pprof->profile->nodes[number], NULL);
	for (share = pprof__shares(pprof, number, &n); n-- > 0 && !err; share++) {
		const struct profile_node node = { .self = share->value.weight,
						   .calls = share->value.calls,
						   .waiting = share->value.waiting,
						   .preempted = share->value.preempted,
						   .occurrences = share->value.occurrences,
						   .waits = share->value.waits,
						   .preemptions = share->value.preemptions };

		err = put_parts(pprof, number, &node, &pprof->profile->threads[share->thread]);
	}
	return err;
}

/* Writes a mapping that marks all code as symbolized. So pprof does not search for a program. */
static void put_mapping(struct pprof *pprof)
{
	int field;

	protobuf__number(&pprof->part, MAPPING_ID, THE_MAPPING);
	for (field = MAPPING_HAS_FUNCTIONS; field <= MAPPING_HAS_INLINE_FRAMES; field++)
		protobuf__number(&pprof->part, field, true);
	protobuf__submessage(&pprof->message, PROFILE_MAPPING, &pprof->part);
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
		protobuf__submessage(&pprof->part, LOCATION_LINE, &pprof->list);
		if (!location->outer)
			break;
	}
	protobuf__submessage(&pprof->message, PROFILE_LOCATION, &pprof->part);
	return flush_message(pprof);
}

static int put_function(struct pprof *pprof, size_t place)
{
	const struct function *function = &pprof->functions[place];

	protobuf__number(&pprof->part, FUNCTION_ID, place + 1);
	protobuf__number(&pprof->part, FUNCTION_NAME, function->name);
	protobuf__number(&pprof->part, FUNCTION_FILENAME, function->file);
	protobuf__submessage(&pprof->message, PROFILE_FUNCTION, &pprof->part);
	return flush_message(pprof);
}

static int put_comment(struct pprof *pprof, const char *text)
{
	uint32_t comment;

	if (pprof__string(pprof, text, "", &comment))
		return -ENOMEM;
	protobuf__varint(&pprof->list, comment);
	return 0;
}

static int put_notes(struct pprof *pprof, const struct profile *profile, bool names_event)
{
	char notes[OUTPUT_NOTES_MAX][OUTPUT_NOTE_BYTES], *text;
	size_t n = output__notes(profile, notes);
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		if (asprintf(&text, "%s%s%s", names_event ? profile->event : "",
			     names_event ? ": " : "", notes[i]) < 0)
			return -ENOMEM;
		err = put_comment(pprof, text);
		free(text);
	}
	return err;
}

/* Writes the fields after the string table. The comments are the target, the notes and the losses;
 * `pprof -comments` shows them. */
static int put_tail(struct pprof *pprof, const struct profile *const *profiles, size_t n)
{
	const struct profile *profile = profiles[0];
	uint64_t period_ns = pprof_values__period_ns(profile);
	uint64_t period = pprof_values__period(profile, period_ns);
	struct pprof_value values[PPROF_VALUES_MAX];
	size_t i, last = pprof_values__of(profile, period_ns, values) - 1;
	uint32_t main_type = 0;
	int err = 0;

	if (pprof->origin)
		protobuf__number(&pprof->tail, PROFILE_TIME_NANOS, pprof->origin->time_ns);
	protobuf__number(&pprof->tail, PROFILE_DURATION_NANOS,
			 pprof->origin ? (uint64_t)pprof->origin->duration_ns
				       : pprof_values__nanos(profile->duration_s * 1e9));
	if (period)
		err = put_value_type(pprof, &pprof->tail, PROFILE_PERIOD_TYPE, values[last].type,
				     values[last].unit);
	protobuf__number(&pprof->tail, PROFILE_PERIOD, period);
	if (!err && profile->target && *profile->target)
		err = put_comment(pprof, profile->target);
	for (i = 0; i < n && !err; i++)
		err = put_notes(pprof, profiles[i], n > 1);
	for (i = 0; i < profile->n_losses && !err; i++) {
		const struct profile_loss *loss = &profile->losses[i];
		char *text;

		if (asprintf(&text, "lost: %s: %" PRIu64, loss->name, loss->count) < 0)
			return -ENOMEM;
		err = put_comment(pprof, text);
		free(text);
	}
	if (pprof->list.len)
		protobuf__submessage(&pprof->tail, PROFILE_COMMENT, &pprof->list);
	/* Otherwise the default is the last type. */
	if (!err && n > 1)
		err = pprof__string(pprof, values[last].type, "", &main_type);
	protobuf__number(&pprof->tail, PROFILE_DEFAULT_SAMPLE_TYPE, main_type);
	return err;
}

static int put_profile(struct pprof *pprof, const struct profile *profile, int annotate)
{
	struct pprof_value values[PPROF_VALUES_MAX];
	int err;

	pprof->first_value += pprof->n_own;
	pprof->n_own = pprof_values__of(profile, pprof_values__period_ns(profile), values);
	err = pprof__enter(pprof, profile, annotate);
	for (size_t i = 0; i < pprof->tree.n_order && !err; i++)
		err = put_sample(pprof, pprof->tree.order[i]);
	pprof__leave(pprof);
	return err;
}

static int put_all(struct pprof *pprof, const struct profile *const *profiles, size_t n,
		   int annotate)
{
	size_t i;
	int err;

	err = put_sample_types(pprof, profiles, n);
	if (!err)
		err = put_tail(pprof, profiles, n);
	for (i = 0; i < n && !err; i++)
		err = put_profile(pprof, profiles[i], annotate);
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

static void pprof_done(struct pprof *pprof)
{
	strtab__free(pprof->strings);
	free(pprof->functions);
	free(pprof->locations);
	free(pprof->values);
	u64map__done(&pprof->function_index);
	u64map__done(&pprof->line_index);
	u64map__done(&pprof->location_index);
	protobuf__done(&pprof->message);
	protobuf__done(&pprof->part);
	protobuf__done(&pprof->list);
	protobuf__done(&pprof->tail);
	deflateEnd(&pprof->zip);
}

int output__pprof(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	enum { GZIP = 16 }; /* a gzip header whose time is 0 */
	struct pprof pprof = { .origin = opts->origin, .out = out, .strings = strtab__new() };
	const struct profile **profiles = calloc(opts->n_others + 1, sizeof(*profiles));
	int err = -ENOMEM;

	if (deflateInit2(&pprof.zip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + GZIP,
			 MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK ||
	    !pprof.strings || !profiles)
		goto out;
	profiles[0] = profile;
	for (size_t i = 0; i < opts->n_others; i++)
		profiles[i + 1] = opts->others[i];
	err = put_all(&pprof, profiles, opts->n_others + 1, opts->annotate);
	if (!err)
		err = compress_message(&pprof, Z_FINISH);
	if (!err)
		err = output__finish(out);
out:
	free(profiles);
	pprof_done(&pprof);
	return err;
}
