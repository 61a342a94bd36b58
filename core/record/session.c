// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/record/parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/fd_limit.h"
#include "core/base/privilege.h"
#include "core/base/stop.h"
#include "core/base/util.h"

static int open_runtimes(struct session *session, struct bpf_object *probes, struct err *err)
{
	const struct session_opts *opts = &session->opts;
	int i, ret = 0;

	for (i = 0; !ret && opts->runtimes[i]; i++)
		if (opts->enabled & 1U << i && opts->runtimes[i]->open)
			ret = opts->runtimes[i]->open(probes, &session->runtime_sessions[i], err);
	return ret;
}

/* What samples of events that can be frequent may cost of each CPU unless the user says otherwise.
 */
#define EVENTS_PERCENT_DEFAULT 3

/* 50 KiB each. With `auto` probes are the exception. */
#define SHADOWS	     1024
#define SHADOWS_AUTO 64

static uint32_t shadows_wanted(enum runtime_source source)
{
	return source == RUNTIME_SOURCE_WALK || source == RUNTIME_SOURCE_MAP ? 0
	       : source == RUNTIME_SOURCE_AUTO				     ? SHADOWS_AUTO
									     : SHADOWS;
}

/* Where samples come by the clock alone, and so many a second at most, half of the usual ring is
 * enough: for 1,000 of the deepest stacks that are not known yet. A ring is mapped twice. */
#define RING_SAMPLES_SMALL 4000
#define RING_BYTES_SMALL   (8U << 20)

/* 0: the usual. */
static uint32_t ring_bytes(const struct session_opts *opts)
{
	uint64_t samples = (uint64_t)opts->frequency_hz * max_of(sysconf(_SC_NPROCESSORS_CONF), 1);
	bool small = !opts->trigger && opts->unwind != UNWIND_MODE_COPY &&
		     samples <= RING_SAMPLES_SMALL && !event_list__has_timed(&opts->events, false);

	if (opts->ring_bytes || !small)
		return opts->ring_bytes;
	return RING_BYTES_SMALL;
}

/* Everything that looks at targets, up to but not including the recording. */
static int open_target_side(struct session *session, struct err *err)
{
	const struct session_opts *opts = &session->opts;
	struct images_opts images = { .runtimes = opts->runtimes, .enabled = opts->enabled };
	struct tracker_opts tracker = { .runtimes = opts->runtimes,
					.sessions = session->runtime_sessions,
					.enabled = opts->enabled,
					.source = opts->source,
					.probes = shadows_wanted(opts->source) > 0,
					.alone = opts->no_children,
					.force = opts->force,
					.scope = session->scope,
					.on_source = session__on_source,
					.take_mmaps = session__take_mmaps,
					.ctx = session };
	struct kernel_half_opts half = { .runtimes = opts->runtimes,
					 .enabled = opts->enabled,
					 .unwind = opts->unwind,
					 .scope = session->scope ? scope__flags(session->scope) : 0,
					 .scope_not = getpid(),
					 .scope_uid =
						 session->scope ? scope__uid(session->scope) : 0,
					 .shadows = shadows_wanted(opts->source),
					 .ring_bytes = ring_bytes(opts),
					 .whole = opts->filter != NULL,
					 .calls = opts->source == RUNTIME_SOURCE_CALLS };
	int ret;

	event_list__configure(&opts->events,
			      &(struct event_rates) { .frequency_hz = opts->frequency_hz,
						      .period = opts->period,
						      .bytes = opts->bytes },
			      &half);
	session->events_percent =
		opts->insist ? opts->max_overhead_percent : EVENTS_PERCENT_DEFAULT;
	half.budget_percent = session->events_percent;
	if (opts->trigger)
		half.events.of_type[trigger__type()] = 1U << 1;
	ret = kernel_half__load(&half, &session->half, err);
	if (!ret && half.shadows && opts->source != RUNTIME_SOURCE_AUTO)
		ret = kernel_half__load_probes(session->half, err);
	if (!ret)
		ret = open_runtimes(session,
				    half.shadows ? kernel_half__object(session->half) : NULL, err);
	if (ret)
		return ret;
	session->events =
		events__new(&opts->events, session->half, opts->frequency_hz, opts->period);
	if (!session->events)
		return err__set(err, -ENOMEM, "out of memory");
	session->table_arena =
		table_arena__new(kernel_half__map_fd(session->half, "chunks"), opts->table_bytes);
	session->cache_dir = unwind_table__default_dir();
	/* Without samples nothing is unwound, and the tables of a large library take their time. */
	if (opts->unwind != UNWIND_MODE_FP && opts->source != RUNTIME_SOURCE_CALLS)
		images.table_arena = session->table_arena;
	images.cache_dir = session->cache_dir;
	images.files_fd =
		images.table_arena ? kernel_half__map_fd(session->half, "image_files") : -1;
	ret = session->table_arena ? images__new(&images, &session->images) : -ENOMEM;
	if (!ret)
		ret = session__begin_limit(session, half.shadows > 0, err);
	tracker.urgent = session__is_urgent(session);
	tracker.half = session->half;
	tracker.images = session->images;
	if (!ret)
		ret = tracker__new(&tracker, &session->tracker);
	return ret ? err__set(err, ret, "cannot begin: %s", strerror(-ret)) : 0;
}

/* For names, after the end of a recording. What is not named by then is shown by its place. */
#define NAMES_NS (10 * NSEC_PER_SEC)

/* For what was begun before the end: CPU time. */
#define GRACE_NS (NSEC_PER_SEC / 4)

static void stop_sampling(void *ctx)
{
	kernel_half__sample_until(ctx, now_ns());
}

/* Sampling ends when it should, whether or not anything else gets to its end in time. */
int session__begin(struct session *session, struct err *err)
{
	int ret = session__prepare_waiting(session, err);

	if (ret)
		return ret;
	if (!session->scope)
		activity__begin(session->tracker);
	/* A signal may have come already: then it begins where it ends. */
	session->start_ns = session->last_tick_ns =
		kernel_half__sampled_until(session->half, now_ns());
	if (!session->opts.command) /* of which the exec belongs to it, and is over */
		kernel_half__sample_from(session->half, session->start_ns);
	session__begin_part(session, session->start_ns);
	if (session->opts.duration_s > 0) {
		kernel_half__sample_until(session->half,
					  session->start_ns + session->opts.duration_s * 1e9);
		stop__set_deadline(session->start_ns + session->opts.duration_s * 1e9);
	}
	stop__set_grace(GRACE_NS);
	return session__note_waiting(session, err);
}

/* Numbers of processes and times are those that the kernel half has, too. */
static int check_namespaces(struct err *err)
{
	if (own_clocks_are_shifted())
		return err__set(err, -EINVAL,
				"braid is in a time namespace of its own, whose clocks are not "
				"those of samples: run it outside");
	return procfs__check_numbers(err);
}

int session__open(const struct session_opts *opts, struct session **ret_session, struct err *err)
{
	struct session *session = calloc(1, sizeof(*session));
	int ret, i;

	if (!session)
		return err__set(err, -ENOMEM, "out of memory");
	session->opts = *opts;
	session->child = CHILD_NONE;
	for (i = 0; opts->command && opts->command[i]; i++)
		snprintf(session->target + strlen(session->target),
			 sizeof(session->target) - strlen(session->target), "%s%s", i ? " " : "",
			 opts->command[i]);
	ret = check_namespaces(err);
	if (!ret)
		ret = stopper__new(&session->stopper, err);
	if (!ret && scope_opts__any(&opts->scope))
		ret = scope__new(&opts->scope, &session->scope, err);
	if (!ret && !opts->events.n && !opts->trigger && opts->source != RUNTIME_SOURCE_CALLS)
		ret = event_list__parse(event_cpu.name, &session->opts.events, err);
	if (!ret)
		ret = fd_limit__raise(&session->users_files, err);
	if (!ret)
		ret = open_target_side(session, err);
	if (!ret)
		ret = session__add_targets(session, err);
	if (!ret)
		ret = session__open_recording(session, err);
	if (!ret && opts->metrics)
		ret = metrics__open(opts->metrics, &session->metrics, err);
	if (!ret)
		ret = session__refresh_targets(session, err);
	if (!ret)
		ret = session__keep_limit(session, err);
	if (!ret)
		ret = kernel_half__attach(session->half, err);
	if (!ret)
		ret = events__attach(
			session->events, false,
			&(struct event_place) {
				.tracker = session->tracker,
				.images = session->images,
				.runtimes = opts->runtimes,
				.max_overhead_percent = session->events_percent,
				.waits = event_list__waiting(&session->opts.events),
				.locks = event_list__of_slot(&session->opts.events, EVENT_LOCK) },
			err);
	if (!ret)
		ret = stopper__watch(session->stopper, stop_sampling, session->half, err);
	if (!ret)
		ret = session__start_targets(session, err);
	if (ret) {
		child__kill(&session->child);
		session__discard_recording(session);
		session__free(session);
		return ret;
	}
	privilege__keep_for_recording();
	session->last_cpu_s = own_cpu_s();
	session->last_cpu_ns = now_ns();
	*ret_session = session;
	return 0;
}

int session__calls(struct session *session, bool lines, struct profile **ret_profile,
		   struct err *err)
{
	struct calls_opts opts = { .half = session->half,
				   .runtimes = session->opts.runtimes,
				   .sessions = session->runtime_sessions,
				   .end_ns = session->end_ns,
				   .lines = lines };
	struct profile *profile;
	int ret = calls__read(&opts, &profile, err);

	if (ret)
		return ret;
	profile->target = strdup(session->target);
	profile->duration_s = (session->end_ns - session->start_ns) / 1e9;
	*ret_profile = profile;
	return 0;
}

/* Everything that is known once the recording is closed. */
static void fill_summary(struct session *session, struct session_summary *ret)
{
	ret->stats = &session->in_file;
	ret->samples_lost = capture__stats(session->capture)->samples - session->in_file.samples;
	session__add_finished(session, &session->in_file, ret->counters);
	ret->files = session->dir ? recording_dir__stats(session->dir) : NULL;
	ret->unread = images__unread(session->images);
	ret->forbidden = tracker__forbidden(session->tracker);
	capture__compiled_stats(session->capture, &ret->compiled);
	ret->table_bytes = table_arena__bytes(session->table_arena);
	ret->table_max_bytes = table_arena__max_bytes(session->table_arena);
	ret->images = images__stats(session->images);
	session__find_nameless(session, &ret->nameless);
	ret->command_pid = session->child.pid;
	ret->command_status = session->command_status;
	ret->own_cpu_s = own_cpu_s();
}

int session__finish(struct session *session, struct session_summary *ret_summary, struct err *err)
{
	struct session_summary summary = { .end = session->end };
	struct err ignored = {};
	int ret, closed, waited;

	/* Names are read until a deadline of their own; a second signal ends that, too. */
	stop__clear();
	stop__set_deadline(now_ns() + NAMES_NS);
	/* The kernel takes its time over each probe, and shadow stacks are wrong meanwhile: no
	 * sample may see that. */
	kernel_half__sample_until(session->half, now_ns());
	session__release_holds(session);
	session->end_ns = session__now_ns(session);
	if (capture__stats(session->capture)->samples < ACTIVITY_SAMPLES)
		activity__read(session->tracker, session->start_ns, session->end_ns,
			       &summary.activity);
	kernel_half__end_probes(session->half);
	summary.duration_s = (session->end_ns - session->start_ns) / 1e9;
	if (session->opts.source == RUNTIME_SOURCE_CALLS)
		tracker__stop_probes(session->tracker);
	/* Whoever wakes up in the middle of that is still seen to come back. */
	waited = session__sample_waiting(session, err);
	if (!waited)
		waited = session__sample_under_way(session, err);
	events__detach(session->events);
	trigger__free(session->trigger);
	session->trigger = NULL;
	kernel_half__detach(session->half);
	tracker__stop_probes(session->tracker);
	session__end_limit(session);
	session__limit(session, &summary.limit);
	summary.lag = session->lag;
	for (uint32_t i = 0; i < session->opts.events.n; i++)
		summary.event_notes[i] = events__note(session->events, i + 1);
	program_stats__read(kernel_half__sampler_fd(session->half), &summary.sampler_runs,
			    &summary.sampler_ns);
	fd_limit__open_reserve();
	ret = session__drain(session, waited ? &ignored : err);
	ret = waited ? waited : ret;
	events__count_missed(session->events, session->tracker);
	for (uint32_t i = 0; i < session->opts.events.n; i++)
		summary.event_late[i] = events__late(session->events, i + 1);
	if (!ret)
		ret = session__record_outstanding(session, err);
	if (!ret)
		ret = session__record_waiting(session, err);
	if (!ret)
		ret = session__record_rests(session, session->end_ns, true, err);
	if (!ret)
		ret = session__name_last(session, err);
	if (!ret)
		ret = session__write_asked(session, err);
	stop__clear();
	closed = session__write_counters(session, ret ? NULL : err);
	ret = ret ? ret : closed;
	closed = session__close_recording(session, ret ? NULL : err);
	if (!closed)
		session->in_file = *capture__stats(session->capture);
	session__publish(session, NULL);
	session__counters(session, summary.counters);
	kernel_half__economy(session->half, &summary.economy);
	fill_summary(session, &summary);
	*ret_summary = summary;
	return ret ? ret : closed;
}

int session__command_pid(const struct session *session)
{
	return session->child.pid;
}

void session__free(struct session *session)
{
	int i;

	if (!session)
		return;
	session__release_holds(session);
	child__done(&session->child);
	stopper__free(session->stopper);
	waiting_lister__free(session->lister);
	events__free(session->events);
	trigger__free(session->trigger);
	kernel_half__detach(session->half);
	session__end_limit(session);
	ring_buffer__free(session->ring);
	mmap_events__free(session->mmap_events);
	capture__free(session->capture);
	session__close_recording(session, NULL);
	recording_dir__free(session->dir);
	metrics__free(session->metrics);
	tracker__free(session->tracker);
	images__free(session->images);
	table_arena__free(session->table_arena);
	for (i = 0; session->opts.runtimes[i]; i++)
		if (session->runtime_sessions[i])
			session->opts.runtimes[i]->close(session->runtime_sessions[i]);
	kernel_half__free(session->half);
	session__record_waiting(session, NULL);
	free(session->ends);
	free(session->remapped);
	read_ahead__free(session->ahead);
	scope__free(session->scope);
	fd_limit__restore(&session->users_files);
	free(session->polled);
	free(session->cache_dir);
	free(session);
}
