// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/out/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/out/out_common.h"

/* Different frames may have equal labels, so that the profile is first copied into one whose frames
 * are labels. In the copy, `label;` stands for a caller and `label ` for the last frame. A line is
 * then the plain concatenation of a stack's names, and sorting siblings by name sorts the lines. */
struct relabel {
	struct profile *labels;
	uint32_t *caller, *leaf; /* by frame of the original: frame of `labels` */
	uint32_t no_stack;
	/* For two recordings: the weight of a stack of `labels` is that of the newer one, and its
	 * calls are the weight of the older one. */
	const struct diff *diff;
};

static int relabel_frame(struct relabel *relabel, const struct profile *profile, size_t frame,
			 int annotate)
{
	char *label = output__label(profile, &profile->frames[frame], annotate);
	char *semicolon, *text = NULL;
	int err = -ENOMEM;

	if (!label)
		goto out;
	escape__printable(label);
	for (semicolon = strchr(label, ';'); semicolon; semicolon = strchr(semicolon, ';'))
		*semicolon = ':';
	if (asprintf(&text, "%s;", label) < 0) {
		text = NULL;
		goto out;
	}
	err = profile__frame(relabel->labels, 0, text, NULL, 0, &relabel->caller[frame]);
	if (err)
		goto out;
	text[strlen(text) - 1] = ' ';
	err = profile__frame(relabel->labels, 0, text, NULL, 0, &relabel->leaf[frame]);
out:
	free(text);
	free(label);
	return err;
}

static struct profile_value value_of(const struct relabel *relabel, const struct profile *profile,
				     uint32_t node)
{
	const struct diff *diff = relabel->diff;
	double old, new;

	if (!diff)
		return (struct profile_value) { .weight = profile->nodes[node].self };
	old = diff->of_node[DIFF_OLD][node] / diff->sides[DIFF_OLD].unit * diff__scale(diff);
	new = diff->of_node[DIFF_NEW][node] / diff->sides[DIFF_NEW].unit;
	/* The limit prevents an overflow of the sums, which have 64 bits. */
	return (struct profile_value) { .weight = min_of(new, 1e18) + 0.5,
					.calls = min_of(old, 1e18) + 0.5 };
}

/* Adds the stack that ends at @node, root first, its last frame as a leaf. */
static int relabel_stack(struct relabel *relabel, const struct profile *profile, uint32_t node,
			 uint32_t depth, uint32_t *stack)
{
	struct profile_value value = value_of(relabel, profile, node);
	uint32_t i = depth;

	if (!value.weight && !value.calls)
		return 0;
	if (!node)
		return profile__add_value(relabel->labels, &relabel->no_stack, 1, &value, NULL);
	stack[--i] = relabel->leaf[profile->nodes[node].frame];
	while (i) {
		node = profile->nodes[node].parent;
		stack[--i] = relabel->caller[profile->nodes[node].frame];
	}
	return profile__add_value(relabel->labels, stack, depth, &value, NULL);
}

static int relabel_all(struct relabel *relabel, const struct profile *profile, int annotate)
{
	uint32_t *stack = NULL;
	struct out_tree tree;
	size_t i;
	int err;

	err = out_tree__init(&tree, profile);
	if (err)
		return err;
	err = profile__frame(relabel->labels, 0, "[no stack] ", NULL, 0, &relabel->no_stack);
	for (i = 0; i < profile->n_frames && !err; i++)
		err = relabel_frame(relabel, profile, i, annotate);
	stack = calloc(tree.depth_max + 1, sizeof(*stack));
	if (!stack)
		err = -ENOMEM;
	for (i = 0; i < tree.n_order && !err; i++)
		err = relabel_stack(relabel, profile, tree.order[i], tree.depth[tree.order[i]],
				    stack);
	free(stack);
	out_tree__done(&tree);
	return err;
}

/* Walks depth first with the line up to the node in one buffer. `ends`: by depth, end of its part
 * of the line. */
static int write_lines(const struct profile *labels, bool two, FILE *out)
{
	size_t i, cap = 0, *ends = NULL;
	struct out_tree tree;
	char *line = NULL;
	int err;

	err = out_tree__init(&tree, labels);
	if (err)
		return err;
	ends = calloc(tree.depth_max + 1, sizeof(*ends));
	if (!ends)
		err = -ENOMEM;
	for (i = 1; i < tree.n_order && !err; i++) {
		const struct profile_node *node = &labels->nodes[tree.order[i]];
		const char *name = strtab__get(labels->strings, labels->frames[node->frame].name);
		size_t *end = &ends[tree.depth[tree.order[i]]];

		*end = end[-1] + strlen(name);
		err = array__reserve(&line, &cap, *end, 1);
		if (err)
			break;
		memcpy(line + end[-1], name, *end - end[-1]);
		if (!node->self && !node->calls)
			continue;
		fwrite_unlocked(line, 1, *end, out);
		if (two) {
			output__number(out, node->calls);
			putc_unlocked(' ', out);
		}
		output__number(out, node->self);
		putc_unlocked('\n', out);
	}
	free(line);
	free(ends);
	out_tree__done(&tree);
	return err;
}

int output__folded(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	struct relabel relabel = {
		.diff = opts->diff,
		.labels = profile__new(),
		.caller = calloc(profile->n_frames + 1, sizeof(*relabel.caller)),
		.leaf = calloc(profile->n_frames + 1, sizeof(*relabel.leaf)),
	};
	int err = -ENOMEM;

	if (!relabel.labels || !relabel.caller || !relabel.leaf)
		goto out;
	err = relabel_all(&relabel, profile, opts->annotate);
	if (!err)
		err = write_lines(relabel.labels, opts->diff != NULL, out);
	if (!err)
		err = output__finish(out);
out:
	profile__free(relabel.labels);
	free(relabel.caller);
	free(relabel.leaf);
	return err;
}
