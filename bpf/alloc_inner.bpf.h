/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_ALLOC_INNER_BPF_H
#define BRAID_ALLOC_INNER_BPF_H

#include "bpf/scratch.bpf.h"

#include "bpf/alloc.h"

/* Calls by an allocating function to another one: they are not allocations of the program.
 *
 * Returns are not probed, so a call must prove that it is an inner one. The outer call's return
 * address is still where it was at the entry, and the inner call has one of two forms:
 *
 *   a call   The inner call's return address lies in the outer function, in the last function
 *            found to be inner, or elsewhere in the file of the outer function. In the last case
 *            the inner function is in another file.
 *   a jump   Both have the same stack pointer. The code of the outer function ends by a jump to
 *            one of these functions (core/events/alloc_function.h), and has not jumped yet.
 *
 * A program that calls both functions by turns passes neither test, whatever the content of its
 * stack. */

struct alloc_call {
	__u64 pc, sp; /* at its entry: the function's first byte, and the address of its return
			 address */
	__u32 code;
	__u32 may_jump; /* to another allocating function */
};

struct alloc_outer {
	struct alloc_call call, last; /* `last`: the previous inner call; pc 0: none */
	__u64 caller;		      /* the return address of `call` */
	__u64 bytes;
	__u32 nests;  /* functions count as inner; else only mappings */
	__u32 mapped; /* its mapping has been made */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space: ALLOC_CODES_MAX where it is used */
	__type(key, __u32);
	__type(value, struct alloc_function);
} alloc_codes __weak SEC(".maps");

/* Returns 1 if the outer call is still live, as seen from @sp. */
static __always_inline int alloc_outer__is_live(const struct alloc_outer *outer, __u64 sp,
						__u64 bytes)
{
	__u64 word;

	return outer->call.pc && sp <= outer->call.sp && outer->call.sp - sp <= ALLOC_STACK_BYTES &&
	       bytes >= outer->bytes &&
	       !bpf_probe_read_user(&word, sizeof(word), (void *)outer->call.sp) &&
	       word == outer->caller;
}

static __always_inline const struct alloc_function *alloc_function_of(const struct alloc_call *call)
{
	__u32 code = call->code;

	return call->pc ? bpf_map_lookup_elem(&alloc_codes, &code) : NULL;
}

static __always_inline int alloc_function__has(const struct alloc_function *code,
					       const struct alloc_call *call, __u64 address)
{
	return code && address - call->pc - code->text_from < code->text_bytes;
}

/* Returns 1 if @call makes a call of the function at @pc, which returns to @to. */
static __always_inline int alloc_call__makes(const struct alloc_call *call, __u64 pc, __u64 to)
{
	const struct alloc_function *code = alloc_function_of(call);

	if (!code)
		return 0;
	return (to > call->pc && to - call->pc <= code->bytes) ||
	       (alloc_function__has(code, call, to) && !alloc_function__has(code, call, pc));
}

static __always_inline void alloc_call__set(struct alloc_call *call, const struct pt_regs *ctx,
					    __u64 cookie, const volatile __u64 *arguments)
{
	const struct alloc_function *code;

	call->pc = ctx->rip;
	call->sp = ctx->rsp;
	call->code = ALLOC_FUNCTION(cookie);
	code = alloc_function_of(call);
	call->may_jump =
		code &&
		(code->jumps == ALLOC_JUMPS ||
		 (code->jumps == ALLOC_JUMPS_FOR_NULL && !arguments[ALLOC_FREED(cookie)]) ||
		 (code->jumps == ALLOC_JUMPS_IF_SMALL && arguments[0] <= ALLOC_SMALL_ALIGNMENT));
}

/* Returns 1 if the outer call makes the call of the function at @ctx, of @bytes. */
static __always_inline int alloc_outer__allocated(struct alloc_outer *outer,
						  const struct pt_regs *ctx, __u64 cookie,
						  __u64 bytes, const volatile __u64 *arguments)
{
	const struct alloc_call *before = outer->last.pc ? &outer->last : &outer->call;
	__u64 pc = ctx->rip, sp = ctx->rsp, to;

	if (!outer->nests || pc == outer->call.pc || !alloc_outer__is_live(outer, sp, bytes))
		return 0;
	if ((sp != before->sp || !before->may_jump) &&
	    (sp == outer->call.sp || bpf_probe_read_user(&to, sizeof(to), (void *)sp) ||
	     (!alloc_call__makes(&outer->call, pc, to) &&
	      !alloc_call__makes(&outer->last, pc, to))))
		return 0;
	alloc_call__set(&outer->last, ctx, cookie, arguments);
	return 1;
}

/* Begins a call that is not an inner one. */
static __always_inline void alloc_outer__enter(struct alloc_outer *outer, const struct pt_regs *ctx,
					       __u64 cookie, __u64 bytes,
					       const volatile __u64 *arguments)
{
	outer->call.pc = outer->last.pc = 0;
	if ((!ALLOC_NESTS(cookie) && bytes < ALLOC_MMAPS_BYTES) ||
	    bpf_probe_read_user(&outer->caller, sizeof(outer->caller), (void *)ctx->rsp))
		return;
	outer->bytes = bytes;
	outer->nests = ALLOC_NESTS(cookie);
	outer->mapped = 0;
	alloc_call__set(&outer->call, ctx, cookie, arguments);
}

/* Returns 1 if the outer call made a mapping of @bytes. A call maps once. The C library's function
 * that makes the system call may be in the outer function's file, whatever its caller. So a word
 * after @regs' stack pointer, below the outer call's return address, must be an address in that
 * file. It is the return address of that function, above its saved registers. */
static __always_inline int alloc_outer__mapped(struct alloc_outer *outer,
					       const struct pt_regs *regs, __u64 bytes)
{
	__u64 words[ALLOC_MAPPING_WORDS];
	const struct alloc_function *code;
	int i;

	if (outer->mapped || !alloc_outer__is_live(outer, regs->rsp, bytes) ||
	    bpf_probe_read_user(words, sizeof(words), (void *)regs->rsp))
		return 0;
	code = alloc_function_of(&outer->call);
	for (i = 0; i < ALLOC_MAPPING_WORDS && regs->rsp + i * sizeof(words[0]) < outer->call.sp &&
		    !outer->mapped;
	     i++)
		outer->mapped = alloc_function__has(code, &outer->call, words[i]);
	return outer->mapped;
}

#endif
