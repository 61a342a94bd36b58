/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CHAIN_H
#define BRAID_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bpf/libbpf.h>

#include "bpf/shared.h"

/* The structure of the kernel half's programs that take samples. A trigger (an occurrence of an
 * event) runs a program of some BPF type. The programs that follow by tail calls must have the same
 * type. So the stages (unwinder, walkers) have one source, which is loaded once for each type in
 * use. */
enum chain_type {
	CHAIN_TICK,	  /* perf events: timers, breakpoints */
	CHAIN_TRACEPOINT, /* raw tracepoints */
	CHAIN_UPROBE,
	CHAIN_TYPES_N
};

enum bpf_prog_type chain__program_type(enum chain_type type);

/* Slots of scratch memory that a type needs on each CPU (bpf/slots.bpf.h). */
uint32_t chain__slots(enum chain_type type);

/* Returns true if the BPF program @name follows a trigger, for any type. */
bool chain__is_stage(const char *name);

/* --- the chains of one session --- */

/* a program that takes samples */
struct chain_program {
	enum chain_type type;
	const char *name;
};

#define CHAIN_PROGRAMS_MAX 64 /* programs of one type, in one session */

/* The programs of a session's events, which are numbered from 1. */
struct chain_events {
	uint32_t of_type[CHAIN_TYPES_N]; /* bit n: event n has triggers of the type */
	/* ended by an entry without a name; NULL: the type's own trigger */
	const struct chain_program *programs[EVENTS_MAX + 1];
	uint32_t begins;    /* bit n: intervals of event n begin at a tracepoint */
	bool multi;	    /* CHAIN_UPROBE: attached by core/kernel/uprobe_multi.h */
	uint32_t functions; /* bit n: event n has triggers at kernel functions, by CHAIN_UPROBE */
};

#define CHAIN_PARTS_MAX (CHAIN_TYPES_N * (WALKERS_MAX + 1))

struct chain {
	bool used;
	uint32_t slot_first;
	int stages_fd;		    /* the type's array of stages; -1: not loaded yet */
	struct bpf_object *trigger; /* object with the programs of the type's triggers */
};

struct chains {
	struct bpf_object *base; /* object with all maps; borrowed */
	struct chain_events events;
	struct chain list[CHAIN_TYPES_N];
	const struct kernel_subset_map *instead; /* maps that replace the base's; borrowed */
	uint32_t slots;				 /* slots on each CPU */
	uint32_t tableless; /* bit n: the unwinder's hook of walker slot n is loaded */
	struct bpf_object *parts[CHAIN_PARTS_MAX]; /* owned */
	size_t n_parts;
};

struct chain_stage {
	const char *program;
	uint32_t stage; /* slot of a walker, or STAGE_UNWIND */
};

/* Computes the number of slots, and selects the programs of the first type in use for the base
 * object. */
int chains__plan(struct chains *chains, struct bpf_object *base, const struct chain_events *events,
		 uint32_t tableless);

/* Loads the unwinder and the triggers of all types, after the base object. */
int chains__load(struct chains *chains);

/* Loads further stages for each type. @tableless: additional hooks of the unwinder, which must then
 * be among @stages. */
int chains__add(struct chains *chains, const struct chain_stage *stages, size_t n,
		uint32_t tableless);

/* Returns the program that takes samples of event number @event; NULL: the type is not loaded. */
const struct bpf_program *chains__trigger(const struct chains *chains, enum chain_type type,
					  uint32_t event);

/* Returns the program for the tracepoint at which intervals of the event begin; NULL: it is not
 * loaded. */
const struct bpf_program *chains__begin(const struct chains *chains, uint32_t event);

/* Returns a program that an event names; NULL: it is not loaded. */
const struct bpf_program *chains__program(const struct chains *chains,
					  const struct chain_program *program);

void chains__done(struct chains *chains); /* idempotent */

#endif
