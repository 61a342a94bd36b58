// SPDX-License-Identifier: GPL-2.0-or-later
#include "bpf/host/shim.h"

#include "bpf/ruby.bpf.c"

void host_ruby__open(void);

void host_ruby__open(void)
{
	HOST_ARRAY(ruby_states, 1);
	HOST_HASH(ruby_procs, 1024);
	HOST_HASH(ruby_codes, 65536);
	host.stages[WALKER_RUBY] = walk_ruby;
}
