/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JIT_MAPS_H
#define BRAID_JIT_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/target/jit_index.h"
#include "core/target/jit_source.h"
#include "core/target/procfs.h"

/* The code that one process reports: its perf map, and the jitdump files that it maps. For code
 * that the process inherited in a fork, the files of its ancestors are used. */
struct jit_maps;

/* Creates the maps of a process. @sources must outlive the maps. Returns 0 or -ENOMEM. */
int jit_maps__new(const struct procfs_info *info, struct jit_sources *sources,
		  struct jit_maps **ret);

/* A process from which this one was forked. The child runs in a copy of the code that existed at
 * the fork. */
struct jit_ancestor {
	uint32_t inner_pid;
	uint64_t start_ticks;
	uint64_t until_ns; /* time of the fork; later reports do not apply to the child */
};
#define JIT_ANCESTORS_MAX 5

/* Adds the files of @ancestor, with a lower priority than those of the process and of nearer
 * ancestors. Up to JIT_ANCESTORS_MAX. */
void jit_maps__inherit(struct jit_maps *maps, const struct jit_ancestor *ancestor);

void jit_maps__free(struct jit_maps *maps); /* NULL is fine */

/* Offers an executable mapping with a path, which may be a jitdump file. */
void jit_maps__offer(struct jit_maps *maps, const char *path, uint64_t start, uint64_t end);

/* Reads new contents of the files. Returns 0 or -ENOMEM. */
int jit_maps__look(struct jit_maps *maps, enum jit_look how, uint64_t now_ns);

uint64_t jit_maps__looked_ns(const struct jit_maps *maps);

/* Returns a number that changes when results of jit_maps__find() may change. Never 0. */
uint32_t jit_maps__version(struct jit_maps *maps);

/* A piece of code, as one file reports it. Borrows nothing. */
struct jit_place {
	uint32_t source, edition;
	struct jit_entry entry; /* entry.text 0: no such code */
};

/* Finds the code that was at @address at @time_ns, as jit_index__find(). */
bool jit_maps__find(struct jit_maps *maps, uint64_t address, uint64_t time_ns,
		    struct jit_place *ret);

#define JIT_NAME_BYTES 1024
#define JIT_PATH_BYTES 512

struct jit_symbol {
	char name[JIT_NAME_BYTES];
	char file[JIT_PATH_BYTES]; /* "": unknown */
	uint32_t line;		   /* line of `address`; 0: unknown */
};

/* Finds the name, file and line of the code. @skew is as in jitdump__line(). Returns false if the
 * file no longer has the entry. */
bool jit_maps__symbol(const struct jit_maps *maps, const struct jit_place *place, uint64_t address,
		      uint32_t skew, struct jit_symbol *ret);

struct jit_maps_counts {
	uint64_t symbols, skipped; /* entries read so far, and malformed ones */
};

/* Adds the number of entries that were read for this process to @add_to. Each part of a file shared
 * by several processes counts once. */
void jit_maps__count(const struct jit_maps *maps, struct jit_maps_counts *add_to);

/* Returns true, with the message in @ret, if an existing file was refused since the last call. */
bool jit_maps__refusal(struct jit_maps *maps, struct err *ret);

#endif
