/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_KERNEL_HALF_H
#define BRAID_KERNEL_HALF_H

#include <stdbool.h>
#include <stdint.h>

#include <bpf/libbpf.h>

#include "bpf/alloc.h"
#include "bpf/shared.h"
#include "bpf/waiting.h"
#include "core/base/err.h"
#include "core/kernel/chain.h"
#include "runtimes/runtime.h"

/* The loaded BPF object: opened and sized for this machine and the enabled runtimes, loaded, and
 * attached. All attachments are links owned by this process, so that none remains however it
 * ends. */
struct kernel_half;

struct kernel_half_opts {
	const struct runtime *const *runtimes; /* all runtimes, NULL-terminated */
	uint32_t enabled;		       /* bit n: runtimes[n] is enabled */
	enum unwind_mode unwind;
	uint32_t scope;	    /* SCOPE_*: targets that are selected without being named; 0: none */
	uint32_t scope_uid; /* user of SCOPE_USER */
	uint32_t scope_not; /* braid's PID: excludes it and its children from the scope */
	uint32_t shadows;   /* number of shadow stacks, a power of two; 0: no probes */
	bool calls;	    /* count calls in shadow stacks; there are no samples */
	bool whole;	    /* each sample has its stack, even one that was sent before */
	struct chain_events events; /* programs that take samples */
	/* For event n: each periods[n]-th occurrence is sampled, an occurrence has the value
	 * values[n], and samples have at least the value minima[n]. A 0 in the first two means
	 * 1. */
	uint64_t periods[EVENTS_MAX + 1], values[EVENTS_MAX + 1], minima[EVENTS_MAX + 1];
	uint32_t filtered, paired; /* bit n: event n has a filter; lies between two other events */
	uint32_t valued;	   /* bit n: event n has values (bpf/values.h) */
	uint32_t limited, intervals;	 /* bit n: properties of event n (bpf/budget.bpf.h) */
	uint32_t measured;		 /* bit n: occurrences of event n have different values */
	double budget_percent;		 /* limit of their samples' cost, % of each CPU; 0: none */
	uint32_t numbers[EVENT_SLOTS_N]; /* numbers of special events; 0: not recorded */
	bool outstanding;		 /* allocations are recorded if they are not freed */
	uint32_t ring_bytes;		 /* a power of two, in whole pages; 0: the usual size */
};

/* Opens and loads the kernel half. Returns 0, -EPERM without the privilege, -ENOTSUP without kernel
 * BTF, or an error of libbpf. The message in @err has the remedy. */
int kernel_half__load(const struct kernel_half_opts *opts, struct kernel_half **ret,
		      struct err *err);

/* Creates a half that runs in this process instead of the kernel, without any privilege (bpf/host),
 * for threads that do not run (core/kernel/host_half.h). Nothing can be attached to it. One at a
 * time. Returns 0 or -ENOMEM. */
int kernel_half__on_host(struct kernel_half **ret);

/* Loads the programs of probes; must be called before the first probe. Shadow stacks then follow
 * forks, execs and exits. Idempotent, with the same result. Returns -ENOTSUP if the session has no
 * probes, otherwise as kernel_half__load(). */
int kernel_half__load_probes(struct kernel_half *half, struct err *err);

/* Loads the walker of runtimes[@i], and the unwinder's hook for its code; must be called before
 * samples can have its frames. Idempotent. Returns as kernel_half__load(). */
int kernel_half__load_runtime(struct kernel_half *half, int i, struct err *err);

/* Returns the program that takes samples of the event, to be attached to its trigger. NULL: the
 * type is not in opts.events. */
const struct bpf_program *kernel_half__trigger(const struct kernel_half *half, enum chain_type type,
					       uint32_t event);

/* Returns the program for the tracepoint at which intervals of the event begin; NULL: it is not
 * loaded. */
const struct bpf_program *kernel_half__begin(const struct kernel_half *half, uint32_t event);

/* Returns one of the programs in opts.events; NULL: it is not loaded. */
const struct bpf_program *kernel_half__program(const struct kernel_half *half,
					       const struct chain_program *program);

/* Sets the cgroup of SCOPE_CGROUP. */
void kernel_half__set_cgroup(struct kernel_half *half, uint64_t id);

/* Attaches the programs that follow targets. Samples are taken once triggers are attached. */
int kernel_half__attach(struct kernel_half *half, struct err *err);

/* Excludes occurrences before @time_ns (CLOCK_MONOTONIC) from sampling. Intervals that contain
 * @time_ns count from @time_ns on. Without this call, sampling begins when triggers are attached,
 * and intervals that began earlier are excluded. */
void kernel_half__sample_from(struct kernel_half *half, uint64_t time_ns);

/* Ends sampling at @time_ns (CLOCK_MONOTONIC), exactly and independently of user space's load. The
 * earliest of several times applies. Thread-safe. */
void kernel_half__sample_until(struct kernel_half *half, uint64_t time_ns);

/* Sets whether a listing of calls under way (core/kernel/under_way.h) also claims them. */
void kernel_half__take_calls(struct kernel_half *half, bool taken);

/* Ends the sampling of allocations. To be called before their probes are detached. */
void kernel_half__end_allocs(struct kernel_half *half);

/* Returns the time of kernel_half__sample_until() if it is past, else @now_ns. */
uint64_t kernel_half__sampled_until(const struct kernel_half *half, uint64_t now_ns);

/* Returns the descriptor of the program that takes samples of the first event, or -ENOENT. */
int kernel_half__sampler_fd(const struct kernel_half *half);

/* Makes probes stop counting and changing shadow stacks. To be called before they are detached,
 * which takes the kernel several 100 ms. */
void kernel_half__end_probes(struct kernel_half *half);

/* Detaches the programs that follow targets. Maps stay readable. Idempotent. */
void kernel_half__detach(struct kernel_half *half);
void kernel_half__free(struct kernel_half *half); /* NULL is fine */

/* Measures against the cost of frequent events, and waits that were left out. */
struct kernel_half_economy {
	struct {
		uint64_t occurrences;
		uint64_t skipped;   /* occurrences without a sample of their own */
		uint64_t period_ns; /* longest period of the threads' clocks; 0: no such clock */
	} events[EVENTS_MAX];	    /* event n at n - 1 */
	uint64_t below, below_ns;   /* waits shorter than the user's minimum */
};
void kernel_half__economy(const struct kernel_half *half, struct kernel_half_economy *ret);

/* Takes out the occurrences so far that no sample stands for: event n at n - 1. No later sample
 * will stand for them. Returns 0 or -errno. */
int kernel_half__take_rests(const struct kernel_half *half, struct rest_rec ret[EVENTS_MAX]);

/* Returns true, once, if a thread of a target waited whose return only sys_exit sees
 * (bpf/off_cpu_before.bpf.c). */
bool kernel_half__waits_without_rseq(const struct kernel_half *half);

/* Reserves @n numbers of code objects, which the kernel half will not assign. They follow the
 * number that is returned. */
uint32_t kernel_half__take_codes(const struct kernel_half *half, uint32_t n);

/* Releases all but the first @used of these numbers, if no number was assigned since. */
void kernel_half__return_codes(const struct kernel_half *half, uint32_t first, uint32_t n,
			       uint32_t used);

/* Opens programs in an object of their own over this half's maps, without loading it
 * (core/kernel/kernel_subset.h). */
int kernel_half__beside(const struct kernel_half *half, const char *const *programs,
			struct bpf_object **ret);

struct bpf_object *kernel_half__object(struct kernel_half *half);
int kernel_half__map_fd(const struct kernel_half *half, const char *name); /* -ENOENT */

/* Sets whether processes that execute image number @image have nothing to attach to, so that their
 * inspection is not urgent. */
void kernel_half__set_plain(struct kernel_half *half, uint32_t image, bool plain);

/* Sums the counters of all CPUs. */
void kernel_half__counters(const struct kernel_half *half, uint64_t ret_counters[COUNTERS_N]);

/* Returns the number of the last used node of the call tree; nodes are numbered from 1. */
uint32_t kernel_half__call_nodes(const struct kernel_half *half);

/* Returns a counter's text for users. */
const char *counter__text(unsigned counter);

#endif
