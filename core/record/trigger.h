/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TRIGGER_H
#define BRAID_TRIGGER_H

#include "core/base/err.h"
#include "core/kernel/kernel_half.h"
#include "core/target/tracker.h"

/* A trigger takes samples for tests instead of the clock: exactly one sample each time the first
 * instruction of a function is about to be executed. It is a hardware breakpoint where these work:
 * the target is unchanged, and the BPF program is the clock's own. Some virtual machines accept
 * breakpoints but never report a hit; there it is a uprobe. */
struct trigger_place {
	const char *file;   /* the end of the path of a mapped file: "libc.so.6" */
	const char *symbol; /* in its symbol tables */
};

struct trigger;

/* Returns the type of the programs that a trigger needs, which are loaded for event number 1. */
enum chain_type trigger__type(void);

/* Attaches the trigger in all current targets and their children. Returns 0, or -ENOENT with a
 * sentence if one of them has no such function. */
int trigger__attach(const struct trigger_place *place, const struct kernel_half *half,
		    const struct tracker *tracker, struct trigger **ret, struct err *err);

void trigger__free(struct trigger *trigger); /* detaches; NULL is fine */

#endif
