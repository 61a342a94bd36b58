/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_NODE_H
#define BRAID_NODE_H

/* V8: the interface between the kernel half and user space. */

#include <linux/types.h>

/* Words of a JavaScript frame, by their distance below its frame pointer: off_fp_* of V8's
 * constants, in all versions that have a walker. */
#define NODE_FP_CONTEXT	    8 /* if this is a Smi, it is the kind of the frame instead */
#define NODE_FP_FUNCTION    16
#define NODE_FP_BYTECODES   32 /* BytecodeArray of code that is not optimized */
#define NODE_FP_BYTECODE_AT 40 /* offset in the bytecodes for interpreted code, a Smi */
#define NODE_FP_WORDS	    5

#define NODE_SFI_BYTES	96 /* bytes of a SharedFunctionInfo in one read, with all fields below */
#define NODE_CODE_BYTES 80 /* bytes of a Code in one read, likewise */

/* The low bits of V8's words: a Smi ends with 0, a pointer with 1, a weak one with 3. */
#define NODE_TAG	  1
#define NODE_TAG_MASK	  3
#define NODE_IS_SMI(word) (!((word)&1))
#define NODE_SMI(word)	  ((__u32)((word) >> 32))

/* Code begins at a multiple of this (kCodeAlignment). */
#define NODE_CODE_ALIGNMENT 64

/* Places of the texts that name a function. Bytes from the start of an object, except for words of
 * a ScopeInfo, which are numbered from its second one on. */
struct node_text_layout {
	__u16 first_nonstring, representation_mask, one_byte, cons; /* bits of a string's type */
	__u16 string_length, string_chars, cons_first, cons_second;
	__u16 type_scope_info, scope_n_locals, scope_variable;
	__u16 scope_module; /* the scope type of modules */
	__u16 scope_flags_is_smi;
	__u16 script_name;
	__u16 thin, thin_actual; /* type of a thin string; offset of the other string with its
				    characters */
};

/* ScopeFlags, since V8 9.5 to 14.1 (scope-info.tq). */
#define NODE_SCOPE_TYPE(flags)	      ((flags)&0xf)
#define NODE_SCOPE_HAS_CLASS_VARIABLE (1U << 10)
#define NODE_SCOPE_FUNCTION_VARIABLE  (3U << 12) /* 0: the function has no name */
#define NODE_SCOPE_HAS_INFERRED_NAME  (1U << 14)
/* kScopeInfoMaxInlinedLocalNamesSize: more names are one word */
#define NODE_SCOPE_INLINED_LOCALS_MAX 75

/* Returns the index of the word with the function's name in a ScopeInfo with @n locals. An inferred
 * name is in the word after it. */
static inline __attribute__((always_inline)) __u64
node_scope__name(const struct node_text_layout *layout, __u32 flags, __u32 n)
{
	__u64 name =
		layout->scope_variable + (__u64)n + (n < NODE_SCOPE_INLINED_LOCALS_MAX ? n : 1);

	if (NODE_SCOPE_TYPE(flags) == layout->scope_module)
		name++;
	return name + (flags & NODE_SCOPE_HAS_CLASS_VARIABLE ? 1 : 0);
}

static inline __attribute__((always_inline)) __u64 node_hash__add(__u64 hash, __u64 word)
{
	return (hash ^ word) * 0x9e3779b97f4a7c15ULL + (hash >> 29); /* 2^64 / golden ratio */
}

#define NODE_TEXT_CHARS 96 /* characters of a string that are in the hash of texts */
#define NODE_TEXT_PARTS 8  /* pending parts of a string; a left-deep tree needs one per level */
#define NODE_TEXT_STEPS 16

/* One process; key: address space. Offsets in bytes from the start of an object, whose first word
 * is its Map. */
struct node_proc_rec {
	__u16 map_type;	       /* Map: u16, the type of all objects with this Map */
	__u16 function_shared; /* JSFunction: its SharedFunctionInfo */
	__u16 sfi_data;	       /* SharedFunctionInfo: a Smi in those of builtins */
	__u16 sfi_name;	       /* SharedFunctionInfo: a String or a ScopeInfo */
	__u16 sfi_script;
	__u16 sfi_literal;		/* i32: number of the function in its script */
	__u16 script_id, script_source; /* Script: a Smi that no other Script gets, and a String */
	__u16 stream_header; /* bytes before the instructions in the object that holds them: up to
				V8 10 the Code itself, since then an InstructionStream */
	__u16 stream_code;   /* offset of the Code in that object; 0: the object is the Code */
	__u16 code_start;    /* Code: address of the instructions; 0: they follow its header */
	__u16 code_size;     /* Code: i32, bytes of the instructions */
	__u16 code_deopt;    /* Code: the data from which it was made, or to which it refers */
	__u16 code_flags;    /* Code: u32; its kind is in the bits of kind_mask */
	__u16 kind_mask, kind_baseline; /* this kind, and all above, contain JavaScript */
	/* Types of objects. */
	__u16 type_map, type_sfi, type_stream, type_bytecodes, type_script;
	/* Link-time addresses of V8's own compiled code, the builtin functions and the interpreter;
	 * blob_bytes 0: unknown. */
	__u64 blob_start, blob_bytes;
	struct node_text_layout text;
	__u32 pad;
	__u64 replaced_ns; /* time when a frame last had another function than before; 0: never */
};

/* rec_code_object.table_format */
enum {
	NODE_FUNCTION, /* index: offset of the bytecode from the frame, or NODE_NO_OFFSET */
	NODE_CODE,     /* index: offset of the instruction in its code */
	NODE_STUB,     /* V8's own code that it makes for the program; index: the frame's type */
	NODE_UNKNOWN,  /* a function that is unreadable */
	NODE_BUILTIN,  /* a function of V8's own, identified by its symbol: never announced */
};
#define NODE_NO_OFFSET 0xffffffffU

/* Identifies a function. All addresses are tagged, as in V8. V8 moves objects, and other objects
 * then get the same addresses. The garbage collector soon reuses the addresses of a function, its
 * name and its script for those of another one. But the number of a script is unique, and so is the
 * number of a function within its script. */
struct node_function_id {
	__u64 sfi;
	__u64 name, script;	 /* values of its fields */
	__u64 script_id, source; /* values of the script's fields; 0: there is no script */
	__u64 texts;		 /* hash of its name and the script's (bpf/node_text.bpf.h) */
	__u32 literal;		 /* number in the script */
	__u32 pad;
};

/* The code to which a number belongs. It follows the header of rec_code_object, in `name`. Data
 * that is read at these addresses later is valid if all these words are unchanged. */
struct node_code {
	struct node_function_id function;
	__u64 code;  /* NODE_CODE: the Code */
	__u64 deopt; /* its field code_deopt */
	__u64 start; /* address of its instructions */
	__u32 size;  /* bytes of its instructions */
	__u32 space;
};

#endif
