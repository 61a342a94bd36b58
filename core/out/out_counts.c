// SPDX-License-Identifier: GPL-2.0-or-later
/* The sums of a table's rows: out_rows__count(). */
#include <errno.h>
#include <stdlib.h>

#include "core/out/out_common.h"
#include "core/out/out_rows.h"

struct counting {
	const struct out_rows *of;
	const struct profile *profile;
	struct out_row *rows;
	struct out_tree tree;
	uint32_t *owners;      /* by node */
	uint64_t *samples;     /* by node, with those of its descendants */
	uint64_t *occurrences; /* by node, with those of its descendants */
	uint32_t *open;	       /* by row: number of its frames on the present path */
	uint32_t *path;
	uint64_t *line_script, *line_total; /* by frame */
	bool scripts;
};

/* Adds the weight of a node to a row. The root's row contains only samples that end in the root. */
static void add_total(const struct counting *counting, struct out_row *row, uint32_t node)
{
	const struct profile_node *at = &counting->profile->nodes[node];
	const struct out_tree *tree = &counting->tree;

	row->total += row->number ? tree->total[node] : at->self;
	row->samples += row->number ? counting->samples[node] : at->samples;
	row->occurrences += row->number ? counting->occurrences[node] : at->occurrences;
	if (!tree->waiting)
		return;
	row->waiting += row->number ? tree->waiting[node] : at->waiting;
	row->preempted += row->number ? tree->preempted[node] : at->preempted;
}

/* Walks depth first and counts the rows on the path, so that a row's total contains only the
 * outermost of its frames in a stack. Rows of labels contain the weight of all their stacks. */
static void walk(struct counting *counting)
{
	const struct profile *profile = counting->profile;
	uint32_t depth = 0;

	for (size_t i = 0; i < counting->tree.n_order; i++) {
		uint32_t node = counting->tree.order[i];
		uint32_t number = out_rows__of(counting->of, node);
		uint32_t owner = out_rows__of(counting->of, counting->owners[node]);
		uint64_t self = profile->nodes[node].self;
		struct out_row *row = &counting->rows[number];

		for (; depth > counting->tree.depth[node]; depth--)
			counting->open[counting->path[depth - 1]]--;
		counting->path[depth++] = number;
		row->self += self;
		row->calls += profile->nodes[node].calls;
		counting->rows[owner].script += self;
		if (counting->owners[node])
			counting->line_script[profile->nodes[counting->owners[node]].frame] += self;
		counting->scripts |= owner != number && self;
		if (!counting->open[number]++) {
			add_total(counting, row, node);
			if (node)
				counting->line_total[profile->nodes[node].frame] +=
					counting->tree.total[node];
		}
	}
}

/* Sorts frames by row and line. */
static int compare_lines(const void *a, const void *b, void *arg)
{
	const struct out_rows *of = arg;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct profile_frame *frames = of->profile->frames;

	if (of->row_of[x] != of->row_of[y])
		return of->row_of[x] < of->row_of[y] ? -1 : 1;
	return (frames[x].line > frames[y].line) - (frames[x].line < frames[y].line);
}

/* Sets the line of each row that has most of its script weight, or of its total if it has none. */
static int find_hottest(struct counting *counting)
{
	const struct out_rows *of = counting->of;
	const struct profile *profile = counting->profile;
	uint32_t *sorted = malloc((profile->n_frames + 1) * sizeof(*sorted));
	uint64_t sum = 0;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_frames; i++)
		sorted[i] = i;
	qsort_r(sorted, profile->n_frames, sizeof(*sorted), compare_lines, (void *)of);
	for (size_t i = 0; i < profile->n_frames; i++) {
		struct out_row *row = &counting->rows[of->row_of[sorted[i]]];
		uint64_t whole = row->script ? row->script : row->total;

		if (i && compare_lines(&sorted[i - 1], &sorted[i], (void *)of))
			sum = 0;
		sum += row->script ? counting->line_script[sorted[i]]
				   : counting->line_total[sorted[i]];
		if (!whole || !profile->frames[sorted[i]].line ||
		    (double)sum / whole <= row->line_share)
			continue;
		row->line = profile->frames[sorted[i]].line;
		row->line_share = (double)sum / whole;
	}
	free(sorted);
	return 0;
}

static int prepare(struct counting *counting)
{
	const struct profile *profile = counting->profile;
	size_t n = profile->n_nodes;

	counting->owners = calloc(n, sizeof(*counting->owners));
	counting->samples = calloc(n, sizeof(*counting->samples));
	counting->occurrences = calloc(n, sizeof(*counting->occurrences));
	counting->open = calloc(counting->of->n, sizeof(*counting->open));
	counting->line_script = calloc(profile->n_frames + 1, sizeof(*counting->line_script));
	counting->line_total = calloc(profile->n_frames + 1, sizeof(*counting->line_total));
	counting->path = calloc(counting->tree.depth_max + 1, sizeof(*counting->path));
	if (!counting->owners || !counting->samples || !counting->occurrences || !counting->open ||
	    !counting->path || !counting->line_script || !counting->line_total)
		return -ENOMEM;
	if (frames__script_owners(profile, counting->owners))
		return -ENOMEM;
	for (size_t i = n; i-- > 0;) {
		counting->samples[i] += profile->nodes[i].samples;
		counting->occurrences[i] += profile->nodes[i].occurrences;
		if (!i)
			continue;
		counting->samples[profile->nodes[i].parent] += counting->samples[i];
		counting->occurrences[profile->nodes[i].parent] += counting->occurrences[i];
	}
	return 0;
}

int out_rows__count(const struct out_rows *of, struct out_row *rows, bool *ret_scripts)
{
	struct counting counting = { .of = of, .profile = of->profile, .rows = rows };
	int ret = out_tree__init(&counting.tree, of->profile);

	if (ret)
		return ret;
	for (size_t i = 0; i < of->n; i++)
		rows[i] = (struct out_row) { .number = i };
	ret = prepare(&counting);
	if (!ret) {
		walk(&counting);
		ret = find_hottest(&counting);
	}
	*ret_scripts = counting.scripts;
	out_tree__done(&counting.tree);
	free(counting.owners);
	free(counting.samples);
	free(counting.occurrences);
	free(counting.open);
	free(counting.path);
	free(counting.line_script);
	free(counting.line_total);
	return ret;
}
