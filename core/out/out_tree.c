// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/out/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/out/out_common.h"
#include "core/out/out_diff.h"

/* Nodes with a smaller share of the whole are left out, and counted. If rows are limited, the share
 * is increased until the shown nodes fit. */
#define SHARE_MIN 0.001

#define CHAIN_MIN 4 /* frames; a chain of this length or more is elided except for its ends */

/* Callers shown of a chain. The nearest ones matter most. */
#define CALLERS_MAX 3

/* A single node or one of several siblings, with its followers up to the next fork. */
struct chain {
	uint32_t first, last;
	uint32_t frames; /* number of frames */
	uint32_t level;	 /* number of rows that lead to it */
};

struct printed {
	const struct profile *profile;
	const struct output_opts *opts;
	struct out_tree tree;
	uint32_t *place;	   /* by node: position in tree.order */
	uint32_t *sorted;	   /* nodes but the root, the heaviest first, then by place */
	uint32_t *child, *sibling; /* by node, in that order; 0: none */
	bool *chosen;		   /* by node: first of a chain that is shown */
	struct chain *stack;	   /* chains to be printed */
	uint64_t least;		   /* least weight of shown nodes */
	uint64_t fork;		   /* least weight of a branch that makes a fork */
	uint32_t trunk; /* node up to which all stacks are the same, if that is worth a row;
			   otherwise 0 */
	uint32_t trunk_frames;
	size_t left_out;
	struct diff_rows changes; /* by node, for two recordings */
	FILE *out;
};

/* Sorts by weight, then by position. A parent never follows its children, as its weight is not less
 * and its position is before theirs. */
static int compare_nodes(const void *a, const void *b, void *arg)
{
	const struct printed *printed = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (printed->tree.total[x] != printed->tree.total[y])
		return printed->tree.total[x] > printed->tree.total[y] ? -1 : 1;
	return printed->place[x] < printed->place[y] ? -1 : printed->place[x] > printed->place[y];
}

/* Counts the changes, with each node as a row. */
static int init_changes(struct printed *printed)
{
	uint32_t *rows = printed->place;

	for (uint32_t i = 0; i < printed->profile->n_nodes; i++)
		rows[i] = i;
	return diff_rows__init(&printed->changes, printed->opts->diff, DIFF_TOTAL, rows,
			       printed->profile->n_nodes);
}

static int printed_init(struct printed *printed)
{
	const struct profile *profile = printed->profile;
	size_t n = profile->n_nodes;

	printed->place = calloc(n, sizeof(*printed->place));
	printed->sorted = calloc(n, sizeof(*printed->sorted));
	printed->child = calloc(n, sizeof(*printed->child));
	printed->sibling = calloc(n, sizeof(*printed->sibling));
	printed->chosen = calloc(n, sizeof(*printed->chosen));
	printed->stack = calloc(n, sizeof(*printed->stack));
	if (!printed->place || !printed->sorted || !printed->child || !printed->sibling ||
	    !printed->chosen || !printed->stack || out_tree__init(&printed->tree, profile))
		return -ENOMEM;
	if (printed->opts->diff && init_changes(printed))
		return -ENOMEM;
	n = printed->tree.n_order - 1;
	for (size_t i = 0; i < n; i++) {
		printed->sorted[i] = printed->tree.order[i + 1];
		printed->place[printed->sorted[i]] = i;
	}
	qsort_r(printed->sorted, n, sizeof(*printed->sorted), compare_nodes, printed);
	while (n-- > 0) {
		uint32_t node = printed->sorted[n];
		uint32_t *first = &printed->child[profile->nodes[node].parent];

		printed->sibling[node] = *first;
		*first = node;
	}
	return 0;
}

static void printed_done(struct printed *printed)
{
	free(printed->place);
	free(printed->sorted);
	free(printed->child);
	free(printed->sibling);
	free(printed->chosen);
	free(printed->stack);
	out_tree__done(&printed->tree);
	diff_rows__done(&printed->changes);
}

static bool is_label(const struct printed *printed, uint32_t node)
{
	const struct profile *profile = printed->profile;

	return profile->kinds[profile->frames[profile->nodes[node].frame].kind].label;
}

/* Returns the only child by which a chain continues from the node, or 0 if the chain ends. */
static uint32_t follower(const struct printed *printed, uint32_t node)
{
	const struct profile_node *at = &printed->profile->nodes[node];
	uint32_t child = printed->child[node], next = child ? printed->sibling[child] : 0;

	if (!child || at->calls || is_label(printed, child) || (node && is_label(printed, node)))
		return 0;
	if (at->self >= printed->fork || (next && printed->tree.total[next] >= printed->fork))
		return 0;
	return printed->tree.total[child] >= printed->least ? child : 0;
}

static struct chain chain_from(const struct printed *printed, uint32_t node, uint32_t level)
{
	struct chain chain = { node, node, 1, level };

	for (node = follower(printed, node); node; node = follower(printed, node)) {
		chain.last = node;
		chain.frames++;
	}
	return chain;
}

static size_t rows_of(const struct printed *printed, const struct chain *chain)
{
	if (printed->opts->inverted)
		return min_of(chain->frames, CALLERS_MAX + 1u);
	return chain->frames < CHAIN_MIN ? chain->frames : 3;
}

/* Finds the frames that all samples have in common. The last of these begins the tree. */
static void find_trunk(struct printed *printed)
{
	uint32_t child = printed->child[0], node = 0;

	while (child && printed->tree.total[child] == printed->tree.total[0] &&
	       !printed->profile->nodes[node].calls && !is_label(printed, child)) {
		node = child;
		child = printed->child[node];
		printed->trunk_frames++;
	}
	if (printed->trunk_frames < CHAIN_MIN)
		return;
	printed->trunk = printed->profile->nodes[node].parent;
	printed->trunk_frames--;
}

/* Returns true if the node is the first of a chain. */
static bool begins(const struct printed *printed, uint32_t node)
{
	uint32_t parent = printed->profile->nodes[node].parent;

	if (printed->trunk && printed->place[node] <= printed->place[printed->trunk])
		return false;
	return parent == printed->trunk || follower(printed, parent) != node;
}

/* Returns the number of rows of the tree if the first @n nodes, and those of the same weight, are
 * shown. */
static size_t rows_with(struct printed *printed, size_t n)
{
	size_t rows = printed->trunk ? 1 : 0, end = printed->tree.n_order - 1;

	printed->least = printed->fork = printed->tree.total[printed->sorted[n - 1]];
	for (size_t i = 0; i < end; i++) {
		uint32_t node = printed->sorted[i];
		struct chain chain;

		if (printed->tree.total[node] < printed->least)
			break;
		if (!begins(printed, node))
			continue;
		chain = chain_from(printed, node, 0);
		rows += rows_of(printed, &chain);
	}
	return rows;
}

/* Finds the least weight such that the shown nodes fit into the rows. Rows are spent on forks:
 * hidden side branches make no fork, and chains are elided. */
static void find_least(struct printed *printed)
{
	size_t low = 1, high = printed->tree.n_order - 1; /* `low` nodes fit, or no number does */
	uint64_t least = max_of(1, (uint64_t)(SHARE_MIN * printed->tree.total[0]));

	while (high && printed->tree.total[printed->sorted[high - 1]] < least)
		high--;
	if (!printed->opts->rows || !high || rows_with(printed, high) <= printed->opts->rows) {
		printed->least = least;
		printed->fork = printed->opts->rows ? least : 1;
		return;
	}
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (rows_with(printed, middle) <= printed->opts->rows)
			low = middle;
		else
			high = middle;
	}
	rows_with(printed, low);
}

/* Chooses the chains that are shown, in the order of weight. Each follows the chain that it
 * continues. */
static void choose(struct printed *printed)
{
	size_t rows = printed->opts->rows, n = printed->tree.n_order - 1;
	size_t used = printed->trunk ? 1 : 0;

	find_least(printed);
	for (size_t i = 0; i < n; i++) {
		uint32_t node = printed->sorted[i];
		struct chain chain;

		if (printed->tree.total[node] < printed->least)
			break;
		if (!begins(printed, node))
			continue;
		chain = chain_from(printed, node, 0);
		used += rows_of(printed, &chain);
		if (rows && used > rows && i)
			break;
		printed->chosen[node] = true;
	}
}

/* ---- rows ---- */

static void put_indent(const struct printed *printed, uint32_t level)
{
	fprintf(printed->out, "  %*s", (int)min_of(2 * level, (uint32_t)INT16_MAX), "");
}

/* Writes a row without numbers. It begins where the columns of other rows end. */
static void put_elided(const struct printed *printed, uint32_t frames, uint32_t level)
{
	const struct profile *profile = printed->profile;
	int width = 17 + (printed->tree.waiting ? (int)strlen(OUTPUT_STATES_TITLE) : 0) +
		    (printed->opts->inverted ? 0 : 11) + (profile->counts_calls ? 12 : 0);

	if (printed->opts->diff)
		width = strlen(out_diff__titles(printed->opts->diff)) - 2;
	fprintf(printed->out, "%*s", width, "");
	put_indent(printed, level);
	fprintf(printed->out, "%s… %u frames …%s\n",
		printed->opts->colour ? OUTPUT_COLOUR_FAINT : "", frames,
		printed->opts->colour ? OUTPUT_COLOUR_END : "");
}

static void put_change(const struct printed *printed, uint32_t node)
{
	struct diff_change change = diff_rows__change(&printed->changes, node);
	char columns[OUT_DIFF_BYTES];

	out_diff__columns(printed->opts->diff, &change, columns, sizeof(columns));
	columns[strlen(columns) - 2] = '\0'; /* the indentation begins with these two */
	fprintf(printed->out, "%s%s", printed->opts->colour ? out_diff__colour(&change) : "",
		columns);
}

static void put_numbers(const struct printed *printed, uint32_t node)
{
	const struct profile *profile = printed->profile;
	const struct profile_node *at = &profile->nodes[node];
	uint64_t whole = printed->tree.total[0];
	char text[32], states[OUTPUT_STATES_BYTES] = "";

	if (printed->opts->diff) {
		put_change(printed, node);
		return;
	}
	output__amount(profile, printed->tree.total[node], text, sizeof(text));
	if (printed->tree.waiting)
		output__states(profile, printed->tree.total[node], printed->tree.waiting[node],
			       printed->tree.preempted[node], states, sizeof(states));
	fprintf(printed->out, "%5.1f%% %10s%s",
		whole ? 100.0 * printed->tree.total[node] / whole : 0, text, states);
	output__amount(profile, at->self, text, sizeof(text));
	if (!printed->opts->inverted)
		fprintf(printed->out, " %10s", text);
	if (profile->counts_calls)
		fprintf(printed->out, " %11" PRIu64, at->calls);
}

static int put_node(const struct printed *printed, uint32_t node, uint32_t level)
{
	const struct profile *profile = printed->profile;
	uint8_t kind = profile->frames[profile->nodes[node].frame].kind;
	char *label = output__node_label(profile, node, printed->opts->annotate);

	if (!label)
		return -ENOMEM;
	put_numbers(printed, node);
	put_indent(printed, level);
	fprintf(printed->out, "%s%s%s\n",
		printed->opts->colour && !printed->opts->diff ? output__colour(profile, kind) : "",
		label, printed->opts->colour ? OUTPUT_COLOUR_END : "");
	free(label);
	return 0;
}

static int put_chain(const struct printed *printed, const struct chain *chain)
{
	uint32_t level = chain->level, node = chain->first;
	int ret = put_node(printed, node, level);

	if (chain->frames >= CHAIN_MIN && !printed->opts->inverted) {
		put_elided(printed, chain->frames - 2, ++level);
		return ret ? ret : put_node(printed, chain->last, ++level);
	}
	for (uint32_t i = 1; !ret && i < chain->frames; i++) {
		if (printed->opts->inverted && i == CALLERS_MAX && chain->frames > i + 1) {
			put_elided(printed, chain->frames - i, ++level);
			break;
		}
		node = printed->child[node];
		ret = put_node(printed, node, ++level);
	}
	return ret;
}

static void put_trunk(const struct printed *printed)
{
	if (!printed->trunk)
		return;
	put_numbers(printed, printed->trunk);
	put_indent(printed, 0);
	fprintf(printed->out, "%s%u frames common to all samples%s\n",
		printed->opts->colour ? OUTPUT_COLOUR_FAINT : "", printed->trunk_frames,
		printed->opts->colour ? OUTPUT_COLOUR_END : "");
}

/* Pushes the chosen children onto the stack, the heaviest last, for a walk depth first without
 * recursion. */
static void push_children(struct printed *printed, uint32_t node, uint32_t level, size_t *n)
{
	size_t base = *n;

	for (uint32_t child = printed->child[node]; child; child = printed->sibling[child])
		if (printed->chosen[child])
			printed->stack[(*n)++] = chain_from(printed, child, level);
		else
			printed->left_out++;
	for (size_t i = base, k = *n; i + 1 < k; i++, k--) {
		struct chain saved = printed->stack[i];

		printed->stack[i] = printed->stack[k - 1];
		printed->stack[k - 1] = saved;
	}
}

static int put_all(struct printed *printed)
{
	size_t n = 0;
	int ret = 0;

	put_trunk(printed);
	push_children(printed, printed->trunk, 0, &n);
	while (n && !ret) {
		struct chain chain = printed->stack[--n];

		ret = put_chain(printed, &chain);
		for (uint32_t node = chain.first; node != chain.last;
		     node = printed->child[node]) /* side branches that make no fork */
			for (uint32_t side = printed->sibling[printed->child[node]]; side;
			     side = printed->sibling[side])
				printed->left_out++;
		push_children(printed, chain.last, chain.level + rows_of(printed, &chain), &n);
	}
	return ret;
}

static void put_titles(const struct printed *printed)
{
	const struct output_opts *opts = printed->opts;
	FILE *out = printed->out;

	if (opts->diff) {
		if (!opts->headless)
			out_diff__heading(opts->diff, out);
		fprintf(out, "%s%sFunction\n", opts->headless ? "" : "\n",
			out_diff__titles(opts->diff));
		return;
	}
	if (!opts->headless)
		output__heading(printed->profile, out);
	fprintf(out, "%s Total%%      Total%s%s%s  Function\n", opts->headless ? "" : "\n",
		printed->tree.waiting ? OUTPUT_STATES_TITLE : "",
		opts->inverted ? "" : "       Self",
		printed->profile->counts_calls ? "       Calls" : "");
}

int output__tree(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	struct printed printed = { .profile = profile, .opts = opts, .out = out };
	int ret = printed_init(&printed);

	if (ret)
		goto out;
	put_titles(&printed);
	find_trunk(&printed);
	choose(&printed);
	ret = put_all(&printed);
	if (!ret && printed.left_out)
		fprintf(out, "\n%zu more subtrees, with less than %g %% each%s\n", printed.left_out,
			100 * SHARE_MIN, opts->rows ? " or beyond --rows" : "");
	if (!ret)
		ret = output__finish(out);
out:
	printed_done(&printed);
	return ret;
}
