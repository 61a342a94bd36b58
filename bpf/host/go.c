// SPDX-License-Identifier: GPL-2.0-or-later
#include "bpf/host/shim.h"

#include "bpf/go.bpf.c"

void host_go__open(void);

void host_go__open(void)
{
	HOST_HASH(go_procs, 1024);
	host.stages[WALKER_GO] = walk_go;
}
