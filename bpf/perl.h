/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_PERL_H
#define BRAID_PERL_H

/* Layout of one interpreter build for the Perl walker, shared by the kernel half and user space.
 * All offsets are bytes from the start of the named struct. Constants for all versions from 5.30 to
 * 5.40 are in bpf/perl_code.bpf.h and bpf/perl.bpf.c. */

#include <linux/types.h>

#include "bpf/c_library.h"

struct perl_offsets {
	__u16 si_type;	    /* PERL_SI.si_type */
	__u16 context;	    /* sizeof PERL_CONTEXT */
	__u16 context_sub;  /* PERL_CONTEXT.blk_sub.prevcomppad; after it, .cv. In a blk_eval these
			       two are the fields after retop: .old_namesv is at this offset, too */
	__u16 evals_block;  /* CXp_TRYBLOCK or CXp_EVALBLOCK: a bit of the type */
	__u16 evals_try;    /* CXp_TRY; 0: the version has none */
	__u16 op_entersub;  /* OP_ENTERSUB, */
	__u16 op_nextstate; /* OP_NEXTSTATE, */
	__u16 op_sort;	    /* OP_SORT */
	__u16 op_leave[4];  /* OP_LEAVESUB, OP_RETURN, OP_LEAVETRY, OP_LEAVEEVAL */
	/* A package (an HV) with a name: its struct xpvhv_aux is at `aux` in the body or, if that
	 * is 0, after the array of its buckets. */
	__u16 aux;
	__u16 aux_name, aux_name_count;
	__u16 code_stash; /* struct xpvcv.xcv_stash. The fields after it are the same in all
			     versions */
};
_Static_assert(sizeof(struct perl_offsets) == 32, "perl_offsets");

/* Place of a thread's interpreter. */
enum perl_state_kind {
	PERL_STATE_KEY,	   /* under the pthread key that is an int at state_at */
	PERL_STATE_GLOBAL, /* built without threads: its fields are variables */
};

struct perl_proc_rec { /* key: address space */
	struct perl_offsets offsets;
	__u64 state_at;
	__u64 first_at; /* address of PL_curinterp; 0: unknown */
	/* Fields of the interpreter (intrpvar.h): offsets, or addresses if PERL_STATE_GLOBAL */
	__u64 op, curcop, curstackinfo, comppad, phase;
	__u32 state; /* enum perl_state_kind */
	struct c_library libc;
	/* Set by the kernel half: time when it last found replaced code; 0: never */
	__u64 replaced_ns;
};
_Static_assert(sizeof(struct perl_proc_rec) == 104, "perl_proc_rec");

/* --- code: rec_code_object.table of WALKER_PERL --- */

enum perl_code_kind {
	PERL_CODE_SUB,
	/* The rest have no name of their own, only the file of their code. */
	PERL_CODE_MAIN,
	PERL_CODE_EVAL_BLOCK,
	PERL_CODE_EVAL_TEXT,
	PERL_CODE_REQUIRE,
	PERL_CODE_SORT_BLOCK,
	PERL_CODE_PATTERN, /* (?{ ... }) */
	PERL_CODE_KINDS_N
};

#define PERL_PACKAGE_BYTES 256

struct perl_code_table {
	__u8 kind;	   /* enum perl_code_kind */
	__u8 package_kind; /* as rec_code_object.name_kind; 0: unreadable, or none */
	__u16 package_len;
	char package[PERL_PACKAGE_BYTES];
};
_Static_assert(sizeof(struct perl_code_table) == 260, "perl_code_table");

#endif
