/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_JVM_STATE_BPF_H
#define BRAID_JVM_STATE_BPF_H

/* The state of walking HotSpot's frames, shared by the frames of a sample and by samples. */

#include "bpf/jvm.h"
#include "bpf/scratch.bpf.h"

/* Words of an interpreted frame, relative to its rbp (frame_x86.hpp) */
#define INTERPRETED_SENDER_SP (-1)
#define INTERPRETED_METHOD    (-3)

enum jvm_frame_kind { JVM_INTERPRETED, JVM_NMETHOD, JVM_BLOB };

struct jvm_frame {
	__u64 blob; /* JVM_INTERPRETED: the Method; JVM_BLOB, 0: the interpreter's */
	__u64 code; /* start of the blob's code */
	__u64 bcp;  /* JVM_INTERPRETED: the bytecode's address, as saved in the frame */
	__u32 at;   /* offset of the pc in the code; with JVM_EXACT */
	__u32 kind;
	__u32 compile_id;
	__u32 pad;
};

/* A cached return address. */
struct jvm_cache {
	__u64 pc, checked_ns;
	__u64 blob, code;
	__u32 space, words; /* `words`: size of the frame */
	__u32 kind, compile_id;
};
#define JVM_MEMOS_LOG2 11
#define JVM_MEMOS      (1 << JVM_MEMOS_LOG2)

/* A cached number of code. */
struct jvm_number {
	__u64 address, content; /* as in struct jvm_key */
	__u64 checked_ns;
	__u32 space, kind;
	__u32 code, pad;
};
#define JVM_NUMBERS_LOG2 10
#define JVM_NUMBERS	 (1 << JVM_NUMBERS_LOG2)

#define JVM_FRAME_BYTES_MAX (1 << 20) /* anything larger is not a frame */

/* The state of a scan of instructions (bpf/jvm_places.bpf.h). It lies in a map, as the verifier
 * does not distinguish the values there. */
struct height_scan {
	__u64 at;  /* address of the next instruction */
	__u64 end; /* the pc, if the scan begins at the start of a blob; 0: it begins at the pc */
	__s32 height; /* words pushed since the start of the scan */
	__s32 rbp_at; /* height of the word that has the caller's rbp; valid if has_rbp */
	__u32 has_rbp;
	__u32 pops_rbp;	 /* the last instruction was `pop rbp` */
	__u32 has_ended; /* `at` is a return, or a jump that leaves the frame */
	__u32 pad;
};

#define JVM_TAGS 64 /* bytes of the segment map that are read at once */

/* One per slot. */
struct jvm_state {
	__u64 time_ns; /* time of the sample that this belongs to */
	__u32 tags_at; /* segment of tags[0] */
	__u32 space;
	__u32 is_valid; /* `proc` is that of the sample's process */
	__u32 pad;
	struct jvm_proc_rec proc; /* copied once a sample, to save a look-up per frame */
	struct jvm_frame frame;	  /* the current one */
	struct height_scan height;
	__u8 tags[JVM_TAGS];
	__u8 blob[JVM_BLOB_BYTES];
	struct jvm_cache caches[JVM_MEMOS];
	struct jvm_number numbers[JVM_NUMBERS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space: number of slots */
	__type(key, __u32);
	__type(value, struct jvm_state);
} jvm_states __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __u32); /* address space */
	__type(value, struct jvm_proc_rec);
} jvm_procs __weak SEC(".maps");

struct jvm_key {
	__u64 address; /* Method, nmethod or CodeBlob */
	__u64 content; /* Method: its ConstMethod; nmethod: its compile id */
	__u32 space;
	__u32 kind; /* JVM_CODE_* */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, CODE_OBJECTS_CACHED);
	__type(key, struct jvm_key);
	__type(value, __u32);
} jvm_codes __weak SEC(".maps");

static __always_inline struct jvm_state *jvm_state__get(void)
{
	__u32 key = slot__key();

	return bpf_map_lookup_elem(&jvm_states, &key);
}

static __always_inline int jvm__read(void *to, __u32 size, __u64 from)
{
	return bpf_probe_read_user(to, size, (void *)from) ? -1 : 0;
}

#endif
