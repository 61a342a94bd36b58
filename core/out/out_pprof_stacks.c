// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/out/out_pprof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"

int pprof__string(struct pprof *pprof, const char *text, const char *suffix, uint32_t *ret)
{
	char *copy;
	int err;

	if (asprintf(&copy, "%s%s", text, suffix) < 0)
		return -ENOMEM;
	escape__printable(copy);
	err = strtab__intern(pprof->strings, copy, ret);
	free(copy);
	return err;
}

static int add_function(struct pprof *pprof, const char *name, const char *suffix, const char *file,
			uint32_t *ret_id)
{
	struct function function;
	uint64_t key;

	if (pprof__string(pprof, name, suffix, &function.name) ||
	    pprof__string(pprof, file, "", &function.file))
		return -ENOMEM;
	key = (uint64_t)function.name << 32 | function.file;
	*ret_id = u64map__get(&pprof->function_index, key);
	if (*ret_id)
		return 0;
	if (array__reserve(&pprof->functions, &pprof->cap_functions, pprof->n_functions + 1,
			   sizeof(*pprof->functions)))
		return -ENOMEM;
	pprof->functions[pprof->n_functions++] = function;
	*ret_id = pprof->n_functions;
	return u64map__put(&pprof->function_index, key, *ret_id);
}

static int push_location(struct pprof *pprof, const struct location *location, uint32_t *ret_place)
{
	if (array__reserve(&pprof->locations, &pprof->cap_locations, pprof->n_locations + 1,
			   sizeof(*pprof->locations)))
		return -ENOMEM;
	pprof->locations[pprof->n_locations++] = *location;
	*ret_place = pprof->n_locations;
	return 0;
}

static int add_location(struct pprof *pprof, uint32_t outer, uint32_t frame, uint32_t *ret_place)
{
	struct location location = { .outer = outer,
				     .function = pprof->function_of[frame],
				     .line = pprof->profile->frames[frame].line };
	uint64_t key = (uint64_t)location.function << 32 | location.line;
	uint32_t line = u64map__get(&pprof->line_index, key);

	if (!line) {
		line = ++pprof->n_lines;
		if (u64map__put(&pprof->line_index, key, line))
			return -ENOMEM;
	}
	key = (uint64_t)outer << 32 | line;
	*ret_place = u64map__get(&pprof->location_index, key);
	if (*ret_place)
		return 0;
	if (push_location(pprof, &location, ret_place))
		return -ENOMEM;
	return u64map__put(&pprof->location_index, key, *ret_place);
}

/* Adds a location for samples without a stack, as only samples with a location are counted. */
static int add_no_stack(struct pprof *pprof)
{
	struct location location = { 0 };

	if (add_function(pprof, "[no stack]", "", "", &location.function))
		return -ENOMEM;
	return push_location(pprof, &location, &pprof->location_of[0]);
}

/* Returns true if the node's frame was inlined into its parent's. */
static bool is_inlined(const struct profile *profile, const struct profile_node *node)
{
	int kind;

	if (!node->parent || profile->frames[node->frame].kind != KIND_INLINED)
		return false;
	kind = profile->frames[profile->nodes[node->parent].frame].kind;
	return kind == KIND_NATIVE || kind == KIND_INLINED;
}

/* Adds the location of a node. Nodes come in the order in which stacks are shown. So the bytes do
 * not depend on the order in which the profile was built. */
static int add_node(struct pprof *pprof, uint32_t number, int annotate)
{
	const struct profile *profile = pprof->profile;
	const struct profile_node *node = &profile->nodes[number];
	const struct profile_frame *frame;
	char mark[PROFILE_MARK_BYTES] = "";
	uint32_t *function, outer = 0;

	if (!number)
		return node->self || node->calls || node->occurrences ? add_no_stack(pprof) : 0;
	frame = &profile->frames[node->frame];
	function = &pprof->function_of[node->frame];
	if (annotate)
		profile__mark(profile, frame, mark);
	if (!*function && add_function(pprof, strtab__get(profile->strings, frame->name), mark,
				       strtab__get(profile->strings, frame->file), function))
		return -ENOMEM;
	if (is_inlined(profile, node))
		outer = pprof->location_of[node->parent];
	return add_location(pprof, outer, node->frame, &pprof->location_of[number]);
}

static int compare_shares(const void *a, const void *b)
{
	const struct profile_share *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

static void add(uint64_t *sum, uint64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = UINT64_MAX;
}

/* Sorts the shares, and adds up those of one node and thread. */
static int sort_shares(struct pprof *pprof)
{
	const struct profile *profile = pprof->profile;
	size_t n = 0;

	if (!profile->n_shares)
		return 0;
	pprof->shares = calloc(profile->n_shares, sizeof(*pprof->shares));
	if (!pprof->shares)
		return -ENOMEM;
	memcpy(pprof->shares, profile->shares, profile->n_shares * sizeof(*pprof->shares));
	qsort(pprof->shares, profile->n_shares, sizeof(*pprof->shares), compare_shares);
	for (size_t i = 0; i < profile->n_shares; i++) {
		const struct profile_share share = pprof->shares[i];
		struct profile_share *last = &pprof->shares[n ? n - 1 : 0];

		if (!n || compare_shares(last, &share)) {
			pprof->shares[n++] = share;
			continue;
		}
		add(&last->value.weight, share.value.weight);
		add(&last->value.calls, share.value.calls);
		add(&last->value.waiting, share.value.waiting);
		add(&last->value.preempted, share.value.preempted);
		add(&last->value.occurrences, share.value.occurrences);
		add(&last->value.waits, share.value.waits);
		add(&last->value.preemptions, share.value.preemptions);
	}
	pprof->n_shares = n;
	return 0;
}

const struct profile_share *pprof__shares(const struct pprof *pprof, uint32_t node, size_t *ret_n)
{
	size_t low = 0, high = pprof->n_shares, n = 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (pprof->shares[middle].node < node)
			low = middle + 1;
		else
			high = middle;
	}
	while (low + n < pprof->n_shares && pprof->shares[low + n].node == node)
		n++;
	*ret_n = n;
	return &pprof->shares[low];
}

int pprof__enter(struct pprof *pprof, const struct profile *profile, int annotate)
{
	int err = out_tree__init(&pprof->tree, profile);

	pprof->profile = profile;
	pprof->period_ns = pprof_values__period_ns(profile);
	if (err)
		return err;
	pprof->function_of = calloc(profile->n_frames + 1, sizeof(*pprof->function_of));
	pprof->location_of = calloc(profile->n_nodes, sizeof(*pprof->location_of));
	if (!pprof->function_of || !pprof->location_of || sort_shares(pprof))
		return -ENOMEM;
	for (size_t i = 0; i < pprof->tree.n_order && !err; i++)
		err = add_node(pprof, pprof->tree.order[i], annotate);
	return err;
}

void pprof__leave(struct pprof *pprof)
{
	out_tree__done(&pprof->tree);
	memset(&pprof->tree, 0, sizeof(pprof->tree));
	free(pprof->function_of);
	free(pprof->location_of);
	free(pprof->shares);
	pprof->function_of = pprof->location_of = NULL;
	pprof->shares = NULL;
	pprof->n_shares = 0;
}
