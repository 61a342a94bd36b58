/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PROBE_WALKERS_H
#define BRAID_PROBE_WALKERS_H

#include "probes/probe_process.h"
#include "runtimes/runtime.h"

/* The runtimes' verdict on a file, for probe_process__open(): a probe_walker_fn and its ctx. */
struct probe_walkers {
	const struct runtime *const *runtimes; /* all runtimes, NULL-terminated */
	struct runtime_verdict verdict;	       /* verdict on the last file */
};

void probe_walkers__ask(void *ctx, const struct elf_file *file, struct probe_walker *ret);

#endif
