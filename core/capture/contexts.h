/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CONTEXTS_H
#define BRAID_CONTEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/profile/sink.h"
#include "core/target/process.h"
#include "core/target/process_context.h"

/* The request contexts that the kernel half sent, until their samples are recorded. A context is
 * sent immediately before its sample, on the same CPU. Other CPUs send records in between, so that
 * the newest CONTEXTS_KEPT contexts are stored. */
#define CONTEXTS_KEPT 4096 /* a power of two */

struct context_kept {
	uint32_t number; /* 0: empty */
	struct rec_context *rec;
	size_t cap;
};

/* All zero is an empty set. */
struct contexts {
	struct context_kept *list; /* CONTEXTS_KEPT; NULL: none was sent yet */
	char trace[33], span[17];
	struct sink_label labels[PROCESS_CONTEXT_KEYS_MAX];
	char values[PROCESS_CONTEXT_KEYS_MAX][UINT8_MAX + 1];
};

void contexts__done(struct contexts *contexts); /* idempotent */

/* Copies a REC_CONTEXT of @size bytes. Ignores a malformed one. Returns 0 or -ENOMEM. */
int contexts__keep(struct contexts *contexts, const struct rec_context *rec, size_t size);

struct context {
	struct sink_context sink; /* borrowed until the next call */
	bool is_malformed;	  /* an attribute was incomplete */
};

/* Decodes the context with this number. The names of its attributes are those that @process has
 * published, which is read again if a name is missing. Attributes without a name are left out.
 * Returns 0; -ENOENT: it was lost; or -ENOMEM. */
int contexts__find(struct contexts *contexts, uint32_t number, struct process *process,
		   struct context *ret);

#endif
