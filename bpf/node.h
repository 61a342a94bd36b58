/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_NODE_H
#define BRAID_NODE_H

/* V8: what crosses between the halves. */

#include <linux/types.h>

/* Words of a frame of JavaScript, below its frame pointer: off_fp_* of V8's constants, in all
 * versions that have a walker. */
#define NODE_FP_CONTEXT	    8 /* a Smi: what kind of frame it is instead */
#define NODE_FP_FUNCTION    16
#define NODE_FP_BYTECODES   32 /* BytecodeArray of code that is not optimized */
#define NODE_FP_BYTECODE_AT 40 /* of interpreted code, a Smi */
#define NODE_FP_WORDS	    5

#define NODE_SFI_BYTES	96 /* of a SharedFunctionInfo, read at once; all fields below lie in it */
#define NODE_CODE_BYTES 80 /* the same of a Code */

/* The low bits of V8's words: a Smi ends with 0, a pointer with 1, a weak one with 3. */
#define NODE_TAG	  1
#define NODE_TAG_MASK	  3
#define NODE_IS_SMI(word) (!((word)&1))
#define NODE_SMI(word)	  ((__u32)((word) >> 32))

/* Code begins at a multiple of this (kCodeAlignment). */
#define NODE_CODE_ALIGNMENT 64

/* Of one process; key: address space. Offsets in bytes from the start of an object, whose first
 * word is its Map. */
struct node_proc_rec {
	__u16 map_type;	       /* of Map: u16, the type of the objects that have it */
	__u16 function_shared; /* of JSFunction: its SharedFunctionInfo */
	__u16 sfi_data;	       /* of SharedFunctionInfo: a Smi in those of builtins */
	__u16 sfi_name;	       /* of the same: a String or a ScopeInfo */
	__u16 sfi_script;
	__u16 stream_header; /* what precedes the instructions in the object that holds them: up to
			      * V8 10 the Code itself, since then an InstructionStream */
	__u16 stream_code;   /* of that: its Code; 0: it is the Code */
	__u16 code_start;    /* of Code: address of the instructions; 0: they follow its header */
	__u16 code_size;     /* of Code: i32, of the instructions */
	__u16 code_flags;    /* of Code: u32; its kind is in the bits of kind_mask */
	__u16 kind_mask, kind_baseline; /* this kind, and all above, have JavaScript in them */
	/* Types of objects. */
	__u16 type_map, type_sfi, type_stream, type_bytecodes;
	/* Link-time addresses of the code that V8 has compiled for itself, the builtin functions
	 * and the interpreter; no bytes: not known. */
	__u64 blob_start, blob_bytes;
};

/* rec_code.table_format */
enum {
	NODE_FUNCTION, /* index: of the bytecode as the frame has it, or NODE_NO_OFFSET */
	NODE_CODE,     /* index: of the instruction in its code */
	NODE_STUB,     /* code of V8's own that the program made it make; index: the frame's type */
	NODE_UNKNOWN,  /* a function that cannot be read */
	NODE_BUILTIN,  /* one of V8's own, which is known by its symbol: never announced */
};
#define NODE_NO_OFFSET 0xffffffffU

/* What a number stands for: follows the header of rec_code, in `name`. All addresses are tagged, as
 * V8 has them. Objects move, and others take their places: what is read there later is believed if
 * these words are still what they were. */
struct node_code {
	__u64 sfi;
	__u64 name, script; /* what is in its fields */
	__u64 code;	    /* NODE_CODE: the Code ... */
	__u64 start;	    /* ... where its instructions begin ... */
	__u32 size;	    /* ... and their bytes */
	__u32 space;
};

#endif
