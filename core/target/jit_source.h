/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JIT_SOURCE_H
#define BRAID_JIT_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/target/jit_file.h"
#include "core/target/jit_index.h"
#include "core/target/perf_map.h"

/* A perf map or jitdump file, and the index of its entries. A file has one index, shared by all
 * processes that have the file: it is hard-linked, or inherited by forked children. The index, the
 * reads and the CPU time are charged to the account of the file and the user (core/base/quota.h). A
 * file over its budget has no index: a missing entry could be newer than the present ones, so that
 * new code would get an old name. */
struct jit_source;
struct jit_sources; /* all sources of one session */

enum jit_look {
	JIT_LOOK_GROWTH, /* a limited amount of growth of open files (1 MiB); cheap */
	JIT_LOOK_FILES,	 /* also new and rewritten files, with a limit (32 MiB) */
	JIT_LOOK_ALL,	 /* everything, without a limit */
};

struct jit_sources *jit_sources__new(void);	     /* NULL: out of memory */
void jit_sources__free(struct jit_sources *sources); /* NULL is fine; all must be released */

/* Returns in @ret the source of the open file, whose memory and time are charged to @uid. Takes
 * ownership of @file, also on failure. @path names the file in messages. Returns 0; -ENOMEM;
 * -EFBIG: a copy that is over the budget. */
int jit_sources__share(struct jit_sources *sources, struct jit_file *file, bool is_jitdump,
		       uint32_t uid, const char *path, struct jit_source **ret);
void jit_source__release(struct jit_source *source); /* NULL is fine */

/* Reads new contents of the file, and adds the number of entries to @counts. Returns 0 or -ENOMEM.
 */
int jit_source__look(struct jit_source *source, enum jit_look how, uint64_t now_ns,
		     struct perf_map_counts *counts);

const struct jit_file *jit_source__file(const struct jit_source *source);

/* Returns a number that changes when results of jit_source__find() may change. */
uint32_t jit_source__changes(const struct jit_source *source);

/* Returns the number of the reading. It is unique in the session, and changes when the file is
 * rewritten. */
uint32_t jit_source__edition(const struct jit_source *source);

/* Finds an entry, as jit_index__find(). */
bool jit_source__find(struct jit_source *source, uint64_t address, uint64_t time_ns,
		      struct jit_entry *ret);

/* Finds the name of an entry of @edition, cut to fit, and file and line of @address; "" and 0:
 * unknown. Returns false if the file no longer holds the entry. */
struct jit_symbol;
bool jit_source__symbol(struct jit_source *source, uint32_t edition, const struct jit_entry *entry,
			uint64_t address, uint32_t skew, struct jit_symbol *ret);

#endif
