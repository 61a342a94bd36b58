// SPDX-License-Identifier: GPL-2.0-or-later
#include "bpf/host/shim.h"

#include "bpf/perl.bpf.c"

void host_perl__open(void);

void host_perl__open(void)
{
	HOST_ARRAY(perl_states, 1);
	HOST_HASH(perl_procs, 1024);
	HOST_HASH(perl_codes, 65536);
	host.stages[WALKER_PERL] = walk_perl;
}
