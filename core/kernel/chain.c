// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel/chain.h"

#include <assert.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bpf/waiting.h"

#include "bpf/alloc.h"
#include "bpf/braid.skel.h"
#include "core/base/util.h"
#include "core/kernel/kernel_subset.h"
#include "core/kernel/uprobe_multi.h"

#define UNWINDER   "unwind_stack"
#define TYPE_MAP   ".rodata.type" /* constants of the chain type in each object */
#define STAGES_MAP "stages"
#define ON_BEGIN   "on_begin_" /* prefix; the event's number follows */
#define ON_KPROBE  "on_kprobe"

#define CHAIN_OWN_MAPS_MAX (2 + 4 * WALKERS_MAX)

static const struct {
	enum bpf_prog_type program_type;
	uint32_t slots;
	const char *trigger; /* name of the program, or its prefix */
	bool per_event;	     /* true: the event's number follows the prefix */
} types[CHAIN_TYPES_N] = {
	[CHAIN_TICK] = { BPF_PROG_TYPE_PERF_EVENT, SLOTS_TICK, "on_sample", false },
	[CHAIN_TRACEPOINT] = { BPF_PROG_TYPE_RAW_TRACEPOINT, SLOTS_TRACEPOINT, "on_tracepoint_",
			       true },
	[CHAIN_UPROBE] = { BPF_PROG_TYPE_KPROBE, SLOTS_UPROBE, "on_uprobe", false },
};
_Static_assert(SLOTS_TICK + SLOTS_TRACEPOINT + SLOTS_UPROBE <= SLOTS_MAX, "slots");

enum bpf_prog_type chain__program_type(enum chain_type type)
{
	return types[type].program_type;
}

uint32_t chain__slots(enum chain_type type)
{
	return types[type].slots;
}

bool chain__is_stage(const char *name)
{
	return !strncmp(name, "walk_", 5) || !strcmp(name, UNWINDER);
}

/* names of programs, with buffers for composed names */
struct names {
	const char *list[CHAIN_PROGRAMS_MAX]; /* NULL-terminated */
	size_t n, n_generated;
	char generated[2 * EVENTS_MAX][32];
};

static void add_name(struct names *names, const char *name)
{
	for (size_t i = 0; i < names->n; i++)
		if (!strcmp(names->list[i], name))
			return;
	assert(names->n < CHAIN_PROGRAMS_MAX - 1);
	names->list[names->n++] = name;
}

static void add_numbered(struct names *names, const char *name, uint32_t event)
{
	char *generated = names->generated[names->n_generated++];

	snprintf(generated, sizeof(names->generated[0]), "%s%u", name, event);
	add_name(names, generated);
}

/* Adds the type's own trigger for the event. */
static void add_trigger(struct names *names, enum chain_type type, uint32_t event)
{
	if (types[type].per_event)
		add_numbered(names, types[type].trigger, event);
	else
		add_name(names, types[type].trigger);
}

static void add_triggers(struct names *names, enum chain_type type,
			 const struct chain_events *events)
{
	for (uint32_t event = 1; event <= EVENTS_MAX; event++) {
		const struct chain_program *program = events->programs[event];

		if (!(events->of_type[type] & 1U << event))
			continue;
		if (!program)
			add_trigger(names, type, event);
		if (type == CHAIN_TRACEPOINT && events->begins & 1U << event)
			add_numbered(names, ON_BEGIN, event);
		if (type == CHAIN_UPROBE && events->functions & 1U << event)
			add_name(names, ON_KPROBE);
		for (; program && program->name; program++)
			if (program->type == type)
				add_name(names, program->name);
	}
}

/* Configures the object for the type. */
static int set_type(const struct chains *chains, struct bpf_object *object, enum chain_type type)
{
	const struct chain *chain = &chains->list[type];
	struct braid_bpf__rodata_type values = { .cfg_slot_first = chain->slot_first,
						 .cfg_slot_end =
							 chain->slot_first + types[type].slots,
						 .cfg_tableless = chains->tableless };
	struct bpf_map *map = bpf_object__find_map_by_name(object, TYPE_MAP);
	struct bpf_program *program;
	int ret = map ? bpf_map__set_initial_value(map, &values, sizeof(values)) : -ENOENT;

	bpf_object__for_each_program (program, object)
		if (!ret && chain__is_stage(bpf_program__name(program)))
			ret = bpf_program__set_type(program, types[type].program_type);
	/* The kernel refuses tail calls between programs with different attach types. */
	bpf_object__for_each_program (program, object)
		if (!ret && type == CHAIN_UPROBE && chains->events.multi &&
		    bpf_program__type(program) == BPF_PROG_TYPE_KPROBE)
			ret = uprobe_multi__set(program);
	return ret;
}

static int put_stage(int stages_fd, const struct bpf_object *object, const char *name,
		     uint32_t stage)
{
	const struct bpf_program *program = bpf_object__find_program_by_name(object, name);
	int fd = program ? bpf_program__fd(program) : -ENOENT;

	if (fd < 0)
		return fd;
	return bpf_map_update_elem(stages_fd, &stage, &fd, BPF_ANY) ? -errno : 0;
}

int chains__plan(struct chains *chains, struct bpf_object *base, const struct chain_events *events,
		 uint32_t tableless)
{
	struct names names = {};
	int type, first = -1;

	*chains = (struct chains) { .base = base, .events = *events, .tableless = tableless };
	for (type = 0; type < CHAIN_TYPES_N; type++) {
		struct chain *chain = &chains->list[type];

		chain->used = events->of_type[type];
		chain->stages_fd = -1;
		chain->slot_first = chains->slots;
		if (!chain->used)
			continue;
		chains->slots += types[type].slots;
		if (first < 0)
			first = type;
	}
	if (first < 0)
		return 0;
	add_triggers(&names, first, events);
	add_name(&names, UNWINDER);
	chains->list[first].trigger = base;
	kernel_subset__select(base, names.list, true);
	return set_type(chains, base, first);
}

/* Loads another object of the type that shares the maps of the base. */
static int load_subset(struct chains *chains, enum chain_type type, const char *const *programs,
		       struct bpf_object **ret)
{
	const struct chain *chain = &chains->list[type];
	struct kernel_subset_map own[CHAIN_OWN_MAPS_MAX + 1] = { { TYPE_MAP, -1 },
								 { STAGES_MAP, chain->stages_fd } };
	const struct kernel_subset_map *instead = chains->instead;
	struct bpf_object *object;
	int rc;

	for (size_t n = 2; instead && instead->name && n < CHAIN_OWN_MAPS_MAX; n++)
		own[n] = *instead++;

	if (chains->n_parts == ARRAY_SIZE(chains->parts))
		return -E2BIG;
	rc = kernel_subset__beside(chains->base, programs, own, &object);
	if (rc)
		return rc;
	chains->parts[chains->n_parts++] = object;
	rc = set_type(chains, object, type);
	if (!rc)
		rc = bpf_object__load(object);
	*ret = object;
	return rc;
}

int chains__load(struct chains *chains)
{
	int type, ret = 0;

	for (type = 0; !ret && type < CHAIN_TYPES_N; type++) {
		struct chain *chain = &chains->list[type];
		struct names names = {};

		if (!chain->used)
			continue;
		if (!chain->trigger) {
			add_triggers(&names, type, &chains->events);
			add_name(&names, UNWINDER);
			ret = load_subset(chains, type, names.list, &chain->trigger);
		}
		if (ret)
			break;
		chain->stages_fd = bpf_object__find_map_fd_by_name(chain->trigger, STAGES_MAP);
		ret = put_stage(chain->stages_fd, chain->trigger, UNWINDER, STAGE_UNWIND);
	}
	return ret;
}

int chains__add(struct chains *chains, const struct chain_stage *stages, size_t n,
		uint32_t tableless)
{
	const char *programs[WALKERS_MAX + 2] = {};
	struct bpf_object *object;
	int type, ret = 0;
	size_t i;

	for (i = 0; i < n && i <= WALKERS_MAX; i++)
		programs[i] = stages[i].program;
	chains->tableless |= tableless;
	for (type = 0; !ret && type < CHAIN_TYPES_N; type++) {
		if (!chains->list[type].used)
			continue;
		ret = load_subset(chains, type, programs, &object);
		for (i = 0; !ret && i < n; i++)
			ret = put_stage(chains->list[type].stages_fd, object, stages[i].program,
					stages[i].stage);
	}
	return ret;
}

const struct bpf_program *chains__trigger(const struct chains *chains, enum chain_type type,
					  uint32_t event)
{
	const struct chain *chain = &chains->list[type];
	struct names names = {};

	if (!chain->trigger)
		return NULL;
	add_trigger(&names, type, event);
	return bpf_object__find_program_by_name(chain->trigger, names.list[0]);
}

const struct bpf_program *chains__begin(const struct chains *chains, uint32_t event)
{
	const struct chain *chain = &chains->list[CHAIN_TRACEPOINT];
	struct names names = {};

	if (!chain->trigger)
		return NULL;
	add_numbered(&names, ON_BEGIN, event);
	return bpf_object__find_program_by_name(chain->trigger, names.list[0]);
}

const struct bpf_program *chains__program(const struct chains *chains,
					  const struct chain_program *program)
{
	const struct chain *chain = &chains->list[program->type];

	return chain->trigger ? bpf_object__find_program_by_name(chain->trigger, program->name)
			      : NULL;
}

void chains__done(struct chains *chains)
{
	while (chains->n_parts)
		bpf_object__close(chains->parts[--chains->n_parts]);
	*chains = (struct chains) {};
}
