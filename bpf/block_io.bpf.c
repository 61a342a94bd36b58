// SPDX-License-Identifier: GPL-2.0
#include "bpf/sampler.bpf.h"

/* Block I/O: the time from its submission by a thread until its completion.
 *
 * A bio is submitted in the context of the requesting thread (block_bio_queue). The program samples
 * the stack there, and sends it immediately. The bio completes in an interrupt or in another task.
 * Then the program sends the elapsed time, which user space joins with the sample (REC_VALUE).
 *
 * In between the bio is identified by its address. A device with a queue of requests ends them with
 * block_rq_complete, which has all bios that were merged into the request. Other devices report
 * block_bio_complete. This was checked in block/blk-core.c, blk-mq.c and bio.c of Linux 6.1 to
 * 6.18. Occurrences without a sample are totalled in bytes, because their time is not measured. A
 * bio that is too large for the device is split (block_split). It is complete when all its parts
 * are. */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct bvec_iter {
	unsigned int bi_size; /* remaining bytes */
};

struct bio {
	struct bio *bi_next; /* in its request */
	unsigned int bi_opf;
	struct bvec_iter bi_iter;
	void *bi_private; /* for a part: the bio that it belongs to (bio_chain() in block/bio.c) */
};

struct request {
	unsigned int rq_flags;
	struct bio *bio;
};

struct bio_list;

struct task_struct___io {
	struct bio_list *bio_list; /* NULL, except while a driver receives a bio */
};

#pragma clang attribute pop

/* include/linux/blk_types.h: the same since Linux 4.10 */
#define REQ_OP_MASK    0xff
#define REQ_SYNC       (1U << 11)
#define REQ_OP_READ    0
#define REQ_OP_WRITE   1
#define REQ_OP_FLUSH   2
#define REQ_OP_DISCARD 3
#define REQ_PREFLUSH   (1U << 18)

enum rqf_flags___6_10 { __RQF_FLUSH_SEQ }; /* include/linux/blk-mq.h */
#define RQF_FLUSH_SEQ_BEFORE (1U << 4)

#define BIOS_MAX     16384 /* maximum number of pending bios; more are lost and counted */
#define REQUEST_BIOS 1024  /* bios examined at most; a request has at most about 256 segments */

struct block_io {
	__u64 start_ns;
	__u64 link;  /* link of the sample */
	__u64 whole; /* bio of which this is a part; that bio has the other fields. 0: not a part */
	__u32 parts; /* number of incomplete parts */
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BIOS_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64); /* address of the bio */
	__type(value, struct block_io);
} block_ios __weak SEC(".maps");

__u64 last_block_io = 0; /* link of a sample */

static __always_inline enum block_kind kind_of(__u32 opf, __u32 bytes)
{
	switch (opf & REQ_OP_MASK) {
	case REQ_OP_READ:
		return BLOCK_READ; /* REQ_RAHEAD is also set for page cache misses */
	case REQ_OP_WRITE:
		if (!bytes && opf & REQ_PREFLUSH)
			return BLOCK_FLUSH;
		return opf & REQ_SYNC ? BLOCK_WRITE : BLOCK_WRITE_BACK;
	case REQ_OP_FLUSH:
		return BLOCK_FLUSH;
	case REQ_OP_DISCARD:
		return BLOCK_DISCARD;
	default:
		return BLOCK_OTHER;
	}
}

/* Stores the kernel stack of the sample, with @kind in place of the innermost address. A macro,
 * like SAMPLE_KERNEL_STACK. */
#define SAMPLE_BLOCK_STACK(ctx, scratch, kind)                                             \
	do {                                                                               \
		long got = bpf_get_stack(ctx, (scratch)->words + 1, KERNEL_FRAMES_MAX * 8, \
					 TRACING_FRAMES);                                  \
                                                                                           \
		(scratch)->words[0] = kind;                                                \
		(scratch)->n_words = got > 0 ? 1 + got / 8 : 1;                            \
		(scratch)->sample.n_kernel = (scratch)->n_words;                           \
		(scratch)->sample.flags |= SAMPLE_KERNEL_MODE;                             \
	} while (0)

/* Arguments: struct bio *bio. A stacked driver passes the I/O on to lower drivers, on the same
 * stack. Such a submission is not sampled again. */
SEC("?raw_tp")
int block_io_queue(struct bpf_raw_tracepoint_args *ctx)
{
	const struct bio *bio = (const void *)ctx->args[0];
	const struct task_struct___io *task = (const void *)bpf_get_current_task();
	struct block_io new = { .parts = 1 };
	struct worth worth = { .value = 1, .weight = 1 };
	__u32 opf = BPF_CORE_READ(bio, bi_opf), bytes = BPF_CORE_READ(bio, bi_iter.bi_size);
	__u32 event = cfg_numbers[EVENT_BLOCK_IO];
	__u64 key = (__u64)bio;
	struct scratch *scratch;

	if (BPF_CORE_READ(task, bio_list))
		return 0;
	worth.total = bytes; /* for occurrences without a sample, whose time is not measured */
	scratch = sample__begin_of(event, bpf_ktime_get_ns(), &worth);
	if (!scratch)
		return 0;
	scratch->sample.total = scratch->sample.weight;
	new.link = __sync_fetch_and_add(&last_block_io, 1) + 1;
	scratch->sample.flags |= SAMPLE_PENDING;
	scratch->sample.link = new.link;
	SAMPLE_BLOCK_STACK(ctx, scratch, kind_of(opf, bytes));
	scratch->cs = scratch->has_regs ? read_task_regs(scratch) : 0;
	scratch->sample.object = bytes;
	new.start_ns = scratch->sample.time_ns;
	if (bpf_map_update_elem(&block_ios, &key, &new, BPF_ANY)) {
		count(COUNT_BLOCK_IOS_FULL);
		rest__return(event, scratch->sample.weight, scratch->sample.weight * bytes);
		slot__release();
	} else {
		sample__unwind(ctx, scratch);
	}
	return 0;
}

/* Arguments: struct bio *part, unsigned int sector. @part is split off; the rest of the bio remains
 * at its address. */
SEC("?raw_tp")
int block_io_split(struct bpf_raw_tracepoint_args *ctx)
{
	const struct bio *part = (const void *)ctx->args[0];
	struct block_io new = { .whole = (__u64)BPF_CORE_READ(part, bi_private) };
	struct block_io *whole = bpf_map_lookup_elem(&block_ios, &new.whole);
	__u64 key = (__u64)part;

	if (!whole || whole->whole)
		return 0;
	if (bpf_map_update_elem(&block_ios, &key, &new, BPF_ANY))
		count(COUNT_BLOCK_IOS_FULL);
	else
		__sync_fetch_and_add(&whole->parts, 1);
	return 0;
}

/* Handles the completion of the bio at @bio, or of a part of a bio. */
static __noinline int complete(__u64 bio, __u64 now_ns)
{
	struct block_io *io = bpf_map_lookup_elem(&block_ios, &bio);
	struct rec_value rec = { .type = REC_VALUE };

	if (io && io->whole) {
		__u64 whole = io->whole;

		bpf_map_delete_elem(&block_ios, &bio);
		bio = whole;
		io = bpf_map_lookup_elem(&block_ios, &bio);
	}
	if (!io || io->whole || __sync_fetch_and_sub(&io->parts, 1) != 1)
		return 0;
	rec.link = io->link;
	rec.value = now_ns - io->start_ns;
	bpf_map_delete_elem(&block_ios, &bio);
	if (rec.value < cfg_minima[EVENT_AT(cfg_numbers[EVENT_BLOCK_IO])])
		rec.value = 0;
	if (bpf_ringbuf_output(&ring, &rec, sizeof(rec), ring__flags()))
		count(COUNT_RING_FULL);
	return 0;
}

struct completion {	       /* completion of a request */
	const struct bio *bio; /* the next one */
	__u64 now_ns;
	__u32 bytes; /* completed bytes, from this bio on */
};

static long complete_next(__u64 i, struct completion *completion)
{
	const struct bio *bio = completion->bio;
	__u32 bytes;

	(void)i;
	if (!bio)
		return 1;
	bytes = BPF_CORE_READ(bio, bi_iter.bi_size);
	if (bytes > completion->bytes)
		return 1; /* only the beginning of the bio is complete */
	complete((__u64)bio, completion->now_ns);
	completion->bytes -= bytes;
	completion->bio = BPF_CORE_READ(bio, bi_next);
	return 0;
}

/* Arguments: struct request *rq, blk_status_t error, unsigned int nr_bytes. A write with a flush
 * after it is reported twice: first when the flush is still pending. */
SEC("?raw_tp")
int block_io_done(struct bpf_raw_tracepoint_args *ctx)
{
	const struct request *rq = (const void *)ctx->args[0];
	__u32 flush_seq =
		bpf_core_enum_value_exists(enum rqf_flags___6_10, __RQF_FLUSH_SEQ)
			? 1U << bpf_core_enum_value(enum rqf_flags___6_10, __RQF_FLUSH_SEQ)
			: RQF_FLUSH_SEQ_BEFORE;
	struct completion completion = { .bio = BPF_CORE_READ(rq, bio),
					 .now_ns = bpf_ktime_get_ns(),
					 .bytes = ctx->args[2] };

	if (!(BPF_CORE_READ(rq, rq_flags) & flush_seq))
		bpf_loop(REQUEST_BIOS, complete_next, &completion, 0);
	return 0;
}

/* Arguments: struct request_queue *q, struct bio *bio. */
SEC("?raw_tp")
int block_io_bio_done(struct bpf_raw_tracepoint_args *ctx)
{
	return complete(ctx->args[1], bpf_ktime_get_ns());
}
