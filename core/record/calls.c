// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/record/calls.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/shadow.h"
#include "core/base/util.h"

/* Depth of the call tree: SHADOW_DEPTH_MAX, and one node for all deeper calls. */
#define DEPTH_MAX (SHADOW_DEPTH_MAX + 1)

struct reading {
	const struct calls_opts *opts;
	struct call_stat *nodes; /* by number; 0 is the root */
	uint32_t n_nodes;
	uint64_t *children_ns; /* by node: the time of its callees */
	uint32_t *frames;      /* by node: frame id + 1; 0: not named yet */
	struct profile *profile;
};

static int read_nodes(struct reading *reading, struct err *err)
{
	int fd = kernel_half__map_fd(reading->opts->half, "call_stats");
	uint32_t i;

	for (i = 1; i < reading->n_nodes; i++)
		if (bpf_map_lookup_elem(fd, &i, &reading->nodes[i]))
			return err__set(err, -errno, "BPF map call_stats: %s", strerror(errno));
	return 0;
}

/* Adds the calls that are in progress, from the shadow stacks of threads. */
static int add_open(struct reading *reading, struct err *err)
{
	int fd = kernel_half__map_fd(reading->opts->half, "shadows");
	struct shadow *shadow = malloc(sizeof(*shadow));
	uint32_t slot, i;

	if (!shadow)
		return err__set(err, -ENOMEM, "out of memory");
	for (slot = 0; !bpf_map_lookup_elem(fd, &slot, shadow); slot++) {
		for (i = 0; shadow->owner && i < shadow->depth && i < SHADOW_DEPTH_MAX; i++) {
			const struct shadow_entry *entry = &shadow->entries[i];

			if (entry->node && entry->node < reading->n_nodes &&
			    entry->entered_ns < reading->opts->end_ns)
				reading->nodes[entry->node].inclusive_ns +=
					reading->opts->end_ns - entry->entered_ns;
		}
	}
	free(shadow);
	return 0;
}

static uint32_t parent_of(const struct reading *reading, uint32_t node)
{
	uint32_t parent = reading->nodes[node].parent;

	return parent < node ? parent : 0; /* CALL_UNPLACED */
}

/* Returns the frame of the node's function. One counter assigns all code numbers, so at most one
 * runtime has a name for this number. */
static int name_node(struct reading *reading, uint32_t node, uint32_t *ret_frame)
{
	const struct calls_opts *opts = reading->opts;
	uint64_t key = FRAME_KEY(reading->nodes[node].code, 0);
	struct runtime_symbol symbols[RUNTIME_SYMBOLS_MAX] = {};
	const struct runtime_symbol *symbol = symbols;
	int i, kind = KIND_NATIVE;

	for (i = 0; opts->runtimes[i]; i++) {
		const struct runtime *runtime = opts->runtimes[i];

		if (!opts->sessions[i] || !runtime->names ||
		    runtime->names->symbolize(opts->sessions[i], key, symbols) <= 0)
			continue;
		kind = profile__kind(reading->profile, runtime->name, runtime->suffix);
		break;
	}
	if (kind < 0)
		return kind;
	return profile__frame(reading->profile, kind,
			      symbol->function ? symbol->function : "[unknown]", symbol->file,
			      opts->lines ? symbol->line : 0, ret_frame);
}

static int add_node(struct reading *reading, uint32_t node)
{
	const struct call_stat *stat = &reading->nodes[node];
	uint64_t children_ns = reading->children_ns[node], own_ns = 0;
	uint32_t path[DEPTH_MAX], n = DEPTH_MAX, at;
	int ret = 0;

	if (!stat->code)
		return 0;
	/* The time of calls that found no room in the tree is their callers', who are unknown. */
	if (stat->parent != CALL_UNPLACED && stat->inclusive_ns > children_ns)
		own_ns = stat->inclusive_ns - children_ns;
	for (at = node; at && n && !ret; at = parent_of(reading, at)) {
		if (!reading->frames[at]) {
			ret = name_node(reading, at, &reading->frames[at]);
			reading->frames[at]++;
		}
		path[--n] = reading->frames[at] - 1;
	}
	return ret ? ret
		   : profile__add_calls(reading->profile, path + n, DEPTH_MAX - n, own_ns,
					stat->calls);
}

static int build(struct reading *reading)
{
	uint32_t i;
	int ret = 0;

	reading->profile->unit = PROFILE_NANOSECONDS;
	reading->profile->counts_calls = true;
	for (i = 1; i < reading->n_nodes; i++)
		reading->children_ns[parent_of(reading, i)] += reading->nodes[i].inclusive_ns;
	for (i = 1; !ret && i < reading->n_nodes; i++)
		ret = add_node(reading, i);
	return ret;
}

int calls__read(const struct calls_opts *opts, struct profile **ret_profile, struct err *err)
{
	struct reading reading = { .opts = opts,
				   .n_nodes = kernel_half__call_nodes(opts->half) + 1,
				   .profile = profile__new() };
	int ret = -ENOMEM;

	reading.nodes = calloc(reading.n_nodes, sizeof(*reading.nodes));
	reading.children_ns = calloc(reading.n_nodes, sizeof(*reading.children_ns));
	reading.frames = calloc(reading.n_nodes, sizeof(*reading.frames));
	if (!reading.nodes || !reading.children_ns || !reading.frames || !reading.profile) {
		err__set(err, ret, "out of memory");
		goto out;
	}
	ret = read_nodes(&reading, err);
	if (!ret)
		ret = add_open(&reading, err);
	if (!ret && build(&reading))
		ret = err__set(err, -ENOMEM, "out of memory");
	if (!ret) {
		*ret_profile = reading.profile;
		reading.profile = NULL;
	}
out:
	profile__free(reading.profile);
	free(reading.nodes);
	free(reading.children_ns);
	free(reading.frames);
	return ret;
}
