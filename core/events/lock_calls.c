// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/lock_calls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/events/lock_sites.h"
#include "core/events/probe_limit.h"
#include "core/events/return_points.h"
#include "core/target/images.h"
#include "probes/probe_set.h"

/* Events at functions of the C library that take locks (bpf/lock_calls.bpf.c,
 * bpf/lock_order.bpf.c). lock:pthread is for calls that wait; lock-order is for the order in which
 * mutexes are taken. Each call costs its probes, whether it waits or not. If the probes exceed
 * --max-overhead, they are detached permanently, and a note reports that. */

struct lock_calls {
	const struct lock_function *functions;
	const struct bpf_program *at_return;
	uint64_t seen; /* number of the last file that was checked */
	size_t n_files;
	struct probe_limit limit;
};

/* Finds the returns of the functions. Removes functions without proven returns from @sites. */
static int find_returns(struct event *event, const struct elf_file *file, bool force,
			struct lock_site *sites, size_t *n, struct return_list *ret_list)
{
	struct function_map *map = NULL;
	int ret = function_map__new(file, &map);
	size_t retained = 0;

	for (size_t i = 0; !ret && i < *n; i++) {
		const struct listed_function function = { .vaddr = sites[i].vaddr,
							  .cookie = sites[i].cookie,
							  .force = force,
							  .name = sites[i].name };
		bool added = true;

		if (sites[i].at_return)
			ret = return_list__add(ret_list, file, map, &function, &added);
		if (added)
			sites[retained++] = sites[i];
	}
	function_map__free(map);
	*n = retained;
	if (*ret_list->left_out)
		snprintf(event->caution, sizeof(event->caution),
			 "cannot probe the returns of %s; these calls are left out. --force "
			 "replaces return addresses instead, which aborts programs in which a "
			 "cancellation, an exception or a longjmp passes one",
			 ret_list->left_out);
	return ret;
}

static int attach_file(struct event *event, const struct event_place *place,
		       const struct image *image, const struct elf_file *file, struct err *err)
{
	struct lock_calls *calls = event->own;
	struct lock_site sites[LOCK_SITES_MAX];
	struct probe_point begins[LOCK_SITES_MAX];
	struct return_list returns = {};
	size_t n = lock_sites__find(file, calls->functions, sites);
	int ret;

	(void)image;
	if (!n)
		return 0;
	calls->n_files++;
	ret = find_returns(event, file, place->force, sites, &n, &returns);
	if (ret)
		err__set(err, ret, "out of memory");
	for (size_t i = 0; i < n; i++)
		begins[i] = (struct probe_point) { .file = file,
						   .pc_vaddr = sites[i].vaddr,
						   .cookie = sites[i].cookie };
	if (!ret)
		ret = probe_set__attach(event->probes, calls->at_return, returns.list, returns.n,
					err);
	return_list__done(&returns);
	return ret ? ret : probe_set__attach(event->probes, event->program, begins, n, err);
}

/* Attaches to the files that were found since the last call. */
static int attach_images(struct event *event, const struct event_place *place, struct err *err)
{
	struct lock_calls *calls = event->own;

	if (calls->limit.detached)
		return 0;
	return event__attach_new_files(event, place, &calls->seen, attach_file, err);
}

static int keep(struct event *event, struct err *err)
{
	struct lock_calls *calls = event->own;

	(void)err;
	if (!probe_limit__is_exceeded(&calls->limit, now_ns()))
		return 0;
	probe_limit__detach(&calls->limit, &event->probes);
	snprintf(event->note, sizeof(event->note),
		 "the probes cost more than --max-overhead %g and were detached after %.1f s: "
		 "later waits are not seen. -e lock needs no probes",
		 calls->limit.percent, probe_limit__seconds(&calls->limit));
	return 0;
}

static void begin_limit(struct event *event, const struct event_place *place)
{
	struct lock_calls *calls = event->own;
	const struct probe_limit_program programs[] = { { event->program, TRAP_STEP },
							{ calls->at_return, TRAP_STEP } };

	probe_limit__begin(&calls->limit, event, place->max_overhead_percent, programs,
			   ARRAY_SIZE(programs));
}

static int attach_functions(struct event *event, const struct event_place *place,
			    const struct lock_function *functions, const char *at_return,
			    struct err *err)
{
	const struct chain_program program = { CHAIN_UPROBE, at_return };
	struct lock_calls *calls = calloc(1, sizeof(*calls));
	int ret;

	event->own = calls;
	if (!calls)
		return err__set(err, -ENOMEM, "out of memory");
	calls->functions = functions;
	calls->at_return = kernel_half__program(event->half, &program);
	ret = event__open_probes(event, place, err);
	if (!ret)
		ret = attach_images(event, place, err);
	if (!ret && !calls->n_files)
		ret = err__set(
			err, -ENOENT,
			"no target has mapped a C library with threads, or the program has one "
			"built in without symbols. Use -e lock to see waits for locks of any kind");
	if (!ret)
		begin_limit(event, place);
	return ret;
}

static void detach(struct event *event)
{
	struct lock_calls *calls = event->own;

	probe_limit__done(&calls->limit);
	free(calls);
}

static const struct chain_program waits[] = { { CHAIN_UPROBE, "lock_on_call" },
					      { CHAIN_UPROBE, "lock_on_return" },
					      {} };

static int attach_waits(struct event *event, const struct event_place *place, struct err *err)
{
	return attach_functions(event, place, lock_functions_wait, "lock_on_return", err);
}

static const struct chain_program orders[] = { { CHAIN_UPROBE, "lock_order_on_call" },
					       { CHAIN_UPROBE, "lock_order_on_return" },
					       {} };

static int attach_orders(struct event *event, const struct event_place *place, struct err *err)
{
	return attach_functions(event, place, lock_functions_order, "lock_order_on_return", err);
}

const struct event_kind event_lock_order = {
	.name = "lock-order",
	.unit = "count",
	.help = "Mutexes that a thread holds when it takes another one, for braid report "
		"--lock-order",
	.type = CHAIN_UPROBE,
	.programs = orders,
	.slot = EVENT_LOCK_ORDER,
	.mapped = true,
	.attach = attach_orders,
	.follow = attach_images,
	.keep = keep,
	.detach = detach,
	.whole = true,
};

const struct event_kind event_lock_calls = {
	.name = "lock",
	.unit = "ns",
	.type = CHAIN_UPROBE,
	.programs = waits,
	.slot = EVENT_LOCK_CALL,
	.intervals = true,
	.mapped = true,
	.attach = attach_waits,
	.follow = attach_images,
	.keep = keep,
	.detach = detach,
};
