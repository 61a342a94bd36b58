// SPDX-License-Identifier: GPL-2.0-or-later
/* Processes of a scope, read before a sample finds them (core/target/read_ahead.h), and whether
 * braid has enough CPU time for that. They are read for a moment before the first sample, as the
 * user waits, and then in each round of the loop. While the recording is young the processes are
 * listed again, to find those that had used no CPU. Later processes are read at their first sample
 * or exec. */
#include "core/record/parts.h"

#include <stdio.h>
#include <string.h>

#include "core/base/priority.h"
#include "core/base/util.h"

/* Limits of the time before the first sample: for processes that the user has chosen, and for all
 * processes of a machine. Loading a walker takes up to 0.1 s. */
#define CHOSEN_NS (3 * NSEC_PER_SEC)
#define BEFORE_NS 300000000ULL
#define ROUND_NS  20000000ULL
#define YOUNG_NS  (8 * NSEC_PER_SEC)

static bool is_read(void *ctx, uint32_t pid)
{
	const struct session *session = ctx;

	return pid == (uint32_t)getpid() || tracker__has_read(session->tracker, pid);
}

static bool is_selected(void *ctx, uint32_t pid)
{
	const struct session *session = ctx;

	return scope__takes(session->targets.scope, pid);
}

static int read_until(struct session *session, uint64_t until_ns, struct err *err)
{
	struct process *process;
	uint32_t pid;
	int ret = 0;

	while (!ret && now_ns() < until_ns && !stopper__has_signal(session->stopper) &&
	       (pid = read_ahead__next(session->ahead.reader)))
		ret = session__find_process(session, pid, &process);
	return ret ? err__set(err, ret, "cannot follow the targets: %s", strerror(-ret)) : 0;
}

static int look(struct session *session, struct err *err)
{
	int ret = read_ahead__look(session->ahead.reader);

	return ret ? err__set(err, ret, "cannot list the running processes: %s", strerror(-ret))
		   : 0;
}

int session__begin_ahead(struct session *session, struct err *err)
{
	struct read_ahead_opts opts = { .is_selected = is_selected,
					.is_read = is_read,
					.ctx = session };
	int ret;

	if (!session->targets.scope || session->opts.source == RUNTIME_SOURCE_CALLS ||
	    session->opts.trigger)
		return 0;
	/* Chosen processes are read even if they are idle. All processes are read if waits are
	 * recorded, since a wait that has begun cannot be sampled again. Without events by the
	 * clock, no other processes are read: CPU time does not predict their samples. */
	opts.all =
		scope__flags(session->targets.scope) & (SCOPE_NAME | SCOPE_CGROUP | SCOPE_USER) ||
		event_list__waiting(&session->opts.events);
	if (!opts.all && !event_list__has_timed(&session->opts.events, true))
		return 0;
	ret = read_ahead__new(&opts, &session->ahead.reader);
	if (ret)
		return err__set(err, ret, "out of memory");
	priority__hurry(true);
	ret = look(session, err);
	return ret ? ret : read_until(session, now_ns() + (opts.all ? CHOSEN_NS : BEFORE_NS), err);
}

bool session__has_read_ahead(const struct session *session)
{
	return !session->ahead.reader || read_ahead__is_done(session->ahead.reader);
}

int session__read_ahead(struct session *session, struct err *err)
{
	if (!session->ahead.reader)
		return 0;
	priority__hurry(session->ring.is_lagging || !read_ahead__is_done(session->ahead.reader));
	return session->ring.is_lagging ? 0 : read_until(session, now_ns() + ROUND_NS, err);
}

static void note_lag(struct session *session)
{
	char text[160];

	if (session->ahead.is_reported || !session->opts.on_note)
		return;
	session->ahead.is_reported = true;
	snprintf(text, sizeof(text), "braid lacks CPU: %u processes still unread",
		 session->ahead.unread);
	session->opts.on_note(session->opts.ctx, text);
}

int session__watch_ahead(struct session *session, uint64_t now, uint64_t elapsed_ns,
			 struct err *err)
{
	if (!session->ahead.reader)
		return 0;
	session->ahead.unread = read_ahead__count(session->ahead.reader);
	if (session->ring.is_lagging)
		session->ahead.unread += tracker__count_unmet(session->tracker);
	if (session->ahead.unread) {
		session->ahead.lag.unread =
			max_of(session->ahead.lag.unread, session->ahead.unread);
		session->ahead.lag.seconds += elapsed_ns / 1e9;
		note_lag(session);
		return 0;
	}
	return now < session->start_ns + YOUNG_NS ? look(session, err) : 0;
}

int session__write_lag(struct session *session, struct err *err)
{
	if (!session->ahead.lag.unread)
		return 0;
	return recording__counter(session->output.recording,
				  "processes still unread, at most: braid lacked CPU",
				  session->ahead.lag.unread, err);
}
