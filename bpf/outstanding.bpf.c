// SPDX-License-Identifier: GPL-2.0
#include "bpf/outstanding.bpf.h"

/* The event outstanding: returns of allocating calls, and functions that free. */

const volatile __u32 cfg_outstanding = 0;

/* Unique links: those of block I/O begin at 1. */
__u64 last_held = 1ULL << 62;

/* Returns the address that @call has allocated; 0: none. */
static __always_inline __u64 held__returned(const struct held_call *call, __u64 result)
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
	struct held_call *call =
		bpf_task_storage_get(&held_calls, bpf_get_current_task_btf(), 0, 0);
	struct held_rec old;
	struct held_key key;
	__u64 address;

	if (!call || !call->sp || (ctx->rsp != call->sp && ctx->rsp != call->sp + sizeof(__u64)))
		return 0;
	call->sp = 0;
	address = held__returned(call, results[ALLOC_PASSES(bpf_get_attach_cookie(ctx))]);
	if (call->old.link && !address && call->bytes)
		held__note(&call->moved, &call->old); /* the call failed */
	else if (call->old.link)
		held__drop(call->old.link);
	if (!address || !held__key(&key, address)) {
		if (call->new.link)
			held__drop(call->new.link);
		return 0;
	}
	if (held__take(&key, &old)) {
		count(COUNT_HELD_REUSED);
		held__drop(old.link);
	}
	if (call->new.link)
		held__note(&key, &call->new);
	return 0;
}

SEC("?uprobe")
int outstanding_on_free(struct pt_regs *ctx)
{
	/* by number of the register */
	volatile __u64 arguments[8] = { ctx->rdi, ctx->rsi, ctx->rdx, ctx->rcx };
	__u64 address = arguments[ALLOC_FREED(bpf_get_attach_cookie(ctx))];
	struct held_rec rec;
	struct held_key key;

	if (address && held__key(&key, address) && held__take(&key, &rec))
		held__drop(rec.link);
	return 0;
}
