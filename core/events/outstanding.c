// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/event.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/events/alloc.h"
#include "core/events/alloc_sites.h"
#include "core/events/nearest.h"
#include "core/target/images.h"
#include "probes/attach.h"

/* What is allocated and not freed until the end (bpf/outstanding.bpf.h). What one knows of that
 * needs each call and each free: no part of the time will do, so above the limit it is given up,
 * and what is outstanding at that moment is the result. */

#define ASSUMED_NS 1000 /* of a hit, where that cannot be measured */

enum { ON_CALL, ON_RETURN, ON_FREE, PROGRAMS_N };

static const struct chain_program programs[] = {
	[ON_CALL] = { CHAIN_UPROBE, "alloc_on_call" },
	[ON_RETURN] = { CHAIN_UPROBE, "outstanding_on_return" },
	[ON_FREE] = { CHAIN_UPROBE, "outstanding_on_free" },
	[PROGRAMS_N] = {},
};

struct watched {
	const struct bpf_program *program;
	double trap_ns;
	uint64_t runs, run_ns; /* up to the last look */
};

struct outstanding {
	struct probe_links *links;
	uint32_t seen; /* images up to this number have been looked at */
	size_t n_files;
	const struct runtime_allocator *allocator;
	char throws[80]; /* a file whose operators new are left out */

	struct watched programs[PROGRAMS_N];
	int stats_fd; /* the kernel keeps statistics while it is open; -1: there is no limit */
	double percent, rate, left_ns; /* as in core/events/alloc_windows.h */
	uint64_t began_ns, filled_ns;
	double spent_ns;
	enum trap_kind traps[PROGRAMS_N]; /* of what is called most */
	pthread_t thread;		  /* detaches */
	bool detaching;
};

static size_t leave_out_throwing(struct outstanding *outstanding, const struct elf_file *file,
				 struct alloc_site *sites, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (!sites[i].throws)
			sites[kept++] = sites[i];
	if (kept < n) {
		snprintf(outstanding->throws, sizeof(outstanding->throws), "%s",
			 strrchr(file->path, '/') ? strrchr(file->path, '/') + 1 : file->path);
		escape__printable(outstanding->throws);
	}
	return kept;
}

static int attach_sites(struct outstanding *outstanding, const struct elf_file *file, int program,
			const struct alloc_site *sites, size_t n, struct err *err)
{
	struct probe_point points[ALLOC_SITES_MAX];

	for (size_t i = 0; i < n; i++)
		points[i] = (struct probe_point) { .file = file,
						   .pc_vaddr = sites[i].vaddr,
						   .retprobe = program == ON_RETURN,
						   .cookie = sites[i].cookie };
	if (n) /* the last one is called most */
		outstanding->traps[program] = probe_point__trap(&points[n - 1]);
	return probe_links__attach(outstanding->links, outstanding->programs[program].program, -1,
				   points, n, err);
}

/* Returns first, and frees: there is no call whose end would not be seen. */
static int attach_file(struct outstanding *outstanding, const struct elf_file *file,
		       struct err *err)
{
	struct alloc_site sites[ALLOC_SITES_MAX], frees[ALLOC_SITES_MAX];
	size_t n = alloc_sites__find(file, outstanding->allocator, sites), n_frees;
	int ret;

	if (!n)
		return 0;
	n = leave_out_throwing(outstanding, file, sites, n);
	n_frees = alloc_sites__find_frees(file, outstanding->allocator, frees);
	outstanding->n_files++;
	ret = attach_sites(outstanding, file, ON_RETURN, sites, n, err);
	if (!ret)
		ret = attach_sites(outstanding, file, ON_FREE, frees, n_frees, err);
	return ret ? ret : attach_sites(outstanding, file, ON_CALL, sites, n, err);
}

static int attach_images(struct event *event, const struct event_place *place, struct err *err)
{
	struct outstanding *outstanding = event->own;
	const struct image *image = images__first(place->images);
	uint32_t newest = image ? image->number : 0;
	int ret = 0;

	if (event->ended_ns)
		return 0;
	for (; !ret && image && image->number > outstanding->seen; image = image->next)
		if (image->file && image->file->fd >= 0)
			ret = attach_file(outstanding, image->file, err);
	outstanding->seen = newest;
	return ret;
}

static void begin_limit(struct event *event, const struct event_place *place)
{
	struct outstanding *outstanding = event->own;
	struct trap_costs costs = {};
	struct err ignored = {};
	uint32_t wanted = 0;

	for (int i = 0; i < PROGRAMS_N; i++)
		wanted |= 1U << outstanding->traps[i];
	outstanding->percent = place->max_overhead_percent;
	outstanding->began_ns = outstanding->filled_ns = now_ns();
	outstanding->rate = outstanding->percent / 100 * max_of(sysconf(_SC_NPROCESSORS_ONLN), 1);
	outstanding->left_ns = outstanding->rate * NSEC_PER_SEC;
	for (int i = 0; i < PROGRAMS_N; i++)
		outstanding->programs[i].trap_ns = ASSUMED_NS;
	if (outstanding->percent <= 0)
		return;
	outstanding->stats_fd = event__open_statistics(event);
	if (outstanding->stats_fd < 0 || trap__measure(wanted, &costs, &ignored))
		return;
	/* A return's is over that of the entry. */
	for (int i = 0; i < PROGRAMS_N; i++)
		outstanding->programs[i].trap_ns = costs.ns[outstanding->traps[i]];
}

static double spent_ns(struct outstanding *outstanding)
{
	double spent = 0;

	for (int i = 0; i < PROGRAMS_N; i++) {
		struct watched *watched = &outstanding->programs[i];
		struct bpf_prog_info info = {};
		uint32_t size = sizeof(info);

		if (bpf_obj_get_info_by_fd(bpf_program__fd(watched->program), &info, &size))
			continue;
		spent += (info.run_cnt - watched->runs) * watched->trap_ns + info.run_time_ns -
			 watched->run_ns;
		watched->runs = info.run_cnt;
		watched->run_ns = info.run_time_ns;
	}
	return spent;
}

static void *detach_links(void *arg)
{
	probe_links__detach(arg);
	return NULL;
}

static void give_up(struct event *event, uint64_t now)
{
	struct outstanding *outstanding = event->own;
	double passed_ns = now - outstanding->began_ns;

	event->ended_ns = now;
	kernel_half__alloc_window(event->half)->link = UINT64_MAX; /* no call counts */
	outstanding->detaching =
		!pthread_create(&outstanding->thread, NULL, detach_links, outstanding->links);
	if (!outstanding->detaching)
		probe_links__detach(outstanding->links);
	snprintf(event->note, sizeof(event->note),
		 "seeing every call and free, in all programs with these libraries, costs %.0f %% "
		 "of the machine, and --max-overhead is "
		 "%g: this is what was outstanding after %.1f s; --max-overhead none goes on",
		 100 * outstanding->spent_ns / passed_ns / max_of(sysconf(_SC_NPROCESSORS_ONLN), 1),
		 outstanding->percent, passed_ns / 1e9);
}

static int keep(struct event *event, struct err *err)
{
	struct outstanding *outstanding = event->own;
	uint64_t now = now_ns();
	double spent;

	(void)err;
	if (outstanding->stats_fd < 0 || event->ended_ns)
		return 0;
	spent = spent_ns(outstanding);
	outstanding->spent_ns += spent;
	outstanding->left_ns += outstanding->rate * (now - outstanding->filled_ns) - spent;
	outstanding->left_ns = min_of(outstanding->left_ns, outstanding->rate * NSEC_PER_SEC);
	outstanding->filled_ns = now;
	if (outstanding->left_ns < 0)
		give_up(event, now);
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
				"%s: objects are freed by the garbage collector, and nobody says "
				"which: -e alloc:%s shows what allocates them",
				event->spec.name, event__argument(&event->spec));
	return 0;
}

static int attach(struct event *event, const struct event_place *place, struct err *err)
{
	struct outstanding *outstanding = calloc(1, sizeof(*outstanding));
	int ret;

	event->own = outstanding;
	if (outstanding) {
		outstanding->stats_fd = -1;
		outstanding->links = probe_links__new();
	}
	if (!outstanding || !outstanding->links)
		return err__set(err, -ENOMEM, "out of memory");
	for (int i = 0; i < PROGRAMS_N; i++)
		outstanding->programs[i].program = kernel_half__program(event->half, &programs[i]);
	ret = find_allocator(event, place, err);
	if (!ret)
		ret = attach_images(event, place, err);
	if (!ret && !outstanding->n_files)
		ret = alloc__nothing_found(outstanding->allocator, place, err);
	if (!ret && *outstanding->throws)
		snprintf(event->note, sizeof(event->note),
			 "operators new of %s are not followed: they may throw, which a probe at "
			 "their return would break",
			 outstanding->throws);
	if (!ret)
		begin_limit(event, place);
	return ret;
}

static void detach(struct event *event)
{
	struct outstanding *outstanding = event->own;

	if (outstanding->detaching)
		pthread_join(outstanding->thread, NULL);
	probe_links__free(outstanding->links);
	close_fd(&outstanding->stats_fd);
	free(outstanding);
}

static int parse(struct event_spec *spec, struct err *err)
{
	const char *argument = event__argument(spec);
	struct nearest nearest = nearest__to(argument, strlen(argument));

	if (!strcmp(argument, "mmap"))
		return err__set(err, -EINVAL,
				"what is mapped now /proc/PID/smaps says; what is outstanding is "
				"known of malloc and of runtimes: -e alloc:malloc --outstanding");
	nearest__add(&nearest, "malloc");
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
	.help = "What is allocated and not freed at the end, by bytes (-c 512k), with its age: "
		"-e alloc --outstanding",
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
