/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LOAD_TABLES_H
#define BRAID_LOAD_TABLES_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/profile.h"

/* The tables of a recording in memory, checked: references are indexes into the arrays here, or
 * LOAD_NONE for those that are absent or lead nowhere; chains of nodes end; texts are C strings.
 * Numbers that are absent or of a wrong type are 0. */

#define LOAD_NONE      UINT32_MAX
#define LOAD_DEPTH_MAX 8192 /* nodes of a stack; deeper is damage */
#define LOAD_LEVEL_MAX 64   /* locations of a frame */

typedef size_t load_text; /* place in the texts; 0 is "" */

/* Rows of one table, ascending by `id`, which each row type begins with. */
#define LOAD_ROWS(type)        \
	struct {               \
		type *rows;    \
		size_t n, cap; \
	}

struct load_process {
	uint32_t id, pid;
	load_text name;
};

struct load_thread {
	uint32_t id, process, tid;
	load_text name;
};

struct load_image {
	uint32_t id;
	load_text name; /* path without the directory */
};

struct load_function {
	uint32_t id;
	load_text name, file;
};

struct load_frame {
	uint32_t id, image;
	uint64_t address;
	uint32_t location, n_locations; /* rows of locations, innermost first */
	uint32_t kinds;			/* bit per kind: its own and those of its locations */
	uint8_t kind;			/* KINDS_MAX: none that there can be */
	bool loop;			/* as in the recording */
	bool anonymous;			/* has no image, not even a missing one */
};

struct load_location {
	uint32_t function, line;
	uint8_t kind; /* as for frames */
};

struct load_node {
	uint32_t id, parent, frame;
	uint32_t kinds, depth; /* of all frames from here outwards */
	uint64_t address;      /* as merge takes it */
};

/* All samples that have both stacks in common. */
struct load_stack {
	uint32_t native, runtime;
	uint64_t samples, weight;
};

struct load_counter {
	load_text name;
	uint64_t value;
};

struct load_tables {
	sqlite3 *db;
	const char *path;
	char *texts;
	size_t n_texts, cap_texts;
	load_text kind_names[KINDS_MAX], kind_suffixes[KINDS_MAX]; /* "": no such kind */
	load_text target;
	double duration_s, frequency_hz;
	LOAD_ROWS(struct load_process) processes;
	LOAD_ROWS(struct load_thread) threads;
	LOAD_ROWS(struct load_image) images;
	LOAD_ROWS(struct load_function) functions;
	LOAD_ROWS(struct load_frame) frames;
	LOAD_ROWS(struct load_location) locations;
	LOAD_ROWS(struct load_node) nodes;
	LOAD_ROWS(struct load_stack) stacks;
	LOAD_ROWS(struct load_counter) counters;
	struct intern *stack_ids; /* private */
	const bool *wanted;	  /* private */
};

/* Opens and reads all but the samples. Errors as load__profile. Call load_tables__done in any
 * case. `path` is borrowed. */
int load_tables__read(struct load_tables *tables, const char *path, struct err *err);
void load_tables__done(struct load_tables *tables);

/* Then the samples into `stacks`: those of the threads (by their place in `threads`) that are
 * wanted; all if `wanted` is NULL. */
int load_tables__samples(struct load_tables *tables, const bool *wanted, struct err *err);

/* Borrowed until load_tables__done. */
static inline const char *load_tables__text(const struct load_tables *tables, load_text text)
{
	return tables->texts + text;
}

#endif
