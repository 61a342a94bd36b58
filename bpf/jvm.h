/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_JVM_H
#define BRAID_JVM_H

/* HotSpot: what crosses between the halves. All of it comes from the tables that libjvm.so exports
 * (gHotSpotVMStructs, ...; src/hotspot/share/runtime/vmStructs.cpp), none from a table of ours. */

#include <linux/types.h>

#define JVM_HEAPS_MAX	     4	 /* segments of the code cache: CodeBlobType has three for code */
#define JVM_BLOB_BYTES	     336 /* of an nmethod, read at once: all fields below lie in it */
#define JVM_SMALL_BLOB_BYTES 128 /* ... and those of any blob in so much */

/* Reserved ranges, which do not change in a JVM's life. */
struct jvm_heap {
	__u64 low, high;
	__u64 segmap; /* a byte for each segment: its distance to the blob's first one, 0xff: free
		       */
	__u32 segment_log2;
	__u32 pad;
};

/* In bytes, from the start of a CodeBlob (which an nmethod is, too) but for the last three. */
struct jvm_offsets {
	__u16 blob_name;	   /* char * */
	__u16 blob_frame_size;	   /* i32, in words */
	__u16 blob_frame_complete; /* i32, or i16 if `frame_complete_is_i16` */
	__u16 frame_complete_is_i16;
	__u16 blob_code;      /* code's start: an address, or if `code_is_offset` an i32 or ... */
	__u16 code_is_offset; /* ... u16 offset from the blob: its size in bytes, 0: address */
	__u16 nmethod_method; /* Method * */
	__u16 nmethod_compile_id;  /* i32, counts up with each compilation */
	__u16 heap_block;	   /* sizeof(HeapBlock): what precedes the blob in its segments */
	__u16 method_const_method; /* of Method: ConstMethod * */
	__u16 const_method_bytes;  /* sizeof(ConstMethod): where the bytecodes begin */
	__u16 const_method_code_size; /* u16: bytes of bytecodes */
};

/* To see what monitor a thread wants to enter; pending_monitor 0: not known. */
struct jvm_monitor_offsets {
	__u16 pending_monitor; /* of JavaThread: ObjectMonitor * */
	__u16 osthread;	       /* of JavaThread: OSThread * */
	__u16 thread_id;       /* of OSThread: i32, in the PID namespace of the thread */
	__u16 owner;	       /* of ObjectMonitor: JavaThread *, or on the stack of its thread; */
	__u16 with_owner;      /* ... 0: it is no address */
	__u16 pad[3];
};

/* A word of the frame that called into Java (StubGenerator::generate_call_stub of x86-64), behind
 * the return address and another argument: the JavaThread. */
#define JVM_CALL_STUB_THREAD 8

/* Words from the bytecode's address to rbp in an interpreted frame (frame_x86.hpp). JDK 9 has added
 * the mirror of the method's class. */
#define JVM_BCP_WORDS_8 7 /* JDK 8 */
#define JVM_BCP_WORDS	8

/* State of one JVM; key: address space. */
struct jvm_proc_rec {
	struct jvm_offsets offsets;
	struct jvm_monitor_offsets monitors;
	__u32 n_heaps;
	__u32 bcp_words;    /* of an interpreted frame: words from its bytecode's address to rbp */
	__u32 exception_pc; /* of JavaThread: where what it throws was thrown; 0: unknown */
	__u32 pad;
	struct jvm_heap heaps[JVM_HEAPS_MAX];
	/* Code of the interpreter (AbstractInterpreter::_code's buffer) */
	__u64 interpreter_start, interpreter_end;
	__u64 call_stub_return; /* where Java code returns to native code; 0: not known */
	__u64 nmethod_name, native_nmethod_name; /* addresses that blob_name holds; 0: not known */
};

/* rec_code.table_format: what `address` is. rec_code.table_address: see there. */
enum {
	JVM_CODE_METHOD,  /* address: Method, table_address: its ConstMethod; index: bytecode index
			   * or JVM_NO_BCI */
	JVM_CODE_NMETHOD, /* address: nmethod, first_line: its compile id, table_address: its code's
			   * start; index: pc - code's start */
	JVM_CODE_BLOB,	  /* address: CodeBlob, 0: the interpreter, table_address: its code's start;
			     index as above */
	JVM_CODE_STRINGS, /* as probes tell a method: `file` is its class ("java/lang/String"), the
			   * table its signature; no addresses, no index */
};
#define JVM_NO_BCI 0xffffffffU

/* In an index that is no bytecode index: the pc is that of an instruction, no return address. */
#define JVM_EXACT (1U << 31)

#endif
