/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_LOCK_THREAD_BPF_H
#define BRAID_LOCK_THREAD_BPF_H

#include "bpf/sampler.bpf.h"

/* The state of a thread that waits for locks (bpf/lock.bpf.c); freed with the thread. */

struct lock_thread {
	struct waiting_rec rec;
	__u64 last_ns; /* start of the last wait */
	__u64 seen;    /* 1: a wait has begun or ended in it since recording began */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct lock_thread);
} lock_threads __weak SEC(".maps");

/* The thread's current call for a lock (bpf/lock_calls.bpf.c). */
struct lock_call_rec {
	__u64 since_ns; /* start of the call; 0: none */
	__u64 address, sp, sleeps;
	struct interval_clock clock;
	__u32 owner; /* id of the lock's owner; 0: unknown */
	__u32 taken; /* 1: another thread had the lock */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct lock_call_rec);
} lock_calls __weak SEC(".maps");

#endif
