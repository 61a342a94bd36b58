// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel_part.h"

#include <errno.h>
#include <string.h>

#include "core/libbpf_warning.h"
#include "core/privilege.h"

static bool has(const char *const *names, const char *name)
{
	while (*names && strcmp(*names, name))
		names++;
	return *names;
}

int kernel_part__open(const char *const *programs, const char *const *maps, struct braid_bpf **ret,
		      struct err *err)
{
	struct bpf_program *program;
	struct braid_bpf *skel;
	struct bpf_map *map;

	libbpf_warning__keep();
	skel = braid_bpf__open();
	if (!skel)
		return err__set(err, -errno, "cannot open the BPF programs: %s", strerror(errno));
	bpf_object__for_each_program (program, skel->obj)
		bpf_program__set_autoload(program, has(programs, bpf_program__name(program)));
	bpf_object__for_each_map (map, skel->obj) /* the skeleton wants the variables */
		bpf_map__set_autocreate(map,
					has(maps, bpf_map__name(map)) || bpf_map__is_internal(map));
	*ret = skel;
	return 0;
}

int kernel_part__load(struct braid_bpf *skel, struct err *err)
{
	int rc = braid_bpf__load(skel);

	if (rc == -EPERM || rc == -EACCES)
		return privilege__explain(1U << PRIVILEGE_LOAD | 1U << PRIVILEGE_EVENTS,
					  "to load BPF programs", err);
	if (rc)
		return err__set(err, rc, "this kernel does not take the BPF programs: %s",
				strerror(-rc));
	return 0;
}
