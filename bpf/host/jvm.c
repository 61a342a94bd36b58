// SPDX-License-Identifier: GPL-2.0-or-later
#include "bpf/host/shim.h"

#include "bpf/jvm.bpf.c"

void host_jvm__open(void);

void host_jvm__open(void)
{
	HOST_ARRAY(jvm_states, 1);
	HOST_HASH(jvm_procs, 1024);
	HOST_HASH(jvm_codes, 65536);
	host.stages[WALKER_JVM] = walk_jvm;
}
