/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_GROUP_H
#define BRAID_GROUP_H

#include "core/profile/recorded.h"

/* The subjects of the outermost level of a profile, other than the outermost functions. */
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
	PROFILE_BY_SERVICE,
	PROFILE_BY_TRACE,
	PROFILE_BY_SPAN,
	PROFILE_BY_REQUEST,
	PROFILE_BY_LABEL, /* profile_filter.label */
	PROFILE_BYS_N,
};
/* for people */
#define GROUPS                                                                              \
	"state, syscall, process, thread, task, service, trace, span, request, label:KEY, " \
	"value:NAME, container, cgroup or age"

/* The name of a group by the label KEY is "label:KEY". */
#define GROUP_LABEL_PREFIX "label:"
/* The group "value:NAME" is "label:value.NAME". */
#define GROUP_VALUE_PREFIX "value:"

/* Returns "state", ...; NULL for PROFILE_BY_STACK. */
const char *group__name(enum profile_by by);

/* Returns PROFILE_BYS_N if there is no group of that name. */
enum profile_by group__find(const char *name);

/* Returns true if the group is a part of the samples' request contexts. */
static inline bool group__needs_contexts(enum profile_by by)
{
	return by == PROFILE_BY_TRACE || by == PROFILE_BY_SPAN || by == PROFILE_BY_REQUEST ||
	       by == PROFILE_BY_LABEL;
}

/* Returns true for the label of stacks without a group: "no span", "no service". */
bool group__is_none(const char *label);

/* Returns the state of the thread: running, preempted, waiting or stopped; NULL: unknown. */
const char *group__state(const struct rec_condition *condition);

/* Returns the key of the stack's group. Stacks with equal keys are in one group. */
uint64_t group__key(enum profile_by by, const struct recorded_stack *stack);

/* Returns the data of @thread (a row, or RECORDED_NONE); unknown fields are 0 or "". Borrowed. */
struct profile_thread_of group__thread(const struct recorded *recorded, uint32_t thread);

/* Writes the label of the stack's group. */
#define GROUP_LABEL_BYTES 300
void group__label(const struct recorded *recorded, enum profile_by by,
		  const struct recorded_stack *stack, char *buf, size_t size);

#endif
