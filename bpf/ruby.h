/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_RUBY_H
#define BRAID_RUBY_H

/* The CRuby walker's description of one interpreter build, shared by the kernel half and user
 * space. All offsets are bytes from the start of the named struct. Offsets that are equal from 2.7
 * to 4.0 are constants in bpf/ruby_code.bpf.h. */

#include "bpf/c_library.h"

struct ruby_offsets {
	__u16 ec_thread;     /* rb_execution_context_t.thread_ptr */
	__u16 thread_ec;     /* rb_thread_t.ec */
	__u16 thread_native; /* 2.7: rb_thread_t.thread_id, pthread_self(); else 0 */
	__u16 thread_vm;     /* rb_thread_t.vm */
	__u16 vm_objspace;   /* rb_vm_t.objspace; 3.4: .gc.objspace */
	__u16 objspace_flags;
	__u16 cfp_size; /* sizeof rb_control_frame_t */
	/* struct rb_iseq_constant_body; location is at 64 in all versions */
	__u16 body_first_line; /* location.first_lineno */
	__u16 body_entries;    /* insns_info.body */
	__u16 body_n_entries;  /* insns_info.size, 32 bits */
	__u16 body_positions;  /* insns_info.succ_index_table */
	__u16 body_local;      /* local_iseq */
	__u16 entry_size;      /* sizeof struct iseq_insn_info_entry; its line is the first int */
	__u16 string_embedded; /* RString: offset of embedded bytes */
	/* struct RClass and its rb_classext_t. Up to 3.1, RClass points to the latter, and a
	 * class's names are in a table of instance variables. Later the latter follows RClass. */
	__u16 class_ext;	  /* offset of the pointer, or of the struct */
	__u16 class_iv_table;	  /* in rb_classext_t; 0: no such table */
	__u16 class_path;	  /* in rb_classext_t: classpath */
	__u16 class_attached;	  /* in rb_classext_t: as.singleton_class.attached_object */
	__u16 fiber_prev;	  /* rb_fiber_t.prev */
	__u16 fiber_ec;		  /* rb_fiber_t.cont.saved_ec */
	__u8 first_line_is_value; /* a Fixnum; else an int */
	__u8 string_has_length;	  /* all strings have RString.len, a word; else only heap ones */
	__u8 class_super;	  /* RClass.super */
	__u8 singleton_bit;	  /* FL_SINGLETON in RBasic.flags of a class */
	__u16 last_op_id;	  /* tLAST_OP_ID; IDs up to it are not (serial << 4) */
	/* 3.2 only, where a class's name is an instance variable like others: offset of the
	 * pointer to them. The first is the name, or in a singleton class the object it is
	 * attached to. */
	__u16 class_ivs;
	/* The lock of the interpreter: up to 3.1 rb_global_vm_lock_t, then struct rb_thread_sched.
	 * It is a part of the thread's rb_ractor_t, in 2.7 of the rb_vm_t. */
	__u16 lock_of;	    /* rb_thread_t.ractor; 2.7: .vm */
	__u16 lock_start;   /* offset in that struct: threads.sched, .gvl */
	__u16 lock_bytes;   /* bytes from lock_start on that belong to the lock */
	__u16 lock_running; /* offset in that struct: the lock's rb_thread_t *running, owner */
	__u16 lock_ready;   /* in rb_thread_t: the node in the list of waiting threads, ... */
	__u16 lock_cond;    /* ... on this condition variable, which has other uses, too */
	/* From 3.2 on rb_thread_t.nt, a pointer to the struct with lock_cond and lock_tid; 0:
	 * these are in rb_thread_t. */
	__u16 lock_native;
	__u16 lock_tid;		  /* the thread's id in its own PID namespace, ... */
	__u8 lock_tid_is_pthread; /* ... up to 3.0 in a struct pthread, to which this points */
	/* rb_control_frame_t.jit_return, by which ZJIT's frames refer to their iseq and pc from
	 * 4.1 on (bpf/ruby_zjit.bpf.h); 0: control frames have both */
	__u8 jit_return;
	__u16 ec_machine; /* rb_execution_context_t.machine; 0: unknown */
	__u8 pad[4];
};
_Static_assert(sizeof(struct ruby_offsets) == 72, "ruby_offsets");

/* The place of a thread's rb_execution_context_t. */
enum ruby_state_kind {
	RUBY_STATE_TLS,		  /* from 3.0 on: at fs base + state_at */
	RUBY_STATE_TLS_OF_MODULE, /* in libruby: at state_at in tls_module's block */
	RUBY_STATE_KEY,		  /* 2.7: rb_thread_t, by the pthread key (an int) at state_at */
};

struct ruby_proc_rec { /* key: address space */
	struct ruby_offsets offsets;
	__u64 state_at;
	__u64 symbols; /* address of ruby_global_symbols; 0: unknown */
	__u32 state;   /* enum ruby_state_kind */
	__u32 tls_module;
	struct c_library libc;
	__u32 pad;
	__u64 zjit_at;		    /* address of rb_zjit_entry; 0: the build has no ZJIT */
	__u64 exec_start, exec_end; /* rb_vm_exec without its cold part; 0: unknown */
	/* Set by the kernel half: */
	__u64 objspace;		  /* 0: not found yet */
	__u64 replaced_ns;	  /* time of the last replaced code; 0: never */
	__u64 zjit;		  /* rb_zjit_entry, the entry of ZJIT's code; 0: ZJIT is off */
	__u64 jit_start, jit_end; /* code of ZJIT or YJIT in samples so far */
};
_Static_assert(sizeof(struct ruby_proc_rec) == 168, "ruby_proc_rec");

/* --- code objects: rec_code_object.table of WALKER_RUBY --- */

/* rec_code_object.table_address and .address are the addresses of name and file, used if they could
 * not be copied (kind 0, but a length). */

enum ruby_code_kind {
	RUBY_CODE_ISEQ,	  /* name: the iseq's label */
	RUBY_CODE_METHOD, /* name: a method that is defined by a block (define_method) */
	RUBY_CODE_C,	  /* name: a method in C */
};

/* The owner of a method. */
enum ruby_owner {
	RUBY_OWNER_NONE,	 /* not a method, or unreadable */
	RUBY_OWNER_CLASS,	 /* instance methods */
	RUBY_OWNER_CLASS_ITSELF, /* singleton methods of a class or module */
	RUBY_OWNER_OBJECT,	 /* singleton methods of another object, whose class is named */
};

#define RUBY_OWNER_BYTES     256
#define RUBY_WITHIN_AT	     128
#define RUBY_POSITIONS_BYTES 1008 /* a succ_index_table of 12 blocks */
#define RUBY_ENTRIES_BYTES   2760

struct ruby_code_table {
	__u8 kind;	    /* enum ruby_code_kind */
	__u8 owner;	    /* enum ruby_owner */
	__u8 is_module;	    /* the owner is not a class */
	__u8 is_refinement; /* ... but a refinement of the class named here */
	__u32 owner_len;    /* bytes; 0: anonymous */
	__u64 native;	    /* RUBY_CODE_C: start of the function */
	/* The line table. Addresses, as the data below may be truncated. */
	__u64 positions, entries;
	__u32 iseq_size, n_entries;
	__u32 entry_size;
	__u32 positions_size, entries_size; /* bytes read */
	__u32 within_len; /* is_refinement: bytes of the name of the module that made it, ... */
	char owner_name[RUBY_OWNER_BYTES]; /* ... the latter at RUBY_WITHIN_AT */
	__u8 positions_data[RUBY_POSITIONS_BYTES];
	__u8 entries_data[RUBY_ENTRIES_BYTES];
};
_Static_assert(sizeof(struct ruby_code_table) == 4080, "ruby_code_table");

/* The number, never announced, of a frame that stands for a running garbage collection. */
#define RUBY_GC_CODE 0xfffffffe

/* Index in the key of a frame whose current line is unknown, since JIT code stores it only when
 * it must. Else the index is that of the instruction after the current one. */
#define RUBY_INDEX_UNKNOWN 0xffffffff

#endif
