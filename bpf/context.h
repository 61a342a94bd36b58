/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_CONTEXT_H
#define BRAID_CONTEXT_H

#include <linux/types.h>

#include "bpf/c_library.h"

/* Request contexts of threads, shared by the kernel half and user space. A tracer in the process
 * publishes them for other processes (OpenTelemetry, OTEP 4947): a thread-local pointer
 * `otel_thread_ctx_v1` to a record with the ids of the current span. */

/* The bit of proc_rec.walkers of a process that has the variable. It is above all walker slots. */
#define WALKERS_CONTEXT (1U << 31)

/* Address spaces with the variable, unless the user chooses a wider scope. */
#define CONTEXT_SPACES_MAX 1024

struct context_rec {  /* value of the map `contexts`; key: address space */
	__u32 module; /* module of the variable's thread-local block; 0: none, see `at` */
	struct c_library libc;
	__u64 at; /* offset in the block; module 0: from the thread pointer */
};

/* The published record, in the byte order of the machine. */
struct context_head {
	__u8 trace_id[16]; /* first byte first; all 0: none */
	__u8 span_id[8];
	__u8 valid; /* CONTEXT_VALID; 0: detached, or being written */
	__u8 trace_flags;
	__u16 size; /* bytes of the attributes that follow */
};
_Static_assert(sizeof(struct context_head) == 28, "context_head");

#define CONTEXT_VALID 1
#define CONTEXT_NAMED 2 /* from user space: the attributes are pairs of texts, each with a NUL */

/* Labels of a task that is on no thread: the reason of its wait, and its name. */
#define PARKED_REASON "wait"
#define PARKED_NAME   "task"

/* Maximum size of a whole record. The specification recommends at most 640 bytes. */
#define CONTEXT_BYTES_MAX      640
#define CONTEXT_ATTRIBUTES_MAX (CONTEXT_BYTES_MAX - 28)

/* The context of a sample, sent before the sample (REC_CONTEXT). Its attributes are {key index,
 * length, bytes}. */
#define CONTEXT_OWN UINT32_MAX
struct rec_context {
	__u32 type;
	__u32 tgid;
	__u32 number; /* rec_sample.context of its only sample; from user space: CONTEXT_OWN */
	struct context_head head; /* head.size: bytes of `attributes` that are there */
	__u8 attributes[CONTEXT_ATTRIBUTES_MAX];
};
#define REC_CONTEXT_HEADER 40
_Static_assert(sizeof(struct rec_context) == REC_CONTEXT_HEADER + CONTEXT_ATTRIBUTES_MAX,
	       "rec_context");

#endif
