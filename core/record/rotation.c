// SPDX-License-Identifier: GPL-2.0-or-later
/* One recording after the other, each complete in itself. Sampling goes on meanwhile: what comes in
 * the ring goes to the one or to the next. */
#include "core/record/parts.h"

#include <errno.h>
#include <time.h>

#include "core/base/util.h"
#include "core/kernel/code_numbers.h"

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
		return recording__create(opts->output, opts->force, &session->recording, err);
	ret = recording_dir__open(&dir, &session->dir, err);
	return ret ? ret : recording_dir__begin(session->dir, &session->recording, err);
}

int session__close_recording(struct session *session, struct err *err)
{
	int ret = session->dir ? recording_dir__finish(session->dir, err)
			       : recording__close(session->recording, err);

	session->recording = NULL;
	return ret;
}

void session__discard_recording(struct session *session)
{
	if (session->dir)
		recording_dir__discard(session->dir);
	else
		recording__discard(session->recording);
	session->recording = NULL;
}

void session__begin_part(struct session *session, uint64_t now)
{
	struct timespec real;
	uint64_t monotonic_ns;

	clock_gettime(CLOCK_REALTIME, &real);
	monotonic_ns = now_ns();
	session->part.start_ns = now;
	session->part.clock_offset_ns =
		(int64_t)real.tv_sec * NSEC_PER_SEC + real.tv_nsec - monotonic_ns;
}

/* Adds the numbers of one to the other: all that there are. */
static void add_stats(struct capture_stats *to, const struct capture_stats *from)
{
	to->samples += from->samples;
	to->complete += from->complete;
	for (int i = 0; i < EVENTS_MAX; i++) {
		to->event_samples[i] += from->event_samples[i];
		for (int state = 0; state < THREAD_STATES_N; state++)
			to->sums[i][state] += from->sums[i][state];
		to->rests[i].weight += from->rests[i].weight;
		to->rests[i].total += from->rests[i].total;
	}
	to->ticks += from->ticks;
	to->unowned += from->unowned;
	to->malformed += from->malformed;
	to->kernel_frames += from->kernel_frames;
	to->native_frames += from->native_frames;
	to->inferred_frames += from->inferred_frames;
	to->inferred_runtimes += from->inferred_runtimes;
	to->stale += from->stale;
	to->kernel_unnamed += from->kernel_unnamed;
	for (int i = 0; i < RUNTIMES_MAX; i++) {
		to->runtime_ticks[i] += from->runtime_ticks[i];
		to->runtime_frames[i] += from->runtime_frames[i];
	}
	to->copies_used += from->copies_used;
}

static void add_counters(uint64_t to[COUNTERS_N], const uint64_t from[COUNTERS_N])
{
	for (int i = 0; i < COUNTERS_N; i++)
		to[i] += from[i];
}

void session__add_finished(const struct session *session, struct capture_stats *stats,
			   uint64_t counters[COUNTERS_N])
{
	add_stats(stats, &session->finished);
	add_counters(counters, session->finished_counters);
}

/* What is known of code that runs no more. On shadow stacks it may be for as long as they are
 * there. */
static int forget_codes(const struct session *session)
{
	const struct runtime *const *runtimes = session->opts.runtimes;
	struct u64map known;
	int ret = 0;

	if (tracker__has_probes(session->tracker))
		return 0;
	for (int i = 0; ret != -ENOMEM && runtimes[i]; i++) {
		if (!session->runtime_sessions[i] || !runtimes[i]->codes)
			continue;
		ret = code_numbers__read(kernel_half__map_fd(session->half, runtimes[i]->codes),
					 &known);
		if (!ret)
			runtimes[i]->forget_codes(session->runtime_sessions[i], &known);
		u64map__done(&known);
	}
	return ret == -ENOMEM ? ret : 0;
}

/* The last one is complete, and the next one begins. */
static int turn(struct session *session, uint64_t now, struct err *err)
{
	struct recording *next = NULL;
	uint64_t counters[COUNTERS_N];
	int ret = recording_dir__turn(session->dir, &next, err), renewed;

	if (!next)
		return ret;
	session__end_part(session, counters);
	add_counters(session->finished_counters, counters);
	add_stats(&session->finished, capture__stats(session->capture));
	session->in_file = (struct capture_stats) {};
	session__begin_part(session, now);
	session->recording = next;
	renewed = capture__renew(session->capture, recording__sink(next), ret ? NULL : err);
	/* Else capture may still refer to images. */
	if (!renewed && !event_list__has_mapped(&session->opts.events))
		tracker__release_images(session->tracker);
	if (!renewed && forget_codes(session))
		renewed = err__set(ret ? NULL : err, -ENOMEM, "out of memory");
	return ret ? ret : renewed;
}

int session__rotate(struct session *session, uint64_t now, struct err *err)
{
	int ret;

	if (!session->dir || now - session->part.start_ns < session->opts.rotation.seconds * 1e9)
		return 0;
	ret = session__record_rests(session, now, false, err);
	if (!ret)
		ret = capture__complete(session->capture, err);
	if (!ret)
		ret = session__write_counters(session, err);
	if (!ret)
		ret = turn(session, now, err);
	if (!ret)
		ret = session__write_head(session, err);
	return ret ? ret : session__commit(session, err);
}

int session__publish(struct session *session, struct err *err)
{
	struct capture_stats stats = *capture__stats(session->capture);
	uint64_t counters[COUNTERS_N];
	struct metrics_loss losses[COUNTERS_N];
	struct metrics_values values = { .losses = losses };
	struct err note = {};
	int ret;

	if (!session->metrics)
		return 0;
	session__counters(session, counters);
	session__add_finished(session, &stats, counters);
	/* One that was repaired since is a loss no more, but a counter that falls is taken for one
	 * that began anew. */
	for (int i = COUNT_FIRST_LOSS; i < COUNTERS_N; i++) {
		uint64_t *published = &session->published[i];

		*published = max_of(*published, counters[i]);
		losses[values.n_losses++] = (struct metrics_loss) { counter__text(i), *published };
	}
	values.samples = stats.samples;
	values.samples_complete = stats.complete;
	values.cpu_s = own_cpu_s();
	values.running_s = (now_ns() - session->start_ns) / 1e9;
	values.processes = tracker__count_living(session->tracker);
	values.table_bytes = table_arena__bytes(session->table_arena);
	values.frequency_hz = session->opts.frequency_hz;
	values.probes_given_up = session->exceeded_ns > 0;
	values.files = images__stats(session->images)->known;
	values.files_released = images__stats(session->images)->released;
	values.dir = session->dir ? recording_dir__stats(session->dir) : NULL;
	ret = metrics__publish(session->metrics, &values, &note);
	if (*note.text && session->opts.on_note)
		session->opts.on_note(session->opts.ctx, note.text);
	return ret ? err__set(err, ret, "out of memory") : 0;
}
