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

/* The loaded BPF object: opened and sized for this machine and the enabled runtimes, loaded,
 * attached. Everything attached is a link owned by this process: however it ends, nothing stays
 * behind. */
struct kernel_half;

struct kernel_half_opts {
	const struct runtime *const *runtimes; /* all known, NULL-terminated */
	uint32_t enabled;		       /* bit n: runtimes[n] is wanted */
	enum unwind_mode unwind;
	uint32_t scope;	    /* SCOPE_*: which processes are targets without being named; 0: none */
	uint32_t scope_uid; /* of SCOPE_USER */
	uint32_t scope_not; /* braid's process: neither it nor its children are one of those */
	uint32_t shadows;   /* room for so many shadow stacks, a power of two; 0: no probes */
	bool calls;	    /* count calls in them: there are no samples */
	bool whole;	    /* each sample has its stack, even one that was sent before */
	struct chain_events events; /* what takes samples */
	/* Of event n: every so-manieth is sampled; what each is worth; the smallest value of which
	 * there is a sample. 0 of the first two is 1. */
	uint64_t periods[EVENTS_MAX + 1], values[EVENTS_MAX + 1], minima[EVENTS_MAX + 1];
	uint32_t filtered, paired;   /* bit n: event n has a filter; is a time between two others */
	uint32_t limited, intervals; /* bit n: of event n (bpf/budget.bpf.h) */
	uint32_t measured;	     /* bit n: values of event n differ */
	double budget_percent;	     /* what their samples may cost of each CPU; 0: anything */
	uint32_t numbers[EVENT_SLOTS_N]; /* of events that are one of a kind; 0: not there */
	bool outstanding;		 /* what is allocated is of interest if it is not freed */
	uint32_t ring_bytes; /* a power of two, in pages; 0: as much as a recording needs */
};

/* Opens and loads. -EPERM without privilege, -ENOTSUP without kernel BTF, else what libbpf
 * returns; the sentence in `err` has the remedy. */
int kernel_half__load(const struct kernel_half_opts *opts, struct kernel_half **ret,
		      struct err *err);

/* Not in the kernel, and without any privilege: its programs built for this process (bpf/host), for
 * threads that do not run (core/kernel/host_half.h). Nothing can be attached. One at a time.
 * -ENOMEM. */
int kernel_half__on_host(struct kernel_half **ret);

/* Before the first probe: loads the programs that probes run, and from here on shadow stacks follow
 * forks, execs and exits. Idempotent, also in what it returns. -ENOTSUP where no probes are wanted,
 * else as kernel_half__load. */
int kernel_half__load_probes(struct kernel_half *half, struct err *err);

/* Before samples are to have frames of runtimes[i]: loads its walker, and what the unwinder needs
 * to know of its code. Idempotent; else as kernel_half__load. */
int kernel_half__load_runtime(struct kernel_half *half, int i, struct err *err);

/* The program that takes samples of the event, to be attached to what triggers it; NULL: the type
 * is not among opts.events. */
const struct bpf_program *kernel_half__trigger(const struct kernel_half *half, enum chain_type type,
					       uint32_t event);

/* Where intervals of the event begin, if at a tracepoint; NULL: it is not loaded. */
const struct bpf_program *kernel_half__begin(const struct kernel_half *half, uint32_t event);

/* One of opts.events' programs; NULL: it is not loaded. */
const struct bpf_program *kernel_half__program(const struct kernel_half *half,
					       const struct chain_program *program);

/* Which cgroup SCOPE_CGROUP is about, from now on. */
void kernel_half__set_cgroup(struct kernel_half *half, uint64_t id);

/* From here on targets are followed, and sampled when triggers are attached. */
int kernel_half__attach(struct kernel_half *half, struct err *err);

/* No sample of what happens before this time (CLOCK_MONOTONIC) is taken, and what is under way then
 * counts from there on. Without a call: of nothing before there are triggers, and nothing is. */
void kernel_half__sample_from(struct kernel_half *half, uint64_t time_ns);

/* No sample is taken at this time (CLOCK_MONOTONIC) or later, exactly and whatever user space is
 * busy with; the earliest that was told counts. From any thread. */
void kernel_half__sample_until(struct kernel_half *half, uint64_t time_ns);

/* Whether listing what is under way (core/kernel/under_way.h) takes it, too. */
void kernel_half__take_calls(struct kernel_half *half, bool taken);

/* Which calls that allocate are counted: written while no probe is attached (bpf/alloc.h). */
volatile struct alloc_window *kernel_half__alloc_window(struct kernel_half *half);

/* That time if it is past, else `now_ns`. */
uint64_t kernel_half__sampled_until(const struct kernel_half *half, uint64_t now_ns);

/* The program that takes samples of the first event; -ENOENT where there is none. */
int kernel_half__sampler_fd(const struct kernel_half *half);

/* From now on probes neither count nor change shadow stacks: to be called before they are detached,
 * which takes the kernel some tenths of a second. */
void kernel_half__end_probes(struct kernel_half *half);

/* Stops following; keeps maps readable. Idempotent. */
void kernel_half__detach(struct kernel_half *half);
void kernel_half__free(struct kernel_half *half); /* NULL is fine */

/* What was done to keep the budget of events that can be frequent, and what was not wanted. */
struct kernel_half_economy {
	struct {
		uint64_t occurrences;
		uint64_t skipped;   /* those that got no sample of their own */
		uint64_t period_ns; /* the longest of threads' clocks; 0: it has none */
	} events[EVENTS_MAX];	    /* of number n at n - 1 */
	uint64_t below, below_ns;   /* waits that were shorter than the user's minimum */
};
void kernel_half__economy(const struct kernel_half *half, struct kernel_half_economy *ret);

/* Takes the occurrences that no sample stands for so far, by event: of number n at n - 1. No later
 * sample will stand for them. -errno. */
int kernel_half__take_rests(const struct kernel_half *half, struct rest_rec ret[EVENTS_MAX]);

/* Has a thread of a target waited that only sys_exit sees come back (bpf/off_cpu_before.bpf.c)?
 * True once. */
bool kernel_half__waits_without_rseq(const struct kernel_half *half);

/* Takes numbers of code objects, `n` behind the one that is returned, which the kernel half will
 * not give. */
uint32_t kernel_half__take_codes(const struct kernel_half *half, uint32_t n);

/* Gives back all but the first `used` of these, if nobody has got a number since. */
void kernel_half__return_codes(const struct kernel_half *half, uint32_t first, uint32_t n,
			       uint32_t used);

/* Programs of their own over this one's maps: opened, not loaded (core/kernel/kernel_part.h). */
int kernel_half__beside(const struct kernel_half *half, const char *const *programs,
			struct bpf_object **ret);

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
