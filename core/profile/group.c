// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/group.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/syscalls.h"
#include "core/base/title.h"
#include "core/base/util.h"

static const char *const names[PROFILE_BYS_N] = {
	[PROFILE_BY_STATE] = "state",	  [PROFILE_BY_SYSCALL] = "syscall",
	[PROFILE_BY_PROCESS] = "process", [PROFILE_BY_THREAD] = "thread",
	[PROFILE_BY_AGE] = "age",	  [PROFILE_BY_CONTAINER] = "container",
	[PROFILE_BY_CGROUP] = "cgroup",	  [PROFILE_BY_TASK] = "task",
	[PROFILE_BY_SERVICE] = "service", [PROFILE_BY_TRACE] = "trace",
	[PROFILE_BY_SPAN] = "span",	  [PROFILE_BY_REQUEST] = "request",
	[PROFILE_BY_LABEL] = "label",
};

const char *group__name(enum profile_by by)
{
	return names[by];
}

enum profile_by group__find(const char *name)
{
	enum profile_by by = PROFILE_BY_STACK + 1;

	if (!strncmp(name, GROUP_LABEL_PREFIX, strlen(GROUP_LABEL_PREFIX)))
		return name[strlen(GROUP_LABEL_PREFIX)] ? PROFILE_BY_LABEL : PROFILE_BYS_N;
	if (!strncmp(name, GROUP_VALUE_PREFIX, strlen(GROUP_VALUE_PREFIX)))
		return name[strlen(GROUP_VALUE_PREFIX)] ? PROFILE_BY_LABEL : PROFILE_BYS_N;
	while (by < PROFILE_BYS_N && (by == PROFILE_BY_LABEL || strcmp(names[by], name) != 0))
		by++;
	return by;
}

const char *group__state(const struct rec_condition *condition)
{
	static const char *const states[THREAD_STATES_N] = {
		[STATE_RUNS] = "running",    [STATE_PREEMPTED] = "preempted",
		[STATE_BLOCKED] = "waiting", [STATE_STOPPED] = "stopped",
		[STATE_PARKED] = "parked",
	};

	return condition->state < THREAD_STATES_N ? states[condition->state] : NULL;
}

/* Returns the label of a thread's state. A thread that is about to wait for the lock of its
 * interpreter, or just got it, still runs. Its time counts as waiting for the lock. */
static const char *state_label(const struct rec_condition *condition)
{
	static const char *const running[LOCK_STATES_N] = {
		[LOCK_UNKNOWN] = "running",
		[LOCK_HELD] = "running with the lock",
		[LOCK_FREE] = "running without the lock",
		[LOCK_WAITED] = "waiting for the lock",
	};
	static const char *const blocked[LOCK_STATES_N] = {
		[LOCK_UNKNOWN] = "waiting",
		[LOCK_HELD] = "waiting with the lock",
		[LOCK_FREE] = "waiting elsewhere",
		[LOCK_WAITED] = "waiting for the lock",
	};
	uint8_t lock = condition->lock < LOCK_STATES_N ? condition->lock : LOCK_UNKNOWN;
	const char *state = group__state(condition);

	if (condition->state == STATE_RUNS)
		return running[lock];
	if (condition->state == STATE_BLOCKED)
		return blocked[lock];
	if (condition->state == STATE_PREEMPTED && lock == LOCK_HELD)
		return "preempted with the lock"; /* all others of its interpreter wait, too */
	return state ? state : "state not known";
}

uint64_t group__key(enum profile_by by, const struct recorded_stack *stack)
{
	switch (by) {
	case PROFILE_BY_STATE:
		return (uint32_t)stack->condition.state << 8 | stack->condition.lock;
	case PROFILE_BY_SYSCALL:
		return stack->condition.syscall;
	case PROFILE_BY_PROCESS: /* a thread has one process, container and cgroup */
	case PROFILE_BY_CONTAINER:
	case PROFILE_BY_CGROUP:
	case PROFILE_BY_SERVICE:
	case PROFILE_BY_THREAD:
		return stack->thread;
	case PROFILE_BY_AGE:
		return stack->age;
	case PROFILE_BY_TASK:
		return stack->task;
	case PROFILE_BY_TRACE:
	case PROFILE_BY_SPAN:
	case PROFILE_BY_REQUEST:
	case PROFILE_BY_LABEL:
		return stack->group;
	default:
		return 0;
	}
}

static void syscall_label(int number, char *buf, size_t size)
{
	const char *name = syscall__name(number);

	if (name)
		snprintf(buf, size, "%s", name);
	else if (number == NO_SYSCALL)
		snprintf(buf, size, "no system call");
	else
		snprintf(buf, size, "system call %d", number);
}

static void process_label(const struct recorded *recorded, uint32_t process, char *buf, size_t size)
{
	const struct recorded_process *row = &recorded->processes.rows[process];
	char title[TITLE_BYTES];

	if (process == RECORDED_NONE)
		snprintf(buf, size, "process not known");
	else
		snprintf(buf, size, "%.255s (%u)",
			 title__of(recorded__text(recorded, row->name),
				   recorded__text(recorded, row->command), title),
			 row->pid);
}

static void thread_label(const struct recorded *recorded, uint32_t thread, char *buf, size_t size)
{
	const struct profile_thread_of of = group__thread(recorded, thread);
	const char *name = of.name;
	char title[TITLE_BYTES];

	if (thread == RECORDED_NONE) {
		snprintf(buf, size, "thread not known");
		return;
	}
	if (of.pid == of.tid)
		name = title__of_thread(of.name, of.process, of.command, title);
	if (of.tid == PARKED_TID)
		snprintf(buf, size, "%.100s of %.155s (%u)", name, of.process, of.pid);
	else
		snprintf(buf, size, "%.255s (%u)", name, of.tid);
}

/* Labels of stacks without a group, from PROFILE_BY_SERVICE on. */
static const char *const no_group[] = { "no service", "no trace", "no span", "no request",
					"no label" };

bool group__is_none(const char *label)
{
	for (size_t i = 0; i < ARRAY_SIZE(no_group); i++)
		if (!strcmp(no_group[i], label))
			return true;
	return false;
}

static void service_label(const struct recorded *recorded, uint32_t process, char *buf, size_t size)
{
	recorded_text service =
		process == RECORDED_NONE ? 0 : recorded->processes.rows[process].service;

	snprintf(buf, size, "%.255s", service ? recorded__text(recorded, service) : no_group[0]);
}

static void task_label(const struct recorded *recorded, uint64_t task, char *buf, size_t size)
{
	const char *name = recorded__text(recorded, recorded->task_name);

	if (!*name)
		name = "task";
	if (task)
		snprintf(buf, size, "%.255s %" PRIu64, name, task);
	else
		snprintf(buf, size, "no %.255s", name);
}

static const char *age_label(uint8_t age)
{
	static const char *const ages[RECORDED_AGES + 1] = {
		"age not known",      "held less than 1 s",   "held 1 s to 10 s",
		"held 10 s to 1 min", "held 1 min to 10 min", "held 10 min to 1 h",
		"held 1 h or longer",
	};

	return ages[age <= RECORDED_AGES ? age : 0];
}

struct profile_thread_of group__thread(const struct recorded *recorded, uint32_t thread)
{
	struct profile_thread_of of = { .process = "", .name = "", .cgroup = "", .container = "" };
	const struct recorded_thread *row = &recorded->threads.rows[thread];

	if (thread == RECORDED_NONE)
		return of;
	of.tid = row->tid;
	of.name = recorded__text(recorded, row->name);
	if (row->process == RECORDED_NONE)
		return of;
	of.pid = recorded->processes.rows[row->process].pid;
	of.process = recorded__text(recorded, recorded->processes.rows[row->process].name);
	of.cgroup = recorded__text(recorded, recorded->processes.rows[row->process].cgroup);
	of.container = recorded__text(recorded, recorded->processes.rows[row->process].container);
	of.command = recorded__text(recorded, recorded->processes.rows[row->process].command);
	of.service = recorded__text(recorded, recorded->processes.rows[row->process].service);
	return of;
}

static void place_label(struct profile_thread_of thread, enum profile_by by, char *buf, size_t size)
{
	bool container = by == PROFILE_BY_CONTAINER;
	const char *name = container ? thread.container : thread.cgroup;

	snprintf(buf, size, "%.255s",
		 *name	     ? name
		 : container ? "no container"
			     : "cgroup not known");
}

void group__label(const struct recorded *recorded, enum profile_by by,
		  const struct recorded_stack *stack, char *buf, size_t size)
{
	const struct recorded_thread *thread = &recorded->threads.rows[stack->thread];
	bool known = stack->thread != RECORDED_NONE;

	switch (by) {
	case PROFILE_BY_STATE:
		snprintf(buf, size, "%s", state_label(&stack->condition));
		break;
	case PROFILE_BY_SYSCALL:
		syscall_label(stack->condition.syscall, buf, size);
		break;
	case PROFILE_BY_AGE:
		snprintf(buf, size, "%s", age_label(stack->age));
		break;
	case PROFILE_BY_TASK:
		task_label(recorded, stack->task, buf, size);
		break;
	case PROFILE_BY_TRACE:
	case PROFILE_BY_SPAN:
	case PROFILE_BY_REQUEST:
	case PROFILE_BY_LABEL:
		snprintf(buf, size, "%.255s",
			 stack->group ? recorded__word_text(recorded, stack->group)
				      : no_group[by - PROFILE_BY_SERVICE]);
		break;
	case PROFILE_BY_SERVICE:
		service_label(recorded, known ? thread->process : RECORDED_NONE, buf, size);
		break;
	case PROFILE_BY_CONTAINER:
	case PROFILE_BY_CGROUP:
		place_label(group__thread(recorded, stack->thread), by, buf, size);
		break;
	case PROFILE_BY_PROCESS:
		process_label(recorded, known ? thread->process : RECORDED_NONE, buf, size);
		break;
	default:
		thread_label(recorded, stack->thread, buf, size);
	}
}
