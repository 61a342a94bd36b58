/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_JVM_H
#define BRAID_JVM_H

/* HotSpot: the data shared by the kernel half and user space. All of it comes from the tables that
 * libjvm.so exports (gHotSpotVMStructs, ...; src/hotspot/share/runtime/vmStructs.cpp), none from a
 * table of braid's own. */

#include <linux/types.h>

#define JVM_HEAPS_MAX	     4	 /* segments of the code cache: CodeBlobType has three for code */
#define JVM_BLOB_BYTES	     336 /* bytes of an nmethod, read at once; all fields below lie in it */
#define JVM_SMALL_BLOB_BYTES 128 /* the fields of any blob lie in these bytes */

/* Reserved ranges, which do not change in a JVM's life. */
struct jvm_heap {
	__u64 low, high;
	__u64 segmap; /* one byte a segment: distance to the blob's first one; 0xff: free */
	__u32 segment_log2;
	__u32 pad;
};

/* Offsets in bytes, from the start of a CodeBlob (or nmethod, which is one). Exceptions are the
 * last four members, and the two with `_is_` in their names. */
struct jvm_offsets {
	__u16 blob_name;	   /* char * */
	__u16 blob_frame_size;	   /* i32, words */
	__u16 blob_frame_complete; /* i32, or i16 if `frame_complete_is_i16` */
	__u16 frame_complete_is_i16;
	__u16 blob_code; /* start of the code: an address, or if `code_is_offset` an i32 or ... */
	__u16 code_is_offset; /* ... u16 offset from the blob, of this size in bytes; 0: address */
	__u16 nmethod_method; /* Method * */
	__u16 nmethod_compile_id; /* i32; increments with each compilation */
	__u16 heap_block; /* sizeof(HeapBlock): the header before the blob in its segments */
	__u16 method_const_method;    /* in Method: ConstMethod * */
	__u16 const_method_bytes;     /* sizeof(ConstMethod); the bytecodes follow it */
	__u16 const_method_code_size; /* u16; size of the bytecodes in bytes */
};

/* Offsets to find the monitor that a thread waits to enter; pending_monitor 0: unknown. */
struct jvm_monitor_offsets {
	__u16 pending_monitor; /* in JavaThread: ObjectMonitor * */
	__u16 osthread;	       /* in JavaThread: OSThread * */
	__u16 thread_id;       /* in OSThread: i32, in the PID namespace of the thread */
	__u16 owner;	  /* in ObjectMonitor: JavaThread *, or a place on the thread's stack */
	__u16 with_owner; /* 0: `owner` is not an address */
	__u16 pad[3];
};

/* Offset of the JavaThread in the frame that called into Java, after the return address and
 * another argument (StubGenerator::generate_call_stub of x86-64). */
#define JVM_CALL_STUB_THREAD 8

/* Words from the bytecode's address to rbp in an interpreted frame (frame_x86.hpp). JDK 9 added
 * the mirror of the method's class. */
#define JVM_BCP_WORDS_8 7 /* JDK 8 */
#define JVM_BCP_WORDS	8

/* State of one JVM; key: address space. */
struct jvm_proc_rec {
	struct jvm_offsets offsets;
	struct jvm_monitor_offsets monitors;
	__u32 n_heaps;
	__u32 bcp_words;    /* words from the bytecode's address to rbp in an interpreted frame */
	__u32 exception_pc; /* offset in JavaThread: pc of the throw; 0: unknown */
	__u32 pad;
	struct jvm_heap heaps[JVM_HEAPS_MAX];
	/* Range of the interpreter's code (AbstractInterpreter::_code's buffer) */
	__u64 interpreter_start, interpreter_end;
	__u64 call_stub_return; /* address at which Java code returns to native code; 0: unknown */
	__u64 nmethod_name, native_nmethod_name; /* values of blob_name; 0: unknown */
};

/* rec_code_object.table_format: the kind of `address` and of rec_code_object.table_address. */
enum {
	JVM_CODE_METHOD,  /* address: Method, table_address: its ConstMethod; index: bytecode index
			   * or JVM_NO_BCI */
	JVM_CODE_NMETHOD, /* address: nmethod, first_line: its compile id, table_address: start of
			     its code; index: pc - start of the code */
	JVM_CODE_BLOB, /* address: CodeBlob, 0: the interpreter, table_address: start of its code;
			  index: as above */
	JVM_CODE_STRINGS, /* from probes: `file` is the class ("java/lang/String"), the table the
			     signature; no addresses, no index */
};
#define JVM_NO_BCI 0xffffffffU

/* Flag in an index that is not a bytecode index: the pc is that of an instruction, not a return
 * address. */
#define JVM_EXACT (1U << 31)

#endif
