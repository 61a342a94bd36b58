// SPDX-License-Identifier: GPL-2.0-or-later
/* Request contexts of samples, and attributes of services. Their texts are interned, as requests
 * have few distinct attributes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/profile/recorded.h"
#include "core/profile/recorded_row.h"

int recorded__word(struct recorded *recorded, const char *text, uint32_t *ret)
{
	if (!recorded->words)
		recorded->words = strtab__new();
	return recorded->words ? strtab__intern(recorded->words, text, ret) : -ENOMEM;
}

const char *recorded__word_text(const struct recorded *recorded, uint32_t word)
{
	return recorded->words ? strtab__get(recorded->words, word) : "";
}

int recorded__add_context(struct recorded *recorded, uint32_t id, const char *trace,
			  const char *span)
{
	struct recorded_context *row = add_row(&recorded->contexts);

	if (!row || recorded__word(recorded, trace, &row->trace) ||
	    recorded__word(recorded, span, &row->span))
		return -ENOMEM;
	row->id = id;
	return 0;
}

int recorded__add_label(struct recorded *recorded, uint32_t context, const char *key,
			const char *value)
{
	uint32_t index = recorded__find(&recorded->contexts, context);
	struct recorded_context *of;
	struct recorded_label *row;

	if (index == RECORDED_NONE)
		return 0;
	of = &recorded->contexts.rows[index];
	row = add_row(&recorded->labels);
	if (!row || recorded__word(recorded, key, &row->key) ||
	    recorded__word(recorded, value, &row->value))
		return -ENOMEM;
	if (!of->n_labels)
		of->label = recorded->labels.n - 1;
	else if (of->label + of->n_labels != recorded->labels.n - 1)
		return -EBADMSG;
	of->n_labels++;
	return 0;
}

int recorded__add_attribute(struct recorded *recorded, uint32_t process, const char *key,
			    const char *value)
{
	uint32_t index = recorded__find(&recorded->processes, process);
	struct recorded_attribute *row;

	if (index == RECORDED_NONE)
		return 0;
	if (!strcmp(key, RECORDED_SERVICE) &&
	    recorded__add_text(recorded, value, &recorded->processes.rows[index].service))
		return -ENOMEM;
	row = add_row(&recorded->attributes);
	if (!row || recorded__word(recorded, key, &row->key) ||
	    recorded__word(recorded, value, &row->value))
		return -ENOMEM;
	row->process = index;
	return 0;
}

uint32_t recorded__label(const struct recorded *recorded, uint32_t context, uint32_t key)
{
	const struct recorded_context *row;

	if (context == RECORDED_NONE)
		return 0;
	row = &recorded->contexts.rows[context];
	for (uint32_t i = 0; i < row->n_labels; i++)
		if (recorded->labels.rows[row->label + i].key == key)
			return recorded->labels.rows[row->label + i].value;
	return 0;
}

bool recorded__number(const char *text, struct recorded_number *ret)
{
	char *end;

	errno = 0;
	ret->is_negative = *text == '-';
	ret->number = ret->is_negative ? (uint64_t)strtoll(text, &end, 0) : strtoull(text, &end, 0);
	return end != text && !*end && !errno;
}

/* Interns "051581bf3cb55c13 http.route=/orders, user=7, trace 5b8e…" of a context with a span. */
static int make_request(struct recorded *recorded, struct recorded_context *row)
{
	const char *span = recorded__word_text(recorded, row->span);
	const char *trace = recorded__word_text(recorded, row->trace);
	const char *separator = " ";
	char *text = NULL;
	size_t size;
	FILE *out = *span ? open_memstream(&text, &size) : NULL;
	int ret;

	if (!*span)
		return 0;
	if (!out)
		return -ENOMEM;
	fputs(span, out);
	for (uint32_t i = 0; i < row->n_labels; i++) {
		const struct recorded_label *label = &recorded->labels.rows[row->label + i];
		const char *key = recorded__word_text(recorded, label->key);

		if (!strncmp(key, VALUE_LABEL, strlen(VALUE_LABEL)))
			continue; /* the samples of one request have different values */
		fprintf(out, "%s%s=%s", separator, key,
			recorded__word_text(recorded, label->value));
		separator = ", ";
	}
	if (*trace)
		fprintf(out, "%strace %s", separator, trace);
	ret = fclose(out) ? -ENOMEM : recorded__word(recorded, text, &row->request);
	free(text);
	return ret;
}

int recorded__group(struct recorded *recorded, uint32_t context, uint32_t *ret)
{
	struct recorded_context *row;
	int code = 0;

	*ret = 0;
	if (context == RECORDED_NONE)
		return 0;
	row = &recorded->contexts.rows[context];
	switch (recorded->groups) {
	case RECORDED_GROUPS_TRACE:
		*ret = row->trace;
		break;
	case RECORDED_GROUPS_SPAN:
		*ret = row->span;
		break;
	case RECORDED_GROUPS_REQUEST:
		code = row->request ? 0 : make_request(recorded, row);
		*ret = row->request;
		break;
	case RECORDED_GROUPS_LABEL:
		*ret = recorded__label(recorded, context, recorded->group_key);
		break;
	default:
		break;
	}
	return code;
}
