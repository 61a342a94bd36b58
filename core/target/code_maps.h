/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CODE_MAPS_H
#define BRAID_CODE_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/target/code_index.h"
#include "core/target/code_source.h"
#include "core/target/procfs.h"

/* What one process reports of the code that it makes: its perf map, and the jitdump files that it
 * has mapped; for code that it inherited when it was forked, those of its ancestor. */
struct code_maps;

/* @sources outlives it. -ENOMEM. */
int code_maps__new(const struct procfs_info *info, struct code_sources *sources,
		   struct code_maps **ret);

/* A process of which this one was forked: it runs in a copy of the code that was there then. */
struct code_ancestor {
	uint32_t inner_pid;
	uint64_t start_ticks;
	uint64_t until_ns; /* the fork: what it reports of later times is not this one's */
};
#define CODE_ANCESTORS_MAX 5

/* Its files count, too, after those of the process and of nearer ancestors. Up to
 * CODE_ANCESTORS_MAX. */
void code_maps__inherit(struct code_maps *maps, const struct code_ancestor *ancestor);

void code_maps__free(struct code_maps *maps); /* NULL is fine */

/* An executable mapping with a path: maybe of a jitdump file. */
void code_maps__offer(struct code_maps *maps, const char *path, uint64_t start, uint64_t end);

/* Reads what has come since. -ENOMEM. */
int code_maps__look(struct code_maps *maps, enum code_look how, uint64_t now_ns);

uint64_t code_maps__looked_ns(const struct code_maps *maps);

/* Another number means that another answer of code_maps__find is possible. Never 0. */
uint32_t code_maps__version(struct code_maps *maps);

/* A piece of code, as one file has it. Borrows nothing. */
struct code_place {
	uint32_t source, edition;
	struct code_entry entry; /* entry.text 0: no such code */
};

/* The code that was at `address` at `time_ns`; as code_index__find. */
bool code_maps__find(struct code_maps *maps, uint64_t address, uint64_t time_ns,
		     struct code_place *ret);

#define CODE_NAME_BYTES 1024
#define CODE_PATH_BYTES 512

struct code_symbol {
	char name[CODE_NAME_BYTES];
	char file[CODE_PATH_BYTES]; /* "": not known */
	uint32_t line;		    /* of `address`; 0: not known */
};

/* `skew` as in jitdump__line. False: its file does not hold it any more. */
bool code_maps__symbol(const struct code_maps *maps, const struct code_place *place,
		       uint64_t address, uint32_t skew, struct code_symbol *ret);

struct code_maps_counts {
	uint64_t symbols, skipped; /* read so far, and what made no sense */
};

/* What was read for this process; of files that several have, each part counts once. */
void code_maps__count(const struct code_maps *maps, struct code_maps_counts *add_to);

/* Why a file that is there was not read, since the last call; false: nothing to say. */
bool code_maps__refusal(struct code_maps *maps, struct err *ret);

#endif
