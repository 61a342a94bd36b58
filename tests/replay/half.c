// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/replay/half.h"

#include <errno.h>
#include <string.h>

#include "bpf/host/host.h"
#include "bpf/host/programs.h"
#include "core/kernel/kernel_half.h"
#include "core/kernel/maps.h"

#define ARENA "chunks"

void half__open(void)
{
	host_programs__open();
}

void half__reset(void)
{
	for (size_t i = 0; i < host.n_maps; i++)
		if (strcmp(host.maps[i].name, ARENA) != 0)
			host_map__reset(host.maps[i].map);
}

void half__close(void)
{
	host__done();
}

/* --- core/kernel/kernel_half.h --- */

int kernel_half__map_fd(const struct kernel_half *half, const char *name)
{
	(void)half;
	return maps__of_host(name);
}

void kernel_half__set_plain(struct kernel_half *kernel_half, uint32_t image, bool plain)
{
	(void)kernel_half, (void)image, (void)plain;
}

void kernel_half__end_probes(struct kernel_half *half)
{
	(void)half;
}

int kernel_half__load_runtime(struct kernel_half *half, int i, struct err *err)
{
	(void)half, (void)i, (void)err;
	return 0;
}

int kernel_half__load_probes(struct kernel_half *half, struct err *err)
{
	(void)half;
	return err__set(err, -ENOTSUP, "there are no probes in a replay");
}
