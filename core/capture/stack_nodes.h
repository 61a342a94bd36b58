/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_STACK_NODES_H
#define BRAID_STACK_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/capture/captured.h"
#include "core/capture/ids.h"
#include "core/capture/naming.h"
#include "core/capture/pairing.h"
#include "core/capture/place_frames.h"
#include "core/capture/sections.h"

/* From the stacks of a sample to nodes of the recording's trees; frames that are new are queued for
 * naming. */
struct stack_nodes;

struct stack_nodes_opts {
	struct ids *ids;
	struct naming *naming;
	struct place_frames *frames;
	const struct runtime *const *runtimes;
	struct runtime_session *const *sessions; /* per runtime; NULL where not enabled */
};

/* Whose stack it is. All frames are innermost first. */
struct stack_owner {
	struct captured *captured; /* the process, which has its id */
	uint32_t tid;
	const char *name; /* of the thread: THREAD_NAME_BYTES, with or without a final NUL */
	uint64_t time_ns;
	uint64_t base; /* the CFA of the outermost native frame that has one, or 0 */
};

int stack_nodes__new(const struct stack_nodes_opts *opts, struct stack_nodes **ret); /* -ENOMEM */
void stack_nodes__free(struct stack_nodes *nodes); /* NULL is fine */

/* Nodes and frames that were given before are not relied upon any more. */
void stack_nodes__forget(struct stack_nodes *nodes);
/* No id holds any more. -ENOMEM, with all as it was. */
int stack_nodes__renew(struct stack_nodes *nodes);

/* Each returns 0 or a negative errno with a sentence, and a node, 0 for an empty stack. */

/* The thread's row. */
int stack_nodes__thread(struct stack_nodes *nodes, const struct stack_owner *owner,
			uint32_t *ret_id, struct err *err);

/* At the end, for those of the last threads whose names could not be told at their samples. */
int stack_nodes__name_threads(struct stack_nodes *nodes, const struct captured_set *processes,
			      struct err *err);

/* The native stack, and the kernel's on top of it. */
struct stack_natives {
	const struct native_frame *frames;
	size_t n;
	const uint64_t *kernel; /* addresses */
	size_t n_kernel;
};
int stack_nodes__native(struct stack_nodes *nodes, const struct stack_owner *owner,
			const struct stack_natives *natives, uint32_t *ret_node, struct err *err);

/* May frames of the native stack that stack_nodes__native was just called for be of code that no
 * image holds, so that they depend on what the process tells of it? */
bool stack_nodes__is_moving(const struct stack_nodes *nodes, const struct stack_owner *owner);

/* The runtimes' frames. */
int stack_nodes__runtime(struct stack_nodes *nodes, const struct stack_owner *owner,
			 const struct runtime_stack *frames, uint32_t *ret_node, struct err *err);

#endif
