// SPDX-License-Identifier: GPL-2.0-or-later
#include "bpf/host/shim.h"

#include "bpf/python.bpf.c"

void host_python__open(void);

void host_python__open(void)
{
	HOST_ARRAY(python_states, 1);
	HOST_HASH(python_procs, 1024);
	HOST_HASH(python_codes, 65536);
	host.stages[WALKER_PYTHON] = walk_python;
}
