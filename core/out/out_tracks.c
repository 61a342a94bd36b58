// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/out/out_tracks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/shared.h"
#include "core/base/util.h"

/* The thread of values that are not divided among threads. */
#define NO_THREAD UINT32_MAX

struct order {
	const struct profile *profile;
	uint32_t *places; /* by node: position in the tree's order */
};

static int compare_threads(const struct profile *profile, uint32_t a, uint32_t b)
{
	const struct profile_thread *x, *y;

	if (a == b)
		return 0;
	x = &profile->threads[a];
	y = &profile->threads[b];
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return a < b ? -1 : 1;
}

static int compare_parts(const void *a, const void *b, void *arg)
{
	const struct out_part *x = a, *y = b;
	const struct order *order = arg;
	int diff = compare_threads(order->profile, x->thread, y->thread);

	if (!diff)
		diff = (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
	if (diff || x->node == y->node)
		return diff;
	return order->places[x->node] < order->places[y->node] ? -1 : 1;
}

static void add(uint64_t *sum, uint64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX;
}

/* Sorts the parts, and adds up those of one node, thread and time. */
static void sort_parts(struct out_tracks *tracks, struct order *order)
{
	struct out_part *parts = tracks->parts;
	size_t n = 0;

	qsort_r(parts, tracks->n_parts, sizeof(*parts), compare_parts, order);
	for (size_t i = 0; i < tracks->n_parts; i++) {
		if (!n || compare_parts(&parts[n - 1], &parts[i], order)) {
			parts[n++] = parts[i];
			continue;
		}
		add(&parts[n - 1].value.weight, parts[i].value.weight);
		add(&parts[n - 1].value.calls, parts[i].value.calls);
		add(&parts[n - 1].value.occurrences, parts[i].value.occurrences);
	}
	tracks->n_parts = n;
}

static struct out_part part_of(const struct out_tracks *tracks, size_t i)
{
	const struct profile *profile = tracks->profile;
	struct out_part part = { .thread = NO_THREAD };

	if (tracks->instants) {
		const struct profile_cell *cell = &profile->cells[i];

		return (struct out_part) {
			cell->node, cell->thread, cell->column, { .weight = cell->weight }
		};
	}
	if (profile->n_shares) {
		const struct profile_share *share = &profile->shares[i];

		return (struct out_part) { share->node, share->thread, 0, share->value };
	}
	part.node = tracks->tree.order[i];
	part.value.weight = profile->nodes[part.node].self;
	part.value.calls = profile->nodes[part.node].calls;
	part.value.occurrences = profile->nodes[part.node].occurrences;
	return part;
}

/* Makes one part for each sample if their times are recorded, otherwise for each share. If there
 * are no shares, makes one for each node, as if all were of one thread. */
static int make_parts(struct out_tracks *tracks)
{
	const struct profile *profile = tracks->profile;
	size_t i, n = tracks->instants	  ? profile->n_cells
		      : profile->n_shares ? profile->n_shares
					  : tracks->tree.n_order;
	struct order order = { profile, calloc(profile->n_nodes, sizeof(*order.places)) };

	tracks->parts = calloc(n + 1, sizeof(*tracks->parts));
	if (!tracks->parts || !order.places) {
		free(order.places);
		return -ENOMEM;
	}
	for (i = 0; i < tracks->tree.n_order; i++)
		order.places[tracks->tree.order[i]] = i;
	for (i = 0; i < n; i++) {
		struct out_part part = part_of(tracks, i);

		if (part.value.weight || (tracks->counted && part.value.occurrences))
			tracks->parts[tracks->n_parts++] = part;
	}
	sort_parts(tracks, &order);
	free(order.places);
	return 0;
}

static int init(struct out_tracks *tracks, const struct profile *profile, bool counted)
{
	struct pprof_value values[PPROF_VALUES_MAX];
	int ret;

	*tracks = (struct out_tracks) { .profile = profile,
					.counted = counted,
					.instants = profile->instants,
					.period_ns = pprof_values__period_ns(profile) };
	tracks->value = values[pprof_values__of(profile, tracks->period_ns, values) - 1];
	ret = out_tree__init(&tracks->tree, profile);
	if (ret) {
		memset(&tracks->tree, 0, sizeof(tracks->tree));
		return ret;
	}
	tracks->stack = calloc(tracks->tree.depth_max + 1, sizeof(*tracks->stack));
	return tracks->stack ? make_parts(tracks) : -ENOMEM;
}

int out_tracks__init(struct out_tracks *tracks, const struct profile *profile)
{
	return init(tracks, profile, false);
}

int out_tracks__init_counted(struct out_tracks *tracks, const struct profile *profile)
{
	return init(tracks, profile, profile__has_occurrences(profile));
}

void out_tracks__done(struct out_tracks *tracks)
{
	out_tree__done(&tracks->tree);
	free(tracks->parts);
	free(tracks->stack);
	memset(tracks, 0, sizeof(*tracks));
}

size_t out_tracks__end(const struct out_tracks *tracks, size_t first)
{
	size_t end = first;

	while (end < tracks->n_parts && tracks->parts[end].thread == tracks->parts[first].thread)
		end++;
	return end;
}

uint64_t out_tracks__value(const struct out_tracks *tracks, size_t part)
{
	const struct profile_value *value = &tracks->parts[part].value;
	const struct profile_node node = { .self = value->weight, .calls = value->calls };

	return pprof_values__get(&tracks->value, &node, tracks->period_ns);
}

const struct profile_thread *out_tracks__thread(const struct out_tracks *tracks, size_t part)
{
	uint32_t thread = tracks->parts[part].thread;

	return thread == NO_THREAD ? NULL : &tracks->profile->threads[thread];
}

const uint32_t *out_tracks__stack(struct out_tracks *tracks, size_t part, size_t *ret_n)
{
	const struct profile_node *nodes = tracks->profile->nodes;
	uint32_t node = tracks->parts[part].node, n = tracks->tree.depth[node];

	*ret_n = n;
	for (; node; node = nodes[node].parent)
		tracks->stack[--n] = nodes[node].frame;
	return tracks->stack;
}

char *out_tracks__name(const struct profile *profile, const struct profile_frame *frame,
		       int annotate)
{
	char mark[PROFILE_MARK_BYTES] = "", *name;

	if (annotate)
		profile__mark(profile, frame, mark);
	if (asprintf(&name, "%s%s", strtab__get(profile->strings, frame->name), mark) < 0)
		return NULL;
	return name;
}

char *out_tracks__title(const struct out_tracks *tracks, const struct profile_thread *thread)
{
	char *title;
	int n;

	if (!thread)
		return strdup(tracks->value.event);
	if (thread->tid == PARKED_TID)
		n = asprintf(&title, "%s: %s of %s (%u)", tracks->value.event,
			     thread->name ? thread->name : "",
			     thread->process ? thread->process : "", thread->pid);
	else if (thread->pid && thread->pid != thread->tid)
		n = asprintf(&title, "%s: %s (%u) of %s (%u)", tracks->value.event,
			     thread->name ? thread->name : "", thread->tid,
			     thread->process ? thread->process : "", thread->pid);
	else
		n = asprintf(&title, "%s: %s (%u)", tracks->value.event,
			     thread->name ? thread->name : "", thread->tid);
	return n < 0 ? NULL : title;
}
