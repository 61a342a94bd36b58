/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_SOURCE_H
#define BRAID_CODE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/target/code_file.h"
#include "core/target/code_index.h"
#include "core/target/perf_map.h"

/* A perf map or jitdump file, and the index of its entries. A file has one index, shared by all
 * processes that have the file: it is hard-linked, or inherited by forked children. The index, the
 * reads and the CPU time are charged to the account of the file and the user (core/base/quota.h). A
 * file over its budget has no index: a missing entry could be newer than the present ones, so that
 * new code would get an old name. */
struct code_source;
struct code_sources; /* all sources of one session */

enum code_look {
	CODE_LOOK_GROWTH, /* a limited amount of growth of open files (1 MiB); cheap */
	CODE_LOOK_FILES,  /* also new and rewritten files, with a limit (32 MiB) */
	CODE_LOOK_ALL,	  /* everything, without a limit */
};

struct code_sources *code_sources__new(void);	       /* NULL: out of memory */
void code_sources__free(struct code_sources *sources); /* NULL is fine; all must be released */

/* Returns in @ret the source of the open file, whose memory and time are charged to @uid. Takes
 * ownership of @file, also on failure. @path names the file in messages. Returns 0; -ENOMEM;
 * -EFBIG: a copy that is over the budget. */
int code_sources__share(struct code_sources *sources, struct code_file *file, bool is_jitdump,
			uint32_t uid, const char *path, struct code_source **ret);
void code_source__release(struct code_source *source); /* NULL is fine */

/* Reads new contents of the file, and adds the number of entries to @counts. Returns 0 or -ENOMEM.
 */
int code_source__look(struct code_source *source, enum code_look how, uint64_t now_ns,
		      struct perf_map_counts *counts);

const struct code_file *code_source__file(const struct code_source *source);

/* Returns a number that changes when results of code_source__find() may change. */
uint32_t code_source__changes(const struct code_source *source);

/* Returns the number of the reading. It is unique in the session, and changes when the file is
 * rewritten. */
uint32_t code_source__edition(const struct code_source *source);

/* Finds an entry, as code_index__find(). */
bool code_source__find(struct code_source *source, uint64_t address, uint64_t time_ns,
		       struct code_entry *ret);

/* Finds the name of an entry of @edition, cut to fit, and file and line of @address; "" and 0:
 * unknown. Returns false if the file no longer holds the entry. */
struct code_symbol;
bool code_source__symbol(struct code_source *source, uint32_t edition,
			 const struct code_entry *entry, uint64_t address, uint32_t skew,
			 struct code_symbol *ret);

#endif
