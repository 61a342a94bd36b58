// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/out/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/u64map.h"
#include "core/base/util.h"
#include "core/out/out_common.h"

/* A graph of calls for Graphviz: https://graphviz.org/doc/info/lang.html. Functions of one label
 * are one node. A stack counts once for a function or a call, however often it contains them. */

/* Functions and calls with less than 1/200 of the whole are left out, as a picture cannot show
 * more. */
#define SHARE_LEAST 200

/* Bytes of a name that are shown, as dot accepts strings of up to 16 KiB. */
#define LABEL_BYTES 200

struct call {
	uint32_t from, to;
	uint64_t total;
	uint32_t open; /* number of times that it is on the present path */
};

struct graph {
	const struct profile *profile;
	struct out_tree tree;
	struct strtab *labels;
	uint32_t *label_of; /* by frame */
	uint64_t *self, *total;
	uint32_t *open;	   /* by label: as in struct call */
	uint32_t *call_of; /* by depth of the path: number of the call that leads there, + 1 */
	uint32_t *path;	   /* by depth: node */
	struct call *calls;
	size_t n_calls, cap_calls;
	struct u64map call_index; /* numbers of calls, + 1 */
};

static void add(uint64_t *sum, uint64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX;
}

static int make_labels(struct graph *graph, int annotate)
{
	const struct profile *profile = graph->profile;
	uint32_t none;
	int ret = strtab__intern(graph->labels, "", &none);

	for (size_t i = 0; i < profile->n_frames && !ret; i++) {
		char *label = output__label(profile, &profile->frames[i], annotate);

		if (!label)
			return -ENOMEM;
		escape__printable(label);
		ret = strtab__intern(graph->labels, *label ? label : "?", &graph->label_of[i]);
		free(label);
	}
	return ret;
}

static int open_call(struct graph *graph, uint32_t from, uint32_t to, uint64_t total,
		     uint32_t *ret_call)
{
	uint64_t key = (uint64_t)from << 32 | to;
	uint32_t call = u64map__get(&graph->call_index, key);

	if (!call) {
		if (array__reserve(&graph->calls, &graph->cap_calls, graph->n_calls + 1,
				   sizeof(*graph->calls)))
			return -ENOMEM;
		graph->calls[graph->n_calls++] = (struct call) { from, to, 0, 0 };
		call = graph->n_calls;
		if (u64map__put(&graph->call_index, key, call))
			return -ENOMEM;
	}
	if (!graph->calls[call - 1].open++)
		add(&graph->calls[call - 1].total, total);
	*ret_call = call;
	return 0;
}

static void leave(struct graph *graph, uint32_t depth)
{
	uint32_t frame = graph->profile->nodes[graph->path[depth]].frame;

	graph->open[graph->label_of[frame]]--;
	if (graph->call_of[depth])
		graph->calls[graph->call_of[depth] - 1].open--;
}

/* Sums up depth first. Open functions and calls are those on the path to the node. */
static int sum_up(struct graph *graph)
{
	const struct profile_node *nodes = graph->profile->nodes;
	uint32_t depth = 0;
	int ret = 0;

	for (size_t i = 1; i < graph->tree.n_order && !ret; i++) {
		uint32_t node = graph->tree.order[i], label = graph->label_of[nodes[node].frame];
		uint64_t total = graph->tree.total[node];

		for (; depth >= graph->tree.depth[node]; depth--)
			leave(graph, depth);
		depth++;
		graph->path[depth] = node;
		graph->call_of[depth] = 0;
		add(&graph->self[label], nodes[node].self);
		if (!graph->open[label]++)
			add(&graph->total[label], total);
		if (depth > 1)
			ret = open_call(graph, graph->label_of[nodes[nodes[node].parent].frame],
					label, total, &graph->call_of[depth]);
	}
	return ret;
}

/* Writes @text into a quoted string, in which `&` begins an entity. */
static void put_text(FILE *out, const char *text)
{
	size_t i, len = strlen(text);

	/* Does not cut within a character. */
	if (len > LABEL_BYTES)
		for (len = LABEL_BYTES; (text[len] & 0xc0) == 0x80;)
			len--;
	for (i = 0; i < len; i++) {
		if (text[i] == '&') {
			fputs_unlocked("&amp;", out);
			continue;
		}
		if (text[i] == '"' || text[i] == '\\')
			putc_unlocked('\\', out);
		putc_unlocked(text[i], out);
	}
	if (text[len])
		fputs_unlocked("...", out);
}

static double share(const struct graph *graph, uint64_t weight)
{
	return graph->profile->total ? 100.0 * weight / graph->profile->total : 0;
}

static bool is_shown(const struct graph *graph, uint64_t total)
{
	return total && total >= graph->profile->total / SHARE_LEAST;
}

static void put_node(const struct graph *graph, uint32_t label, FILE *out)
{
	char self[32], total[32];

	output__amount(graph->profile, graph->self[label], self, sizeof(self));
	output__amount(graph->profile, graph->total[label], total, sizeof(total));
	fprintf(out, "\tn%u [label=\"", label);
	put_text(out, strtab__get(graph->labels, label));
	fprintf(out, "\\nself %s (%.1f%%)\\ntotal %s (%.1f%%)\" fontsize=%.0f];\n", self,
		share(graph, graph->self[label]), total, share(graph, graph->total[label]),
		8 + share(graph, graph->self[label]) / 5);
}

static void put_graph(const struct graph *graph, FILE *out)
{
	const struct profile *profile = graph->profile;
	char summary[OUTPUT_SUMMARY_BYTES], weight[32];

	output__summary(profile, summary, sizeof(summary));
	fputs("digraph braid {\n\tgraph [labelloc=t label=\"", out);
	put_text(out, summary);
	fputs("\"];\n\tnode [shape=box];\n", out);
	for (uint32_t i = 1; i < strtab__count(graph->labels); i++)
		if (is_shown(graph, graph->total[i]))
			put_node(graph, i, out);
	for (size_t i = 0; i < graph->n_calls; i++) {
		const struct call *call = &graph->calls[i];

		if (!is_shown(graph, call->total))
			continue;
		output__amount(profile, call->total, weight, sizeof(weight));
		fprintf(out, "\tn%u -> n%u [label=\"%s\" penwidth=%.1f];\n", call->from, call->to,
			weight, 1 + share(graph, call->total) / 25);
	}
	fputs("}\n", out);
}

int output__dot(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	struct graph graph = { .profile = profile, .labels = strtab__new() };
	size_t n = profile->n_frames + 1, depths;
	int ret = out_tree__init(&graph.tree, profile);

	if (ret) {
		strtab__free(graph.labels);
		return ret;
	}
	depths = graph.tree.depth_max + 1;
	graph.label_of = calloc(n, sizeof(*graph.label_of));
	graph.self = calloc(n + 1, sizeof(*graph.self));
	graph.total = calloc(n + 1, sizeof(*graph.total));
	graph.open = calloc(n + 1, sizeof(*graph.open));
	graph.call_of = calloc(depths, sizeof(*graph.call_of));
	graph.path = calloc(depths, sizeof(*graph.path));
	ret = -ENOMEM;
	if (!graph.labels || !graph.label_of || !graph.self || !graph.total || !graph.open ||
	    !graph.call_of || !graph.path)
		goto out;
	ret = make_labels(&graph, opts->annotate);
	if (!ret)
		ret = sum_up(&graph);
	if (ret)
		goto out;
	put_graph(&graph, out);
	ret = output__finish(out);
out:
	out_tree__done(&graph.tree);
	strtab__free(graph.labels);
	free(graph.label_of);
	free(graph.self);
	free(graph.total);
	free(graph.open);
	free(graph.call_of);
	free(graph.path);
	free(graph.calls);
	u64map__done(&graph.call_index);
	return ret;
}
