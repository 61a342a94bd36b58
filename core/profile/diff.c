// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/diff.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/strtab.h"
#include "core/base/util.h"

/* The sum of both sides' weights in `both`, where weights are only compared with each other. */
#define WHOLE 1e12

/* one side while it is added to `both` */
struct joined {
	struct diff *diff;
	struct diff_side *side;
	struct strtab *roles;
	uint32_t *kinds, *frames, *nodes; /* by number of the side: number in `both` */
};

static int join_kinds(struct joined *joined)
{
	const struct profile *from = joined->side->profile;
	struct profile *both = joined->diff->both;

	for (size_t i = 0; i < from->n_kinds; i++) {
		const struct profile_kind *kind = &from->kinds[i];
		int number = kind->label ? profile__label_kind(both, kind->name)
					 : profile__kind(both, kind->name, kind->suffix);

		if (number < 0)
			return number;
		joined->kinds[i] = number;
		if (from->group_kind && i == from->group_kind)
			both->group_kind = number;
	}
	return 0;
}

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Removes the number from "worker (4711)", as it differs between runs. */
static void cut_id(char *name)
{
	char *end = strrchr(name, '(');

	if (end && end > name && end[-1] == ' ' && end[1] &&
	    end[1 + strspn(end + 1, "0123456789")] == ')')
		end[-1] = '\0';
}

static int join_frame(struct joined *joined, size_t i)
{
	const struct profile *from = joined->side->profile;
	const struct profile_frame *frame = &from->frames[i];
	struct profile *both = joined->diff->both;
	char *name = strdup(strtab__get(from->strings, frame->name));
	int ret;

	if (!name)
		return -ENOMEM;
	if (from->group_kind && frame->kind == from->group_kind)
		cut_id(name);
	ret = profile__code(both, joined->kinds[frame->kind], name,
			    last_component(strtab__get(from->strings, frame->file)), frame->line,
			    strtab__get(from->strings, frame->library), &joined->frames[i]);
	if (!ret)
		both->frames[joined->frames[i]].role = frame->role;
	free(name);
	return ret;
}

static int join_nodes(struct joined *joined)
{
	const struct profile *from = joined->side->profile;
	struct profile *both = joined->diff->both;
	int ret = 0;

	for (size_t i = 1; !ret && i < from->n_nodes; i++) {
		const struct profile_node *node = &from->nodes[i];
		struct profile_node *to;

		ret = profile__child(both, joined->nodes[node->parent], joined->frames[node->frame],
				     &joined->nodes[i]);
		to = &both->nodes[joined->nodes[i]];
		to->run = max_of(to->run, node->run);
	}
	return ret;
}

/* ---- shares ---- */

/* Finds the role of @thread. Replaces each run of digits in the name by '#', as the workers of a
 * pool differ by their numbers. */
static int find_role(struct joined *joined, const struct profile_thread *thread, uint32_t *ret)
{
	const char *process = thread->process ? thread->process : "";
	const char *name = thread->name ? thread->name : "";
	char *text = malloc(strlen(process) + strlen(name) + 2), *to = text;
	int code;

	if (!text)
		return -ENOMEM;
	to += sprintf(to, "%s\n", process);
	for (; *name; name++)
		if (!isdigit((unsigned char)*name))
			*to++ = *name;
		else if (to[-1] != '#')
			*to++ = '#';
	*to = '\0';
	code = strtab__intern(joined->roles, text, ret);
	free(text);
	return code;
}

static void add_share(struct joined *joined, const struct diff_share *at,
		      const struct profile_value *value)
{
	struct diff_side *side = joined->side;
	struct diff_share share = *at;
	uint64_t samples = value->samples;

	if (!value->weight)
		return;
	if (!samples)
		samples = side->profile->unit == PROFILE_SAMPLES ? value->weight : 1;
	share.weight = value->weight * side->unit;
	share.squares = share.weight * share.weight / samples;
	side->whole += share.weight;
	side->squares += share.squares;
	joined->diff->of_node[side - joined->diff->sides][share.node] += share.weight;
	side->shares[side->n_shares++] = share;
}

static int compare_shares(const void *a, const void *b)
{
	const struct diff_share *x = a, *y = b;

	if (x->role != y->role)
		return x->role < y->role ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

/* Adds the shares of one side. A profile that is not divided among threads counts as one thread. */
static int join_shares(struct joined *joined)
{
	const struct profile *from = joined->side->profile;
	size_t n = from->n_shares ? from->n_shares : from->n_nodes;
	uint32_t *roles = calloc(from->n_threads + 1, sizeof(*roles));
	int ret = 0;

	joined->side->shares = calloc(n + 1, sizeof(*joined->side->shares));
	if (!roles || !joined->side->shares)
		ret = -ENOMEM;
	for (size_t i = 0; !ret && i < from->n_threads; i++)
		ret = find_role(joined, &from->threads[i], &roles[i]);
	for (size_t i = 0; !ret && i < n; i++) {
		const struct profile_share *share = &from->shares[i];
		const struct profile_node *node = &from->nodes[i];

		if (from->n_shares)
			add_share(joined,
				  &(struct diff_share) { .node = joined->nodes[share->node],
							 .thread = share->thread,
							 .role = roles[share->thread] },
				  &share->value);
		else
			add_share(joined, &(struct diff_share) { .node = joined->nodes[i] },
				  &(struct profile_value) { .weight = node->self,
							    .samples = node->samples });
	}
	if (!ret)
		qsort(joined->side->shares, joined->side->n_shares, sizeof(*joined->side->shares),
		      compare_shares);
	free(roles);
	return ret;
}

/* ---- both ---- */

static int join(struct diff *diff, struct diff_side *side, struct strtab *roles)
{
	const struct profile *from = side->profile;
	struct joined joined = { .diff = diff,
				 .side = side,
				 .roles = roles,
				 .kinds = calloc(from->n_kinds + 1, sizeof(*joined.kinds)),
				 .frames = calloc(from->n_frames + 1, sizeof(*joined.frames)),
				 .nodes = calloc(from->n_nodes + 1, sizeof(*joined.nodes)) };
	double **of_node = &diff->of_node[side - diff->sides];
	int ret = -ENOMEM;

	if (!joined.kinds || !joined.frames || !joined.nodes)
		goto out;
	ret = join_kinds(&joined);
	for (size_t i = 0; !ret && i < from->n_frames; i++)
		ret = join_frame(&joined, i);
	if (!ret)
		ret = join_nodes(&joined);
	/* No side has more nodes than both sides together. */
	*of_node = calloc(diff->sides[DIFF_OLD].profile->n_nodes +
				  diff->sides[DIFF_NEW].profile->n_nodes,
			  sizeof(**of_node));
	if (!ret)
		ret = *of_node ? join_shares(&joined) : -ENOMEM;
out:
	free(joined.kinds);
	free(joined.frames);
	free(joined.nodes);
	return ret;
}

static void weigh(struct diff *diff)
{
	double rates[DIFF_SIDES], all = 0;

	for (int i = 0; i < DIFF_SIDES; i++) {
		const struct diff_side *side = &diff->sides[i];
		double rate = diff->by_value ? side->whole / side->seconds : 1;

		rates[i] = side->whole > 0 ? rate / side->whole : 0;
		all += side->whole > 0 ? rate : 0;
	}
	for (size_t i = 0; all > 0 && i < diff->both->n_nodes; i++) {
		double of = rates[DIFF_OLD] * diff->of_node[DIFF_OLD][i] +
			    rates[DIFF_NEW] * diff->of_node[DIFF_NEW][i];

		profile__add_at(diff->both, i,
				&(struct profile_value) { .weight = WHOLE * (of / all) + 0.5 });
	}
}

static const char *event_of(const struct profile *profile)
{
	return profile->event ? profile->event : "cpu";
}

static int refuse(const struct profile *old, const struct profile *new, bool by_value,
		  struct err *err)
{
	if (strcmp(event_of(old), event_of(new)) != 0)
		return err__set(err, -EINVAL,
				"cannot compare the event %s of the older recording with %s of the "
				"newer. Use --event NAME to choose an event that both have",
				event_of(old), event_of(new));
	if (strcmp(profile__unit(old), profile__unit(new)) != 0)
		return err__set(err, -EINVAL,
				"cannot compare the event %s: it is in %s in the older recording "
				"and in %s in the newer",
				event_of(new), profile__unit(old), profile__unit(new));
	if (!by_value)
		return 0;
	if (!(old->duration_s > 0) != !(new->duration_s > 0))
		return err__set(err, -EINVAL,
				"cannot compare by value: the duration of the %s recording is "
				"unknown. Use --diff-by share",
				old->duration_s > 0 ? "newer" : "older");
	if (new->unit == PROFILE_SAMPLES && !(old->frequency_hz > 0) != !(new->frequency_hz > 0))
		return err__set(err, -EINVAL,
				"cannot compare by value: the sampling frequency of the %s "
				"recording is unknown. Use --diff-by share",
				old->frequency_hz > 0 ? "newer" : "older");
	return 0;
}

static void set_side(struct diff *diff, int number, const struct profile *profile)
{
	struct diff_side *side = &diff->sides[number];

	side->profile = profile;
	side->unit = diff->clock ? 1e9 / profile->frequency_hz : 1;
	side->seconds = diff->by_value && profile->duration_s > 0 ? profile->duration_s : 1;
}

int diff__new(const struct profile *old, const struct profile *new, bool by_value,
	      struct diff **ret, struct err *err)
{
	int code = refuse(old, new, by_value, err);
	struct strtab *roles = NULL;
	struct diff *diff;

	if (code)
		return code;
	diff = calloc(1, sizeof(*diff));
	if (!diff)
		return err__set(err, -ENOMEM, "out of memory");
	diff->by_value = by_value;
	diff->clock =
		new->unit == PROFILE_SAMPLES && old->frequency_hz > 0 && new->frequency_hz > 0;
	set_side(diff, DIFF_OLD, old);
	set_side(diff, DIFF_NEW, new);
	diff->both = profile__new();
	roles = strtab__new();
	code = diff->both && roles
		       ? profile__measures(diff->both, event_of(new), profile__unit(new))
		       : -ENOMEM;
	if (!code && new->target) {
		diff->both->target = strdup(new->target);
		code = diff->both->target ? 0 : -ENOMEM;
	}
	for (int i = 0; !code && i < DIFF_SIDES; i++)
		code = join(diff, &diff->sides[i], roles);
	strtab__free(roles);
	if (code) {
		diff__free(diff);
		return err__set(err, code,
				code == -ENOSPC ? "too many kinds of frames" : "out of memory");
	}
	weigh(diff);
	*ret = diff;
	return 0;
}

void diff__free(struct diff *diff)
{
	if (!diff)
		return;
	profile__free(diff->both);
	for (int i = 0; i < DIFF_SIDES; i++) {
		free(diff->sides[i].shares);
		free(diff->of_node[i]);
	}
	free(diff);
}

double diff__scale(const struct diff *diff)
{
	const struct diff_side *old = &diff->sides[DIFF_OLD], *new = &diff->sides[DIFF_NEW];
	double scale = old->unit / new->unit;

	if (diff->by_value)
		return scale * new->seconds / old->seconds;
	return old->whole > 0 && new->whole > 0 ? scale *new->whole / old->whole : 1;
}
