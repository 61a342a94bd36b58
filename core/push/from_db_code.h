/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FROM_DB_CODE_H
#define BRAID_FROM_DB_CODE_H

#include "core/base/intern.h"
#include "core/base/strtab.h"
#include "core/base/u64map.h"
#include "core/profile/recorded.h"
#include "core/push/row_binary.h"

/* The definitions in a database, as rows of a recording: the second half of from_db.c. */

struct from_db_stack {
	struct rec_condition condition;
	uint8_t age;
	uint16_t n_native, n;	  /* number of frames */
	size_t frames;		  /* index in `frame_ids` and `places` */
	uint32_t native, runtime; /* ids of nodes; 0: not created yet */
};

struct from_db_code {
	struct recorded *recorded;
	struct from_db_stack *stacks;
	size_t n_stacks, cap_stacks;
	struct u64map stack_index, frame_index; /* id -> number + 1; recorded id */
	uint64_t *frame_ids;
	uint16_t *places;
	size_t n_frames, cap_frame_ids, cap_places;
	struct strtab *images, *functions, *kinds;
	uint32_t n_functions; /* number of functions in `recorded` */
	struct intern function_index, node_index;
	uint8_t n_kinds;
	uint32_t n_nodes;
};

int from_db_code__init(struct from_db_code *code, struct recorded *recorded); /* 0 or -ENOMEM */
void from_db_code__done(struct from_db_code *code);

/* The columns that the next two functions read, in that order. */
#define FROM_DB_STACKS "stack, state, lock, syscall, age, natives, frames, places"
#define FROM_DB_FRAMES \
	"frame, kind, suffix, image, address, flags, kinds, suffixes, functions, files, lines"

/* Read one row. Return 0, -ENOMEM or -EBADMSG. */
int from_db_code__read_stack(struct from_db_code *code, struct row_reader *rows);
int from_db_code__read_frame(struct from_db_code *code, struct row_reader *rows);

/* Returns the ids of the stacks' frames, each once; the caller frees them. NULL: out of memory. */
uint64_t *from_db_code__frames(const struct from_db_code *code, size_t *ret_n);

/* Creates the nodes of a stack, after all frames were read. Returns 0, -ENOMEM or -EBADMSG. */
int from_db_code__make_nodes(struct from_db_code *code, struct from_db_stack *stack);

#endif
