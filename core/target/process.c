// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/process.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/quota.h"
#include "core/base/sort.h"
#include "core/kernel/spaces.h"
#include "core/target/compiled_code.h"
#include "core/target/mapping_times.h"
#include "core/target/place.h"
#include "core/target/process_context.h"

#define TO(name) (1U << PROCESS_##name)

/* The states of a process, the events that lead to each, and the states from which they may:
 *
 *   state     entered by                                          from
 *   NEW       a fork, a first sample, or the user's -p; an exec;  - STARTING PUBLISHED HELD
 *             the release of a held process without a space
 *   STARTING  tracker__add() of the command that braid starts     NEW
 *   PUBLISHED the first published mappings, or those of the       NEW HELD
 *             parent at a fork; the release of a held process
 *   HELD      the tracer stopped the process at its exec          NEW PUBLISHED
 *   ENDING    the exit of the last thread, if the user named      NEW STARTING PUBLISHED HELD
 *             the process
 *   ENDED     the exit of the last thread of any other process;   all others
 *             the end of a process that was ENDING
 *
 * A later exec does not revive a process that is ENDING or ENDED: records of execs that were lost
 * or late may follow an exit that was found by other means. */
void process__enter(struct process *process, enum process_state state)
{
	static const uint32_t allowed[PROCESS_STATES] = {
		[PROCESS_NEW] = TO(STARTING) | TO(PUBLISHED) | TO(HELD) | TO(ENDING) | TO(ENDED),
		[PROCESS_STARTING] = TO(NEW) | TO(ENDING) | TO(ENDED),
		[PROCESS_PUBLISHED] = TO(NEW) | TO(HELD) | TO(ENDING) | TO(ENDED),
		[PROCESS_HELD] = TO(NEW) | TO(PUBLISHED) | TO(ENDING) | TO(ENDED),
		[PROCESS_ENDING] = TO(ENDED),
	};

	assert(allowed[process->state] & 1U << state);
	assert(state != PROCESS_NEW || !process->space);
	assert(state != PROCESS_PUBLISHED || process->space);
	process->state = state;
}

void process__hold(struct process *process)
{
	if (process->state == PROCESS_NEW || process->state == PROCESS_PUBLISHED)
		process__enter(process, PROCESS_HELD);
}

void process__let_run(struct process *process)
{
	if (process->state == PROCESS_HELD)
		process__enter(process, process->space ? PROCESS_PUBLISHED : PROCESS_NEW);
}

void process__take_space(struct process *process, struct space *space)
{
	assert(!process->space);
	process->space = space;
	if (process->state == PROCESS_NEW)
		process__enter(process, PROCESS_PUBLISHED);
}

static void free_mapped(struct mapped *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i].path);
	free(list);
}

static void drop_mapped(struct process *process)
{
	free_mapped(process->mapped, process->n_mapped);
	quota__give_back(process->account, process->charged);
	process->mapped = NULL;
	process->n_mapped = 0;
	process->charged = 0;
	process->is_stale = false;
}

void process__clear_mapped(struct process *process)
{
	drop_mapped(process);
	mapping_times__free(process->times, process->account);
	process->times = NULL;
	process_context__free(process->context);
	process->context = NULL;
}

struct quota_account *process__account(struct process *process)
{
	char name[64];

	if (process->account)
		return process->account;
	snprintf(name, sizeof(name), "/proc/%u/maps", process->pid);
	process->account = quota__open(&(struct quota_subject) { .ino = process->pid,
								 .mtime_ns = process->serial,
								 .uid = process->info.uid,
								 .name = name });
	return process->account;
}

int process__set_mapped(struct process *process, struct mapped *list, size_t n)
{
	uint64_t bytes = n * sizeof(*list);
	int ret;

	for (size_t i = 0; i < n; i++)
		bytes += list[i].path ? strlen(list[i].path) + 1 : 0;
	drop_mapped(process);
	ret = quota__charge(process__account(process), QUOTA_RETAINED, bytes);
	if (ret == -EFBIG) {
		free_mapped(list, n);
		return ret;
	}
	process->mapped = list;
	process->n_mapped = n;
	process->charged = ret ? 0 : bytes; /* a stop: the last samples need the mappings */
	return 0;
}

void process__read_info(struct process *process)
{
	struct procfs_info info;

	if (process->is_info_derived && !process__is_ended(process) &&
	    !procfs__info(process->pid, &info, NULL))
		process->info = info;
	process->is_info_derived = false;
}

uint32_t process__attached(const struct process *process)
{
	return process->space ? process->space->attached : process->attached;
}

bool process__is_pending(const struct process *process, int i)
{
	return process->space && process->space->pending & 1U << i;
}

void process__forget_code(struct process *process)
{
	places__free(process->places);
	compiled_code__free(process->code);
	process->places = NULL;
	process->code = NULL;
}

const struct mapped *process__find(const struct process *process, uint64_t address)
{
	size_t i = sorted__count_up_to(process->mapped, process->n_mapped, sizeof(*process->mapped),
				       address);

	return i && address < process->mapped[i - 1].end ? &process->mapped[i - 1] : NULL;
}

bool path__ends_with(const char *path, const char *file)
{
	size_t n = strlen(path), n_file = strlen(file);

	return n >= n_file && !strcmp(path + n - n_file, file) &&
	       (n == n_file || path[n - n_file - 1] == '/');
}

const struct mapped *process__find_symbol(const struct process *process, const char *file,
					  const char *symbol, uint64_t *ret_vaddr)
{
	size_t i;

	for (i = 0; i < process->n_mapped; i++) {
		const struct mapped *mapped = &process->mapped[i];

		if (mapped->image && path__ends_with(mapped->path, file) &&
		    !elf_file__find_symbol(mapped->image->file, symbol, ret_vaddr, NULL))
			return mapped;
	}
	return NULL;
}
