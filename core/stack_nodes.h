/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_STACK_NODES_H
#define BRAID_STACK_NODES_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/jit_frames.h"
#include "core/naming.h"
#include "core/pairing.h"
#include "core/recording.h"
#include "core/tracker.h"

/* From the stacks of a sample to nodes of the recording's trees; frames that are new are queued for
 * naming. */
struct stack_nodes;

struct stack_nodes_opts {
	struct recording *recording;
	struct naming *naming;
	struct jit_frames *jit;
	const struct runtime *const *runtimes;
	struct runtime_session *const *sessions; /* per runtime; NULL where not enabled */
};

/* Whose stack it is. All frames are innermost first. */
struct stack_owner {
	struct process *process;
	uint32_t process_id; /* the process's row */
	uint32_t tid;
	const char *name; /* of the thread: THREAD_NAME_BYTES, with or without a final NUL */
	uint64_t time_ns;
	uint64_t base; /* the CFA of the outermost native frame that has one, or 0 */
};

int stack_nodes__new(const struct stack_nodes_opts *opts, struct stack_nodes **ret); /* -ENOMEM */
void stack_nodes__free(struct stack_nodes *nodes); /* NULL is fine */

/* Each returns 0 or a negative errno with a sentence, and a node, 0 for an empty stack. */

/* The thread's row. */
int stack_nodes__thread(struct stack_nodes *nodes, const struct stack_owner *owner,
			uint32_t *ret_id, struct err *err);

/* The native stack, and the kernel's on top of it. */
int stack_nodes__native(struct stack_nodes *nodes, const struct stack_owner *owner,
			const struct native_frame *frames, size_t n, const uint64_t *kernel,
			size_t n_kernel, uint32_t *ret_node, struct err *err);

/* Of runtimes[runtime]. */
int stack_nodes__runtime(struct stack_nodes *nodes, const struct stack_owner *owner, int runtime,
			 const struct runtime_pair *pairs, size_t n, uint32_t *ret_node,
			 struct err *err);

#endif
