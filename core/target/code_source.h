/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_SOURCE_H
#define BRAID_CODE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/target/code_file.h"
#include "core/target/code_index.h"
#include "core/target/perf_map.h"

/* A perf map or jitdump file, and the index of what it reports. A file has one index, which all
 * processes share that have the file: it is hard-linked, or inherited by forked children. The
 * index, the reads and the CPU time are charged to the account of the file and the user
 * (core/base/quota.h). A file over its budget has no index: entries that are missing could be newer
 * than those that are there, so that an old name would be shown for new code. */
struct code_source;
struct code_sources; /* all of one session */

enum code_look {
	CODE_LOOK_GROWTH, /* cheap: a little of what files that are open have got since */
	CODE_LOOK_FILES,  /* also files that are new or were written anew; not for long */
	CODE_LOOK_ALL,	  /* all that there is */
};

struct code_sources *code_sources__new(void);	       /* NULL: out of memory */
void code_sources__free(struct code_sources *sources); /* NULL is fine; all must be released */

/* Returns in @ret the source of the open file, whose memory and time are charged to @uid. @file is
 * taken, also on failure: -ENOMEM; -EFBIG for a copy that is over the budget. @path names the file
 * in messages. */
int code_sources__share(struct code_sources *sources, struct code_file *file, bool is_jitdump,
			uint32_t uid, const char *path, struct code_source **ret);
void code_source__release(struct code_source *source); /* NULL is fine */

/* Reads what has come since, and adds what that is to @counts. -ENOMEM. */
int code_source__look(struct code_source *source, enum code_look how, uint64_t now_ns,
		      struct perf_map_counts *counts);

const struct code_file *code_source__file(const struct code_source *source);

/* Another number means that another answer of code_source__find() is possible. */
uint32_t code_source__changes(const struct code_source *source);

/* Number of the reading: unique in the session, another one when the file was written anew. */
uint32_t code_source__edition(const struct code_source *source);

/* As code_index__find(). */
bool code_source__find(struct code_source *source, uint64_t address, uint64_t time_ns,
		       struct code_entry *ret);

/* The name of an entry of @edition, cut to fit, and file and line of @address if these are known
 * (else "" and 0). Returns false if the file no longer holds the entry. */
struct code_symbol;
bool code_source__symbol(struct code_source *source, uint32_t edition,
			 const struct code_entry *entry, uint64_t address, uint32_t skew,
			 struct code_symbol *ret);

#endif
