/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_KERNEL_PROBES_H
#define BRAID_KERNEL_PROBES_H

#include <bpf/libbpf.h>

#include "core/kernel_half.h"

/* The BPF programs that probes and shadow stacks need: an object of its own beside that of the
 * samplers, with the maps of that, as they are half of what the verifier has to read and most
 * sessions attach no probe. */
struct kernel_probes;

/* Not loaded yet: its programs can be found, and its maps used. `with` is loaded, and outlives it;
 * its walkers get the shadow stack's. What libbpf returns. */
int kernel_probes__open(const struct kernel_half_opts *opts, const struct bpf_object *with,
			struct kernel_probes **ret);

/* Loads them, and has shadow stacks follow forks, execs and exits from now on. What libbpf returns;
 * the same again when called again. */
int kernel_probes__load(struct kernel_probes *probes);

struct bpf_object *kernel_probes__object(struct kernel_probes *probes);

void kernel_probes__detach(struct kernel_probes *probes); /* NULL is fine; idempotent */
void kernel_probes__free(struct kernel_probes *probes);	  /* NULL is fine */

#endif
