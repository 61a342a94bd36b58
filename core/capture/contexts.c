// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture/contexts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/target/process_context.h"

void contexts__done(struct contexts *contexts)
{
	for (size_t i = 0; contexts->list && i < CONTEXTS_PLACES; i++) {
		free(contexts->list[i].rec);
		free(contexts->list[i].values);
	}
	free(contexts->list);
	contexts->list = NULL;
}

/* Returns the place for records with the number. NULL: out of memory. */
static struct context_kept *place_of(struct contexts *contexts, uint32_t number)
{
	if (!contexts->list)
		contexts->list = calloc(CONTEXTS_PLACES, sizeof(*contexts->list));
	if (!contexts->list)
		return NULL;
	return &contexts->list[number == CONTEXT_OWN ? CONTEXTS_KEPT : number % CONTEXTS_KEPT];
}

int contexts__keep(struct contexts *contexts, const struct rec_context *rec, size_t size)
{
	struct context_kept *kept;

	if (size < REC_CONTEXT_HEADER || rec->head.size > size - REC_CONTEXT_HEADER)
		return 0;
	kept = place_of(contexts, rec->number);
	if (!kept)
		return -ENOMEM;
	if (size > kept->cap) {
		free(kept->rec);
		kept->rec = malloc(size);
		kept->cap = kept->rec ? size : 0;
	}
	if (!kept->rec)
		return -ENOMEM;
	memcpy(kept->rec, rec, size);
	return 0;
}

int contexts__keep_values(struct contexts *contexts, const struct rec_values *rec, size_t size)
{
	struct context_kept *kept;

	if (size > sizeof(*rec) || !values__are_sane(rec, size))
		return 0;
	kept = place_of(contexts, rec->number);
	if (kept && !kept->values)
		kept->values = calloc(1, sizeof(*kept->values));
	if (!kept || !kept->values)
		return -ENOMEM;
	memcpy(kept->values, rec, size);
	return 0;
}

/* Writes an id in hexadecimal. Returns NULL if all bytes are 0. */
static const char *write_id(const uint8_t *bytes, size_t n, char *to)
{
	uint8_t any = 0;

	for (size_t i = 0; i < n; i++) {
		any |= bytes[i];
		snprintf(to + 2 * i, 3, "%02x", bytes[i]);
	}
	return any ? to : NULL;
}

/* The attributes in a record. If a key occurs twice, its last value counts. */
struct attributes {
	const uint8_t *at[PROCESS_CONTEXT_KEYS_MAX]; /* length and bytes; NULL: absent */
	bool is_malformed;
};

static void find_attributes(const struct rec_context *rec, struct attributes *ret)
{
	const uint8_t *at = rec->attributes, *end = at + rec->head.size;

	memset(ret, 0, sizeof(*ret));
	while (end - at >= 2 && end - at >= 2 + at[1]) {
		ret->at[at[0]] = at + 1;
		at += 2 + at[1];
	}
	ret->is_malformed = at != end;
}

/* Reads the process context again if it does not name an attribute. Returns 0 or -ENOMEM. */
static int find_names(const struct attributes *attributes, struct process *process)
{
	for (size_t key = 0; key < PROCESS_CONTEXT_KEYS_MAX; key++)
		if (attributes->at[key] && (!process->context || key >= process->context->n_keys))
			return process__renew_context(process, now_ns());
	return 0;
}

/* Adds the labels of a record with names. */
static void add_named(struct contexts *contexts, const struct rec_context *rec, struct context *ret)
{
	const char *at = (const char *)rec->attributes, *end = at + rec->head.size;

	while (at < end && ret->sink.n_labels < PROCESS_CONTEXT_KEYS_MAX) {
		const char *name = at, *value = at + strnlen(at, end - at) + 1;

		if (value >= end || !memchr(value, '\0', end - value)) {
			ret->is_malformed = true;
			return;
		}
		contexts->labels[ret->sink.n_labels++] = (struct sink_label) { name, value };
		at = value + strlen(value) + 1;
	}
}

/* Adds the request context in @rec. */
static int add_request(struct contexts *contexts, const struct rec_context *rec,
		       struct process *process, struct context *ret)
{
	struct sink_context *sink = &ret->sink;
	struct attributes attributes;
	const char *name;

	find_attributes(rec, &attributes);
	if (find_names(&attributes, process))
		return -ENOMEM;
	ret->is_malformed = attributes.is_malformed;
	sink->trace = write_id(rec->head.trace_id, 16, contexts->trace);
	sink->span = write_id(rec->head.span_id, 8, contexts->span);
	for (size_t key = 0; key < PROCESS_CONTEXT_KEYS_MAX; key++) {
		const uint8_t *at = attributes.at[key];
		char *value = contexts->texts[sink->n_labels];

		name = at ? process_context__key(process->context, key) : NULL;
		if (!name)
			continue;
		memcpy(value, at + 1, at[0]);
		value[at[0]] = '\0';
		procfs__make_printable(value, at[0]);
		contexts->labels[sink->n_labels++] = (struct sink_label) { name, value };
	}
	return 0;
}

int contexts__find(struct contexts *contexts, uint32_t number, struct process *process,
		   const struct event_values *values, struct context *ret)
{
	const struct context_kept *kept = contexts->list ? place_of(contexts, number) : NULL;
	bool has_request = kept && kept->rec && kept->rec->number == number;
	bool has_values = values && kept && kept->values && kept->values->number == number;
	int code = 0;

	if (!has_request && !has_values)
		return -ENOENT;
	*ret = (struct context) { .sink.labels = contexts->labels };
	if (has_request && kept->rec->head.valid == CONTEXT_NAMED)
		add_named(contexts, kept->rec, ret);
	else if (has_request)
		code = add_request(contexts, kept->rec, process, ret);
	if (!code && has_values)
		ret->sink.n_labels += values__decode(values, kept->values, &contexts->values,
						     contexts->labels + ret->sink.n_labels);
	return code;
}
