// SPDX-License-Identifier: GPL-2.0-or-later
/* A command, and whatever it and its children execute. Each program should find its tables, walkers
 * and probes in place, so it is held by its system calls (core/target/hold.h): the command itself
 * from its exec on, which braid is told to watch; later programs from shortly after their exec,
 * when the kernel half has reported it, and only if their file was not met before. What is known
 * needs no preparation that takes longer than a dynamic linker does.
 *
 * Sampling and the recording's time run from the command's exec. A hold ends with a stop of the
 * linker's, never by the clock, but neither a signal nor -d waits for it. */
#include "core/session/session_state.h"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "core/base/util.h"

#define LINK_POLL_MS 50 /* between two looks at the ring and the clock while a linker works */
#define STOP_POLL_MS 20 /* that a program which was executed gets to stop */

static bool is_ending(const struct session *session)
{
	return stopper__has_signal(session->stopper) ||
	       (session->opts.duration_s > 0 &&
		now_ns() - session->start_ns >= session->opts.duration_s * 1e9);
}

static int refresh(struct session *session, uint32_t pid, struct err *err)
{
	struct process *process = tracker__find(session->tracker, pid);

	return process && tracker__refresh(session->tracker, process)
		       ? err__set(err, -ENOMEM, "out of memory")
		       : 0;
}

/* Until the command's libraries are mapped, or that does not matter any more. */
static int link_command(struct session *session, struct err *err)
{
	struct hold *hold = &session->child.hold;
	enum hold_state state = HOLD_EXECUTED;
	uint64_t consumed_ns = now_ns();
	int ret = 0;

	while (!ret && hold->pid && state != HOLD_LINKED && !is_ending(session)) {
		if (state == HOLD_EXECUTED && !hold__has_linker(hold))
			break;
		if (state == HOLD_EXECUTED)
			hold__go_on(hold);
		state = hold__wait(hold, session->child.signal_fd, LINK_POLL_MS);
		if (state == HOLD_RUNS && now_ns() < consumed_ns + LINK_POLL_MS * 1000000ULL)
			continue;
		ret = session__consume(session, err);
		consumed_ns = now_ns();
	}
	return ret ? ret : refresh(session, session->child.pid, err);
}

int session__start_command(struct session *session, struct err *err)
{
	struct child *child = &session->child;
	struct process *process;
	uint32_t id;
	int ret = child__exec(child, session->opts.command[0], stopper__fd(session->stopper), err);

	if (!ret)
		ret = session__consume(session, err);
	process = ret ? NULL : tracker__find(session->tracker, child->pid);
	if (process) /* it may be too short-lived for a sample, and yet have children */
		ret = capture__process_id(session->capture, process, &id, err);
	if (!ret)
		ret = session__begin(session, err);
	if (!ret)
		ret = link_command(session, err);
	if (!ret)
		ret = session__attach_in_targets(session, err);
	if (!ret)
		ret = session__commit(session, err);
	if (!ret) /* else it is not to run on */
		hold__release(&child->hold);
	return ret;
}

/* --- what is executed later --- */

struct hold *session__hold(struct session *session, const struct rec_program *rec)
{
	size_t i;

	if (!session->opts.command || session->child.hold.pid || rec->image ||
	    !tracker__find(session->tracker, rec->tgid) || is_ending(session))
		return NULL;
	for (i = 0; i < ARRAY_SIZE(session->holds); i++)
		if (session->holds[i].pid == (int)rec->tgid)
			return NULL;
	for (i = 0; i < ARRAY_SIZE(session->holds) && session->holds[i].pid; i++)
		;
	if (i == ARRAY_SIZE(session->holds) || !hold__interrupt(&session->holds[i], rec->tgid))
		return NULL;
	session->holds[i].is_child = (int)rec->tgid == session->child.pid;
	return hold__wait(&session->holds[i], session->child.signal_fd, STOP_POLL_MS) ==
			       HOLD_EXECUTED
		       ? &session->holds[i]
		       : NULL;
}

static int see_libraries(struct session *session, struct hold *hold, struct err *err)
{
	int ret = refresh(session, hold->pid, err);

	if (!ret)
		ret = session__follow(session, err);
	hold__release(hold);
	return ret;
}

int session__follow_holds(struct session *session, struct err *err)
{
	struct signalfd_siginfo info;
	int ret = 0;

	if (session->child.signal_fd < 0)
		return 0;
	while (read(session->child.signal_fd, &info, sizeof(info)) == sizeof(info))
		;
	for (size_t i = 0; !ret && i < ARRAY_SIZE(session->holds); i++) {
		struct hold *hold = &session->holds[i];
		enum hold_state state = hold__next(hold);

		if (state == HOLD_EXECUTED)
			hold__go_on(hold);
		else if (state == HOLD_LINKED)
			ret = see_libraries(session, hold, err);
	}
	return ret;
}

void session__release_holds(struct session *session)
{
	hold__release(&session->child.hold);
	for (size_t i = 0; i < ARRAY_SIZE(session->holds); i++)
		hold__release(&session->holds[i]);
}
