/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_UNIT_JVM_CODE_H
#define BRAID_TESTS_UNIT_JVM_CODE_H

/* A made-up code cache of HotSpot, with compiled methods, stubs and their stack. */

#include "core/base/util.h"
#include "tests/tap.h"

#include "tests/unit/synthetic.h"

#include "bpf/jvm_unwind.bpf.c"

#define HEAP	       0x500000ULL /* JIT code of synthetic.h; its first page is segment 0 */
#define HEAP_BYTES     0x40000
#define SEGMENT_LOG2   7
#define SEGMENTS       (HEAP_BYTES >> SEGMENT_LOG2)
#define SEGMAP	       0x700000ULL
#define TEXTS	       0x710000ULL
#define INTERPRETER    0x720000ULL
#define METHOD	       TEXTS /* any readable address */
#define HEAP_BLOCK     16
#define CODE_AT	       JVM_BLOB_BYTES /* bytes from a blob's start to its code */
#define FRAME_COMPLETE 12
#define X	       NATIVE_EXACT

static uint8_t heap[HEAP_BYTES + JVM_BLOB_BYTES], segmap[SEGMENTS];
static char texts[64] = "nmethod";
static struct jvm_proc_rec *jvm;

/* Offsets that no version of HotSpot has. */
static const struct jvm_offsets offsets = { .blob_name = 8,
					    .blob_frame_size = 16,
					    .blob_frame_complete = 20,
					    .blob_code = 24,
					    .nmethod_method = 32,
					    .nmethod_compile_id = 40,
					    .heap_block = HEAP_BLOCK };

static void open_jvm(void)
{
	uint32_t space = SPACE;
	struct jvm_proc_rec rec = { .offsets = offsets,
				    .n_heaps = 2,
				    .heaps = { { HEAP, HEAP + HEAP_BYTES, SEGMAP, SEGMENT_LOG2, 0 },
					       { INTERPRETER, INTERPRETER + 0x1000, SEGMAP,
						 SEGMENT_LOG2, 0 } },
				    .interpreter_start = INTERPRETER,
				    .interpreter_end = INTERPRETER + 0x1000 };

	HOST_ARRAY(jvm_states, 1);
	HOST_HASH(jvm_procs, 4);
	HOST_HASH(jvm_codes, 64);
	bpf_map_update_elem(&jvm_procs, &space, &rec, 0);
	jvm = bpf_map_lookup_elem(&jvm_procs, &space);
	host__set(&cfg_tableless, 1U << WALKER_JVM);
}

static void reset_jvm(void)
{
	reset();
	memset(heap, 0, sizeof(heap));
	memset(segmap, 0xff, sizeof(segmap));
	host.n_ranges = 0;
	host__add_range(STACK, stack, sizeof(stack));
	host__add_range(HEAP, heap, sizeof(heap));
	host__add_range(SEGMAP, segmap, sizeof(segmap));
	host__add_range(TEXTS, texts, sizeof(texts));
	sampler__mappings()->lists[0].n = 3;
	sampler__mappings()->lists[0].mappings[1].end = HEAP + HEAP_BYTES;
	sampler__mappings()->lists[0].mappings[2] =
		(struct mapping_rec) { .start = INTERPRETER, .end = INTERPRETER + 0x1000 };
	jvm->offsets = offsets;
	jvm->n_heaps = 2;
}

/* Writes a blob of @n segments from segment @first on, whose frames have @words words. Returns the
 * address of its code. */
static uint64_t put_blob(uint32_t first, uint32_t n, bool is_nmethod, uint32_t words)
{
	uint8_t *blob = heap + (first << SEGMENT_LOG2) + HEAP_BLOCK;
	uint64_t address = HEAP + (first << SEGMENT_LOG2) + HEAP_BLOCK;
	uint64_t name = TEXTS + (is_nmethod ? 0 : 32), code = address + CODE_AT;
	uint32_t complete = FRAME_COMPLETE;

	memcpy(blob + offsets.blob_name, &name, 8);
	memcpy(blob + offsets.blob_frame_size, &words, 4);
	memcpy(blob + offsets.blob_frame_complete, &complete, 4);
	memcpy(blob + offsets.blob_code, &code, 8);
	for (uint32_t i = 0; i < n; i++) /* as CodeHeap::mark_segmap_as_used */
		segmap[first + i] = i < 0xfe ? i : 1 + (i - 0xfe) % 0xfd;
	return code;
}

static void put_code(uint64_t at, const char *bytes, size_t n)
{
	memcpy(heap + (at - HEAP), bytes, n);
}

static void put_call(uint64_t at, uint64_t target)
{
	int32_t distance = target - (at + 5);

	put_code(at, "\xe8", 1);
	put_code(at + 1, (const char *)&distance, sizeof(distance));
}

/* The stack of all tests: the interrupted method, of 6 words; its caller, of 10; a stub with a
 * frame pointer (the call stub); native code. The first frame ends at word 6. */
static uint64_t callee, caller, stub;

static void set_callers(void)
{
	reset_jvm();
	callee = put_blob(0, 20, true, 6);
	caller = put_blob(20, 30, true, 10);
	stub = put_blob(50, 60, false, 0);
	jvm->call_stub_return = stub + 50;
	put_call(caller + 95, callee);
	stack[5] = caller + 100;
	stack[4] = 0xbad; /* compiled code uses rbp for any value */
	stack[15] = stub + 50;
	stack[14] = AT(30);
	stack[31] = PC(0);
	stack[30] = AT(50);
	regs[UNWIND_REG_PC] = callee + 64;
	regs[UNWIND_REG_RBP] = 0xbad0;
}

static inline bool has_callers(void)
{
	return has_frame(1, caller + 100, AT(16)) && has_frame(2, stub + 50, AT(32)) &&
	       has_frame(3, PC(0), AT(32)) && host.sample.head.flags & SAMPLE_COMPLETE;
}

#define INFERRED(pc) ((pc) | (uint64_t)EVIDENCE_INFERRED << NATIVE_EVIDENCE_SHIFT)
#define FAR_CALL     13 /* bytes of `mov $imm64,%r10; call *%r10` */

static inline void put_far_call(uint64_t at, uint64_t target)
{
	put_code(at, "\x49\xba", 2);
	put_code(at + 2, (const char *)&target, sizeof(target));
	put_code(at + 10, "\x41\xff\xd2", 3);
}

/* Writes the jump of compiled code to an interpreted method. */
static void put_jump_with_method(uint64_t at, uint64_t target)
{
	put_code(at, "\x48\xbb", 2);
	put_call(at + 10, target);
	put_code(at + 10, "\xe9", 1);
}

#endif
