/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_KERNEL_HALF_H
#define BRAID_KERNEL_HALF_H

#include <stdbool.h>
#include <stdint.h>

#include <bpf/libbpf.h>

#include "bpf/shared.h"
#include "core/err.h"
#include "runtimes/runtime.h"

/* The loaded BPF object: opened and sized for this machine and the enabled runtimes, loaded,
 * attached. Everything attached is a link owned by this process: however it ends, nothing stays
 * behind. */
struct kernel_half;

struct kernel_half_opts {
	const struct runtime *const *runtimes; /* all known, NULL-terminated */
	uint32_t enabled;		       /* bit n: runtimes[n] is wanted */
	enum unwind_mode unwind;
	uint32_t frequency_hz;
	uint32_t shadows;    /* room for so many shadow stacks, a power of two; 0: no probes */
	bool calls;	     /* count calls in them: there are no samples */
	bool triggered;	     /* samples come with kernel_half__break_at, not by the clock */
	uint32_t ring_bytes; /* a power of two, in pages; 0: as much as a recording needs */
};

/* Opens and loads. -EPERM without privilege, -ENOTSUP without kernel BTF, else what libbpf
 * returns; the sentence in `err` has the remedy. */
int kernel_half__load(const struct kernel_half_opts *opts, struct kernel_half **ret,
		      struct err *err);

/* Before the first probe: loads the programs that probes run, and from here on shadow stacks follow
 * forks, execs and exits. Idempotent, also in what it returns. -ENOTSUP where no probes are wanted,
 * else as kernel_half__load. */
int kernel_half__load_probes(struct kernel_half *half, struct err *err);

/* From here on targets are followed and, but for `calls`, sampled. */
int kernel_half__attach(struct kernel_half *half, struct err *err);

/* After kernel_half__attach of one that is `triggered`: samples each execution of the instruction
 * at `address` by the process, and by threads and processes that it starts later. */
int kernel_half__break_at(struct kernel_half *half, uint32_t pid, uint64_t address,
			  struct err *err);

/* Samples at the n-th part of the rate from now on. -errno of the events that keep theirs. */
int kernel_half__slow_down(struct kernel_half *half, uint32_t slowdown);

/* No sample is taken at this time (CLOCK_MONOTONIC) or later, exactly and whatever user space is
 * busy with; the earliest that was told counts. From any thread. */
void kernel_half__sample_until(struct kernel_half *half, uint64_t time_ns);

/* That time if it is past, else `now_ns`. */
uint64_t kernel_half__sampled_until(const struct kernel_half *half, uint64_t now_ns);

/* The program that takes samples; -ENOENT where there is none. */
int kernel_half__sampler_fd(const struct kernel_half *half);

/* Stops sampling, keeps maps readable. Idempotent. */
void kernel_half__detach(struct kernel_half *half);
void kernel_half__free(struct kernel_half *half); /* NULL is fine */

/* All maps, and the programs of probes, which are loaded by then or later. */
struct bpf_object *kernel_half__object(struct kernel_half *half);
int kernel_half__map_fd(const struct kernel_half *half, const char *name); /* -ENOENT */

/* Whether processes that execute the image of that number have nothing to attach to, so that there
 * is no hurry to look at them. */
void kernel_half__set_plain(struct kernel_half *half, uint32_t image, bool plain);

/* Sums over all CPUs. */
void kernel_half__counters(const struct kernel_half *half, uint64_t ret_counters[COUNTERS_N]);

/* Nodes of the call tree that are in use: 1 up to this. */
uint32_t kernel_half__call_nodes(const struct kernel_half *half);

/* People's text of a counter. */
const char *counter__text(unsigned counter);

#endif
