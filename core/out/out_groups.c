// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/out/out_groups.h"

#include <errno.h>
#include <stdlib.h>

#include "core/base/util.h"

/* Sets *@ret to a profile of the samples below the node @group. It has the sums of the whole
 * profile, so that its rows have the same columns. */
static int cut_group(const struct profile *profile, uint32_t group, struct profile **ret)
{
	uint32_t *copies = calloc(profile->n_nodes, sizeof(*copies));
	struct profile *cut = profile__like(profile);
	int code = copies && cut ? 0 : -ENOMEM;

	/* Both profiles have the same frames, so that both show the same ends of paths. */
	if (!code && profile->short_files)
		code = profile__shorten_files(cut);
	for (uint32_t i = group; !code && i < profile->n_nodes; i++) {
		const struct profile_node *node = &profile->nodes[i];
		const struct profile_value value = { node->self,    node->calls,
						     node->waiting, node->preempted,
						     node->samples, node->occurrences,
						     node->waits,   node->preemptions };

		if (i != group && node->parent != group && !copies[node->parent])
			continue;
		if (i != group)
			code = profile__child(cut, copies[node->parent], node->frame, &copies[i]);
		if (!code)
			profile__add_at(cut, copies[i], &value);
	}
	free(copies);
	if (code) {
		profile__free(cut);
		return code;
	}
	cut->total = profile->total;
	cut->waiting = profile->waiting;
	cut->preempted = profile->preempted;
	*ret = cut;
	return 0;
}

/* Returns the node of the group that the row shows, or 0. */
static uint32_t group_node(const struct out_list *list, const struct out_row *row)
{
	const struct profile *profile = list->of.profile;

	for (uint32_t i = 1; i < profile->n_nodes; i++)
		if (!profile->nodes[i].parent && out_rows__of(&list->of, i) == row->number)
			return i;
	return 0;
}

size_t out_groups__count(const struct out_list *list)
{
	size_t n = 0;

	while (n < list->n && out_rows__is_group(&list->of, list->rows[n].number))
		n++;
	return n;
}

int out_group__init(struct out_group *group, const struct out_list *list, const struct out_row *row,
		    const struct output_opts *opts, size_t max)
{
	struct output_opts inner = *opts;
	int ret;

	*group = (struct out_group) {};
	ret = cut_group(list->of.profile, group_node(list, row), &group->profile);
	if (ret)
		return ret;
	inner.sort = list->sort;
	inner.rows = max;
	ret = out_list__init(&group->list, group->profile, &inner);
	group->list.scripts = list->scripts;
	return ret;
}

void out_group__done(struct out_group *group)
{
	out_list__done(&group->list);
	profile__free(group->profile);
}
