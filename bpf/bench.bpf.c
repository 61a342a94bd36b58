// SPDX-License-Identifier: GPL-2.0
#include "bpf/scratch.bpf.h"

#include "bpf/bench.h"

/* What `braid bench` measures the kernel itself with. The '?' leaves these programs out unless they
 * are asked for. */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* user space: BENCH_RING_BYTES */
} bench_ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bench_ring_state);
} bench_ring_state SEC(".maps");

/* A sample with nothing in it: the timer's cost. */
SEC("?perf_event")
int nothing_sampled(struct bpf_perf_event_data *ctx)
{
	return 0;
}

const volatile __u32 cfg_bench_tgid = 0;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, BENCH_TICKS_N);
	__type(key, __u32);
	__type(value, __u64);
} mode_ticks SEC(".maps");

/* How often one process was found in user mode, how often in the kernel. */
SEC("?perf_event")
int mode_sampled(struct bpf_perf_event_data *ctx)
{
	__u32 mode = ctx->regs.cs & CS_USER_MASK ? BENCH_USER_TICKS : BENCH_KERNEL_TICKS;
	__u64 *ticks;

	if (task__pid(bpf_get_current_task_btf()) != cfg_bench_tgid)
		return 0;
	ticks = bpf_map_lookup_elem(&mode_ticks, &mode);
	if (ticks)
		(*ticks)++;
	return 0;
}

static long output_record(__u32 index, void *arg)
{
	struct bench_ring_state *state = *(struct bench_ring_state **)arg;
	__u64 size = state->record_bytes;

	if (size > BENCH_RECORD_BYTES)
		size = BENCH_RECORD_BYTES;
	if (bpf_ringbuf_output(&bench_ring, state->record, size, BPF_RB_NO_WAKEUP))
		state->lost++;
	return 0;
}

/* Puts records into the ring buffer, and tells how long that took. */
SEC("?uprobe")
int bench_ring_output(struct pt_regs *ctx)
{
	struct bench_ring_state *state;
	__u32 zero = 0;
	__u64 start;

	state = bpf_map_lookup_elem(&bench_ring_state, &zero);
	if (!state)
		return 0;
	start = bpf_ktime_get_ns();
	bpf_loop(BENCH_RECORDS, output_record, &state, 0);
	state->ns += bpf_ktime_get_ns() - start;
	return 0;
}
