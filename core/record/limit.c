// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/record/parts.h"

#include <assert.h>
#include <stdio.h>

#include "core/base/priority.h"
#include "core/base/util.h"

/* Enforces --max-overhead (docs/reference/overhead.md). */

/* Limit for samples of events that can be frequent, in percent of each CPU, unless the user gives
 * one. */
#define EVENTS_PERCENT_DEFAULT 3

double session__events_percent(const struct session *session)
{
	return session->opts.insist ? session->opts.max_overhead_percent : EVENTS_PERCENT_DEFAULT;
}

int session__begin_limit(struct session *session, bool probes, struct err *err)
{
	const struct session_opts *opts = &session->opts;
	struct governor_opts governor = { .object = kernel_half__object(session->half),
					  .runtimes = opts->runtimes,
					  .enabled = opts->enabled,
					  .max_percent = opts->max_overhead_percent };

	if (session->targets.scope) /* -a is used when a machine is out of CPU time */
		priority__raise();
	if (opts->max_overhead_percent <= 0)
		return 0;
	pace__init(&session->limit.pace, opts->max_overhead_percent, opts->frequency_hz);
	return probes ? governor__new(&governor, &session->limit.governor, err) : 0;
}

void session__end_limit(struct session *session)
{
	priority__restore();
	governor__free(session->limit.governor);
	session->limit.governor = NULL;
}

/* --- probes --- */

static void rest(struct session *session)
{
	governor__rest(session->limit.governor);
	if (!session->targets.scope && !session->opts.command)
		priority__restore();
}

/* Detaches all probes. A session of `calls` ends instead, since it has no other data, and detaches
 * its probes then. */
static void give_up(struct session *session, uint64_t now)
{
	double percent = governor__percent(session->limit.governor);

	assert(!session->limit.exceeded_ns);
	session->limit.exceeded_ns = now;
	snprintf(session->limit.why, sizeof(session->limit.why),
		 "probes cost %.*f %% of this machine, more than --max-overhead %g", percent < 10,
		 percent, session->opts.max_overhead_percent);
	if (session->opts.source == RUNTIME_SOURCE_CALLS)
		tracker__evaluate_hits(session->tracker);
	else
		tracker__give_up_probes(session->tracker, session->limit.why);
	rest(session);
}

/* Handles a limit that cannot be enforced. The default limit is dropped with a message; a limit
 * that the user requested is an error. */
static int cannot_keep(struct session *session, int code, const struct err *why, struct err *err)
{
	char text[sizeof(why->text) + 64];

	if (session->opts.insist) {
		*err = *why;
		return code;
	}
	if (session->opts.on_note) {
		snprintf(text, sizeof(text), "the limit of --max-overhead is not enforced: %s",
			 why->text);
		session->opts.on_note(session->opts.ctx, text);
	}
	session__end_limit(session);
	return 0;
}

int session__keep_limit(struct session *session, struct err *err)
{
	struct err why = {};
	uint64_t now;
	int ret;

	if (!session->limit.governor || session->limit.exceeded_ns)
		return 0;
	if (!tracker__has_probes(session->tracker)) {
		rest(session);
		return 0;
	}
	ret = governor__watch(session->limit.governor, tracker__traps(session->tracker), &why);
	if (ret)
		return cannot_keep(session, ret, &why, err);
	priority__raise(); /* probes cost CPU time while this process waits for a CPU */
	now = now_ns();
	if (governor__is_exceeded(session->limit.governor, now))
		give_up(session, now);
	return 0;
}

/* --- samples --- */

void session__keep_pace(struct session *session, uint64_t elapsed_ns)
{
	double cpu_s = own_cpu_s(), spent_s = cpu_s - session->limit.cpu_s;
	long n_cpus = max_of(sysconf(_SC_NPROCESSORS_ONLN), 1);
	bool first = session->limit.cpu_s == 0;

	session->limit.cpu_s = cpu_s;
	if (first || !session->opts.insist || session->opts.max_overhead_percent <= 0 ||
	    !event_list__has_timed(&session->opts.events, true))
		return;
	if (!pace__tick(&session->limit.pace, 100 * spent_s * NSEC_PER_SEC / elapsed_ns / n_cpus))
		return;
	events__slow_down(session->events, session->limit.pace.slowdown);
	capture__weigh(session->capture, now_ns(), session->limit.pace.slowdown);
}

/* --- result --- */

void session__limit(const struct session *session, struct session_limit *ret)
{
	const struct session_opts *opts = &session->opts;

	*ret = (struct session_limit) { .max_percent = opts->max_overhead_percent };
	if (session->limit.exceeded_ns) {
		ret->exceeded = session->limit.why;
		/* Probes count from when they are attached, which is before the start. */
		ret->exceeded_s = (double)(max_of(session->limit.exceeded_ns, session->start_ns) -
					   session->start_ns) /
				  NSEC_PER_SEC;
	}
	if (session->limit.pace.slowest > 1)
		ret->lowest_hz = max_of(opts->frequency_hz / session->limit.pace.slowest, 1U);
}

int session__write_limit(struct session *session, struct err *err)
{
	struct session_limit limit;
	char percent[32], exceeded_s[32], hz[32];
	int ret = 0;

	if (session->opts.max_overhead_percent <= 0)
		return 0;
	session__limit(session, &limit);
	snprintf(percent, sizeof(percent), "%g", limit.max_percent);
	snprintf(exceeded_s, sizeof(exceeded_s), "%.3f", limit.exceeded_s);
	snprintf(hz, sizeof(hz), "%u", limit.lowest_hz);
	const struct {
		const char *key, *value;
		bool requested;
	} rows[] = { { "max_overhead_percent", percent, true },
		     { "probes_detached_after_s", exceeded_s, limit.exceeded },
		     { "probes_detached_why", limit.exceeded, limit.exceeded },
		     { "lowest_frequency_hz", hz, limit.lowest_hz } };

	for (size_t i = 0; !ret && i < ARRAY_SIZE(rows); i++)
		if (rows[i].requested)
			ret = recording__meta(session->output.recording, rows[i].key, rows[i].value,
					      err);
	if (!ret && limit.exceeded)
		ret = recording__counter(
			session->output.recording,
			"times that probes were detached because of --max-overhead", 1, err);
	return ret;
}
