// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel/kernel_subset.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/base/privilege.h"
#include "core/kernel/libbpf_warning.h"

/* The path of the kernel's types. Without it, libbpf searches the modules for a type that this
 * kernel's version does not have, which requires CAP_SYS_ADMIN. */
#define KERNEL_TYPES "/sys/kernel/btf/vmlinux"

struct braid_bpf *kernel_subset__open_whole(void)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = KERNEL_TYPES);

	return braid_bpf__open_opts(&opts);
}

int kernel_subset__shrink(struct bpf_map *map)
{
	if (bpf_map__is_internal(map) || bpf_map__type(map) == BPF_MAP_TYPE_TASK_STORAGE)
		return 0;
	return bpf_map__set_max_entries(map, bpf_map__type(map) == BPF_MAP_TYPE_RINGBUF
						     ? (uint32_t)sysconf(_SC_PAGESIZE)
						     : 1);
}

static bool has(const char *const *names, const char *name)
{
	while (*names && strcmp(*names, name))
		names++;
	return *names;
}

int kernel_subset__open(const char *const *programs, const char *const *maps,
			struct braid_bpf **ret, struct err *err)
{
	struct bpf_program *program;
	struct braid_bpf *skel;
	struct bpf_map *map;
	int code = 0;

	libbpf_warning__keep();
	skel = kernel_subset__open_whole();
	if (!skel)
		return err__set(err, -errno, "cannot open the BPF programs: %s", strerror(errno));
	bpf_object__for_each_program (program, skel->obj)
		bpf_program__set_autoload(program, has(programs, bpf_program__name(program)));
	bpf_object__for_each_map (map, skel->obj)
		if (!code && !has(maps, bpf_map__name(map)))
			code = kernel_subset__shrink(map);
	if (code) {
		braid_bpf__destroy(skel);
		return err__set(err, code, "cannot size the BPF maps: %s", strerror(-code));
	}
	*ret = skel;
	return 0;
}

int kernel_subset__explain(int code, struct err *err)
{
	uint32_t privileges = 1U << PRIVILEGE_LOAD | 1U << PRIVILEGE_EVENTS;
	const char *first = libbpf_warning__first();

	if (code == -EPERM || (code == -EACCES && privilege__missing(privileges)))
		return privilege__explain(privileges, "to load BPF programs", err);
	if (access(KERNEL_TYPES, R_OK))
		return err__set(
			err, -ENOTSUP,
			"this kernel has no BTF (" KERNEL_TYPES
			"). braid requires Linux 6.1 or later, built with CONFIG_DEBUG_INFO_BTF=y");
	if (code == -ENOMEM)
		return err__set(err, code,
				"cannot load the BPF programs: no memory for them and their maps. "
				"Raise the memory limit of braid's cgroup (memory.max; systemd: "
				"MemoryMax), or record fewer events");
	if (!*first)
		return err__set(err, code, "cannot load the BPF programs: %s", strerror(-code));
	return err__set(err, code,
			"cannot load the BPF programs: %s (%s). braid record -v shows the "
			"whole log",
			strerror(-code), first);
}

int kernel_subset__load(struct braid_bpf *skel, struct err *err)
{
	int ret;

	libbpf_warning__begin();
	ret = braid_bpf__load(skel);
	return ret ? kernel_subset__explain(ret, err) : 0;
}

int kernel_subset__load_object(struct bpf_object *object, struct err *err)
{
	int ret;

	libbpf_warning__begin();
	ret = bpf_object__load(object);
	return ret ? kernel_subset__explain(ret, err) : 0;
}

int kernel_subset__select(struct bpf_object *object, const char *const *programs, bool loaded)
{
	struct bpf_program *program;
	int ret = 0;

	for (; !ret && *programs; programs++) {
		program = bpf_object__find_program_by_name(object, *programs);
		ret = program ? bpf_program__set_autoload(program, loaded) : -ENOENT;
	}
	return ret;
}

static const struct kernel_subset_map *find_map(const struct kernel_subset_map *maps,
						const char *name)
{
	while (maps->name && strcmp(maps->name, name))
		maps++;
	return maps->name ? maps : NULL;
}

static int share_maps(struct bpf_object *object, const struct bpf_object *with,
		      const struct kernel_subset_map *but)
{
	struct bpf_map *map;
	int ret = 0, fd;

	bpf_object__for_each_map (map, object) {
		const struct kernel_subset_map *other = find_map(but, bpf_map__name(map));

		if (other && other->fd < 0)
			continue;
		fd = other ? other->fd : bpf_object__find_map_fd_by_name(with, bpf_map__name(map));
		ret = fd < 0 ? fd : bpf_map__reuse_fd(map, fd);
		if (ret)
			break;
	}
	return ret;
}

int kernel_subset__replace_maps(struct bpf_object *object, const struct kernel_subset_map *maps)
{
	int ret = 0;

	for (; !ret && maps->name; maps++) {
		struct bpf_map *map = bpf_object__find_map_by_name(object, maps->name);

		ret = map ? bpf_map__reuse_fd(map, maps->fd) : -ENOENT;
	}
	return ret;
}

int kernel_subset__beside(const struct bpf_object *with, const char *const *programs,
			  const struct kernel_subset_map *but, struct bpf_object **ret)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = bpf_object__name(with),
		    .btf_custom_path = KERNEL_TYPES);
	struct bpf_program *program;
	struct bpf_object *object;
	const void *elf;
	size_t size;
	int rc;

	elf = braid_bpf__elf_bytes(&size);
	object = bpf_object__open_mem(elf, size, &opts); /* its name is a part of the maps' names */
	if (!object)
		return -errno;
	bpf_object__for_each_program (program, object)
		bpf_program__set_autoload(program, false);
	rc = share_maps(object, with, but);
	if (!rc)
		rc = kernel_subset__select(object, programs, true);
	if (rc)
		bpf_object__close(object);
	else
		*ret = object;
	return rc;
}
