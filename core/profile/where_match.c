// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/where_match.h"

#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

int where_match__prepare(struct where_node *node, struct err *err)
{
	char why[100];
	int code;

	if (!node)
		return 0;
	if (node->type < WHERE_TEXT) {
		code = where_match__prepare(node->left, err);
		return code ? code : where_match__prepare(node->right, err);
	}
	if (node->operator!= WHERE_MATCHES && node->operator!= WHERE_MATCHES_NOT)
		return 0;
	node->regex = calloc(1, sizeof(*node->regex));
	if (!node->regex)
		return err__set(err, -ENOMEM, "out of memory");
	code = regcomp(node->regex, node->text, REG_EXTENDED | REG_NOSUB);
	if (!code)
		return 0;
	regerror(code, node->regex, why, sizeof(why));
	free(node->regex);
	node->regex = NULL;
	return err__set(err, -EINVAL, "--where: %.64s is no regular expression: %s", node->text,
			why);
}

bool where_match__needs_contexts(const struct where_node *node)
{
	return node &&
	       (node->field == WHERE_FIELD_TRACE || node->field == WHERE_FIELD_SPAN ||
		node->field == WHERE_FIELD_LABEL || where_match__needs_contexts(node->left) ||
		where_match__needs_contexts(node->right));
}

/* the rows that a sample refers to; NULL: unknown, or none */
struct subject {
	const struct recorded *recorded;
	const struct recorded_event *event;
	const struct recorded_thread *thread;
	const struct recorded_process *process;
	uint32_t context; /* index or RECORDED_NONE */
	int64_t time_s;
};

static const char *label_of(const struct subject *subject, const char *key)
{
	const struct recorded *recorded = subject->recorded;
	const struct recorded_context *row = &recorded->contexts.rows[subject->context];

	for (uint32_t i = 0; i < row->n_labels; i++) {
		const struct recorded_label *label = &recorded->labels.rows[row->label + i];

		if (!strcmp(recorded__word_text(recorded, label->key), key))
			return recorded__word_text(recorded, label->value);
	}
	return "";
}

static const char *context_text(const struct subject *subject, const struct where_node *node)
{
	const struct recorded_context *row;

	if (subject->context == RECORDED_NONE)
		return "";
	row = &subject->recorded->contexts.rows[subject->context];
	if (node->field == WHERE_FIELD_LABEL)
		return label_of(subject, node->key);
	return recorded__word_text(subject->recorded,
				   node->field == WHERE_FIELD_TRACE ? row->trace : row->span);
}

/* Returns the value of a field that is a text; "": none. */
static const char *text_of(const struct subject *subject, const struct where_node *node)
{
	recorded_text text = 0;

	switch (node->field) {
	case WHERE_FIELD_HOST:
		text = subject->recorded->host;
		break;
	case WHERE_FIELD_EVENT:
		text = subject->event ? subject->event->name : 0;
		break;
	case WHERE_FIELD_THREAD:
		text = subject->thread ? subject->thread->name : 0;
		break;
	case WHERE_FIELD_PROCESS:
		text = subject->process ? subject->process->name : 0;
		break;
	case WHERE_FIELD_SERVICE:
		text = subject->process ? subject->process->service : 0;
		break;
	case WHERE_FIELD_CONTAINER:
		text = subject->process ? subject->process->container : 0;
		break;
	default:
		return context_text(subject, node);
	}
	return recorded__text(subject->recorded, text);
}

static bool text_matches(const struct where_node *node, const char *text)
{
	switch (node->operator) {
	case WHERE_EQUAL:
		return !strcmp(text, node->text);
	case WHERE_NOT_EQUAL:
		return strcmp(text, node->text) != 0;
	case WHERE_MATCHES:
		return node->regex && !regexec(node->regex, text, 0, NULL, 0);
	default:
		return node->regex && regexec(node->regex, text, 0, NULL, 0);
	}
}

static bool number_matches(const struct where_node *node, int64_t number)
{
	switch (node->operator) {
	case WHERE_EQUAL:
		return number == node->number;
	case WHERE_NOT_EQUAL:
		return number != node->number;
	case WHERE_LESS:
		return number < node->number;
	case WHERE_LESS_EQUAL:
		return number <= node->number;
	case WHERE_GREATER:
		return number > node->number;
	default:
		return number >= node->number;
	}
}

static bool matches(const struct where_node *node, const struct subject *subject)
{
	struct recorded_number value;

	switch (node->type) {
	case WHERE_AND:
		return matches(node->left, subject) && matches(node->right, subject);
	case WHERE_OR:
		return matches(node->left, subject) || matches(node->right, subject);
	case WHERE_NOT:
		return !matches(node->left, subject);
	case WHERE_TEXT:
		return text_matches(node, text_of(subject, node));
	case WHERE_NUMBER:
		if (node->field == WHERE_FIELD_PID)
			return number_matches(node, subject->process ? subject->process->pid : 0);
		return number_matches(node, subject->thread ? subject->thread->tid : 0);
	case WHERE_TIME:
		return number_matches(node, subject->time_s);
	case WHERE_VALUE:
		return recorded__number(context_text(subject, node), &value) &&
		       number_matches(node,
				      value.is_negative
					      ? (int64_t)value.number
					      : (int64_t)min_of(value.number, (uint64_t)INT64_MAX));
	}
	return false;
}

bool where_match__has(const struct where_node *node, const struct recorded *recorded,
		      const struct sink_sample *sample)
{
	uint32_t event = recorded__find(&recorded->events, sample->event);
	uint32_t thread = recorded__find(&recorded->threads, sample->thread), process;
	struct subject subject = {
		.recorded = recorded,
		.event = event == RECORDED_NONE ? NULL : &recorded->events.rows[event],
		.thread = thread == RECORDED_NONE ? NULL : &recorded->threads.rows[thread],
		.context = recorded__find(&recorded->contexts, sample->context),
		.time_s = ((int64_t)sample->time_ns + recorded->clock_offset_ns) /
			  (int64_t)NSEC_PER_SEC,
	};

	process = subject.thread ? subject.thread->process : RECORDED_NONE;
	if (process != RECORDED_NONE)
		subject.process = &recorded->processes.rows[process];
	return matches(node, &subject);
}
