/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_IDS_H
#define BRAID_IDS_H

#include "core/profile/sink.h"

/* The owner of every id that capture assigns. All items are interned here, so that callers may
 * offer the same item repeatedly. A new item gets the next id and goes to the sink, once.
 *
 * The tables are bounded (about 100 MB at most). An item that was offered very long ago may get a
 * second id, which readers accept.
 *
 * All functions return 0, -ENOMEM, -EOVERFLOW (no ids are left) or the result of the sink, and set
 * a message in @err. No call may follow a failed call. */
struct ids;

/* @sink is borrowed and must outlive the ids. Returns 0 or -ENOMEM. */
int ids__new(struct sink *sink, struct ids **ret, struct err *err);
void ids__free(struct ids *ids); /* NULL is fine */

/* Drops all ids: later items go to @sink, with ids from 1. No caller may use an older id. */
void ids__renew(struct ids *ids, struct sink *sink);

/* Not interned: each call assigns a new id. */
int ids__event(struct ids *ids, const struct sink_event *event, uint32_t *ret_id, struct err *err);
int ids__process(struct ids *ids, const struct sink_process *process, uint32_t *ret_id,
		 struct err *err);

/* Threads are interned by (process, tid, name). A thread that renames itself has two ids, unless
 * the program's own name for it is found. */
int ids__process_is_called(struct ids *ids, uint32_t process, const char *name, const char *command,
			   struct err *err);
int ids__thread(struct ids *ids, uint32_t process, uint32_t tid, const char *name, uint32_t *ret_id,
		struct err *err);
int ids__thread_is_called(struct ids *ids, uint32_t thread, const char *name, struct err *err);

/* Images are interned by path and build-id (hexadecimal; "": none). */
int ids__image(struct ids *ids, const char *path, const char *build_id, uint32_t *ret_id,
	       struct err *err);

/* Frames are interned by all fields but `loop`, which must be the same in each call. */
struct ids_frame {
	int kind;
	uint32_t image, process;
	uint64_t address;
	bool loop;
	/* Number of the piece of code at this address in this process, since code may be replaced.
	 * It only distinguishes frames: the sink does not receive the number. 0 for code of a file.
	 */
	uint32_t generation;
};

/* *@ret_new (may be NULL) is true if the frame is new: the caller must eventually give it
 * locations. */
int ids__frame(struct ids *ids, const struct ids_frame *frame, uint32_t *ret_id, bool *ret_new,
	       struct err *err);

/* Interns a node by all fields. */
int ids__node_of(struct ids *ids, const struct sink_node *node, uint32_t *ret_id, struct err *err);

/* As ids__node_of(), for a frame with EVIDENCE_RULE. */
int ids__node(struct ids *ids, uint32_t parent, uint32_t frame, int64_t offset, uint32_t *ret_id,
	      struct err *err);

/* Contexts are interned by all fields. *@ret_id is 0 if the sink does not use them. */
int ids__context(struct ids *ids, const struct sink_context *context, uint32_t *ret_id,
		 struct err *err);

/* The following go to the sink unchanged; see there. */
int ids__frame_is_loop(struct ids *ids, uint32_t frame, struct err *err);
int ids__locations(struct ids *ids, uint32_t frame, const struct sink_location *locations, size_t n,
		   struct err *err);
int ids__attribute(struct ids *ids, uint32_t process, const struct sink_label *label,
		   struct err *err);
int ids__source(struct ids *ids, const struct sink_source *source, struct err *err);

/* Passes a sample to the sink, which may then drop frames and nodes. The ids drop them, too, and an
 * item that recurs gets a new id. A caller that stores ids of frames or nodes compares
 * ids__forgotten(). After a change it drops all nodes, and the frames without ids__has_frame(). */
int ids__sample(struct ids *ids, const struct sink_sample *sample, struct err *err);
uint32_t ids__forgotten(const struct ids *ids);
bool ids__has_frame(const struct ids *ids, uint32_t frame); /* after a change of ids__forgotten() */

#endif
