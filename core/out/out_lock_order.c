// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/out/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/out/out_common.h"

/* Potential deadlocks: cycles in a graph whose edges lead from a mutex that is held to one that is
 * taken meanwhile, each edge in another thread. The innermost frames of such a stack are the
 * mutexes: first the one that is taken, then, outwards, those that are held. */

#define MUTEX	   "[mutex "
#define CYCLE_MAX  8	   /* mutexes in a cycle */
#define CYCLES_MAX 100	   /* cycles shown, unless the user sets a number */
#define STEPS_MAX  5000000 /* steps of the search */

struct edge {
	uint32_t from, to; /* frames of mutexes */
	uint32_t thread;   /* frame of the group */
	uint32_t node;	   /* start of the stack after the mutexes */
};

struct order {
	const struct profile *profile;
	FILE *out;
	struct edge *edges;
	size_t n_edges, cap_edges;
	size_t path[CYCLE_MAX]; /* edges */
	size_t n_path, cycles, most;
	uint64_t steps;
	/* The cycles that were shown, each by its mutexes from the smallest on. */
	uint32_t (*shown)[CYCLE_MAX];
	size_t cap_shown;
	int ret;
};

static bool is_mutex(const struct profile *profile, uint32_t node)
{
	const struct profile_frame *frame = &profile->frames[profile->nodes[node].frame];

	return node && frame->kind == KIND_KERNEL &&
	       !strncmp(strtab__get(profile->strings, frame->name), MUTEX, strlen(MUTEX));
}

static uint32_t thread_of(const struct profile *profile, uint32_t node)
{
	while (profile->nodes[node].parent)
		node = profile->nodes[node].parent;
	return profile->nodes[node].frame;
}

static int add_edges(struct order *order, uint32_t leaf)
{
	const struct profile *profile = order->profile;
	uint32_t node = profile->nodes[leaf].parent, at;
	struct edge edge = { .to = profile->nodes[leaf].frame, .thread = thread_of(profile, leaf) };

	for (edge.node = node; is_mutex(profile, edge.node);)
		edge.node = profile->nodes[edge.node].parent;
	for (at = node; is_mutex(profile, at); at = profile->nodes[at].parent) {
		edge.from = profile->nodes[at].frame;
		if (edge.from == edge.to)
			continue;
		if (array__reserve(&order->edges, &order->cap_edges, order->n_edges + 1,
				   sizeof(*order->edges)))
			return -ENOMEM;
		order->edges[order->n_edges++] = edge;
	}
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

/* Sorts the edges, and leaves one for each order and thread. */
static void sort_edges(struct order *order)
{
	size_t n = 0;

	if (!order->n_edges)
		return;
	qsort(order->edges, order->n_edges, sizeof(*order->edges), compare);
	for (size_t i = 1; i < order->n_edges; i++) {
		const struct edge *edge = &order->edges[i], *last = &order->edges[n];

		if (edge->from != last->from || edge->to != last->to ||
		    edge->thread != last->thread)
			order->edges[++n] = *edge;
	}
	order->n_edges = n + 1;
}

static size_t first_from(const struct order *order, uint32_t mutex)
{
	size_t lo = 0, hi = order->n_edges;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (order->edges[mid].from < mutex)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* --- output --- */

static char *label_of(const struct order *order, uint32_t frame)
{
	char *label = output__label(order->profile, &order->profile->frames[frame], 0);

	if (label)
		escape__printable(label);
	return label;
}

/* Writes the name of a mutex without its brackets. */
static int put_mutex(const struct order *order, uint32_t frame)
{
	char *label = label_of(order, frame);
	size_t len = label ? strlen(label) : 0;

	if (!label)
		return -ENOMEM;
	if (len > 2 && label[0] == '[' && label[len - 1] == ']')
		fprintf(order->out, "%.*s", (int)len - 2, label + 1);
	else
		fputs(label, order->out);
	free(label);
	return 0;
}

/* Writes a stack, innermost first, without the group. */
static int put_stack(const struct order *order, uint32_t node)
{
	char *label;

	for (; order->profile->nodes[node].parent; node = order->profile->nodes[node].parent) {
		label = label_of(order, order->profile->nodes[node].frame);
		if (!label)
			return -ENOMEM;
		fprintf(order->out, "      %s\n", label);
		free(label);
	}
	return 0;
}

static int put_cycle(const struct order *order)
{
	char *thread;
	int ret = 0;

	fprintf(order->out, "\npotential deadlock: ");
	for (size_t i = 0; !ret && i <= order->n_path; i++) {
		fputs(i ? " -> " : "", order->out);
		ret = put_mutex(order, order->edges[order->path[i % order->n_path]].from);
	}
	fputs("\n", order->out);
	for (size_t i = 0; !ret && i < order->n_path; i++) {
		const struct edge *edge = &order->edges[order->path[i]];

		thread = label_of(order, edge->thread);
		if (!thread)
			return -ENOMEM;
		fprintf(order->out, "  thread %s has ", thread);
		free(thread);
		ret = put_mutex(order, edge->from);
		fputs(" and takes ", order->out);
		ret = ret ? ret : put_mutex(order, edge->to);
		fputs(" at\n", order->out);
		ret = ret ? ret : put_stack(order, edge->node);
	}
	return ret;
}

/* --- the search --- */

static bool was_shown(const struct order *order)
{
	for (size_t i = 0; i < order->cycles; i++) {
		size_t k = 0;

		while (k < order->n_path && order->shown[i][k] == order->edges[order->path[k]].from)
			k++;
		if (k == order->n_path && (k == CYCLE_MAX || order->shown[i][k] == UINT32_MAX))
			return true;
	}
	return false;
}

static void show(struct order *order)
{
	if (order->cycles >= order->most || was_shown(order))
		return;
	if (array__reserve(&order->shown, &order->cap_shown, order->cycles + 1,
			   sizeof(*order->shown))) {
		order->ret = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < CYCLE_MAX; i++)
		order->shown[order->cycles][i] =
			i < order->n_path ? order->edges[order->path[i]].from : UINT32_MAX;
	order->cycles++;
	order->ret = put_cycle(order);
}

/* Returns true if the edge may follow the path. A cycle contains no mutex and no thread twice, as a
 * single thread does not wait for itself. */
static bool may_follow(const struct order *order, const struct edge *edge)
{
	for (size_t i = 0; i < order->n_path; i++) {
		const struct edge *other = &order->edges[order->path[i]];

		if (other->thread == edge->thread || (i && other->from == edge->to))
			return false;
	}
	return true;
}

/* Searches for cycles through @start, which is the smallest of their mutexes. */
static void search(struct order *order, uint32_t start, uint32_t mutex)
{
	for (size_t i = first_from(order, mutex);
	     !order->ret && i < order->n_edges && order->edges[i].from == mutex; i++) {
		const struct edge *edge = &order->edges[i];

		if (order->steps >= STEPS_MAX || order->cycles >= order->most)
			return;
		order->steps++;
		if (edge->to < start || !may_follow(order, edge))
			continue;
		order->path[order->n_path++] = i;
		if (edge->to == start)
			show(order);
		else if (order->n_path < CYCLE_MAX)
			search(order, start, edge->to);
		order->n_path--;
	}
}

int output__lock_order(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	struct order order = { .profile = profile,
			       .out = out,
			       .most = opts->rows ? opts->rows : CYCLES_MAX };

	output__heading(profile, out);
	for (uint32_t node = 1; !order.ret && node < profile->n_nodes; node++)
		if (profile->nodes[node].self && is_mutex(profile, node))
			order.ret = add_edges(&order, node);
	sort_edges(&order);
	for (size_t i = 0; !order.ret && i < order.n_edges; i++)
		if (!i || order.edges[i].from != order.edges[i - 1].from)
			search(&order, order.edges[i].from, order.edges[i].from);
	if (!order.ret)
		fprintf(out, "\n%zu potential deadlock%s%s\n", order.cycles,
			order.cycles == 1 ? "" : "s",
			order.steps >= STEPS_MAX
				? "; there may be more, the search was stopped early"
			: order.cycles >= order.most ? "; there may be more (--rows)"
						     : "");
	free(order.edges);
	free(order.shown);
	return order.ret ? order.ret : output__finish(out);
}
