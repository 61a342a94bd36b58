// SPDX-License-Identifier: GPL-2.0
#include "bpf/outstanding.bpf.h"

/* The event outstanding: returns of allocating calls, and functions that free. */

const volatile __u32 cfg_outstanding = 0;

/* Set before the probes are detached, so that the event ends at one moment. */
__u32 allocs_over = 0;

/* Unique links: those of block I/O begin at 1. */
__u64 last_live_alloc = 1ULL << 62;

/* Returns the address that @call has allocated; 0: none. */
static __always_inline __u64 live_alloc__returned(const struct live_alloc_call *call, __u64 result)
{
	__u64 address;

	if (!call->out)
		return result;
	if (result || bpf_probe_read_user(&address, sizeof(address), (void *)call->out))
		return 0;
	return address;
}

/* Runs at a `ret`, after it at the return address, or at the jump that ends the call. */
SEC("?uprobe")
int outstanding_on_return(struct pt_regs *ctx)
{
	volatile __u64 results[2] = { ctx->rax, ctx->rdi };
	struct live_alloc_call *call =
		bpf_task_storage_get(&live_alloc_calls, bpf_get_current_task_btf(), 0, 0);
	struct live_alloc_key key;
	__u64 address;

	if (!call || !call->sp || (ctx->rsp != call->sp && ctx->rsp != call->sp + sizeof(__u64)))
		return 0;
	call->sp = 0;
	address = live_alloc__returned(call, results[ALLOC_PASSES(bpf_get_attach_cookie(ctx))]);
	if (call->old.link && !address && call->bytes)
		live_alloc__add(&call->moved, &call->old); /* the call failed */
	else if (call->old.link)
		live_alloc__drop(call->old.link);
	if (!address || !live_alloc__key(&key, address)) {
		if (call->new.link)
			live_alloc__drop(call->new.link);
		return 0;
	}
	live_alloc__replace(&key);
	if (call->new.link)
		live_alloc__add(&key, &call->new);
	return 0;
}

SEC("?uprobe")
int outstanding_on_free(struct pt_regs *ctx)
{
	/* by number of the register */
	volatile __u64 arguments[8] = { ctx->rdi, ctx->rsi, ctx->rdx, ctx->rcx };
	__u64 address = arguments[ALLOC_FREED(bpf_get_attach_cookie(ctx))];

	if (address)
		live_alloc__freed(address);
	return 0;
}
