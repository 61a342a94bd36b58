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

/* Turns the stacks of a sample into nodes of the recording's trees. New frames are queued for
 * naming. */
struct stack_nodes;

struct stack_nodes_opts {
	struct ids *ids;
	struct naming *naming;
	struct place_frames *frames;
	const struct runtime *const *runtimes;
	struct runtime_session *const *sessions; /* per runtime; NULL: not enabled */
};

/* The thread that a stack belongs to. All frames are innermost first. */
struct stack_owner {
	struct captured *captured; /* the process, which must have an id */
	uint32_t tid;
	const char *name; /* name of the thread: THREAD_NAME_BYTES, with or without a final NUL */
	uint64_t time_ns;
	uint64_t base; /* CFA of the outermost native frame that has one, or 0 */
};

int stack_nodes__new(const struct stack_nodes_opts *opts, struct stack_nodes **ret); /* -ENOMEM */
void stack_nodes__free(struct stack_nodes *nodes); /* NULL is fine */

/* Drops cached nodes and frames. */
void stack_nodes__forget(struct stack_nodes *nodes);
/* Drops all ids. Returns 0, or -ENOMEM with the cache unchanged. */
int stack_nodes__renew(struct stack_nodes *nodes);

/* The following return 0, or a negative errno with a message. A node of 0 stands for an empty
 * stack. */

/* Returns the thread's row in *@ret_id. */
int stack_nodes__thread(struct stack_nodes *nodes, const struct stack_owner *owner,
			uint32_t *ret_id, struct err *err);

/* Names recent threads whose names were unavailable at their samples. Called at the end. */
int stack_nodes__name_threads(struct stack_nodes *nodes, const struct captured_set *processes,
			      struct err *err);

/* the native stack, with the kernel's frames inside it */
struct stack_natives {
	const struct native_frame *frames;
	size_t n;
	const uint64_t *kernel; /* addresses */
	size_t n_kernel;
};
int stack_nodes__native(struct stack_nodes *nodes, const struct stack_owner *owner,
			const struct stack_natives *natives, uint32_t *ret_node, struct err *err);

/* Returns true if the stack of the last stack_nodes__native() may have frames in code without an
 * image. Such frames depend on the process's maps. */
bool stack_nodes__is_moving(const struct stack_nodes *nodes, const struct stack_owner *owner);

/* Returns the node of the runtimes' frames in *@ret_node. */
int stack_nodes__runtime(struct stack_nodes *nodes, const struct stack_owner *owner,
			 const struct runtime_stack *frames, uint32_t *ret_node, struct err *err);

#endif
