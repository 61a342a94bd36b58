/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_PROBE_REC_H
#define BRAID_PROBE_REC_H

/* A probe site as described to the kernel half. A record is found by the site's number, which is
 * the attach cookie (bpf_get_attach_cookie). */

#include <linux/types.h>

#define PROBE_SITES_MAX 4096 /* attached at a time, in all processes */
#define PROBE_ARGS_MAX	7    /* arguments in a record; a site has up to 12 */

enum probe_arg_kind {
	PROBE_ARG_NONE,	    /* absent: reads as 0 */
	PROBE_ARG_CONSTANT, /* value */
	PROBE_ARG_REGISTER, /* reg */
	PROBE_ARG_MEMORY,   /* at reg + value + (index_reg << scale_log2) */
};

/* Position in struct pt_regs of x86-64, in 8-byte words. */
enum probe_reg {
	PROBE_R15,
	PROBE_R14,
	PROBE_R13,
	PROBE_R12,
	PROBE_RBP,
	PROBE_RBX,
	PROBE_R11,
	PROBE_R10,
	PROBE_R9,
	PROBE_R8,
	PROBE_RAX,
	PROBE_RCX,
	PROBE_RDX,
	PROBE_RSI,
	PROBE_RDI,
	PROBE_RIP = 16,	      /* 15: orig_ax */
	PROBE_RSP = 19,	      /* 17: cs, 18: flags */
	PROBE_REG_NONE = 255, /* no base, no index */
};

/* An argument. The value has `size` bytes (1, 2, 4 or 8), and is read little-endian from the low
 * bytes of the register or from memory. It is extended to 64 bits by sign or by zeros. */
struct probe_arg {
	__u8 kind;	 /* enum probe_arg_kind */
	__u8 reg;	 /* enum probe_reg; MEMORY: the base, or PROBE_REG_NONE */
	__u8 index_reg;	 /* enum probe_reg; PROBE_REG_NONE: no index */
	__u8 scale_log2; /* 0 to 3 */
	__u8 size;
	__u8 is_signed;
	__u8 pad[2];
	__s64 value; /* the constant, or the offset from the base */
};
_Static_assert(sizeof(struct probe_arg) == 16, "probe_arg");

enum probe_role { PROBE_ENTRY, PROBE_RETURN, PROBE_OTHER };

struct probe_rec {
	__u32 role;    /* enum probe_role */
	__u32 runtime; /* slot of the runtime, as in bpf/shared.h */
	/* Stack pointer at the site + anchor_offset lies in the native frame that runs the probed
	 * function (design fact 5). */
	__s32 anchor_offset;
	__u32 n_args;
	struct probe_arg args[PROBE_ARGS_MAX];
	__u32 space; /* address space of the probed site */
	__u32 flags;
	__u64 since_ns; /* CLOCK_MONOTONIC: all calls since then are seen; 0: still unknown */
};
_Static_assert(sizeof(struct probe_rec) == 144, "probe_rec");

/* probe_rec.flags */
enum {
	/* No two live calls of the probed functions have the same anchor. */
	PROBE_OWN_ANCHOR = 1,
	/* anchor_offset counts from the frame pointer, not from the stack pointer. */
	PROBE_ANCHOR_AT_RBP = 2,
	/* Its call may have been in any native frame below: the site does not determine the
	 * anchor. */
	PROBE_UNWINDS = 4,
	/* The arguments lie one after the other in memory, 8 bytes apart. */
	PROBE_ARGS_IN_ROW = 8,
	PROBE_TAKEN = 16, /* the record is in use */
};

#endif
