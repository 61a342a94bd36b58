// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/session_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/priority.h"
#include "core/shadow_map.h"
#include "core/util.h"

/* Keeps --max-overhead: docs/overhead.md. */

int session__begin_limit(struct session *session, uint32_t n_shadows, struct err *err)
{
	const struct session_opts *opts = &session->opts;
	struct governor_opts governor = { .object = kernel_half__object(session->half),
					  .runtimes = opts->runtimes,
					  .enabled = opts->enabled,
					  .max_percent = opts->max_overhead_percent };

	if (opts->max_overhead_percent <= 0)
		return 0;
	pace__init(&session->pace, opts->max_overhead_percent, opts->frequency_hz);
	session->n_shadows = n_shadows;
	return n_shadows ? governor__new(&governor, &session->governor, err) : 0;
}

void session__end_limit(struct session *session)
{
	governor__free(session->governor);
	session->governor = NULL;
	calls_cut__done(&session->cut);
}

/* --- probes --- */

struct cutting {
	struct session *session;
	uint64_t end_ns;
	int code;
};

static void cut_call(void *ctx, const struct shadow_entry *entry)
{
	struct cutting *cutting = ctx;

	if (!cutting->code)
		cutting->code = calls_cut__add(&cutting->session->cut, entry, cutting->end_ns);
}

/* They are mapped for that moment only, as they are many. */
static int clear_shadows(struct session *session, struct cutting *cutting, struct err *err)
{
	struct shadow_map map;
	int code = shadow_map__open(session->half, session->n_shadows, &map, err);

	if (code)
		return code;
	shadow_map__clear(&map, cutting ? cut_call : NULL, cutting);
	shadow_map__close(&map);
	return cutting && cutting->code ? err__set(err, cutting->code, "out of memory") : 0;
}

static int close_window(struct session *session, struct err *err)
{
	struct cutting cutting = { .session = session, .end_ns = now_ns() };
	double percent = governor__percent(session->governor);
	char why[RUNTIME_REASON_BYTES];

	snprintf(why, sizeof(why),
		 "probes cost %.*f %% of this machine, more than --max-overhead %g", percent < 10,
		 percent, session->opts.max_overhead_percent);
	tracker__pause_probes(session->tracker, why);
	governor__detached(session->governor, now_ns() - cutting.end_ns);
	/* What is left of detaching is waiting. */
	session->attached_ns += cutting.end_ns - session->window_ns;
	session->window_ns = 0;
	session->n_windows++;
	return clear_shadows(session, &cutting, err);
}

/* A child that was forked meanwhile may have got a copy of a stack that was then cleared. */
static int open_window(struct session *session, struct err *err)
{
	int code = clear_shadows(session, NULL, err);

	if (code)
		return code;
	session->window_ns = now_ns();
	code = tracker__resume_probes(session->tracker);
	return code ? err__set(err, code, "cannot attach probes again: %s", strerror(-code)) : 0;
}

static void rest(struct session *session)
{
	governor__rest(session->governor);
	priority__restore();
}

/* A limit that nobody asked for is given up with a word where it cannot be kept. */
static int cannot_keep(struct session *session, int code, const struct err *why, struct err *err)
{
	if (session->opts.insist) {
		*err = *why;
		return code;
	}
	if (session->opts.on_note)
		session->opts.on_note(session->opts.ctx, why->text);
	priority__restore();
	governor__free(session->governor);
	session->governor = NULL;
	return session->n_windows && !session->window_ns ? open_window(session, err) : 0;
}

int session__keep_limit(struct session *session, struct err *err)
{
	struct err why = {};
	int code;

	if (!session->governor)
		return 0;
	if (!tracker__has_probes(session->tracker)) {
		rest(session);
		return 0;
	}
	code = governor__watch(session->governor, tracker__traps(session->tracker), &why);
	if (code)
		return cannot_keep(session, code, &why, err);
	priority__raise(); /* what it watches goes on while it waits for a CPU */
	if (!session->window_ns && !session->n_windows)
		session->window_ns = now_ns();
	switch (governor__tick(session->governor, now_ns())) {
	case GOVERNOR_SAYS_STOP:
		return close_window(session, err);
	case GOVERNOR_SAYS_GO:
		return open_window(session, err);
	default:
		return 0;
	}
}

void session__end_windows(struct session *session)
{
	if (!session->governor)
		return;
	governor__tick(session->governor, now_ns());
	rest(session);
	if (!session->n_windows || !session->window_ns)
		return; /* one from beginning to end is none, and it is not open */
	session->attached_ns += session->end_ns - min_of(session->window_ns, session->end_ns);
	session->window_ns = 0;
	session->n_windows++;
}

/* --- samples --- */

void session__keep_pace(struct session *session, uint64_t elapsed_ns)
{
	double cpu_s = own_cpu_s(), spent_s = cpu_s - session->paced_cpu_s;
	long n_cpus = max_of(sysconf(_SC_NPROCESSORS_ONLN), 1);
	bool first = session->paced_cpu_s == 0;

	session->paced_cpu_s = cpu_s;
	if (first || !session->opts.insist || session->opts.max_overhead_percent <= 0 ||
	    session->opts.source == RUNTIME_SOURCE_CALLS)
		return;
	if (!pace__tick(&session->pace, 100 * spent_s * NSEC_PER_SEC / elapsed_ns / n_cpus))
		return;
	kernel_half__slow_down(session->half, session->pace.slowdown);
	capture__weigh(session->capture, now_ns(), session->pace.slowdown);
}

/* --- what came of it --- */

void session__limit(const struct session *session, struct session_limit *ret)
{
	const struct session_opts *opts = &session->opts;
	uint64_t attached_ns = session->attached_ns;

	*ret = (struct session_limit) { .max_percent = opts->max_overhead_percent };
	if (session->n_windows) {
		if (session->window_ns)
			attached_ns += now_ns() - session->window_ns;
		ret->probe_windows = session->n_windows + !!session->window_ns;
		ret->probes_attached_s = (double)attached_ns / NSEC_PER_SEC;
	}
	if (session->governor)
		ret->probes_cpu_s = governor__spent_s(session->governor);
	if (session->pace.slowest > 1)
		ret->lowest_hz = max_of(opts->frequency_hz / session->pace.slowest, 1U);
}

int session__write_limit(struct session *session, struct err *err)
{
	struct session_limit limit;
	char text[4][32];
	int code = 0;

	if (session->opts.max_overhead_percent <= 0)
		return 0;
	session__limit(session, &limit);
	snprintf(text[0], sizeof(text[0]), "%g", limit.max_percent);
	snprintf(text[1], sizeof(text[1]), "%u", limit.probe_windows);
	snprintf(text[2], sizeof(text[2]), "%.3f", limit.probes_attached_s);
	snprintf(text[3], sizeof(text[3]), "%u", limit.lowest_hz);
	const struct {
		const char *key;
		bool wanted;
	} rows[] = { { "max_overhead_percent", true },
		     { "probe_windows", limit.probe_windows },
		     { "probes_attached_s", limit.probe_windows },
		     { "lowest_frequency_hz", limit.lowest_hz } };

	for (size_t i = 0; !code && i < ARRAY_SIZE(rows); i++)
		if (rows[i].wanted)
			code = recording__meta(session->recording, rows[i].key, text[i], err);
	if (!code && session->n_windows)
		code = recording__counter(session->recording,
					  "times that probes were detached to keep --max-overhead",
					  session->n_windows, err);
	return code;
}
