/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_PYTHON_H
#define BRAID_PYTHON_H

/* The data about one interpreter build for the CPython walker, shared by the kernel half and user
 * space. All offsets are bytes from the start of the object. */

#include "bpf/c_library.h"

/* The links between the frames of a thread, and to their native frames. */
enum python_chain {
	/* Up to 3.10: frame objects. Each has its own interpreter loop, and none has the loop's
	 * address. */
	PYTHON_CHAIN_OBJECTS,
	/* 3.11: one C frame (_PyCFrame, a local of the loop) for all frames of a loop. */
	PYTHON_CHAIN_CFRAMES,
	/* 3.12: C frames as well. The outermost frame of a loop is a shim, which is also its
	 * local. */
	PYTHON_CHAIN_CFRAME_SHIMS,
	/* From 3.13 on: shims only. */
	PYTHON_CHAIN_SHIMS,
};

/* The unit of python_offsets.frame_instr. */
enum python_instr {
	PYTHON_INSTR_ADDRESS, /* address of a code unit */
	PYTHON_INSTR_BYTES,   /* 32 bits, from the start of the bytecode */
	PYTHON_INSTR_UNITS,   /* 32 bits, in code units of 2 bytes */
};

struct python_offsets {
	__u8 chain; /* enum python_chain */
	__u8 instr; /* enum python_instr */
	/* PyThreadState: frame, cframe or current_frame, depending on the chain */
	__u16 tstate_frame;
	__u16 tstate_thread_id;	    /* pthread_self(), that is the fs base */
	__u16 cframe_current_frame; /* `previous` is the word after it */
	/* PyFrameObject or _PyInterpreterFrame */
	__u16 frame_previous;
	__u16 frame_code;
	__u16 frame_instr; /* the last instruction executed */
	/* A byte. 3.11: is_entry, followed by the owner. Later: PYTHON_OWNER_SHIM or above marks a
	 * shim */
	__u16 frame_owner;
	__u16 frame_bytes; /* one read of this size holds all of the above */
	/* PyCodeObject; one read of PYTHON_CODE_BYTES from code_base holds these */
	__u16 code_base; /* a multiple of 8 */
	__u16 code_first_line;
	__u16 code_file;
	__u16 code_name;
	__u16 code_line_table;
	__u16 code_bytecode; /* offset of the instructions; not read */
	/* PyUnicodeObject: length, hash and state follow the head of all objects */
	__u16 unicode_ascii_data;
	__u16 unicode_compact_data;
	/* For the states of a thread that runs several interpreters. PyThreadState.next is at
	 * PYTHON_TSTATE_NEXT in all versions. */
	__u16 interp_next;
	__u16 interp_threads; /* PyInterpreterState.threads.head or tstate_head */
	__u16 line_format;    /* enum python_line_format; not used by the walker */
	/* The lock of the interpreter */
	__u16 tstate_native_id; /* the thread's id in its own PID namespace; 0: missing */
	__u16 interp_gil;	/* the pointer PyInterpreterState.ceval.gil; 0: in _PyRuntime */
	__u16 object_bytes;	/* sizeof(PyObject): 16, without the GIL 32 */
	__u16 unicode_shift;	/* shift for `state`, so that its bits have the usual places */
	/* Builds without the GIL from 3.14 on, where each thread may run its own copy of the
	 * instructions. A frame has the number of its copy, and a code object has an array {size,
	 * addresses[]} of the copies; 0: none */
	__u16 frame_copy; /* 32 bits */
	__u16 code_copies;
	__u16 tstate_root_cframe; /* outermost C frame of a thread, outside of all loops */
	__u16 code_version;	  /* 32 bits, unique for each code object; 0: none */
};
_Static_assert(sizeof(struct python_offsets) == 56, "python_offsets");

#define PYTHON_CODE_BYTES      128 /* a power of two */
#define PYTHON_TSTATE_NEXT     8
#define PYTHON_TSTATE_INTERP   16
#define PYTHON_OWNER_SHIM      3 /* 3.12, 3.13: FRAME_OWNED_BY_CSTACK; 3.14: ..._BY_INTERPRETER */
#define PYTHON_OWNER_GENERATOR 1 /* 3.11: FRAME_OWNED_BY_GENERATOR */

/* struct _gil_runtime_state, from 3.7 on. A thread that waits for it waits for one of its mutexes
 * and condition variables (Python/ceval_gil.c). */
#define PYTHON_GIL_HOLDER 8  /* last_holder: a PyThreadState, the owner if locked is 1 */
#define PYTHON_GIL_LOCKED 16 /* an int; -1: not created yet */
#define PYTHON_GIL_BYTES  208
/* cond and switch_cond: 48 bytes each, before a mutex of 40 */
#define PYTHON_GIL_CONDS \
	{                \
		32, 120  \
	}

/* PyBytesObject, all versions: after the head of all objects */
#define PYTHON_BYTES_SIZE 0
#define PYTHON_BYTES_DATA 16

/* The place of a thread's PyThreadState. */
enum python_state_kind {
	PYTHON_STATE_KEY,	    /* under the pthread key of a Py_tss_t at state_at */
	PYTHON_STATE_PLAIN_KEY,	    /* 3.6: the key is a plain int; -1: none yet */
	PYTHON_STATE_TLS,	    /* from 3.15 on: at fs base + state_at */
	PYTHON_STATE_TLS_OF_MODULE, /* in libpython: at state_at in tls_module's block */
};

/* The interpreter loop's code: the function, and its cold part. */
#define PYTHON_LOOPS_MAX 2

/* A loop links and fills its C frame within this number of bytes from its start. */
#define PYTHON_LOOP_ENTRY_BYTES 512

struct python_loop {
	__u64 start, bytes;
};

struct python_proc_rec { /* key: address space */
	struct python_offsets offsets;
	__u64 state_at;
	__u64 interpreters; /* address of the pointer to the first interpreter; 0: unknown */
	__u64 gil;	    /* address; 0: unknown or, with interp_gil, not found yet */
	/* Relative to gil. In 3.6 these are variables, which may also be before it. */
	__u64 gil_holder, gil_locked;
	__u32 gil_bytes; /* size of the lock's data */
	__u32 state;	 /* enum python_state_kind */
	__u32 tls_module;
	struct c_library libc;
	__u16 gil_conds[2]; /* its condition variables, relative to gil */
	struct python_loop loops[PYTHON_LOOPS_MAX];
	/* Written by the kernel half: */
	__u32 several;	  /* 1: there are further interpreters */
	__u64 checked_ns; /* time of the last check for them */
	__u64 copies_ns;  /* time of the last check for further copies of CPython */
	__u32 copies;	  /* 1: there are further copies */
	__u32 pad;
	__u64 replaced_ns; /* last replacement of a code object by another one; 0: never */
};
_Static_assert(sizeof(struct python_proc_rec) == 192, "python_proc_rec");

#endif
