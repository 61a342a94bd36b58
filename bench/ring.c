// SPDX-License-Identifier: GPL-2.0-or-later
#include "bench/ring.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/bench.h"
#include "core/kernel_part.h"
#include "core/trap_sites.h"
#include "core/util.h"

#define ROUNDS_MAX 64

struct ring_bench {
	struct braid_bpf *skel;
	struct bpf_link *link;
	struct ring_buffer *ring;
	struct bench_ring_state state;
	double write_ns[ROUNDS_MAX], read_ns[ROUNDS_MAX];
};

static int on_record(void *ctx, void *data, size_t size)
{
	(void)ctx;
	(void)data;
	(void)size;
	return 0;
}

static int open_ring(struct ring_bench *bench, struct err *err)
{
	static const char *const programs[] = { "bench_ring_output", NULL };
	static const char *const maps[] = { "bench_ring", "bench_ring_state", NULL };
	uint64_t vaddr, offset;
	int code = kernel_part__open(programs, maps, &bench->skel, err);

	if (!code && bpf_map__set_max_entries(bench->skel->maps.bench_ring, BENCH_RING_BYTES))
		code = err__set(err, -EINVAL, "cannot size the ring buffer");
	if (!code)
		code = kernel_part__load(bench->skel, err);
	if (code)
		return code;
	if (trap_site__find((const void *)trap_site_nop, &vaddr, &offset))
		return err__set(err, -ENOENT, "braid does not find its own code");
	bench->link = bpf_program__attach_uprobe(bench->skel->progs.bench_ring_output, false,
						 getpid(), "/proc/self/exe", offset);
	if (!bench->link)
		return err__set(err, -errno, "cannot attach a probe to braid itself: %s",
				strerror(errno));
	bench->ring =
		ring_buffer__new(bpf_map__fd(bench->skel->maps.bench_ring), on_record, NULL, NULL);
	return bench->ring
		       ? 0
		       : err__set(err, -errno, "cannot map the ring buffer: %s", strerror(errno));
}

static int measure_round(struct ring_bench *bench, uint32_t record_bytes, unsigned round,
			 struct err *err)
{
	int fd = bpf_map__fd(bench->skel->maps.bench_ring_state);
	uint32_t zero = 0;
	double start;

	bench->state.ns = bench->state.lost = 0;
	bench->state.record_bytes = record_bytes;
	if (bpf_map_update_elem(fd, &zero, &bench->state, BPF_ANY))
		return err__set(err, -errno, "cannot write a BPF map: %s", strerror(errno));
	trap_site_nop(0, 0, 0);
	start = thread_cpu_ns();
	if (ring_buffer__consume(bench->ring) != BENCH_RECORDS)
		return err__set(err, -EIO, "records are missing in the ring buffer");
	bench->read_ns[round] = (thread_cpu_ns() - start) / BENCH_RECORDS;
	if (bpf_map_lookup_elem(fd, &zero, &bench->state) || bench->state.lost)
		return err__set(err, -EIO, "there was no room in the ring buffer");
	bench->write_ns[round] = (double)bench->state.ns / BENCH_RECORDS;
	return 0;
}

int ring_cost__measure(uint32_t record_bytes, unsigned rounds, struct figure *ret_write,
		       struct figure *ret_read, struct err *err)
{
	struct ring_bench *bench = calloc(1, sizeof(*bench));
	int code = bench ? open_ring(bench, err) : err__set(err, -ENOMEM, "out of memory");

	rounds = min_of(rounds, (unsigned)ROUNDS_MAX);
	for (unsigned round = 0; !code && round < rounds; round++)
		code = measure_round(bench, record_bytes, round, err);
	if (!code) {
		*ret_write = figure__of(bench->write_ns, rounds);
		*ret_read = figure__of(bench->read_ns, rounds);
	}
	if (bench) {
		ring_buffer__free(bench->ring);
		bpf_link__destroy(bench->link);
		braid_bpf__destroy(bench->skel);
	}
	free(bench);
	return code;
}
