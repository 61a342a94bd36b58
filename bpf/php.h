/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_PHP_H
#define BRAID_PHP_H

/* Layout of one build for the PHP walker, shared by the kernel half and user space. Constants for
 * all versions from 8.0 to 8.5 are in bpf/php_code.bpf.h and bpf/php.bpf.c. */

#include <linux/types.h>

#include "bpf/c_library.h"
#include "bpf/unwind_rule.h"

struct php_offsets {
	/* zend_executor_globals, zend_globals.h */
	__u16 current;		/* current_execute_data */
	__u16 exception_opline; /* opline_before_exception; 0: unknown */
	__u16 fiber;		/* current_fiber_context; 0: there are no fibers */
	/* zend_op_array, zend_compile.h */
	__u16 last;
	__u16 opcodes;
	__u16 filename;
	/* zend_internal_function */
	__u16 handler;
	/* zend_generator, zend_generators.h; 0: unknown */
	__u16 generator_parent; /* node.parent */
	__u16 generator_fake;	/* execute_fake */
	__u16 pad[3];
};
_Static_assert(sizeof(struct php_offsets) == 24, "php_offsets");

/* Code of execute_ex: its hot part and its cold one. */
#define PHP_LOOPS_MAX 2

struct php_proc_rec { /* key: address space */
	struct php_offsets offsets;
	/* Without thread safety, key_at is 0 and globals is the address of executor_globals. With
	 * thread safety, each thread has them in a block. Then key_at is the address of the
	 * block's thread key, and globals is the address of their offset in the block. */
	__u64 globals;
	__u64 key_at;
	__u64 loops[PHP_LOOPS_MAX][2]; /* from, to; 0, 0: none */
	/* Unwind rule of execute_ex while it runs a script. Code that opcache has compiled uses the
	 * frame of execute_ex, so the rule holds for it, too. UNWIND_NONE: unknown. */
	struct unwind_rule left;
	/* Built by clang, execute_ex calls operations and compiled code instead of jumping to them.
	 * Address to which these return; 0: execute_ex jumps. */
	__u64 returns;
	/* Addresses of the variables zend_flf_functions and zend_flf_handlers (8.4 and later):
	 * functions that are called without a frame, by number. 0: the version has none. */
	__u64 frameless, frameless_handlers;
	struct c_library libc;
	__u32 pad;
	/* Set by the kernel half: time when it last found replaced code; 0: never */
	__u64 replaced_ns;
};
_Static_assert(sizeof(struct php_proc_rec) == 128, "php_proc_rec");

/* --- code: rec_code_object.table of WALKER_PHP --- */

enum php_code_kind {
	PHP_CODE_FUNCTION, /* or method, or closure */
	PHP_CODE_NATIVE,   /* likewise, but written in C */
	/* likewise, may be called without a frame: it runs if its C function is on the native
	 * stack */
	PHP_CODE_FRAMELESS,
	/* The rest have no name of their own, only the file of their code. */
	PHP_CODE_MAIN,
	PHP_CODE_EVAL,
	PHP_CODE_INCLUDE,
	PHP_CODE_INCLUDE_ONCE,
	PHP_CODE_REQUIRE,
	PHP_CODE_REQUIRE_ONCE,
	PHP_CODE_KINDS_N
};

#define PHP_CLASS_BYTES 256

struct php_code_table {
	__u64 handler;	 /* address of the C function, for functions written in C */
	__u8 kind;	 /* enum php_code_kind */
	__u8 class_kind; /* as rec_code_object.name_kind; 0: unreadable, or none */
	__u16 class_len;
	char class_name[PHP_CLASS_BYTES];
	__u32 is_trampoline; /* the C function serves other functions, too, of any name */
};
_Static_assert(sizeof(struct php_code_table) == 272, "php_code_table");

#endif
