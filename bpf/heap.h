/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_BPF_HEAP_H
#define BRAID_BPF_HEAP_H

#include "bpf/probe_rec.h"

/* Sites of the USDT probes otel_memory:alloc and otel_memory:free (bpf/heap.bpf.c). A site's
 * number, from 0, is its attach cookie and its index in heap_sites. */

#define HEAP_SITES_MAX 1024

enum heap_arg { HEAP_ADDRESS, HEAP_BYTES, HEAP_WEIGHT, HEAP_ARGS_N };

struct heap_site {
	struct probe_arg args[HEAP_ARGS_N]; /* a probe free has the first one only */
};

#endif
