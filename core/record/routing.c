// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/record/routing.h"

#include <errno.h>

/* Ends the captured process of this serial number. */
static int leave(const struct routing *routing, struct process *process, struct err *err)
{
	return process ? capture__forget_process(routing->capture, process, err) : 0;
}

static int on_fork(const struct routing *routing, const struct rec_task *rec, struct err *err)
{
	/* An earlier process that had the PID is ended first. */
	int ret = leave(routing, tracker__find(routing->tracker, rec->tgid), err);

	return ret ? ret : tracker__on_fork(routing->tracker, rec);
}

static int on_found(const struct routing *routing, const struct rec_program *rec, struct err *err)
{
	/* An earlier process that had the PID is ended first. */
	int ret = leave(routing, tracker__find(routing->tracker, rec->tgid), err);

	return ret ? ret : tracker__on_found(routing->tracker, rec);
}

static int on_exec(const struct routing *routing, const struct rec_program *rec, struct err *err)
{
	struct process *process = tracker__find(routing->tracker, rec->tgid);
	int ret = leave(routing, process, err);

	return ret || !process ? ret : tracker__on_exec(routing->tracker, process, rec);
}

/* Completes the process's names now, since its files may be gone soon. */
static int on_exit_of(const struct routing *routing, const struct rec_task *rec, struct err *err)
{
	struct process *process = tracker__find(routing->tracker, rec->tgid);
	int ret = process ? capture__process_ended(routing->capture, process, err) : 0;

	if (!ret && process)
		tracker__on_exit(routing->tracker, process);
	else if (!process)
		tracker__on_stranger_exit(routing->tracker, rec->tgid);
	return ret;
}

static int on_unmapped(const struct routing *routing, const struct rec_unmapped *rec)
{
	struct process *process = tracker__find(routing->tracker, rec->tgid);

	return process ? tracker__on_unmapped(routing->tracker, process, rec) : 0;
}

static int on_later(const struct routing *routing, const struct rec_later *rec)
{
	struct process *process = tracker__find(routing->tracker, rec->tgid);

	return process ? tracker__on_later(routing->tracker, process, rec) : 0;
}

static int on_mapped(const struct routing *routing, const struct rec_mapped *rec)
{
	struct process *process = tracker__find(routing->tracker, rec->tgid);

	return process ? tracker__on_mapped(routing->tracker, process, rec) : 0;
}

static int route(const struct routing *routing, uint32_t type, const void *data, size_t size,
		 struct err *err)
{
	switch (type) {
	case REC_FORK:
		return size >= sizeof(struct rec_task) ? on_fork(routing, data, err) : 0;
	case REC_EXIT:
		return size >= sizeof(struct rec_task) ? on_exit_of(routing, data, err) : 0;
	case REC_EXEC:
		return size >= sizeof(struct rec_program) ? on_exec(routing, data, err) : 0;
	case REC_FOUND:
		return size >= sizeof(struct rec_program) ? on_found(routing, data, err) : 0;
	case REC_UNMAPPED:
		return size >= sizeof(struct rec_unmapped) ? on_unmapped(routing, data) : 0;
	case REC_LATER:
		return size >= sizeof(struct rec_later) ? on_later(routing, data) : 0;
	case REC_MAPPED:
		return size >= sizeof(struct rec_mapped) ? on_mapped(routing, data) : 0;
	default:
		return capture__record(routing->capture, data, size, err);
	}
}

int routing__record(const struct routing *routing, const void *data, size_t size, struct err *err)
{
	const uint32_t *type = data;
	int ret = size >= sizeof(*type) ? route(routing, *type, data, size, err) : 0;

	return ret == -ENOMEM ? err__set(err, ret, "out of memory") : ret;
}

int routing__end(const struct routing *routing, struct process *process, struct err *err)
{
	int ret = capture__process_ended(routing->capture, process, err);

	tracker__on_end(routing->tracker, process);
	return ret;
}

int routing__consumed(const struct routing *routing, uint64_t consumed_ns, struct err *err)
{
	struct process *process;
	int ret = 0;

	while (!ret && (process = tracker__first_spent(routing->tracker, consumed_ns))) {
		ret = leave(routing, process, err);
		tracker__forget(routing->tracker, process);
	}
	return ret;
}
