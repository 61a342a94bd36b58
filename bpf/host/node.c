// SPDX-License-Identifier: GPL-2.0-or-later
#include "bpf/host/shim.h"

#include "bpf/node.bpf.c"
#include "bpf/node_state.bpf.h"

void host_node__open(void);

void host_node__open(void)
{
	HOST_ARRAY(node_states, 1);
	HOST_HASH(node_procs, 1024);
	HOST_HASH(node_codes, 65536);
	host.stages[WALKER_NODE] = walk_node;
}
