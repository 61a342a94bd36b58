// SPDX-License-Identifier: GPL-2.0-or-later
/* The sink of a session: one recording, one recording after the other in a directory, or a live
 * profile. While a directory's recordings are exchanged, sampling goes on: a record that is in the
 * ring then goes to the old or to the new one. */
#include "core/record/parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/base/fd_limit.h"
#include "core/base/util.h"
#include "core/kernel/code_object_numbers.h"

#define KALLSYMS "/proc/kallsyms"

int session__create_recording(struct session *session, struct err *err)
{
	const struct session_opts *opts = &session->opts;
	const struct recording_dir_opts dir = { .path = opts->output,
						.keep = opts->rotation.keep,
						.keep_bytes = opts->rotation.keep_bytes,
						.on_note = opts->on_note,
						.ctx = opts->ctx };
	int ret;

	if (opts->rotation.seconds <= 0)
		return recording__create(opts->output, opts->force, &session->output.recording,
					 err);
	ret = recording_dir__open(&dir, &session->output.dir, err);
	return ret ? ret
		   : recording_dir__begin(session->output.dir, &session->output.recording, err);
}

int session__close_recording(struct session *session, struct err *err)
{
	struct session_output *output = &session->output;
	int ret = output->dir ? recording_dir__finish(output->dir, err)
			      : recording__close(output->recording, err);

	if (!ret && session->capture)
		output->in_file = *capture__stats(session->capture);
	output->recording = NULL;
	return ret;
}

void session__discard_recording(struct session *session)
{
	if (session->output.dir)
		recording_dir__discard(session->output.dir);
	else
		recording__discard(session->output.recording);
	session->output.recording = NULL;
}

void session__begin_file(struct session *session, uint64_t now)
{
	struct timespec real;
	uint64_t monotonic_ns;

	clock_gettime(CLOCK_REALTIME, &real);
	monotonic_ns = now_ns();
	session->output.start_ns = now;
	session->output.clock_offset_ns =
		(int64_t)real.tv_sec * NSEC_PER_SEC + real.tv_nsec - monotonic_ns;
}

void session__on_source(void *ctx, struct process *process, const struct runtime *runtime,
			const char *version, const char *source, const char *reason)
{
	struct session *session = ctx;
	struct err err = {};
	int ret;

	if (session->opts.on_source)
		session->opts.on_source(session->opts.ctx, process, runtime, version, source,
					reason);
	ret = capture__source(session->capture, process, runtime, version, source, reason, &err);
	if (ret)
		session__fail_consuming(session, ret, &err);
}

/* Returns true if names are not to be searched any more: the first signal ends the recording, and
 * the next one this search. */
static bool hurries(void *ctx)
{
	const struct session *session = ctx;

	return stopper__hurries(session->stopper) ||
	       (session->output.fetches && session->loop.end != SESSION_SIGNAL &&
		stopper__has_signal(session->stopper));
}

static void on_fetch(void *ctx)
{
	const struct session *session = ctx;

	if (session->opts.on_note)
		session->opts.on_note(session->opts.ctx,
				      "fetching names of stripped files from the servers of "
				      "DEBUGINFOD_URLS, for at most 30 s; Ctrl-C skips this");
}

int session__name_last(struct session *session, struct err *err)
{
	int ret = capture__name_frames(session->capture, true, err);

	/* A live profile ends at the user's command, and does not wait for better names. */
	if (ret || session->opts.live || session->output.dir || !debuginfod__is_enabled() ||
	    stopper__hurries(session->stopper))
		return ret;
	ret = session__commit(session, err); /* the recording is valid even if the rest fails */
	return ret ? ret : session__fetch_names(session, err);
}

int session__fetch_names(struct session *session, struct err *err)
{
	session->output.fetches = true;
	return capture__fetch_names(session->capture, err);
}

static int open_capture(struct session *session, struct err *err)
{
	const struct session_opts *opts = &session->opts;
	struct sink *sink = opts->live ? live_profile__sink(opts->live)
				       : recording__sink(session->output.recording);
	uint32_t n = opts->events.n, i;

	for (i = 0; i < n; i++) {
		const struct event_spec *spec = &opts->events.list[i];

		session->output.sampled[i] = (struct capture_event) {
			{ spec->name, spec->kind->unit },
			spec->kind->timed,
			spec->kind->pending,
			spec->kind->outstanding,
			event_values__are_recorded(&spec->values) ? &spec->values : NULL
		};
	}
	if (!n) /* a trigger of the tests, or calls that are counted */
		session->output.sampled[0] =
			(struct capture_event) { { "cpu", SINK_UNIT_SAMPLES }, .timed = true };
	return capture__new(&(struct capture_opts) { .sink = sink,
						     .events = session->output.sampled,
						     .n_events = max_of(n, 1U),
						     .tracker = session->tracker,
						     .images = session->code.images,
						     .runtimes = opts->runtimes,
						     .sessions = session->runtime_sessions,
						     .kallsyms_path = KALLSYMS,
						     .enabled = opts->enabled,
						     .renews = opts->rotation.seconds > 0,
						     .on_source = session__on_source,
						     .hurries = hurries,
						     .on_fetch = on_fetch,
						     .ctx = session },
			    &session->capture, err);
}

int session__open_output(struct session *session, struct err *err)
{
	int ret = 0;

	if (!session->opts.live)
		ret = session__create_recording(session, err);
	if (!ret)
		ret = session__write_head(session, err);
	if (!ret)
		ret = open_capture(session, err);
	if (ret)
		return ret;
	session->routing = (struct routing) { session->tracker, session->capture };
	return 0;
}

/* Returns the state of the threads in an event's rest. */
static enum thread_state state_of(const struct event_spec *spec)
{
	switch (spec->kind->slot) {
	case EVENT_OFF_CPU:
	case EVENT_WALL:
	case EVENT_LOCK:
	case EVENT_LOCK_CALL:
		return STATE_BLOCKED;
	default:
		return STATE_UNKNOWN;
	}
}

int session__record_rests(struct session *session, uint64_t now, bool last, struct err *err)
{
	const struct event_list *events = &session->opts.events;
	struct rest_rec rests[EVENTS_MAX];
	struct capture_rest rest = { .time_ns = now - 1, .last = last };
	int ret = 0;

	if (!events->n || !session->output.recording)
		return 0;
	ret = kernel_half__take_rests(session->half, rests);
	if (ret)
		return err__set(err, ret, "cannot read the occurrences without a sample: %s",
				strerror(-ret));
	for (uint32_t i = 0; !ret && i < events->n; i++) {
		rest.kernel = rests[i];
		rest.minimum = events->list[i].minimum;
		rest.state = state_of(&events->list[i]);
		ret = capture__rest(session->capture, i + 1, &rest, err);
	}
	return ret;
}

int session__commit(struct session *session, struct err *err)
{
	const struct capture_stats *stats = capture__stats(session->capture);
	int ret;

	if (!session->output.recording) { /* a live profile has it at once */
		session->output.in_file = *stats;
		return 0;
	}
	fd_limit__open_reserve(); /* for the journal */
	ret = session->output.dir ? recording_dir__commit(session->output.dir, err)
				  : recording__commit(session->output.recording, err);
	fd_limit__close_reserve();
	if (!ret && recording__committed(session->output.recording) == stats->samples)
		session->output.in_file = *stats;
	return ret;
}

/* Frees code objects that the kernel half has evicted. Shadow stacks may refer to such objects, so
 * with probes none is freed. */
static int forget_codes(const struct session *session)
{
	const struct runtime *const *runtimes = session->opts.runtimes;
	struct u64map listed;
	int ret = 0;

	if (tracker__has_probes(session->tracker))
		return 0;
	for (int i = 0; ret != -ENOMEM && runtimes[i]; i++) {
		if (!session->runtime_sessions[i] || !runtime__has(runtimes[i], walker, codes))
			continue;
		ret = code_object_numbers__read(
			kernel_half__map_fd(session->half, runtimes[i]->walker->codes), &listed);
		if (!ret)
			runtimes[i]->names->forget_codes(session->runtime_sessions[i], &listed);
		u64map__done(&listed);
	}
	return ret == -ENOMEM ? ret : 0;
}

/* Completes the current recording of the directory, and begins the next one. */
static int rotate(struct session *session, uint64_t now, struct err *err)
{
	struct recording *next = NULL;
	int ret = recording_dir__rotate(session->output.dir, &next, err), renewed;

	if (!next)
		return ret;
	session__end_file(session);
	session->output.in_file = (struct capture_stats) {};
	session__begin_file(session, now);
	session->output.recording = next;
	renewed = capture__renew(session->capture, recording__sink(next), ret ? NULL : err);
	/* Otherwise capture may still refer to images. */
	if (!renewed && !event_list__has_mapped(&session->opts.events))
		tracker__release_images(session->tracker);
	if (!renewed && forget_codes(session))
		renewed = err__set(ret ? NULL : err, -ENOMEM, "out of memory");
	return ret ? ret : renewed;
}

int session__rotate(struct session *session, uint64_t now, struct err *err)
{
	int ret;

	if (!session->output.dir ||
	    now - session->output.start_ns < session->opts.rotation.seconds * 1e9)
		return 0;
	ret = session__record_rests(session, now, false, err);
	if (!ret)
		ret = capture__complete(session->capture, err);
	if (!ret)
		ret = session__write_counters(session, err);
	if (!ret)
		ret = rotate(session, now, err);
	if (!ret)
		ret = session__write_head(session, err);
	return ret ? ret : session__commit(session, err);
}
