/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_GROUP_H
#define BRAID_GROUP_H

#include "core/profile/recorded.h"

/* What the outermost level of a profile can be instead of the outermost functions. */
enum profile_by {
	PROFILE_BY_STACK, /* no such level */
	PROFILE_BY_STATE,
	PROFILE_BY_SYSCALL,
	PROFILE_BY_PROCESS,
	PROFILE_BY_THREAD,
	PROFILE_BY_AGE,
	PROFILE_BY_CONTAINER,
	PROFILE_BY_CGROUP,
	PROFILE_BY_TASK,
	PROFILE_BYS_N,
};
#define GROUPS "state, syscall, process, thread, task, container, cgroup or age" /* for people */

/* "state", ...; NULL for PROFILE_BY_STACK. */
const char *group__name(enum profile_by by);

/* PROFILE_BYS_N: there is none of that name. */
enum profile_by group__find(const char *name);

/* What the thread did: running, preempted, waiting, stopped; NULL: nothing is known. */
const char *group__state(const struct rec_condition *condition);

/* The same number for stacks of one group. */
uint64_t group__key(enum profile_by by, const struct recorded_stack *stack);

/* Whose a thread (a row, or RECORDED_NONE) is; 0 and "" for what is not known. Borrowed. */
struct profile_thread_of group__thread(const struct recorded *recorded, uint32_t thread);

/* What the stack's group is called. */
#define GROUP_LABEL_BYTES 300
void group__label(const struct recorded *recorded, enum profile_by by,
		  const struct recorded_stack *stack, char *buf, size_t size);

#endif
