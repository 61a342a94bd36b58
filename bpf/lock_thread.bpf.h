/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_LOCK_THREAD_BPF_H
#define BRAID_LOCK_THREAD_BPF_H

#include "bpf/sampler.bpf.h"

/* What is kept of a thread that waits for locks (bpf/lock.bpf.c); it goes away with the thread. */

struct lock_thread {
	struct waiting_rec rec;
	__u64 last_ns; /* when the last wait began */
	__u64 heard;   /* 1: a wait has begun or ended in it since we listen */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct lock_thread);
} lock_threads __weak SEC(".maps");

/* The call for a lock that it is in (bpf/lock_calls.bpf.c). */
struct lock_call_rec {
	__u64 since_ns; /* 0: it is in none */
	__u64 address, sp, sleeps;
	struct interval_clock clock;
	__u32 owner; /* 0: not known */
	__u32 taken; /* the lock was, by another thread */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct lock_call_rec);
} lock_calls __weak SEC(".maps");

#endif
