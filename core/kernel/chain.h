/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CHAIN_H
#define BRAID_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bpf/libbpf.h>

#include "bpf/shared.h"

/* How the programs of the kernel half that take samples belong together. A trigger (an occurrence
 * of an event) runs a program of some BPF type, and what follows it by tail calls must be of the
 * same type: the stages (unwinder, walkers) are one source, loaded once for each type in use. */
enum chain_type {
	CHAIN_TICK,	  /* perf events: timers, breakpoints */
	CHAIN_TRACEPOINT, /* raw tracepoints */
	CHAIN_UPROBE,
	CHAIN_TYPES_N
};

enum bpf_prog_type chain__program_type(enum chain_type type);

/* Slots of scratch memory that a type needs on each CPU (bpf/slots.bpf.h). */
uint32_t chain__slots(enum chain_type type);

/* By the name of a BPF program: does it follow a trigger, whatever the type? */
bool chain__is_stage(const char *name);

/* --- those of one session --- */

/* A program that takes samples. */
struct chain_program {
	enum chain_type type;
	const char *name;
};

#define CHAIN_PROGRAMS_MAX 64 /* of one type, in one session */

/* What runs for the events of a session, by number from 1. */
struct chain_events {
	uint32_t of_type[CHAIN_TYPES_N]; /* bit n: event n has triggers of the type */
	/* Ended by one without a name; NULL: the type's own trigger */
	const struct chain_program *programs[EVENTS_MAX + 1];
	uint32_t begins; /* bit n: intervals of event n begin at a tracepoint */
	bool multi;	 /* CHAIN_UPROBE's are attached by core/kernel/uprobe_multi.h */
	uint32_t
		functions; /* bit n: event n has triggers at the kernel's functions: CHAIN_UPROBE */
};

#define CHAIN_PARTS_MAX (CHAIN_TYPES_N * (WALKERS_MAX + 1))

struct chain {
	bool used;
	uint32_t slot_first;
	int stages_fd;		    /* the type's array of stages; -1: not loaded yet */
	struct bpf_object *trigger; /* has the programs of the type's triggers */
};

struct chains {
	struct bpf_object *base; /* with all maps; borrowed */
	struct chain_events events;
	struct chain list[CHAIN_TYPES_N];
	const struct kernel_part_map *instead; /* maps that are not the base's; borrowed */
	uint32_t slots;			       /* of each CPU */
	uint32_t tableless; /* bit n: the unwinder's hook of walker slot n is loaded */
	struct bpf_object *parts[CHAIN_PARTS_MAX]; /* owned */
	size_t n_parts;
};

struct chain_stage {
	const char *program;
	uint32_t stage; /* a walker's slot, or STAGE_UNWIND */
};

/* Decides how many slots there are, and makes the base object load what the first of the types
 * needs. */
int chains__plan(struct chains *chains, struct bpf_object *base, const struct chain_events *events,
		 uint32_t tableless);

/* After the base object is loaded: the unwinder and the triggers of all types. */
int chains__load(struct chains *chains);

/* Loads further stages for each type. `tableless`: hooks that the unwinder gets in addition; it is
 * among the stages then. */
int chains__add(struct chains *chains, const struct chain_stage *stages, size_t n,
		uint32_t tableless);

/* The program that takes samples of an event of that number; NULL: none of the type is loaded. */
const struct bpf_program *chains__trigger(const struct chains *chains, enum chain_type type,
					  uint32_t event);

/* Where intervals of the event begin at a tracepoint; NULL: it is not loaded. */
const struct bpf_program *chains__begin(const struct chains *chains, uint32_t event);

/* One of those that events name; NULL: it is not loaded. */
const struct bpf_program *chains__program(const struct chains *chains,
					  const struct chain_program *program);

void chains__done(struct chains *chains); /* idempotent */

#endif
