/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TRIGGER_H
#define BRAID_TRIGGER_H

#include "core/base/err.h"
#include "core/kernel/kernel_half.h"
#include "core/target/tracker.h"

/* What tests have samples taken at, instead of the clock's ticks: the first instruction of a
 * function, exactly one sample each time it is about to be executed. By a hardware breakpoint where
 * these fire: then nothing in the target is changed, and the program is the clock's own. Some
 * virtual machines accept them and never report one: there by a uprobe. */
struct trigger_place {
	const char *file;   /* the end of the path of a mapped file: "libc.so.6" */
	const char *symbol; /* in its symbol tables */
};

struct trigger;

/* Of the programs that it needs: to be loaded for event number 1. */
enum chain_type trigger__type(void);

/* In the targets that there are, and what they start. -ENOENT, with the sentence, if one of them
 * has no such function. */
int trigger__attach(const struct trigger_place *place, const struct kernel_half *half,
		    const struct tracker *tracker, struct trigger **ret, struct err *err);

void trigger__free(struct trigger *trigger); /* detaches; NULL is fine */

#endif
