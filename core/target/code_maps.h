/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_MAPS_H
#define BRAID_CODE_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/target/code_index.h"
#include "core/target/code_source.h"
#include "core/target/procfs.h"

/* The code that one process reports: its perf map, and the jitdump files that it maps. For code
 * that the process inherited in a fork, the files of its ancestors are used. */
struct code_maps;

/* Creates the maps of a process. @sources must outlive the maps. Returns 0 or -ENOMEM. */
int code_maps__new(const struct procfs_info *info, struct code_sources *sources,
		   struct code_maps **ret);

/* A process from which this one was forked. The child runs in a copy of the code that existed at
 * the fork. */
struct code_ancestor {
	uint32_t inner_pid;
	uint64_t start_ticks;
	uint64_t until_ns; /* time of the fork; later reports do not apply to the child */
};
#define CODE_ANCESTORS_MAX 5

/* Adds the files of @ancestor, with a lower priority than those of the process and of nearer
 * ancestors. Up to CODE_ANCESTORS_MAX. */
void code_maps__inherit(struct code_maps *maps, const struct code_ancestor *ancestor);

void code_maps__free(struct code_maps *maps); /* NULL is fine */

/* Offers an executable mapping with a path, which may be a jitdump file. */
void code_maps__offer(struct code_maps *maps, const char *path, uint64_t start, uint64_t end);

/* Reads new contents of the files. Returns 0 or -ENOMEM. */
int code_maps__look(struct code_maps *maps, enum code_look how, uint64_t now_ns);

uint64_t code_maps__looked_ns(const struct code_maps *maps);

/* Returns a number that changes when results of code_maps__find() may change. Never 0. */
uint32_t code_maps__version(struct code_maps *maps);

/* A piece of code, as one file reports it. Borrows nothing. */
struct code_place {
	uint32_t source, edition;
	struct code_entry entry; /* entry.text 0: no such code */
};

/* Finds the code that was at @address at @time_ns, as code_index__find(). */
bool code_maps__find(struct code_maps *maps, uint64_t address, uint64_t time_ns,
		     struct code_place *ret);

#define CODE_NAME_BYTES 1024
#define CODE_PATH_BYTES 512

struct code_symbol {
	char name[CODE_NAME_BYTES];
	char file[CODE_PATH_BYTES]; /* "": unknown */
	uint32_t line;		    /* line of `address`; 0: unknown */
};

/* Finds the name, file and line of the code. @skew is as in jitdump__line(). Returns false if the
 * file no longer has the entry. */
bool code_maps__symbol(const struct code_maps *maps, const struct code_place *place,
		       uint64_t address, uint32_t skew, struct code_symbol *ret);

struct code_maps_counts {
	uint64_t symbols, skipped; /* entries read so far, and malformed ones */
};

/* Adds the number of entries that were read for this process to @add_to. Each part of a file shared
 * by several processes counts once. */
void code_maps__count(const struct code_maps *maps, struct code_maps_counts *add_to);

/* Returns true, with the message in @ret, if an existing file was refused since the last call. */
bool code_maps__refusal(struct code_maps *maps, struct err *ret);

#endif
