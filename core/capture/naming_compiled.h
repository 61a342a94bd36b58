/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NAMING_COMPILED_H
#define BRAID_NAMING_COMPILED_H

#include <stdint.h>

#include "core/base/err.h"
#include "core/capture/captured.h"
#include "core/capture/ids.h"
#include "core/capture/naming.h"
#include "core/target/tracker.h"

/* Names of code that no file backs, from the maps of its process: the name may be known only later,
 * or never; some runtimes have to be asked for it. */
struct naming_compiled;

struct naming_compiled_opts {
	struct ids *ids;
	struct naming *naming;	  /* for the name that says where the code is */
	struct captured_set *set; /* borrowed */
	const struct runtime *const *runtimes;
	struct runtime_session *const *sessions; /* per runtime; NULL where not enabled or none */
	tracker_source_fn on_source;		 /* what the user should know; may be NULL */
	void *ctx;
};

struct compiled_stats {
	uint64_t places, named;	   /* distinct places of compiled code that no walker names, and
				    * those with a name */
	uint64_t symbols, skipped; /* of maps; and what in them was malformed or found no room */
	/* Distinct places without a name in memory that no file backs and no compiler that is
	 * known has made, and where the first of them is. */
	uint64_t fileless;
	uint32_t fileless_pid;
	char fileless_name[32];	 /* of that process */
	uint64_t fileless_bytes; /* of the mapping */
};

int naming_compiled__new(const struct naming_compiled_opts *opts, struct naming_compiled **ret);
void naming_compiled__free(struct naming_compiled *naming); /* NULL is fine */

/* A place of the process that got a frame now: `frame`, in which `id` and `loop` are set. */
int naming_compiled__add(struct naming_compiled *naming, struct captured *captured,
			 const struct place *place, struct place_frame *frame, struct err *err);

/* Once a second, after naming__run: names what can be named by now. The `last` time waits a little
 * for processes that are asked for their maps. */
int naming_compiled__run(struct naming_compiled *naming, bool last, struct err *err);

/* The process is gone, or executes something else: names what its files still have. */
int naming_compiled__ended(struct naming_compiled *naming, struct captured *captured,
			   struct err *err);

/* It will be forgotten: adds what was read of its files. */
void naming_compiled__count(struct naming_compiled *naming, const struct captured *captured);

/* Counts begin anew. */
void naming_compiled__renew(struct naming_compiled *naming);

void naming_compiled__stats(const struct naming_compiled *naming, struct compiled_stats *ret);

#endif
