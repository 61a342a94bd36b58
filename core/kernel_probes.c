// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel_probes.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/braid.skel.h"
#include "core/util.h"

/* Attached as long as the programs are loaded: threads must not end unseen. */
static const char *const followers[] = { "shadow_on_fork", "shadow_on_exec", "shadow_on_exit" };

#define WALKER "walk_shadow"

struct kernel_probes {
	struct bpf_object *object;
	bool tried;
	int code; /* of the attempt */
	struct bpf_link *links[ARRAY_SIZE(followers)];
};

static int enable(struct bpf_object *object, const char *name)
{
	struct bpf_program *program = bpf_object__find_program_by_name(object, name);

	return program ? bpf_program__set_autoload(program, true) : -ENOENT;
}

static int enable_programs(struct bpf_object *object, const struct kernel_half_opts *opts)
{
	struct bpf_program *program;
	int code = 0;

	bpf_object__for_each_program (program, object)
		bpf_program__set_autoload(program, false);
	for (int i = 0; opts->runtimes[i]; i++) {
		const char *const *names = opts->runtimes[i]->probe_programs;

		if (!(opts->enabled & 1U << i))
			continue;
		for (; !code && names && *names; names++)
			code = enable(object, *names);
	}
	for (size_t i = 0; !code && i < ARRAY_SIZE(followers); i++)
		code = enable(object, followers[i]);
	if (!code)
		code = enable(object, WALKER);
	return code ? code : enable(object, "nothing");
}

static int share_maps(struct bpf_object *object, const struct bpf_object *with)
{
	struct bpf_map *map;
	int code = 0, fd;

	bpf_object__for_each_map (map, object) {
		fd = bpf_object__find_map_fd_by_name(with, bpf_map__name(map));
		code = fd < 0 ? bpf_map__set_autocreate(map, false) : bpf_map__reuse_fd(map, fd);
		if (code)
			break;
	}
	return code;
}

int kernel_probes__open(const struct kernel_half_opts *opts, const struct bpf_object *with,
			struct kernel_probes **ret)
{
	struct kernel_probes *probes = calloc(1, sizeof(*probes));
	LIBBPF_OPTS(bpf_object_open_opts, open_opts, .object_name = bpf_object__name(with));
	const void *elf;
	size_t size;
	int code;

	if (!probes)
		return -ENOMEM;
	elf = braid_bpf__elf_bytes(&size);
	probes->object = bpf_object__open_mem(elf, size, &open_opts); /* maps are named after it */
	code = probes->object ? share_maps(probes->object, with) : -errno;
	if (!code)
		code = enable_programs(probes->object, opts);
	if (code) {
		kernel_probes__free(probes);
		return code;
	}
	*ret = probes;
	return 0;
}

static int load(struct kernel_probes *probes)
{
	int code = bpf_object__load(probes->object), fd, walkers;
	uint32_t slot = WALKER_SHADOW;

	if (code)
		return code;
	fd = bpf_program__fd(bpf_object__find_program_by_name(probes->object, WALKER));
	walkers = bpf_object__find_map_fd_by_name(probes->object, "walkers");
	if (bpf_map_update_elem(walkers, &slot, &fd, BPF_ANY))
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(followers); i++) {
		probes->links[i] = bpf_program__attach(
			bpf_object__find_program_by_name(probes->object, followers[i]));
		if (!probes->links[i])
			return -errno;
	}
	return 0;
}

int kernel_probes__load(struct kernel_probes *probes)
{
	if (!probes->tried)
		probes->code = load(probes);
	probes->tried = true;
	return probes->code;
}

struct bpf_object *kernel_probes__object(struct kernel_probes *probes)
{
	return probes->object;
}

void kernel_probes__detach(struct kernel_probes *probes)
{
	for (size_t i = 0; probes && i < ARRAY_SIZE(followers); i++) {
		bpf_link__destroy(probes->links[i]);
		probes->links[i] = NULL;
	}
}

void kernel_probes__free(struct kernel_probes *probes)
{
	if (!probes)
		return;
	kernel_probes__detach(probes);
	bpf_object__close(probes->object);
	free(probes);
}
