// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/tracker_state.h"

#include <errno.h>

#include "core/base/util.h"
#include "core/kernel/maps.h"
#include "core/kernel/spaces.h"
#include "core/target/process_context.h"
#include "core/target/thread_context.h"

/* Contexts that tracers publish: process contexts, and places of the threads' request contexts. */

#define REREAD_NS 10000000ULL /* minimum time between two readings for unknown keys */

int tracker__read_context(struct process *process, uint64_t address, bool *ret_new)
{
	uint32_t before = process->context ? process->context->version : 0;
	int ret = 0;

	if (address)
		ret = process_context__read(process->pid, address, &process->context);
	*ret_new = process->context && process->context->version != before;
	return ret == -ENOMEM ? ret : 0;
}

int process__renew_context(struct process *process, uint64_t now_ns)
{
	uint64_t address;
	bool is_new;

	if (process__is_ended(process) || now_ns < process->context_read_ns + REREAD_NS)
		return 0;
	process->context_read_ns = now_ns;
	address =
		process->context ? process->context->address : process_context__find(process->pid);
	return tracker__read_context(process, address, &is_new);
}

void tracker__detach_context(struct tracker *tracker, struct space *space)
{
	if (!(space->walkers & WALKERS_CONTEXT))
		return;
	space->walkers &= ~WALKERS_CONTEXT;
	map__delete(kernel_half__map_fd(tracker->opts.half, "contexts"), &space->id);
}

void tracker__attach_context(struct tracker *tracker, const struct process *process)
{
	struct space *space = process->space;
	struct context_rec rec;
	int ret = thread_context__find(process, &rec), fd;

	space->awaits_context = ret == -EAGAIN;
	tracker->any_pending |= space->awaits_context;
	if (ret) {
		tracker__detach_context(tracker, space);
		return;
	}
	fd = kernel_half__map_fd(tracker->opts.half, "contexts");
	if (fd >= 0 && !map__update(fd, &space->id, &rec))
		space->walkers |= WALKERS_CONTEXT;
}
