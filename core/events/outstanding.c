// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/event.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/events/alloc.h"
#include "core/events/alloc_sites.h"
#include "core/events/heap.h"
#include "core/events/nearest.h"
#include "core/events/probe_limit.h"
#include "core/events/return_points.h"
#include "core/target/images.h"
#include "probes/probe_set.h"

/* Allocations that are not freed before the end (bpf/outstanding.bpf.c). They require each call and
 * each free. Above the limit the event ends, and the outstanding allocations at that moment are the
 * result. */

enum { ON_CALL, ON_RETURN, ON_FREE, PROGRAMS_N };

static const struct chain_program programs[] = {
	[ON_CALL] = { CHAIN_UPROBE, "alloc_on_call" },
	[ON_RETURN] = { CHAIN_UPROBE, "outstanding_on_return" },
	[ON_FREE] = { CHAIN_UPROBE, "outstanding_on_free" },
	[PROGRAMS_N] = {},
};

struct outstanding {
	uint64_t seen; /* number of the last file that was checked */
	size_t n_files;
	const struct runtime_allocator *allocator;
	struct probe_limit limit;
	/* the programs, with the traps of their most frequent points */
	struct probe_limit_program programs[PROGRAMS_N];
};

static int attach_sites(struct event *event, const struct elf_file *file, int program,
			const struct alloc_site *sites, size_t n, struct err *err)
{
	struct outstanding *outstanding = event->own;
	struct probe_point points[ALLOC_SITES_MAX];

	for (size_t i = 0; i < n; i++)
		points[i] = (struct probe_point) { .file = file,
						   .pc_vaddr = sites[i].vaddr,
						   .cookie = sites[i].cookie };
	if (n) /* the last site is the most frequent one */
		outstanding->programs[program].trap = probe_point__trap(&points[n - 1]);
	return probe_set__attach(event->probes, outstanding->programs[program].program, points, n,
				 err);
}

/* Finds the returns of the functions. Removes functions without proven returns from @sites. */
static int find_returns(struct event *event, const struct elf_file *file, bool force,
			struct alloc_site *sites, size_t *n, struct return_list *ret_list)
{
	struct function_map *map = NULL;
	int ret = function_map__new(file, &map);
	size_t retained = 0;

	for (size_t i = 0; !ret && i < *n; i++) {
		const struct listed_function function = {
			.vaddr = sites[i].vaddr,
			.cookie = sites[i].cookie,
			.jump_cookie = sites[i].passes ? sites[i].cookie | ALLOC_PASSES_COOKIE : 0,
			.through_stubs = !sites[i].wraps && !sites[i].passes,
			.force = force && !sites[i].wraps,
			.name = sites[i].name,
		};
		bool added = false;

		ret = return_list__add(ret_list, file, map, &function, &added);
		if (added)
			sites[retained++] = sites[i];
		else if (sites[i].wraps) /* the function that it calls is followed */
			*ret_list->left_out = '\0';
	}
	function_map__free(map);
	*n = retained;
	if (*ret_list->left_out)
		snprintf(event->caution, sizeof(event->caution),
			 "cannot probe the returns of %s; these calls are left out. --force "
			 "replaces return addresses instead, which aborts programs in which an "
			 "exception or a longjmp passes one",
			 ret_list->left_out);
	return ret;
}

/* Attaches returns and frees first, so that the end of each call is seen. */
static int attach_file(struct event *event, const struct event_place *place,
		       const struct image *image, const struct elf_file *file, struct err *err)
{
	struct outstanding *outstanding = event->own;
	struct alloc_site sites[ALLOC_SITES_MAX], frees[ALLOC_SITES_MAX];
	size_t n = alloc_sites__find(file, outstanding->allocator, sites), n_frees;
	struct return_list returns = {};
	int ret;

	(void)image;
	if (!n)
		return 0;
	n_frees = alloc_sites__find_frees(file, outstanding->allocator, frees);
	if (!outstanding->n_files++)
		event->note[0] = '\0'; /* set by alloc__nothing_found() */
	ret = find_returns(event, file, place->force, sites, &n, &returns);
	if (ret)
		err__set(err, ret, "out of memory");
	if (returns.n)
		outstanding->programs[ON_RETURN].trap =
			probe_point__trap(&returns.list[returns.n - 1]);
	if (!ret)
		ret = probe_set__attach(event->probes, outstanding->programs[ON_RETURN].program,
					returns.list, returns.n, err);
	return_list__done(&returns);
	if (!ret)
		ret = attach_sites(event, file, ON_FREE, frees, n_frees, err);
	return ret ? ret : attach_sites(event, file, ON_CALL, sites, n, err);
}

/* Attaches to the files that were found since the last call. */
static int attach_images(struct event *event, const struct event_place *place, struct err *err)
{
	struct outstanding *outstanding = event->own;

	if (event->ended_ns)
		return 0;
	return event__attach_new_files(event, place, &outstanding->seen, attach_file, err);
}

static int keep(struct event *event, struct err *err)
{
	struct outstanding *outstanding = event->own;
	uint64_t now = now_ns();

	(void)err;
	if (!probe_limit__is_exceeded(&outstanding->limit, now))
		return 0;
	event->ended_ns = now;
	kernel_half__end_allocs(event->half);
	probe_limit__detach(&outstanding->limit, &event->probes);
	snprintf(event->note, sizeof(event->note),
		 "probing every call and free, in all programs with these libraries, costs %.0f %% "
		 "of the machine, and --max-overhead is %g: the figures are those after %.1f s. "
		 "Use --max-overhead none to continue to the end",
		 probe_limit__cost(&outstanding->limit), outstanding->limit.percent,
		 probe_limit__seconds(&outstanding->limit));
	return 0;
}

static int find_allocator(struct event *event, const struct event_place *place, struct err *err)
{
	struct outstanding *outstanding = event->own;

	outstanding->allocator = alloc__find(event, place);
	if (!outstanding->allocator)
		return alloc__unknown(event, place, err);
	if (outstanding->allocator->why_not)
		return err__set(err, -ENOTSUP, "%s: %s", event->spec.name,
				outstanding->allocator->why_not);
	if (!outstanding->allocator->frees)
		return err__set(err, -ENOTSUP,
				"cannot record %s with --outstanding: the garbage collector does "
				"not report the objects that it frees. Use -e alloc:%s to see the "
				"code that allocates them",
				event->spec.name, event__argument(&event->spec));
	return 0;
}

static int attach(struct event *event, const struct event_place *place, struct err *err)
{
	struct outstanding *outstanding = calloc(1, sizeof(*outstanding));
	int ret;

	event->own = outstanding;
	if (!outstanding)
		return err__set(err, -ENOMEM, "out of memory");
	for (int i = 0; i < PROGRAMS_N; i++)
		outstanding->programs[i].program = kernel_half__program(event->half, &programs[i]);
	ret = find_allocator(event, place, err);
	if (!ret)
		ret = event__open_probes(event, place, err);
	if (!ret)
		ret = attach_images(event, place, err);
	if (!ret && !outstanding->n_files)
		ret = alloc__nothing_found(event, outstanding->allocator, place, err);
	if (!ret)
		probe_limit__begin(&outstanding->limit, event, place->max_overhead_percent,
				   outstanding->programs, PROGRAMS_N);
	return ret;
}

static void detach(struct event *event)
{
	struct outstanding *outstanding = event->own;

	probe_limit__done(&outstanding->limit);
	free(outstanding);
}

static int parse(struct event_spec *spec, struct err *err)
{
	const char *argument = event__argument(spec);
	struct nearest nearest = nearest__to(argument, strlen(argument));

	if (!strcmp(argument, "mmap"))
		return err__set(err, -EINVAL,
				"--outstanding does not support alloc:mmap: /proc/PID/smaps lists "
				"current mappings. Use -e alloc:malloc --outstanding for malloc");
	if (!strcmp(argument, "usdt")) {
		spec->kind = &heap_outstanding;
		return 0;
	}
	nearest__add(&nearest, "malloc");
	nearest__add(&nearest, "usdt");
	if (strcmp(argument, "malloc") != 0 && nearest.n)
		return err__set(err, -EINVAL, "there is no event %s: did you mean %s:%s?",
				spec->name, spec->kind->name, nearest__text(&nearest));
	return 0;
}

const struct event_kind event_outstanding = {
	.name = "outstanding",
	.argument = "[DOMAIN]",
	.optional = true,
	.unit = "bytes",
	.help = "Allocations that are not freed at the end, weighted by bytes (-c 512k), with "
		"their age: -e alloc --outstanding",
	.type = CHAIN_UPROBE,
	.programs = programs,
	.slot = EVENT_ALLOC,
	.by_value = true,
	.outstanding = true,
	.mapped = true,
	.parse = parse,
	.attach = attach,
	.follow = attach_images,
	.keep = keep,
	.detach = detach,
	.whole = true,
};
