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

/* Number of shadow stacks, 50 KiB each. With `auto`, few processes have probes. */
#define SHADOWS	     1024
#define SHADOWS_AUTO 64

static uint32_t required_shadows(enum runtime_source source)
{
	return source == RUNTIME_SOURCE_WALK || source == RUNTIME_SOURCE_MAP ? 0
	       : source == RUNTIME_SOURCE_AUTO				     ? SHADOWS_AUTO
									     : SHADOWS;
}

/* If samples come by the clock alone, at most RING_SAMPLES_SMALL a second, half of the usual ring
 * is enough: it holds 1,000 of the deepest stacks in full. A ring is mapped twice. */
#define RING_SAMPLES_SMALL 4000
#define RING_BYTES_SMALL   (8U << 20)

/* Returns the size of the ring in bytes; 0: the default size. */
static uint32_t ring_bytes(const struct session_opts *opts)
{
	uint64_t samples = (uint64_t)opts->frequency_hz * max_of(sysconf(_SC_NPROCESSORS_CONF), 1);
	bool small = !opts->trigger && opts->unwind != UNWIND_MODE_COPY &&
		     samples <= RING_SAMPLES_SMALL && !event_list__has_timed(&opts->events, false);

	if (opts->ring_bytes || !small)
		return opts->ring_bytes;
	return RING_BYTES_SMALL;
}

/* --- the parts, in the order in which they are opened --- */

static int open_signals(struct session *session, struct err *err)
{
	return stopper__new(&session->stopper, err);
}

/* The stopper's thread uses the kernel half, so it ends before the kernel half. */
static void close_signals(struct session *session)
{
	stopper__free(session->stopper);
	session->stopper = NULL;
}

/* Process numbers and times in braid must be those that the kernel half sees. */
static int check_namespaces(struct session *session, struct err *err)
{
	(void)session;
	if (own_clocks_are_shifted())
		return err__set(err, -EINVAL,
				"cannot record: braid is in a time namespace of its own, whose "
				"clocks differ from those of samples. Run it outside");
	return procfs__check_numbers(err);
}

static int open_scope(struct session *session, struct err *err)
{
	const struct session_opts *opts = &session->opts;

	return scope_opts__any(&opts->scope)
		       ? scope__new(&opts->scope, &session->targets.scope, err)
		       : 0;
}

static void close_scope(struct session *session)
{
	scope__free(session->targets.scope);
}

static int choose_events(struct session *session, struct err *err)
{
	const struct session_opts *opts = &session->opts;

	if (opts->events.n || opts->trigger || opts->source == RUNTIME_SOURCE_CALLS)
		return 0;
	return event_list__parse(event_cpu.name, &session->opts.events, err);
}

static int raise_files(struct session *session, struct err *err)
{
	return fd_limit__raise(&session->command.users_files, err);
}

static void restore_files(struct session *session)
{
	fd_limit__restore(&session->command.users_files);
}

static int load_kernel_half(struct session *session, struct err *err)
{
	const struct session_opts *opts = &session->opts;
	const struct scope *scope = session->targets.scope;
	struct kernel_half_opts half = { .runtimes = opts->runtimes,
					 .enabled = opts->enabled,
					 .unwind = opts->unwind,
					 .scope = scope ? scope__flags(scope) : 0,
					 .scope_not = getpid(),
					 .scope_uid = scope ? scope__uid(scope) : 0,
					 .shadows = required_shadows(opts->source),
					 .ring_bytes = ring_bytes(opts),
					 .whole = opts->filter != NULL,
					 .calls = opts->source == RUNTIME_SOURCE_CALLS };
	int ret;

	event_list__configure(&opts->events,
			      &(struct event_rates) { .frequency_hz = opts->frequency_hz,
						      .period = opts->period,
						      .bytes = opts->bytes },
			      &half);
	half.budget_percent = session__events_percent(session);
	if (opts->trigger)
		half.events.of_type[trigger__type()] = 1U << 1;
	ret = kernel_half__load(&half, &session->half, err);
	if (!ret && half.shadows && opts->source != RUNTIME_SOURCE_AUTO)
		ret = kernel_half__load_probes(session->half, err);
	return ret;
}

static void free_kernel_half(struct session *session)
{
	kernel_half__free(session->half);
}

static int open_runtimes(struct session *session, struct err *err)
{
	const struct session_opts *opts = &session->opts;
	struct bpf_object *probes =
		required_shadows(opts->source) ? kernel_half__object(session->half) : NULL;
	int ret = 0;

	for (int i = 0; !ret && opts->runtimes[i]; i++)
		if (opts->enabled & 1U << i && opts->runtimes[i]->open)
			ret = opts->runtimes[i]->open(probes, &session->runtime_sessions[i], err);
	return ret;
}

static void close_runtimes(struct session *session)
{
	for (int i = 0; session->opts.runtimes[i]; i++)
		if (session->runtime_sessions[i])
			session->opts.runtimes[i]->close(session->runtime_sessions[i]);
}

static int open_events(struct session *session, struct err *err)
{
	struct session_opts *opts = &session->opts;

	session->events =
		events__new(&opts->events, session->half, opts->frequency_hz, opts->period);
	if (!session->events)
		return err__set(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < opts->events.n; i++)
		opts->events.list[i].values.places = events__places(session->events, i + 1);
	return 0;
}

static int open_code(struct session *session, struct err *err)
{
	const struct session_opts *opts = &session->opts;
	struct session_code *code = &session->code;
	struct images_opts images = { .runtimes = opts->runtimes, .enabled = opts->enabled };
	int ret;

	code->arena =
		table_arena__new(kernel_half__map_fd(session->half, "chunks"), opts->table_bytes);
	code->cache_dir = unwind_table__default_dir();
	/* Without samples nothing is unwound, and the tables of a large library take their time. */
	if (opts->unwind != UNWIND_MODE_FP && opts->source != RUNTIME_SOURCE_CALLS)
		images.table_arena = code->arena;
	images.cache_dir = code->cache_dir;
	images.files_fd =
		images.table_arena ? kernel_half__map_fd(session->half, "image_files") : -1;
	ret = code->arena ? images__new(&images, &code->images) : -ENOMEM;
	return ret ? err__set(err, ret, "cannot begin: %s", strerror(-ret)) : 0;
}

static void close_code(struct session *session)
{
	images__free(session->code.images);
	table_arena__free(session->code.arena);
	free(session->code.cache_dir);
}

static int open_limit(struct session *session, struct err *err)
{
	return session__begin_limit(session, required_shadows(session->opts.source) > 0, err);
}

static int open_tracker(struct session *session, struct err *err)
{
	const struct session_opts *opts = &session->opts;
	struct tracker_opts tracker = { .runtimes = opts->runtimes,
					.sessions = session->runtime_sessions,
					.enabled = opts->enabled,
					.source = opts->source,
					.probes = required_shadows(opts->source) > 0,
					.alone = opts->no_children,
					.force = opts->force,
					.scope = session->targets.scope,
					.urgent = session__is_urgent(session),
					.half = session->half,
					.images = session->code.images,
					.on_source = session__on_source,
					.take_mmaps = session__take_mmaps,
					.ctx = session };
	int ret = tracker__new(&tracker, &session->tracker);

	return ret ? err__set(err, ret, "cannot begin: %s", strerror(-ret)) : 0;
}

static void close_tracker(struct session *session)
{
	tracker__free(session->tracker);
}

static void close_targets(struct session *session)
{
	session__release_holds(session);
	child__done(&session->command.child);
}

static void close_output(struct session *session)
{
	capture__free(session->capture);
	session->capture = NULL;
	session__close_recording(session, NULL);
	recording_dir__free(session->output.dir);
}

static int open_metrics(struct session *session, struct err *err)
{
	return session->opts.metrics
		       ? metrics__open(session->opts.metrics, &session->publishing.metrics, err)
		       : 0;
}

static void close_metrics(struct session *session)
{
	metrics__free(session->publishing.metrics);
}

static int attach(struct session *session, struct err *err)
{
	const struct session_opts *opts = &session->opts;
	const struct event_place place = { .tracker = session->tracker,
					   .images = session->code.images,
					   .runtimes = opts->runtimes,
					   .max_overhead_percent = session__events_percent(session),
					   .waits = event_list__waiting(&opts->events),
					   .locks =
						   event_list__of_slot(&opts->events, EVENT_LOCK) };
	int ret = kernel_half__attach(session->half, err);

	return ret ? ret : events__attach(session->events, false, &place, err);
}

static void detach(struct session *session)
{
	events__free(session->events);
	trigger__free(session->targets.trigger);
	kernel_half__detach(session->half);
}

static void stop_sampling(void *ctx)
{
	kernel_half__sample_until(ctx, now_ns());
}

static int watch_signals(struct session *session, struct err *err)
{
	return stopper__watch(session->stopper, stop_sampling, session->half, err);
}

static void close_waiting(struct session *session)
{
	waiting_lister__free(session->waiting.lister);
	session__record_waiting(session, NULL);
	free(session->outstanding.ends);
	read_ahead__free(session->ahead.reader);
}

static void close_loop(struct session *session)
{
	free(session->loop.polled);
}

struct stage {
	int (*open)(struct session *session, struct err *err);
	void (*close)(struct session *session); /* also if it was never opened */
};

static const struct stage stages[] = {
	{ check_namespaces, NULL },
	{ open_signals, close_signals },
	{ open_scope, close_scope },
	{ choose_events, NULL },
	{ raise_files, restore_files },
	{ load_kernel_half, free_kernel_half },
	{ open_runtimes, close_runtimes },
	{ open_events, NULL }, /* detach() frees them: they refer to processes and images */
	{ open_code, close_code },
	{ open_tracker, close_tracker },
	{ open_limit, session__end_limit },
	{ session__add_targets, close_targets },
	{ session__open_output, close_output },
	{ session__open_ring, session__close_ring },
	{ open_metrics, close_metrics },
	{ session__refresh_targets, NULL },
	{ session__keep_limit, NULL },
	{ attach, detach },
	{ watch_signals, close_signals },
	{ session__start_targets, close_waiting },
	{ session__begin_loop, close_loop },
};

/* Time for names after the end of a recording. Frames without a name are then shown by their place.
 */
#define NAMES_NS (10 * NSEC_PER_SEC)

/* CPU time that work in progress at the end of a recording may still use. */
#define GRACE_NS (NSEC_PER_SEC / 4)

/* Sampling ends at its deadline, even if the work of the last round is late. */
int session__begin(struct session *session, struct err *err)
{
	int ret = session__prepare_waiting(session, err);

	if (ret)
		return ret;
	if (!session->targets.scope)
		activity__begin(session->tracker);
	/* If a signal has come already, the recording ends where it begins. */
	session->start_ns = kernel_half__sampled_until(session->half, now_ns());
	if (!session->opts.command) /* a command's exec belongs to the recording, and is over */
		kernel_half__sample_from(session->half, session->start_ns);
	session__begin_file(session, session->start_ns);
	if (session->opts.duration_s > 0) {
		kernel_half__sample_until(session->half,
					  session->start_ns + session->opts.duration_s * 1e9);
		stop__set_deadline(session->start_ns + session->opts.duration_s * 1e9);
	}
	stop__set_grace(GRACE_NS);
	return session__note_waiting(session, err);
}

/* Writes the command as text, "/usr/bin/python3 app.py", cut to the size of @ret. */
static void print_command(char *const *command, char ret[TARGET_BYTES])
{
	for (int i = 0; command && command[i]; i++)
		snprintf(ret + strlen(ret), TARGET_BYTES - strlen(ret), "%s%s", i ? " " : "",
			 command[i]);
}

int session__open(const struct session_opts *opts, struct session **ret_session, struct err *err)
{
	struct session *session = calloc(1, sizeof(*session));
	int ret = 0;

	if (!session)
		return err__set(err, -ENOMEM, "out of memory");
	session->opts = *opts;
	session->command.child = CHILD_NONE;
	print_command(opts->command, session->targets.text);
	for (size_t i = 0; !ret && i < ARRAY_SIZE(stages); i++)
		ret = stages[i].open(session, err);
	if (ret) {
		child__kill(&session->command.child);
		session__discard_recording(session);
		session__free(session);
		return ret;
	}
	privilege__keep_for_recording();
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
	profile->target = strdup(session->targets.text);
	profile->duration_s = (session->end_ns - session->start_ns) / 1e9;
	*ret_profile = profile;
	return 0;
}

/* Fills the summary after the recording is closed. */
static void fill_summary(struct session *session, struct session_summary *ret)
{
	session__limit(session, &ret->limit);
	ret->lag = session->ahead.lag;
	for (uint32_t i = 0; i < session->opts.events.n; i++) {
		ret->event_notes[i] = events__note(session->events, i + 1);
		ret->event_late[i] = events__late(session->events, i + 1);
	}
	session__counters(session, ret->counters);
	kernel_half__economy(session->half, &ret->economy);
	ret->stats = &session->output.in_file;
	ret->samples_lost =
		capture__stats(session->capture)->samples - session->output.in_file.samples;
	session__add_finished(session, &session->output.in_file, ret->counters);
	ret->files = session->output.dir ? recording_dir__stats(session->output.dir) : NULL;
	ret->unread = images__unread(session->code.images);
	ret->forbidden = tracker__forbidden(session->tracker);
	capture__compiled_stats(session->capture, &ret->compiled);
	ret->table_bytes = table_arena__bytes(session->code.arena);
	ret->table_max_bytes = table_arena__max_bytes(session->code.arena);
	ret->images = images__stats(session->code.images);
	session__find_nameless(session, &ret->nameless);
	ret->command_pid = session->command.child.pid;
	ret->command_status = session->command.status;
	ret->own_cpu_s = own_cpu_s();
}

/* Stops sampling, takes the samples that only the end shows, and detaches everything. */
static int stop(struct session *session, struct session_summary *summary, struct err *err)
{
	int ret;

	/* Names are read until a deadline of their own; a second signal ends that, too. */
	stop__clear();
	stop__set_deadline(now_ns() + NAMES_NS);
	/* Detaching a probe takes time, and shadow stacks are wrong meanwhile, so sampling ends
	 * first. */
	kernel_half__sample_until(session->half, now_ns());
	session__release_holds(session);
	session->end_ns = session__now_ns(session);
	summary->duration_s = (session->end_ns - session->start_ns) / 1e9;
	if (capture__stats(session->capture)->samples < ACTIVITY_SAMPLES)
		activity__read(session->tracker, session->start_ns, session->end_ns,
			       &summary->activity);
	kernel_half__end_probes(session->half);
	if (session->opts.source == RUNTIME_SOURCE_CALLS)
		tracker__stop_probes(session->tracker);
	/* The kernel half still reports threads that wake up during this. */
	ret = session__sample_parked(session, true, err);
	if (!ret)
		ret = session__sample_waiting(session, err);
	if (!ret)
		ret = session__sample_under_way(session, err);
	events__detach(session->events);
	trigger__free(session->targets.trigger);
	session->targets.trigger = NULL;
	kernel_half__detach(session->half);
	tracker__stop_probes(session->tracker);
	session__end_limit(session);
	program_stats__read(kernel_half__sampler_fd(session->half), &summary->sampler_runs,
			    &summary->sampler_ns);
	return ret;
}

static int record_last_rests(struct session *session, struct err *err)
{
	return session__record_rests(session, session->end_ns, true, err);
}

/* Records data that are complete only when the ring is empty: pending samples, and names. */
static int record_last(struct session *session, struct err *err)
{
	static int (*const steps[])(struct session * session, struct err * err) = {
		session__record_outstanding, session__record_waiting, record_last_rests,
		session__name_last,	     session__write_queried,
	};
	int ret = 0;

	for (size_t i = 0; !ret && i < ARRAY_SIZE(steps); i++)
		ret = steps[i](session, err);
	return ret;
}

int session__finish(struct session *session, struct session_summary *ret_summary, struct err *err)
{
	struct session_summary summary = { .end = session->loop.end };
	struct err ignored = {};
	int stopped = stop(session, &summary, err), ret, closed;

	fd_limit__open_reserve();
	ret = session__drain(session, stopped ? &ignored : err);
	ret = stopped ? stopped : ret;
	events__count_missed(session->events, session->tracker);
	if (!ret)
		ret = record_last(session, err);
	stop__clear();
	closed = session__write_counters(session, ret ? NULL : err);
	ret = ret ? ret : closed;
	closed = session__close_recording(session, ret ? NULL : err);
	session__publish(session, NULL);
	fill_summary(session, &summary);
	*ret_summary = summary;
	return ret ? ret : closed;
}

int session__command_pid(const struct session *session)
{
	return session->command.child.pid;
}

void session__free(struct session *session)
{
	if (!session)
		return;
	for (size_t i = ARRAY_SIZE(stages); i--;)
		if (stages[i].close)
			stages[i].close(session);
	free(session);
}
