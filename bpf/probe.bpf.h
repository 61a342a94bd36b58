/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_PROBE_BPF_H
#define BRAID_PROBE_BPF_H

/* Helpers for probe programs: the record of a site, the arguments, the thread's shadow stack. */

#include "bpf/probe_hits.bpf.h"
#include "bpf/probe_rec.h"
#include "bpf/shadow.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space: number of sites; key: attach cookie */
	__type(key, __u32);
	__type(value, struct probe_rec);
} probe_recs __weak SEC(".maps");

/* Returns the record of the site that is hit, and counts the hit. The counts show whether both ends
 * of calls fire. */
static __always_inline const struct probe_rec *probe__rec(struct pt_regs *ctx)
{
	__u32 site = bpf_get_attach_cookie(ctx);
	const struct probe_rec *rec = bpf_map_lookup_elem(&probe_recs, &site);

	if (probes_over)
		return NULL;
	if (!rec)
		count(COUNT_PROBE_UNKNOWN);
	probe__hit(site);
	return rec;
}

/* Returns the value of register @reg. This is a switch, because the verifier allows no computed
 * offset into the registers; the barrier prevents the compiler from computing one. The function is
 * inline, because avoiding calls saves the most time in a probe. */
static __always_inline __u64 probe__reg(struct pt_regs *ctx, __u32 reg)
{
	__u64 value = 0; /* PROBE_REG_NONE */

#define REG(number, field)          \
	case number:                \
		value = ctx->field; \
		barrier_var(value); \
		break
	switch (reg) {
		REG(PROBE_R15, r15);
		REG(PROBE_R14, r14);
		REG(PROBE_R13, r13);
		REG(PROBE_R12, r12);
		REG(PROBE_RBP, rbp);
		REG(PROBE_RBX, rbx);
		REG(PROBE_R11, r11);
		REG(PROBE_R10, r10);
		REG(PROBE_R9, r9);
		REG(PROBE_R8, r8);
		REG(PROBE_RAX, rax);
		REG(PROBE_RCX, rcx);
		REG(PROBE_RDX, rdx);
		REG(PROBE_RSI, rsi);
		REG(PROBE_RDI, rdi);
		REG(PROBE_RIP, rip);
		REG(PROBE_RSP, rsp);
	}
#undef REG
	return value;
}

static __noinline __u64 probe__memory(struct pt_regs *ctx, const struct probe_arg *arg)
{
	__u64 value = 0, size = arg->size, at = probe__reg(ctx, arg->reg) + arg->value;

	at += probe__reg(ctx, arg->index_reg) << (arg->scale_log2 & 3);
	if (size > sizeof(value))
		size = sizeof(value);
	if (bpf_probe_read_user(&value, size, (void *)at))
		count(COUNT_PROBE_READ);
	return value;
}

static __always_inline __u64 probe__arg(struct pt_regs *ctx, const struct probe_arg *arg)
{
	__u32 unused = (64 - 8 * arg->size) & 63;
	__u64 value;

	if (arg->kind == PROBE_ARG_REGISTER)
		value = probe__reg(ctx, arg->reg);
	else if (arg->kind == PROBE_ARG_MEMORY)
		value = probe__memory(ctx, arg);
	else
		return arg->kind == PROBE_ARG_CONSTANT ? arg->value : 0;
	value <<= unused;
	return arg->is_signed ? (__u64)((__s64)value >> unused) : value >> unused;
}

static __always_inline __u64 probe__anchor(struct pt_regs *ctx, const struct probe_rec *rec)
{
	__u64 base = ctx->rsp;

	barrier_var(base); /* else the compiler computes the field's address, which is forbidden */
	if (rec->flags & PROBE_ANCHOR_AT_RBP)
		base = ctx->rbp;
	return base + rec->anchor_offset;
}

static __always_inline __u64 probe__owner(struct pt_regs *ctx, const struct probe_rec *rec)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return SHADOW_OWNER(task->pid, rec->runtime, region__of(task, ctx->rsp));
}

#endif
