/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_BENCH_BPF_H
#define BRAID_BENCH_BPF_H

#include <linux/types.h>

#define BENCH_RECORDS	   64 /* written by one hit */
#define BENCH_RECORD_BYTES 8192
#define BENCH_RING_BYTES   (1 << 20)

/* Written by one thread only. */
struct bench_ring_state {
	__u64 ns;   /* spent on writing records */
	__u32 lost; /* for which there was no room */
	__u32 record_bytes;
	__u8 record[BENCH_RECORD_BYTES];
};
_Static_assert(sizeof(struct bench_ring_state) == 16 + BENCH_RECORD_BYTES, "bench_ring_state");

/* Keys of mode_ticks. */
enum { BENCH_USER_TICKS, BENCH_KERNEL_TICKS, BENCH_TICKS_N };

#endif
