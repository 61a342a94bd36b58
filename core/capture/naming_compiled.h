/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NAMING_COMPILED_H
#define BRAID_NAMING_COMPILED_H

#include <stdint.h>

#include "core/base/err.h"
#include "core/capture/captured.h"
#include "core/capture/ids.h"
#include "core/capture/naming.h"
#include "core/target/tracker.h"

/* Names of code that no file backs, from the maps of its process. A name may appear later, or
 * never; some runtimes write maps only on request. */
struct naming_compiled;

struct naming_compiled_opts {
	struct ids *ids;
	struct naming *naming;	  /* for names by address */
	struct captured_set *set; /* borrowed */
	const struct runtime *const *runtimes;
	struct runtime_session *const *sessions; /* per runtime; NULL: not enabled, or none */
	tracker_source_fn on_source;		 /* receives notices for the user; may be NULL */
	void *ctx;
};

struct compiled_stats {
	uint64_t places, named;	   /* distinct places of compiled code that no walker names, and
				    * those among them with a name */
	uint64_t symbols, skipped; /* entries of maps; entries that are malformed or had no room */
	/* Distinct places without a name in memory that neither a file backs nor a runtime's
	 * compiler owns, and the location of the first of them. */
	uint64_t fileless;
	uint32_t fileless_pid;
	char fileless_name[32];	 /* name of the process */
	uint64_t fileless_bytes; /* size of the mapping */
};

int naming_compiled__new(const struct naming_compiled_opts *opts, struct naming_compiled **ret);
void naming_compiled__free(struct naming_compiled *naming); /* NULL is fine */

/* Adds a place of the process that just got a frame; `id` and `loop` of @frame are set. */
int naming_compiled__add(struct naming_compiled *naming, struct captured *captured,
			 const struct place *place, struct place_frame *frame, struct err *err);

/* Names all code whose name is available now. Called once a second, after naming__run(). With
 * @last, waits briefly for processes with pending requests. */
int naming_compiled__run(struct naming_compiled *naming, bool last, struct err *err);

/* Names code from the files of a process that is gone, or that executes another program. */
int naming_compiled__ended(struct naming_compiled *naming, struct captured *captured,
			   struct err *err);

/* Adds the counts of a process that is about to be dropped. */
void naming_compiled__count(struct naming_compiled *naming, const struct captured *captured);

/* Resets the counts. */
void naming_compiled__renew(struct naming_compiled *naming);

void naming_compiled__stats(const struct naming_compiled *naming, struct compiled_stats *ret);

#endif
