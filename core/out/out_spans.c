// SPDX-License-Identifier: GPL-2.0-or-later
/* Requests with the causes of their time, those with most time first. The profile is
 * grouped by requests, or by another part of their contexts, and inside by state. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/out/causes.h"
#include "core/out/out_common.h"
#include "core/out/output.h"

#define CAUSES_SHOWN 6 /* in each request */

struct span {
	uint32_t node;
	uint64_t total, preempted;
};

static int by_total(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

static const char *name_of(const struct profile *profile, uint32_t node)
{
	return strtab__get(profile->strings, profile->frames[profile->nodes[node].frame].name);
}

/* Returns true for the group of the time outside of requests, or of services. */
static bool is_none(const char *group)
{
	static const char *const names[] = { "no request", "no trace", "no span", "no label",
					     "no service" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(names[i], group))
			return true;
	return false;
}

/* Lists the groups of contexts. Adds up in *@ret_none the time outside of requests. */
static size_t list_spans(const struct profile *profile, struct span *spans, uint32_t *owners,
			 uint64_t *ret_none)
{
	size_t n = 0, named = 0;

	for (uint32_t i = 1; i < profile->n_nodes; i++) {
		const struct profile_node *node = &profile->nodes[i];

		owners[i] = node->parent ? owners[node->parent] : n;
		if (!node->parent)
			spans[n++].node = i;
		spans[owners[i]].total += node->self;
		spans[owners[i]].preempted += node->preempted;
	}
	for (size_t i = 0; i < n; i++) {
		if (is_none(name_of(profile, spans[i].node)))
			*ret_none += spans[i].total;
		else
			spans[named++] = spans[i];
	}
	qsort(spans, named, sizeof(*spans), by_total);
	return named;
}

static void put_row(const struct profile *profile, uint64_t weight, uint64_t whole,
		    const char *indent, const char *what, const char *where, FILE *out)
{
	char text[32];

	output__amount(profile, weight, text, sizeof(text));
	fprintf(out, "%10s %5.1f%%  %s%-*s%s%s\n", text, whole ? 100.0 * weight / whole : 0, indent,
		*where ? 24 : 0, what, *where ? "  " : "", where);
}

/* Returns true if weights are time. Bytes and counts have a function, but no wait or CPU. */
static bool is_timed(const struct profile *profile)
{
	return profile->unit == PROFILE_NANOSECONDS || profile->unit == PROFILE_SAMPLES;
}

static int put_cause(const struct causes *causes, const struct cause *cause, uint64_t whole,
		     FILE *out)
{
	const struct profile *profile = causes->profile;
	char *label = cause->frame
			      ? output__label(profile, &profile->frames[cause->frame - 1], false)
			      : strdup("[no stack]");

	if (!label)
		return -ENOMEM;
	escape__printable(label);
	if (is_timed(profile))
		put_row(profile, cause->weight, whole, "  ",
			cause->what ? cause->what : "on the CPU", label, out);
	else
		put_row(profile, cause->weight, whole, "  ", label, "", out);
	free(label);
	return 0;
}

static int put_span(const struct profile *profile, const struct span *span, FILE *out)
{
	struct causes causes;
	uint64_t rest = span->total - min_of(span->total, span->preempted);
	char *name = strdup(name_of(profile, span->node));
	int ret = causes__init(&causes, profile, span->node);

	if (!name)
		ret = -ENOMEM;
	if (ret)
		goto out;
	escape__printable(name);
	put_row(profile, span->total, profile->total, "", name, "", out);
	for (size_t i = 0; !ret && i < causes.n && i < CAUSES_SHOWN; i++) {
		ret = put_cause(&causes, &causes.list[i], span->total, out);
		rest -= min_of(rest, causes.list[i].weight);
	}
	if (span->preempted)
		put_row(profile, span->preempted, span->total, "  ", "another thread had the CPU",
			"", out);
	if (rest)
		put_row(profile, rest, span->total, "  ", "other causes", "", out);
out:
	causes__done(&causes);
	free(name);
	return ret;
}

static void put_foot(const struct profile *profile, size_t n, size_t shown, uint64_t none,
		     FILE *out)
{
	char text[32];

	if (n > shown)
		fprintf(out, "(%zu more)\n", n - shown);
	if (!none)
		return;
	output__amount(profile, none, text, sizeof(text));
	fprintf(out, "%s %sbelong to no group\n", text, is_timed(profile) ? "of the time " : "");
}

int output__spans(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	struct span *spans = calloc(profile->n_nodes, sizeof(*spans));
	uint32_t *owners = calloc(profile->n_nodes, sizeof(*owners));
	uint64_t none = 0;
	size_t n, shown;
	int ret = -ENOMEM;

	if (!spans || !owners)
		goto out;
	n = list_spans(profile, spans, owners, &none);
	shown = opts->rows && opts->rows < n ? opts->rows : n;
	output__heading(profile, out);
	fprintf(out, "\n%10s  Share  Request\n", is_timed(profile) ? "Time" : "Amount");
	ret = 0;
	for (size_t i = 0; !ret && i < shown; i++)
		ret = put_span(profile, &spans[i], out);
	if (!ret)
		put_foot(profile, n, shown, none, out);
out:
	free(spans);
	free(owners);
	return ret ? ret : output__finish(out);
}
