// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/event.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "core/base/util.h"
#include "core/events/alloc.h"
#include "core/events/alloc_sites.h"
#include "core/events/alloc_windows.h"
#include "core/events/nearest.h"
#include "core/target/images.h"
#include "probes/attach.h"

/* What is allocated, by bytes (bpf/alloc.bpf.c): by the functions of whatever library has a malloc,
 * and by the system calls that map memory. Libraries that targets map later are found once a
 * second. */

#define ASSUMED_NS 1000 /* of a hit, where that cannot be measured */

struct alloc {
	struct probe_links *links;
	uint32_t seen; /* images up to this number have been looked at */
	size_t n_files;
	const struct runtime_allocator *allocator;

	/* --- where they are attached, and what that costs (event_place.max_overhead_percent) ---
	 */
	struct probe_point *points;
	size_t n_points, cap_points;
	struct windows windows;
	pthread_t thread;
	bool detaching; /* ... by that thread, which has `links` meanwhile */
	int stats_fd;	/* the kernel keeps statistics while it is open; -1: there is no limit */
	double percent, trap_ns;
	uint64_t runs, run_ns; /* of the program, up to the last look */
};

const struct runtime_allocator *alloc__find(const struct event *event,
					    const struct event_place *place)
{
	const char *argument = event__argument(&event->spec);

	if (!*argument || !strcmp(argument, "malloc"))
		return &alloc_malloc;
	for (int i = 0; place->runtimes[i]; i++)
		if (!strcmp(place->runtimes[i]->name, argument))
			return place->runtimes[i]->allocator;
	return NULL;
}

static int attach_file(struct event *event, const struct elf_file *file, struct err *err)
{
	struct alloc *alloc = event->own;
	struct alloc_site sites[ALLOC_SITES_MAX];
	struct probe_point points[ALLOC_SITES_MAX];
	size_t n = alloc_sites__find(file, alloc->allocator, sites), i;

	for (i = 0; i < n; i++)
		points[i] = (struct probe_point) { .file = file,
						   .pc_vaddr = sites[i].vaddr,
						   .cookie = sites[i].cookie };
	if (!n)
		return 0;
	alloc->n_files++;
	if (array__reserve(&alloc->points, &alloc->cap_points, alloc->n_points + n,
			   sizeof(*alloc->points)))
		return err__set(err, -ENOMEM, "out of memory");
	memcpy(alloc->points + alloc->n_points, points, n * sizeof(*points));
	alloc->n_points += n;
	/* Else with the next window. */
	return alloc->windows.open_always
		       ? probe_links__attach(alloc->links, event->program, -1, points, n, err)
		       : 0;
}

/* Those that were met since the last time. */
static int attach_images(struct event *event, const struct event_place *place, struct err *err)
{
	struct alloc *alloc = event->own;
	const struct image *image = images__first(place->images);
	uint32_t newest = image ? image->number : 0;
	int ret = 0;

	for (; !ret && image && image->number > alloc->seen; image = image->next)
		if (image->file && image->file->fd >= 0)
			ret = attach_file(event, image->file, err);
	alloc->seen = newest;
	return ret;
}

/* What calls have cost since the last time. */
static double spent_ns(struct event *event)
{
	struct alloc *alloc = event->own;
	struct bpf_prog_info info = {};
	uint32_t size = sizeof(info);
	double spent;

	if (bpf_obj_get_info_by_fd(bpf_program__fd(event->program), &info, &size))
		return 0;
	spent = (info.run_cnt - alloc->runs) * alloc->trap_ns + (info.run_time_ns - alloc->run_ns);
	alloc->runs = info.run_cnt;
	alloc->run_ns = info.run_time_ns;
	return spent;
}

/* Without the kernel's statistics there is no limit, which is said. */
static void begin_limit(struct event *event, const struct event_place *place)
{
	struct alloc *alloc = event->own;
	/* The last one is called most. */
	enum trap_kind trap = probe_point__trap(&alloc->points[alloc->n_points - 1]);
	struct trap_costs costs = {};
	struct err ignored = {};

	windows__init(&alloc->windows, place->max_overhead_percent,
		      max_of(sysconf(_SC_NPROCESSORS_ONLN), 1), now_ns(), now_ns());
	alloc->percent = place->max_overhead_percent;
	alloc->trap_ns = ASSUMED_NS;
	if (alloc->percent <= 0)
		return;
	alloc->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (alloc->stats_fd < 0)
		snprintf(event->note, sizeof(event->note),
			 "no limit is kept: the kernel's BPF statistics are unavailable: %s",
			 strerror(errno));
	if (alloc->stats_fd < 0 || trap__measure(1U << trap, &costs, &ignored))
		return;
	alloc->trap_ns = costs.ns[trap];
}

/* The kernel takes the breakpoints out at once, but up to a second until it is done. */
static void *detach_links(void *arg)
{
	probe_links__detach(arg);
	return NULL;
}

static void begin_detaching(struct alloc *alloc)
{
	alloc->detaching = !pthread_create(&alloc->thread, NULL, detach_links, alloc->links);
	if (!alloc->detaching)
		probe_links__detach(alloc->links);
}

static void end_detaching(struct alloc *alloc)
{
	if (alloc->detaching)
		pthread_join(alloc->thread, NULL);
	alloc->detaching = false;
}

static int attach_again(struct event *event, struct err *err)
{
	struct alloc *alloc = event->own;

	end_detaching(alloc);
	return probe_links__attach(alloc->links, event->program, -1, alloc->points, alloc->n_points,
				   err);
}

/* Watches calls for a moment. */
static int watch(struct event *event, struct err *err)
{
	struct timespec end;
	struct alloc *alloc = event->own;
	uint64_t until_ns;
	double scale;
	int ret = attach_again(event, err);

	if (ret)
		return ret;
	until_ns = now_ns();
	scale = windows__open(&alloc->windows, until_ns);
	until_ns += WINDOW_NS;
	kernel_half__watch_calls(event->half, until_ns, scale);
	end = (struct timespec) { until_ns / NSEC_PER_SEC, until_ns % NSEC_PER_SEC };
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
		;
	begin_detaching(alloc);
	if (!windows__close(&alloc->windows, spent_ns(event), now_ns()))
		return 0;
	kernel_half__watch_calls(event->half, 0, 1);
	return attach_again(event, err);
}

static int keep(struct event *event, struct err *err)
{
	struct alloc *alloc = event->own;
	struct windows *windows = &alloc->windows;
	int ret = 0;

	if (alloc->stats_fd < 0)
		return 0;
	if (windows->open_always && windows__spend(windows, spent_ns(event), now_ns())) {
		kernel_half__watch_calls(event->half, 1, 1);
		begin_detaching(alloc);
	} else if (windows__is_due(windows, now_ns())) {
		ret = watch(event, err);
	}
	if (windows->n)
		snprintf(
			event->note, sizeof(event->note),
			"every call would cost more than --max-overhead %g: calls were watched "
			"%.1f %% of the time, in %llu windows at random times, which stand for the "
			"rest",
			alloc->percent, 100 * windows__share(windows, now_ns()),
			(unsigned long long)windows->n);
	return ret;
}

int alloc__nothing_found(const struct runtime_allocator *allocator, const struct event_place *place,
			 struct err *err)
{
	const char *name = allocator->functions->name;
	const struct image *image;

	for (image = images__first(place->images); image; image = image->next)
		if (image->file && image->file->fd >= 0 && alloc_sites__is_static(image->file))
			return err__set(
				err, -ENOENT,
				"%s has no libraries, and no symbol %s: what it takes from the "
				"kernel is -e alloc:mmap; where it has an allocator whose place is "
				"known: -e uprobe:FILE:0xOFFSET",
				image->file->path, name);
	return err__set(err, -ENOENT,
			"no target has mapped a file with a function %s: what is taken from the "
			"kernel is -e alloc:mmap",
			name);
}

int alloc__unknown(const struct event *event, const struct event_place *place, struct err *err)
{
	char names[200] = "";

	for (int i = 0; place->runtimes[i]; i++)
		if (place->runtimes[i]->allocator && !place->runtimes[i]->allocator->why_not)
			snprintf(names + strlen(names), sizeof(names) - strlen(names), ", alloc:%s",
				 place->runtimes[i]->name);
	return err__set(err, -EINVAL,
			"there is no event %s; there are alloc, alloc:malloc, alloc:mmap%s",
			event->spec.name, names);
}

static int attach_calls(struct event *event, const struct event_place *place, struct err *err)
{
	struct alloc *alloc = calloc(1, sizeof(*alloc));
	int ret;

	event->own = alloc;
	if (alloc) {
		alloc->stats_fd = -1;
		alloc->windows.open_always = true;
	}
	if (alloc)
		alloc->links = probe_links__new();
	if (!alloc || !alloc->links)
		return err__set(err, -ENOMEM, "out of memory");
	alloc->allocator = alloc__find(event, place);
	if (!alloc->allocator)
		return alloc__unknown(event, place, err);
	if (alloc->allocator->why_not)
		return err__set(err, -ENOTSUP, "%s: %s", event->spec.name,
				alloc->allocator->why_not);
	ret = attach_images(event, place, err);
	if (!ret && !alloc->n_files)
		ret = alloc__nothing_found(alloc->allocator, place, err);
	if (!ret)
		begin_limit(event, place);
	return ret;
}

static int attach_to(struct event *event, const char *program, const char *tracepoint,
		     struct err *err)
{
	return event__attach_raw(event, program, tracepoint, "to see system calls", err);
}

/* Calls first: what is mapped within one is no allocation of its own. */
static int attach_all(struct event *event, const struct event_place *place, struct err *err)
{
	int ret = attach_calls(event, place, err);

	return ret ? ret : attach_to(event, "alloc_on_sys_exit", "sys_exit", err);
}

static int attach_mmap(struct event *event, const struct event_place *place, struct err *err)
{
	int ret = attach_to(event, "alloc_on_sys_exit", "sys_exit", err);

	(void)place;
	return ret ? ret : attach_to(event, "alloc_on_sys_enter", "sys_enter", err);
}

static void detach(struct event *event)
{
	struct alloc *alloc = event->own;

	end_detaching(alloc);
	probe_links__free(alloc->links);
	close_fd(&alloc->stats_fd);
	free(alloc->points);
	free(alloc);
}

/* --- its domains: kinds of their own, as they need other programs --- */

static const struct chain_program calls[] = { { CHAIN_UPROBE, "alloc_on_call" }, {} };
static const struct chain_program mmaps[] = { { CHAIN_TRACEPOINT, "alloc_on_sys_enter" },
					      { CHAIN_TRACEPOINT, "alloc_on_sys_exit" },
					      {} };
static const struct chain_program all[] = { { CHAIN_UPROBE, "alloc_on_call" },
					    { CHAIN_TRACEPOINT, "alloc_on_sys_exit" },
					    {} };

static const struct event_kind of_calls = {
	.name = "alloc",
	.unit = "bytes",
	.type = CHAIN_UPROBE,
	.programs = calls,
	.slot = EVENT_ALLOC,
	.by_value = true,
	.mapped = true,
	.attach = attach_calls,
	.follow = attach_images,
	.keep = keep,
	.detach = detach,
};

static const struct event_kind of_mmap = {
	.name = "alloc",
	.unit = "bytes",
	.type = CHAIN_TRACEPOINT,
	.programs = mmaps,
	.slot = EVENT_ALLOC,
	.by_value = true,
	.attach = attach_mmap,
};

/* The runtimes are known when it is attached. */
static int parse(struct event_spec *spec, struct err *err)
{
	static const char *const names[] = { "malloc", "mmap" };
	const char *argument = event__argument(spec);
	struct nearest nearest = nearest__to(argument, strlen(argument));

	spec->kind = strcmp(argument, "mmap") ? &of_calls : &of_mmap;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(argument, names[i]))
			return 0;
		nearest__add(&nearest, names[i]);
	}
	if (nearest.n)
		return err__set(err, -EINVAL, "there is no event %s: did you mean alloc:%s?",
				spec->name, nearest__text(&nearest));
	return 0;
}

const struct event_kind event_alloc = {
	.name = "alloc",
	.argument = "[DOMAIN]",
	.optional = true,
	.unit = "bytes",
	.help = "What is allocated, by bytes (-c 512k): alloc, alloc:malloc, alloc:mmap, "
		"alloc:RUNTIME",
	.type = CHAIN_UPROBE,
	.programs = all,
	.slot = EVENT_ALLOC,
	.by_value = true,
	.mapped = true,
	.parse = parse,
	.attach = attach_all,
	.follow = attach_images,
	.keep = keep,
	.detach = detach,
};
