/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_NODE_STATE_BPF_H
#define BRAID_NODE_STATE_BPF_H

/* State of V8's walker from one frame to the next. */

#include "bpf/code_object_age.bpf.h"
#include "bpf/node.h"
#include "bpf/scratch.bpf.h"

struct node_frame {
	__u64 pc; /* address of the instruction, or the return address - 1 */
	__u64 fp;
	__u64 sp;		    /* stack pointer of the innermost frame; else 0 */
	__u64 words[NODE_FP_WORDS]; /* the words below fp; words[0] is at fp - 8 */
	__u32 in_file;		    /* code of V8's own, in its file */
	__u32 pad;
};

/* A cached frame, valid as long as its words are unchanged. */
struct node_cache {
	__u64 pc, fp, context, function, bytecodes;
	__u64 since_ns, checked_ns; /* time when this function was found there first, and when it
				       was last compared */
	__u64 glance;		    /* hash of the identity of the function and its code */
	__u32 space, number;
	__u32 kind, index;
};
#define NODE_CACHES_LOG2 11
#define NODE_CACHES	 (1 << NODE_CACHES_LOG2)

/* The cached beginning of the code around an address. */
struct node_place {
	__u64 pc, start; /* 0: none */
	__u64 checked_ns;
	__u32 space, pad;
};
#define NODE_PLACES_LOG2 10
#define NODE_PLACES	 (1 << NODE_PLACES_LOG2)

#define NODE_BLOCK_WORDS 64

/* The Maps of some types, of which a process has one each. */
struct node_maps {
	__u64 sfi, stream, bytecodes, script; /* tagged; 0: not found yet */
};

/* One per slot. */
struct node_state {
	__u64 time_ns; /* time of the sample that the state belongs to */
	__u32 space;
	__u16 is_valid; /* `proc` is that of the sample's process */
	__u16 replaces; /* the process has replaced functions recently (code_object_age.bpf.h) */
	struct node_proc_rec proc; /* copied once a sample: a lookup is expensive */
	struct node_maps maps;	   /* Maps of `space` */
	struct node_code key;
	__u64 sfi[NODE_SFI_BYTES / 8];
	__u64 code[NODE_CODE_BYTES / 8];
	__u64 block[NODE_BLOCK_WORDS];
	__u64 text[NODE_TEXT_CHARS / 4]; /* characters of 16 bits each */
	__u64 parts[NODE_TEXT_PARTS];	 /* strings to read, the next one last */
	__u32 n_parts, text_left;	 /* text_left: characters */
	struct node_frame frame;	 /* the current one */
	struct node_cache caches[NODE_CACHES];
	struct node_place places[NODE_PLACES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space: number of slots */
	__type(key, __u32);
	__type(value, struct node_state);
} node_states __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32); /* address space */
	__type(value, struct node_proc_rec);
} node_procs __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, CODE_OBJECTS_CACHED);
	__type(key, struct node_code);
	__type(value, __u32);
} node_codes __weak SEC(".maps");

static __always_inline struct node_state *node_state__get(void)
{
	__u32 key = slot__key();

	return bpf_map_lookup_elem(&node_states, &key);
}

static __always_inline int node__read(void *to, __u32 size, __u64 from)
{
	return bpf_probe_read_user(to, size, (void *)from) ? -1 : 0;
}

#endif
