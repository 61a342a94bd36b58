// SPDX-License-Identifier: GPL-2.0-or-later
/* Actions of a process on its perf map or jitdump file that may cost braid time or memory. The
 * input is a program: it appends, truncates and makes holes, and reads and searches in between. An
 * input fails if braid's part takes a second of CPU time, or more memory than a file's budget. */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/quota.h"
#include "core/base/util.h"
#include "core/target/jit_maps.h"
#include "tests/fuzz/fuzz.h"

#define USER 4711
#ifndef __has_feature
#define __has_feature(name) 0
#endif
/* Sanitizers and coverage make each step about four times as expensive. */
#define CPU_NS_MAX    ((__has_feature(address_sanitizer) ? 4 : 1) * NSEC_PER_SEC)
#define BUDGET_CPU_NS (NSEC_PER_SEC / 4)
#define BUDGET_BYTES  (32ULL << 20)
#define WRITTEN_MAX   (24 << 20) /* bytes that one input writes */
#define QUERIES_MAX   20000	 /* searches of one input */

enum { APPEND, MOVE, JUNK, TRUNCATE, HOLE, LOOK, ASK, OPS };

struct op {
	uint8_t op, how;
	uint16_t n, stride, size;
};

struct run {
	int fd;
	bool is_jitdump;
	size_t written;
	unsigned queried, found;
	uint64_t spent_ns, now_ns;
	struct jit_sources *sources;
	struct jit_source *source;
	struct perf_map_counts counts;
};

/* Limits without the process's clock, so that the same input has the same result. */
static const struct quota_limits fuzz_limits = { {
	[QUOTA_FILE] = { [QUOTA_READ] = { 256ULL << 20, 0 },
			 [QUOTA_CPU_NS] = { BUDGET_CPU_NS, 0 },
			 [QUOTA_RETAINED] = { BUDGET_BYTES, 0 },
			 [QUOTA_INDEXED] = { BUDGET_BYTES, 0 } },
	[QUOTA_USER] = { { UINT64_MAX / 2, 0 },
			 { UINT64_MAX / 2, 0 },
			 { UINT64_MAX / 2, 0 },
			 { UINT64_MAX / 2, 0 },
			 { UINT64_MAX / 2, 0 },
			 { UINT64_MAX / 2, 0 } },
	[QUOTA_OTHERS] = { { UINT64_MAX / 2, 0 },
			   { UINT64_MAX / 2, 0 },
			   { UINT64_MAX / 2, 0 },
			   { UINT64_MAX / 2, 0 },
			   { UINT64_MAX / 2, 0 },
			   { UINT64_MAX / 2, 0 } },
	[QUOTA_ALL] = { { UINT64_MAX / 2, 0 },
			{ UINT64_MAX / 2, 0 },
			{ UINT64_MAX / 2, 0 },
			{ UINT64_MAX / 2, 0 },
			{ UINT64_MAX / 2, 0 },
			{ UINT64_MAX / 2, 0 } },
} };

static void append(struct run *run, const void *bytes, size_t n)
{
	if (run->written + n > WRITTEN_MAX)
		return;
	run->written += n;
	lseek(run->fd, 0, SEEK_END);
	if (write(run->fd, bytes, n) != (ssize_t)n)
		abort();
}

static void begin_file(struct run *run)
{
	static const uint32_t head[10] = { 0x4a695444, 1, sizeof(head), EM_X86_64 };

	if (run->is_jitdump)
		append(run, head, sizeof(head));
}

/* Writes a record of a load at @at (kind 0), or of a move from @from to @at (1). */
static size_t put_record(char *to, uint32_t kind, uint64_t at, uint64_t from, uint32_t size)
{
	uint64_t record[8] = { kind | (uint64_t)(kind ? 64 : 60) << 32, 1 };

	record[4] = kind ? from : at;
	record[5] = kind ? at : size;
	record[6] = kind ? size : 0;
	if (!kind)
		memcpy(&record[7], "f", 2);
	memcpy(to, record, kind ? 64 : 60);
	return kind ? 64 : 60;
}

static void append_code(struct run *run, const struct op *op, bool moves)
{
	char *block = malloc((op->n + 1) * 64UL);
	uint64_t at = 0x1000 + op->how * 256UL;
	size_t len = 0;

	for (unsigned i = 0; block && i < op->n; i++, at += op->stride) {
		if (run->is_jitdump)
			len += put_record(block + len, moves, at, at - op->stride, op->size + 1);
		else
			len += sprintf(block + len, "%lx %x f\n", (long)at, op->size + 1);
	}
	append(run, block, len);
	free(block);
}

static void ask(struct run *run, const struct op *op)
{
	uint64_t at = 0x1000 + op->how * 256UL;
	struct jit_symbol symbol;
	struct jit_entry entry;

	for (unsigned i = 0; i < op->n && run->queried < QUERIES_MAX; i++, at += op->stride) {
		run->queried++;
		run->found += jit_source__find(run->source, at, UINT64_MAX, &entry) &&
			      jit_source__symbol(run->source, jit_source__edition(run->source),
						 &entry, at, 0, &symbol);
	}
}

static void step(struct run *run, const struct op *op)
{
	static const char junk[1000] = "7f 7f";
	uint64_t before;

	switch (op->op % OPS) {
	case APPEND:
	case MOVE:
		append_code(run, op, op->op % OPS == MOVE);
		break;
	case JUNK:
		append(run, junk, op->n % sizeof(junk));
		break;
	case TRUNCATE:
		if (ftruncate(run->fd, 0))
			abort();
		begin_file(run);
		break;
	case HOLE:
		if (ftruncate(run->fd, (uint64_t)op->n << 16))
			abort();
		break;
	case LOOK:
		before = thread_cpu_ns();
		run->now_ns += op->n * NSEC_PER_SEC;
		if (jit_source__look(run->source, op->how % 3, run->now_ns, &run->counts))
			abort();
		run->spent_ns += thread_cpu_ns() - before;
		break;
	case ASK:
		before = thread_cpu_ns();
		ask(run, op);
		run->spent_ns += thread_cpu_ns() - before;
	}
}

bool target__run(const uint8_t *data, size_t size)
{
	struct run run = { .fd = memfd_create("fuzz", MFD_CLOEXEC),
			   .is_jitdump = size && data[0] & 1,
			   .sources = jit_sources__new() };
	struct jit_file file = JIT_FILE_NONE;
	struct op op;

	if (run.fd < 0 || !run.sources)
		abort();
	quota__set_limits(&fuzz_limits);
	file.fd = dup(run.fd);
	file.ino = 1;
	if (jit_sources__share(run.sources, &file, run.is_jitdump, USER, "fuzz", &run.source))
		abort();
	begin_file(&run);
	for (size_t at = 1; at + sizeof(op) <= size; at += sizeof(op)) {
		memcpy(&op, data + at, sizeof(op));
		step(&run, &op);
	}
	if (run.spent_ns > CPU_NS_MAX)
		fuzz__die("%lu ms of CPU time", (unsigned long)(run.spent_ns / 1000000));
	if (quota__retained_max() > BUDGET_BYTES)
		fuzz__die("%lu bytes kept", (unsigned long)quota__retained_max());
	jit_source__release(run.source);
	if (quota__retained())
		fuzz__die("%lu bytes are not given back", (unsigned long)quota__retained());
	jit_sources__free(run.sources);
	close(run.fd);
	return run.found > 0;
}

/* Writes a seed. If @named is not set, the program has no names at its end, and only its cost is
 * checked. */
static void seed(uint8_t kind, const struct op *ops, size_t n, bool named)
{
	uint8_t bytes[1 + 16 * sizeof(*ops)] = { kind };

	memcpy(bytes + 1, ops, n * sizeof(*ops));
	if (named)
		fuzz__seed(bytes, 1 + n * sizeof(*ops));
	else
		target__run(bytes, 1 + n * sizeof(*ops));
}

void target__seeds(void)
{
	static const struct op plain[] = { { APPEND, 0, 100, 16, 15 }, { LOOK, 2, 1, 0, 0 },
					   { ASK, 0, 100, 16, 0 },     { APPEND, 0, 100, 16, 15 },
					   { LOOK, 0, 1, 0, 0 },       { ASK, 0, 100, 16, 0 },
					   { TRUNCATE, 0, 0, 0, 0 },   { APPEND, 1, 9, 16, 15 },
					   { LOOK, 1, 1, 0, 0 },       { ASK, 1, 9, 16, 0 } };
	static const struct op overlaps[] = { { APPEND, 0, 60000, 1, 60000 },
					      { LOOK, 2, 1, 0, 0 },
					      { ASK, 200, 1000, 1, 0 },
					      { ASK, 100, 60000, 0, 0 } };
	static const struct op moves[] = { { APPEND, 0, 2, 16, 15 },
					   { MOVE, 0, 60000, 0, 65535 },
					   { MOVE, 0, 60000, 1, 65535 },
					   { LOOK, 2, 1, 0, 0 },
					   { ASK, 0, 2, 16, 0 } };
	static const struct op holes[] = { { APPEND, 0, 2, 16, 15 }, { HOLE, 0, 500, 0, 0 },
					   { LOOK, 2, 1, 0, 0 },     { ASK, 0, 2, 16, 0 },
					   { HOLE, 0, 65535, 0, 0 }, { LOOK, 2, 20, 0, 0 } };

	for (uint8_t kind = 0; kind < 2; kind++) {
		seed(kind, plain, ARRAY_SIZE(plain), true);
		seed(kind, holes, ARRAY_SIZE(holes), true);
		seed(kind, overlaps, ARRAY_SIZE(overlaps), true);
	}
	seed(1, moves, ARRAY_SIZE(moves), false);
}
