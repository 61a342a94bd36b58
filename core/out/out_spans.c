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
#include "core/profile/group.h"

#define CAUSES_SHOWN 6 /* in each request */

struct span {
	uint32_t node;
	uint32_t *nodes; /* the node and all below it, in struct spans */
	size_t n_nodes;
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

struct spans {
	struct span *list;
	size_t n;
	uint64_t none;	 /* time outside of requests */
	uint32_t *nodes; /* each span has its nodes in a row */
};

/* Sets the sums of all groups. @owners: by node, receives the number of its group. */
static void add_up(const struct profile *profile, struct spans *spans, uint32_t *owners)
{
	for (uint32_t i = 1; i < profile->n_nodes; i++) {
		const struct profile_node *node = &profile->nodes[i];
		struct span *span;

		owners[i] = node->parent ? owners[node->parent] : spans->n++;
		span = &spans->list[owners[i]];
		if (!node->parent)
			span->node = i;
		span->n_nodes++;
		span->total += node->self;
		span->preempted += node->preempted;
	}
}

static void sort_nodes(const struct profile *profile, struct spans *spans, const uint32_t *owners)
{
	uint32_t *at = spans->nodes;

	for (size_t i = 0; i < spans->n; i++) {
		spans->list[i].nodes = at;
		at += spans->list[i].n_nodes;
		spans->list[i].n_nodes = 0;
	}
	for (uint32_t i = 1; i < profile->n_nodes; i++) {
		struct span *span = &spans->list[owners[i]];

		span->nodes[span->n_nodes++] = i;
	}
}

/* Lists the groups of contexts, those with most time first. Returns 0 or -ENOMEM. */
static int spans__init(struct spans *spans, const struct profile *profile)
{
	uint32_t *owners = calloc(profile->n_nodes, sizeof(*owners));
	size_t named = 0;

	*spans = (struct spans) { .list = calloc(profile->n_nodes, sizeof(*spans->list)),
				  .nodes = calloc(profile->n_nodes, sizeof(*spans->nodes)) };
	if (!owners || !spans->list || !spans->nodes) {
		free(owners);
		return -ENOMEM;
	}
	add_up(profile, spans, owners);
	sort_nodes(profile, spans, owners);
	free(owners);
	for (size_t i = 0; i < spans->n; i++) {
		if (group__is_none(name_of(profile, spans->list[i].node)))
			spans->none += spans->list[i].total;
		else
			spans->list[named++] = spans->list[i];
	}
	spans->n = named;
	qsort(spans->list, named, sizeof(*spans->list), by_total);
	return 0;
}

static void spans__done(struct spans *spans)
{
	free(spans->list);
	free(spans->nodes);
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
	int ret = causes__init(&causes, profile, span->nodes, span->n_nodes);

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
	struct spans spans;
	int ret = spans__init(&spans, profile);
	size_t shown = opts->rows && opts->rows < spans.n ? opts->rows : spans.n;

	if (ret)
		goto out;
	output__heading(profile, out);
	fprintf(out, "\n%10s  Share  Request\n", is_timed(profile) ? "Time" : "Amount");
	for (size_t i = 0; !ret && i < shown; i++)
		ret = put_span(profile, &spans.list[i], out);
	if (!ret)
		put_foot(profile, spans.n, shown, spans.none, out);
out:
	spans__done(&spans);
	return ret ? ret : output__finish(out);
}
