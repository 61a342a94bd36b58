// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/heap.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "bpf/heap.h"
#include "core/base/util.h"
#include "core/target/images.h"
#include "probes/probe_set.h"
#include "probes/usdt.h"
#include "probes/usdt_args.h"

#define PROVIDER "otel_memory"
#define LIBRARY	 "libbraid-heap.so"

enum { ON_ALLOC, ON_FREE, PROGRAMS_N };

static const struct chain_program programs[] = {
	[ON_ALLOC] = { CHAIN_UPROBE, "heap_on_alloc" },
	[ON_FREE] = { CHAIN_UPROBE, "heap_on_free" },
	[PROGRAMS_N] = {},
};

static const struct {
	const char *name;
	size_t n_args;
} probes[] = {
	[ON_ALLOC] = { "alloc", HEAP_ARGS_N },
	[ON_FREE] = { "free", 1 },
};

struct heap {
	uint64_t seen;	  /* number of the last file that was checked */
	uint32_t n_sites; /* entries of heap_sites */
	size_t n_files;
};

/* Passes the site's arguments to the kernel half. Sets *ret to the site's probe. Returns 0, or an
 * error with a message about the file. */
static int add_site(struct event *event, const struct elf_file *file, const struct usdt_site *site,
		    size_t n_args, struct probe_point *ret, struct err *err)
{
	struct probe_arg args[USDT_ARGS_MAX] = {};
	struct heap *heap = event->own;
	struct heap_site values = {};
	struct err reason = {};
	int n = usdt_args__parse(site->arguments, file, site->pc_vaddr, args, &reason);

	if (n >= 0 && (size_t)n < n_args)
		n = err__set(&reason, -EINVAL, "it has %d arguments, not %zu", n, n_args);
	if (n >= 0 && heap->n_sites == HEAP_SITES_MAX)
		n = err__set(&reason, -E2BIG, "there are more than %d sites", HEAP_SITES_MAX);
	if (n < 0)
		return err__set(err, n, "cannot use the probe " PROVIDER ":%s of %s: %s",
				site->name, file->path, reason.text);
	memcpy(values.args, args, n_args * sizeof(*args));
	if (bpf_map_update_elem(kernel_half__map_fd(event->half, "heap_sites"), &heap->n_sites,
				&values, BPF_ANY))
		return err__set(err, -errno, "BPF map heap_sites: %s", strerror(errno));
	*ret = (struct probe_point) { .file = file,
				      .pc_vaddr = site->pc_vaddr,
				      .semaphore_vaddr = site->semaphore_vaddr,
				      .cookie = heap->n_sites++ };
	return 0;
}

/* Attaches to all sites of one of the probes, at once: they can share links. */
static int attach_probe(struct event *event, const struct elf_file *file,
			const struct usdt_sites *sites, int which, size_t *ret_n, struct err *err)
{
	const struct bpf_program *program = kernel_half__program(event->half, &programs[which]);
	struct probe_point *points = calloc(max_of(sites->n, 1U), sizeof(*points));
	int ret = points ? 0 : err__set(err, -ENOMEM, "out of memory");

	*ret_n = 0;
	for (size_t i = 0; !ret && i < sites->n; i++) {
		const struct usdt_site *site = &sites->list[i];

		if (strcmp(site->provider, PROVIDER) != 0 ||
		    strcmp(site->name, probes[which].name) != 0)
			continue;
		ret = add_site(event, file, site, probes[which].n_args, &points[*ret_n], err);
		(*ret_n)++;
	}
	if (!ret)
		ret = probe_set__attach(event->probes, program, points, *ret_n, err);
	free(points);
	return ret;
}

/* Attaches the frees first, so that the end of each allocation is seen. A file with probes that
 * cannot be read is left out, and event->note gives the reason. */
static int attach_file(struct event *event, const struct event_place *place,
		       const struct image *image, const struct elf_file *file, struct err *err)
{
	struct heap *heap = event->own;
	struct usdt_sites sites = {};
	size_t n_allocs = 0, n_frees;
	struct err reason = {};
	int ret = 0;

	(void)place;
	(void)image;
	if (usdt__read(file, &sites, &reason))
		return 0; /* the notes of a file without such probes do not matter */
	if (event->spec.kind->outstanding)
		ret = attach_probe(event, file, &sites, ON_FREE, &n_frees, &reason);
	if (!ret)
		ret = attach_probe(event, file, &sites, ON_ALLOC, &n_allocs, &reason);
	usdt_sites__done(&sites);
	if (!ret && n_allocs && !heap->n_files++)
		event->note[0] = '\0';
	if (!ret)
		return 0;
	if (ret == -EPERM || ret == -ENOMEM)
		return err__set(err, ret, "%s", reason.text);
	snprintf(event->note, sizeof(event->note), "%.*s", EVENT_NOTE_BYTES - 1, reason.text);
	return 0;
}

/* Attaches to the files that were found since the last call. */
static int attach_images(struct event *event, const struct event_place *place, struct err *err)
{
	struct heap *heap = event->own;

	return event__attach_new_files(event, place, &heap->seen, attach_file, err);
}

static int attach(struct event *event, const struct event_place *place, struct err *err)
{
	struct heap *heap = calloc(1, sizeof(*heap));
	int ret;

	event->own = heap;
	if (!heap)
		return err__set(err, -ENOMEM, "out of memory");
	ret = event__open_probes(event, place, err);
	if (!ret)
		ret = attach_images(event, place, err);
	if (ret || heap->n_files)
		return ret;
	if (*event->note)
		return err__set(err, -ENOTSUP, "%s", event->note);
	if (!place->launched && !place->everywhere)
		return err__set(err, -ENOENT,
				"no target has mapped a file with the probe " PROVIDER
				":alloc. Start the program with LD_PRELOAD=libbraid-heap.so, or "
				"use -e alloc");
	snprintf(event->note, sizeof(event->note),
		 "no program has mapped a file with the probe " PROVIDER ":alloc");
	return 0;
}

static void detach(struct event *event)
{
	free(event->own);
}

#define HEAP                                                                              \
	.unit = "bytes", .type = CHAIN_UPROBE, .programs = programs, .slot = EVENT_ALLOC, \
	.by_value = true, .mapped = true, .attach = attach, .follow = attach_images,      \
	.detach = detach

const struct event_kind heap_alloc = {
	.name = "alloc",
	HEAP,
};

const struct event_kind heap_outstanding = {
	.name = "outstanding",
	.outstanding = true,
	.whole = true,
	HEAP,
};

bool heap__is(const struct event_spec *spec)
{
	return spec->kind == &heap_alloc || spec->kind == &heap_outstanding;
}

/* Finds the library beside the installed program, or in the build's directory. */
static int find_library(char ret[PATH_MAX])
{
	static const char *const places[] = { "../lib/braid", "lib/braid" };
	char program[PATH_MAX], path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);

	program[max_of(len, 0)] = '\0';
	if (!strrchr(program, '/'))
		return -ENOENT;
	*strrchr(program, '/') = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		int n = snprintf(path, sizeof(path), "%s/%s/" LIBRARY, program, places[i]);

		/* The linker splits LD_PRELOAD at blanks and colons. */
		if (n < (int)sizeof(path) && !access(path, R_OK) && realpath(path, ret) &&
		    !strpbrk(ret, " :"))
			return 0;
	}
	return -ENOENT;
}

int heap__preload(uint64_t bytes, struct err *err)
{
	const char *others = getenv("LD_PRELOAD");
	char library[PATH_MAX], number[32], *list;
	int ret = find_library(library);

	if (ret)
		return err__set(err, ret,
				"cannot find " LIBRARY " beside braid: the command runs without a "
				"sampler of its allocations");
	if (others && strstr(others, LIBRARY))
		return 0;
	if (asprintf(&list, "%s%s%s", library, others && *others ? ":" : "", others ?: "") < 0)
		return err__set(err, -ENOMEM, "out of memory");
	snprintf(number, sizeof(number), "%" PRIu64, bytes);
	if (setenv("LD_PRELOAD", list, 1) || (bytes && setenv("BRAID_HEAP_BYTES", number, 1)))
		ret = err__set(err, -ENOMEM, "out of memory");
	free(list);
	return ret;
}
