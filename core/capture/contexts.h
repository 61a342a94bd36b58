/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CONTEXTS_H
#define BRAID_CONTEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/events/values.h"
#include "core/profile/sink.h"
#include "core/target/process.h"
#include "core/target/process_context.h"

/* The request contexts and values that the kernel half sent, until their samples are recorded. They
 * are sent immediately before their sample, on the same CPU, under one number. Other CPUs send
 * records in between, so that the newest CONTEXTS_KEPT contexts are stored. */
#define CONTEXTS_KEPT 4096 /* a power of two */

/* Its own place: the context of a sample that user space takes, recorded at once (CONTEXT_OWN). */
#define CONTEXTS_PLACES (CONTEXTS_KEPT + 1)

struct context_kept {
	struct rec_context *rec; /* with its own number */
	size_t cap;
	struct rec_values *values; /* likewise; NULL: none yet */
};

/* All zero is an empty set. */
struct contexts {
	struct context_kept *list; /* CONTEXTS_PLACES; NULL: none was sent yet */
	char trace[33], span[17];
	struct sink_label labels[PROCESS_CONTEXT_KEYS_MAX + VALUE_LABELS_MAX];
	char texts[PROCESS_CONTEXT_KEYS_MAX][UINT8_MAX + 1];
	struct value_texts values;
};

void contexts__done(struct contexts *contexts); /* idempotent */

/* Copies a REC_CONTEXT of @size bytes. Ignores a malformed one. Returns 0 or -ENOMEM. */
int contexts__keep(struct contexts *contexts, const struct rec_context *rec, size_t size);

/* Likewise for a REC_VALUES. */
int contexts__keep_values(struct contexts *contexts, const struct rec_values *rec, size_t size);

struct context {
	struct sink_context sink; /* borrowed until the next call */
	bool is_malformed;	  /* an attribute was incomplete */
};

/* Decodes the context and the values with this number. The names of its attributes are those that
 * @process has published, which is read again if a name is missing. Attributes without a name are
 * left out. The values, named by @values (NULL: none), are labels whose keys begin with
 * VALUE_LABEL. Returns 0; -ENOENT: they were lost; or -ENOMEM. */
int contexts__find(struct contexts *contexts, uint32_t number, struct process *process,
		   const struct event_values *values, struct context *ret);

#endif
