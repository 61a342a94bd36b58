/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_LOCK_THREAD_BPF_H
#define BRAID_LOCK_THREAD_BPF_H

#include "bpf/sampler.bpf.h"

/* What is kept of a thread that waits for locks (bpf/lock.bpf.c); it goes away with the thread. */

struct lock_thread {
	struct waiting_rec rec;
	__u64 heard; /* 1: a wait has begun or ended in it since we listen */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct lock_thread);
} lock_threads __weak SEC(".maps");

#endif
