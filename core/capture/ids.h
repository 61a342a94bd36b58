/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_IDS_H
#define BRAID_IDS_H

#include "core/profile/sink.h"

/* The owner of every id that capture hands out. Everything is interned here, so that callers may
 * offer the same thing again and again; what is new gets the next id and goes to the sink, once.
 *
 * What is remembered is bounded (some 100 MB at most): a thing that was seen very long ago may get
 * a second id, which readers accept.
 *
 * All functions return 0, -ENOMEM, -EOVERFLOW (there are no ids left) or what the sink returned;
 * `err` has the sentence. After a failed call none may follow. */
struct ids;

/* The sink is borrowed and outlives the ids. -ENOMEM. */
int ids__new(struct sink *sink, struct ids **ret, struct err *err);
void ids__free(struct ids *ids); /* NULL is fine */

/* Forgets all that was offered: what comes from now on goes to this sink, with ids from 1. Nobody
 * may have kept any. */
void ids__renew(struct ids *ids, struct sink *sink);

/* Not interned: a new one each time. */
int ids__event(struct ids *ids, const struct sink_event *event, uint32_t *ret_id, struct err *err);
int ids__process(struct ids *ids, const struct sink_process *process, uint32_t *ret_id,
		 struct err *err);

/* By (process, tid, name): a thread that renames itself has two ids, unless the program's own name
 * for it comes to be known. */
int ids__process_is_called(struct ids *ids, uint32_t process, const char *name, const char *command,
			   struct err *err);
int ids__thread(struct ids *ids, uint32_t process, uint32_t tid, const char *name, uint32_t *ret_id,
		struct err *err);
int ids__thread_is_called(struct ids *ids, uint32_t thread, const char *name, struct err *err);

/* By path and build-id (hexadecimal, "" for none). */
int ids__image(struct ids *ids, const char *path, const char *build_id, uint32_t *ret_id,
	       struct err *err);

/* Interned by all fields but `loop`, which is the same each time. */
struct ids_frame {
	int kind;
	uint32_t image, process;
	uint64_t address;
	bool loop;
	/* Code of one process: which code, of those that had the address one after the other. The
	 * sink does not learn it. */
	uint32_t generation;
};

/* `ret_new` (may be NULL) tells that it is new, so that the caller will have to give it locations
 * sooner or later. */
int ids__frame(struct ids *ids, const struct ids_frame *frame, uint32_t *ret_id, bool *ret_new,
	       struct err *err);

/* Interns a node by all fields. */
int ids__node_of(struct ids *ids, const struct sink_node *node, uint32_t *ret_id, struct err *err);

/* As ids__node_of(), of a frame that was found by a rule. */
int ids__node(struct ids *ids, uint32_t parent, uint32_t frame, int64_t offset, uint32_t *ret_id,
	      struct err *err);

/* These go to the sink as they are; see there. */
int ids__frame_is_loop(struct ids *ids, uint32_t frame, struct err *err);
int ids__locations(struct ids *ids, uint32_t frame, const struct sink_location *locations, size_t n,
		   struct err *err);
int ids__source(struct ids *ids, const struct sink_source *source, struct err *err);

/* The sink may forget something then, and the ids do the same: what comes again is offered again,
 * under a new id. Who has kept frames' or nodes' ids looks how often that has happened, and lets go
 * of all nodes, and of the frames that are not there. */
int ids__sample(struct ids *ids, const struct sink_sample *sample, struct err *err);
uint32_t ids__forgotten(const struct ids *ids);
bool ids__has_frame(const struct ids *ids, uint32_t frame); /* once it has happened */

#endif
