// SPDX-License-Identifier: GPL-2.0-or-later
/* A waiting fiber has its own execution context and machine stack, with the registers on top
 * that coroutine_transfer has pushed (coroutine/amd64/Context.S). The walker gets a patched
 * memory in which the fiber's thread runs this fiber. */
#include "runtimes/ruby/ruby_fibers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/unwind_rule.h"
#include "core/base/util.h"
#include "runtimes/ruby/ruby_heap.h"
#include "runtimes/ruby/ruby_threads.h"

#define READS_MAX  2000000 /* limit for one list; about 0.5 us each, 4 us for a page of the heap */
#define FIBERS_MAX 100000
#define CHAIN_MAX  16 /* FIBERS_MAX in bpf/ruby.bpf.c */
#define WORD	   8

/* Bytes that a build may have in rb_fiber_t before its prev: FIBER_JMP_BUF in bpf/ruby.bpf.c. */
static const uint16_t jmp_bufs[] = { 0, 160 };

#define SUSPENDED   2 /* enum fiber_status, cont.c */
#define STATUS_MASK 3

/* Limit for the distance between a fiber's VM stack and its stack pointer. Both are in one piece
 * of memory, about a megabyte by default. */
#define STACK_BYTES_MAX (1ULL << 30)

/* The words that coroutine_transfer has pushed: r15, r14, r13, r12, rbx, rbp, the return
 * address. */
#define SAVED_WORDS 7

#define DURING_GC_BIT 5 /* bpf/ruby.bpf.c */

struct search {
	struct ruby_reader reader;
	uint64_t vm, default_fs_base, space;
	runtime_task_fn on_task;
	void *ctx;
	unsigned left;
};

struct fiber {
	uint64_t at, thread, prev_at;
	uint64_t stack_pointer;
};

/* Reads a fiber. Returns false if its other fields are inconsistent. */
static bool read_fiber(struct search *search, uint64_t at, struct fiber *ret)
{
	const struct ruby_thread_offsets *threads = &search->reader.threads;
	const struct ruby_offsets *offsets = &search->reader.rec.offsets;
	uint64_t ec = at + offsets->fiber_ec, stack = ruby_reader__word(&search->reader, ec);

	ret->at = at;
	ret->thread = ruby_reader__word(&search->reader, ec + offsets->ec_thread);
	if (!stack || !ruby_threads__is_one(&search->reader, search->vm, ret->thread))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(jmp_bufs); i++) {
		ret->prev_at = at + offsets->fiber_prev + jmp_bufs[i];
		ret->stack_pointer =
			ruby_reader__word(&search->reader, ret->prev_at + threads->fiber_context);
		if ((ruby_reader__word(&search->reader, ret->prev_at + threads->fiber_status) &
		     STATUS_MASK) == SUSPENDED &&
		    ruby_value__is_object(ret->stack_pointer) &&
		    max_of(ret->stack_pointer, stack) - min_of(ret->stack_pointer, stack) <
			    STACK_BYTES_MAX)
			return true;
	}
	return false;
}

/* Returns true if the thread runs this fiber, or one that it has resumed. The walker finds these
 * frames itself. */
static bool is_shown(struct search *search, const struct fiber *fiber)
{
	const struct ruby_offsets *offsets = &search->reader.rec.offsets;
	uint64_t ec = ruby_reader__word(&search->reader, fiber->thread + offsets->thread_ec);
	uint64_t at = ec - offsets->fiber_ec, into = fiber->prev_at - fiber->at;

	for (int i = 0; i < CHAIN_MAX && at; i++) {
		if (at == fiber->at)
			return true;
		at = ruby_reader__word(&search->reader, at + into);
	}
	return false;
}

static size_t patch(struct search *search, const struct fiber *fiber, uint64_t fs_base,
		    struct memory_patch patches[3])
{
	const struct ruby_proc_rec *rec = &search->reader.rec;
	uint64_t ec = fiber->at + rec->offsets.fiber_ec, block = fs_base, flags;
	size_t n = 0;

	patches[n++] = (struct memory_patch) { fiber->thread + rec->offsets.thread_ec, ec };
	if (rec->state == RUBY_STATE_TLS_OF_MODULE) /* bpf/thread_local.bpf.h */
		block = ruby_reader__word(&search->reader,
					  ruby_reader__word(&search->reader, fs_base + WORD) +
						  (rec->libc.values ? WORD : 2 * WORD) *
							  rec->tls_module);
	if (rec->state != RUBY_STATE_KEY)
		patches[n++] = (struct memory_patch) { block + rec->state_at, ec };
	/* The fiber does not collect garbage, whatever its thread does now. */
	flags = search->space + rec->offsets.objspace_flags;
	patches[n++] = (struct memory_patch) { flags, ruby_reader__word(&search->reader, flags) &
							      ~(1ULL << DURING_GC_BIT) };
	return n;
}

static bool read_registers(struct search *search, const struct fiber *fiber,
			   uint64_t ret[UNWIND_REGS])
{
	enum { R15, R14, R13, R12, RBX, RBP, RETURN };
	uint64_t saved[SAVED_WORDS];

	memset(ret, 0, UNWIND_REGS * sizeof(*ret));
	if (!ruby_reader__read(&search->reader, fiber->stack_pointer, saved, sizeof(saved)))
		return false;
	for (int i = 0; i < 4; i++)
		ret[12 + i] = saved[R12 - i];
	ret[UNWIND_REG_RBX] = saved[RBX];
	ret[UNWIND_REG_RBP] = saved[RBP];
	ret[UNWIND_REG_PC] = saved[RETURN];
	ret[UNWIND_REG_RSP] = fiber->stack_pointer + sizeof(saved);
	return true;
}

static int on_fiber(void *ctx, uint64_t object, uint64_t data)
{
	struct search *search = ctx;
	uint64_t regs[UNWIND_REGS], fs_base;
	struct memory_patch patches[3];
	struct fiber fiber;
	bool has_regs;
	char *name;
	int ret;

	(void)object;
	if (!search->left || !read_fiber(search, data, &fiber) || is_shown(search, &fiber))
		return 0;
	search->left--;
	fs_base = ruby_threads__fs_base(&search->reader, fiber.thread) ?: search->default_fs_base;
	has_regs = read_registers(search, &fiber, regs);
	name = ruby_proc__place(&search->reader,
				ruby_reader__word(&search->reader, fiber.prev_at - WORD), true);
	ret = search->on_task(
		search->ctx,
		&(struct runtime_task) { .name = name ?: "",
					 .state = "suspended",
					 .tid = ruby_threads__tid(&search->reader, fiber.thread),
					 .fs_base = fs_base,
					 .regs = has_regs ? regs : NULL,
					 .has_native_frames = has_regs,
					 .patches = patches,
					 .n_patches = patch(search, &fiber, fs_base, patches) });
	free(name);
	return ret;
}

int ruby_fibers__list(const struct ruby_reader *process, runtime_task_fn on_task, void *ctx,
		      bool *ret_is_whole)
{
	struct search search = {
		.reader = *process, .on_task = on_task, .ctx = ctx, .left = FIBERS_MAX
	};
	int ret;

	search.reader.reads_left = READS_MAX;
	search.vm = ruby_threads__vm(&search.reader);
	*ret_is_whole = false;
	if (!search.vm)
		return 0;
	search.default_fs_base = ruby_threads__fs_base(
		&search.reader, ruby_threads__first(&search.reader, search.vm));
	search.space =
		ruby_reader__word(&search.reader, search.vm + process->rec.offsets.vm_objspace);
	ret = ruby_heap__each(&search.reader, search.vm, "fiber", on_fiber, &search, ret_is_whole);
	*ret_is_whole &= search.left > 0;
	return ret;
}
