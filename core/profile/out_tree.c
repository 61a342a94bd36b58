// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/profile/out_common.h"

/* Nodes with less of the whole are left out, and counted. */
#define SHARE_MIN 0.001

/* Deeper nodes are indented no further. */
#define INDENT_MAX 60

struct printed {
	const struct profile *profile;
	const struct output_opts *opts;
	struct out_tree tree;
	uint64_t whole;
	size_t rows, left_out;
	FILE *out;
};

/* By weight, the heaviest first; then as they come, by name. */
static int compare_siblings(const void *a, const void *b, void *arg)
{
	const struct out_tree *tree = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (tree->total[x] != tree->total[y])
		return tree->total[x] > tree->total[y] ? -1 : 1;
	return x < y ? -1 : x > y;
}

static int print_node(struct printed *printed, uint32_t node)
{
	const struct profile_node *at = &printed->profile->nodes[node];
	uint32_t depth = printed->tree.depth[node] - 1;
	char total[32], self[32], states[OUTPUT_STATES_BYTES] = "";
	char *label = output__label(printed->profile, &printed->profile->frames[at->frame],
				    printed->opts->annotate);

	if (!label)
		return -ENOMEM;
	escape__printable(label);
	output__weight(printed->profile, printed->tree.total[node], total, sizeof(total));
	output__weight(printed->profile, at->self, self, sizeof(self));
	if (printed->tree.waiting)
		output__states(printed->profile, printed->tree.total[node],
			       printed->tree.waiting[node], printed->tree.preempted[node], states,
			       sizeof(states));
	fprintf(printed->out, "%5.1f%% %10s%s %10s",
		printed->whole ? 100.0 * printed->tree.total[node] / printed->whole : 0, total,
		states, self);
	if (printed->profile->counts_calls)
		fprintf(printed->out, " %11" PRIu64, at->calls);
	fprintf(printed->out, "  %*s%s\n", (int)min_of(2 * depth, (uint32_t)INDENT_MAX), "", label);
	free(label);
	return 0;
}

/* Depth first without recursion: a node's children are sorted on top of the stack of what is still
 * to be printed. `first` and `next` make lists of them. */
static int print_all(struct printed *printed, const uint32_t *first, const uint32_t *next,
		     uint32_t *stack)
{
	size_t n = 0, base;
	uint32_t node, child;
	int err = 0;

	stack[n++] = 0;
	while (n && !err) {
		node = stack[--n];
		if (node && (printed->tree.total[node] < SHARE_MIN * printed->whole ||
			     (printed->opts->rows && printed->rows >= printed->opts->rows))) {
			printed->left_out++;
			continue;
		}
		if (node) {
			err = print_node(printed, node);
			printed->rows++;
		}
		base = n;
		for (child = first[node]; child; child = next[child])
			stack[n++] = child;
		qsort_r(stack + base, n - base, sizeof(*stack), compare_siblings, &printed->tree);
		for (size_t i = base, k = n; i + 1 < k; i++, k--) { /* the heaviest on top */
			uint32_t kept = stack[i];

			stack[i] = stack[k - 1];
			stack[k - 1] = kept;
		}
	}
	return err;
}

int output__tree(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	struct printed printed = { .profile = profile, .opts = opts, .out = out };
	uint32_t *first = calloc(profile->n_nodes + 1, sizeof(*first));
	uint32_t *next = calloc(profile->n_nodes + 1, sizeof(*next));
	uint32_t *stack = calloc(profile->n_nodes + 1, sizeof(*stack));
	int err = -ENOMEM;

	if (!first || !next || !stack || out_tree__init(&printed.tree, profile))
		goto out;
	for (size_t i = 1; i < printed.tree.n_order; i++) {
		uint32_t node = printed.tree.order[i], parent = profile->nodes[node].parent;

		next[node] = first[parent];
		first[parent] = node;
	}
	printed.whole = printed.tree.total[0];
	output__heading(profile, out);
	fprintf(out, "\n Total%%      Total%s       Self%s  Function\n",
		printed.tree.waiting ? OUTPUT_STATES_TITLE : "",
		profile->counts_calls ? "       Calls" : "");
	err = print_all(&printed, first, next, stack);
	if (!err && printed.left_out)
		fprintf(out, "\n%zu more subtrees, with less than %g %% each%s\n", printed.left_out,
			100 * SHARE_MIN, opts->rows ? " or beyond --rows" : "");
	if (!err)
		err = output__finish(out);
	out_tree__done(&printed.tree);
out:
	free(first);
	free(next);
	free(stack);
	return err;
}
