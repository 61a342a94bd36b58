// SPDX-License-Identifier: GPL-2.0-or-later
#include "bpf/host/shim.h"

#include "bpf/php.bpf.c"

void host_php__open(void);

void host_php__open(void)
{
	HOST_ARRAY(php_states, 1);
	HOST_HASH(php_procs, 1024);
	HOST_HASH(php_codes, 65536);
	host.stages[WALKER_PHP] = walk_php;
}
