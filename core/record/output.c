// SPDX-License-Identifier: GPL-2.0-or-later
/* The sink of a session, and what a recording says besides samples: what was sampled and where,
 * what was lost, what keeping the limits meant. */
#include "core/record/parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "core/base/fd_limit.h"
#include "core/base/util.h"

#define KALLSYMS    "/proc/kallsyms"
#define JIT_SKIPPED "entries of perf maps and jitdumps not understood, or too many"

void session__on_source(void *ctx, struct process *process, const struct runtime *runtime,
			const char *version, const char *source, const char *reason)
{
	struct session *session = ctx;
	int ret;

	if (session->opts.on_source)
		session->opts.on_source(session->opts.ctx, process, runtime, version, source,
					reason);
	ret = capture__source(session->capture, process, runtime, version, source, reason,
			      &session->ring_err);
	if (ret && session->ring_ret >= 0)
		session->ring_ret = ret;
}

static int add_kind(struct session *session, int kind, const char *name, const char *suffix,
		    struct err *err)
{
	if (session->recording)
		return recording__kind(session->recording, kind, name, suffix, err);
	return live_profile__kind(session->opts.live, kind, name, suffix)
		       ? err__set(err, -ENOMEM, "out of memory")
		       : 0;
}

static int add_kinds(struct session *session, struct err *err)
{
	const struct runtime *const *runtimes = session->opts.runtimes;
	int ret = add_kind(session, KIND_KERNEL, "kernel", "_[k]", err);

	if (!ret)
		ret = add_kind(session, KIND_NATIVE, "native", "_[n]", err);
	if (!ret)
		ret = add_kind(session, KIND_INLINED, "inlined", "_[i]", err);
	for (int i = 0; !ret && runtimes[i]; i++)
		if (runtimes[i]->walker >= 0 || runtimes[i]->label || runtimes[i]->resolve)
			ret = add_kind(session, KIND_RUNTIME + i, runtimes[i]->name,
				       runtimes[i]->suffix, err);
	return ret;
}

const char *session__unwind_name(int mode)
{
	static const char *const names[] = {
		[UNWIND_MODE_AUTO] = "auto",
		[UNWIND_MODE_FP] = "fp",
		[UNWIND_MODE_COPY] = "copy",
		[UNWIND_MODE_TWICE] = "twice",
	};

	_Static_assert(ARRAY_SIZE(names) == UNWIND_MODES_N, "a name for each mode");
	return mode >= 0 && mode < UNWIND_MODES_N ? names[mode] : NULL;
}

static int write_meta(struct session *session, struct err *err)
{
	const struct session_opts *opts = &session->opts;
	char hz[16], start[32];
	struct utsname uts = {};
	time_t now = time(NULL);
	int i, ret = 0;

	uname(&uts);
	snprintf(hz, sizeof(hz), "%u", opts->frequency_hz);
	strftime(start, sizeof(start), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	const struct {
		const char *key, *value;
	} rows[] = { { "target", session->target },
		     { "frequency_hz", hz },
		     { "unwind", session__unwind_name(opts->unwind) },
		     { META_STARTED_AT, start },
		     { META_HOST, uts.nodename },
		     { "kernel", uts.release },
		     { "machine", uts.machine } };

	for (i = 0; !ret && i < (int)ARRAY_SIZE(rows); i++)
		ret = recording__meta(session->recording, rows[i].key, rows[i].value, err);
	for (i = 0; !ret && opts->runtimes[i]; i++)
		if (opts->runtimes[i]->sampled_task)
			ret = recording__meta(session->recording, META_TASK,
					      opts->runtimes[i]->sampled_task, err);
	return ret;
}

int session__write_head(struct session *session, struct err *err)
{
	int ret = add_kinds(session, err);

	return ret || !session->recording ? ret : write_meta(session, err);
}

/* The first signal ends the recording, the next one what is done for names. */
static bool hurries(void *ctx)
{
	const struct session *session = ctx;

	return stopper__hurries(session->stopper) ||
	       (session->fetches && session->end != SESSION_SIGNAL &&
		stopper__has_signal(session->stopper));
}

static void on_fetch(void *ctx)
{
	const struct session *session = ctx;

	if (session->opts.on_note)
		session->opts.on_note(session->opts.ctx,
				      "asking the servers of DEBUGINFOD_URLS for names of stripped "
				      "files, for half a minute at most; Ctrl-C ends that");
}

int session__name_last(struct session *session, struct err *err)
{
	int ret = capture__name_frames(session->capture, true, err);

	/* Nobody waits for better names of a live profile, whose end is the user's. */
	if (ret || session->opts.live || session->dir || !debuginfod__is_wanted() ||
	    stopper__hurries(session->stopper))
		return ret;
	ret = session__commit(session, err); /* what there is, whatever becomes of the rest */
	return ret ? ret : session__fetch_names(session, err);
}

int session__fetch_names(struct session *session, struct err *err)
{
	session->fetches = true;
	return capture__fetch_names(session->capture, err);
}

int session__write_asked(struct session *session, struct err *err)
{
	const struct capture_stats *stats = capture__stats(session->capture);
	char asked[16];

	if (!session->recording || !stats->fetched.asked)
		return 0;
	snprintf(asked, sizeof(asked), "%u", stats->fetched.asked);
	return recording__meta(session->recording, META_SYMBOLS_ASKED, asked, err);
}

void session__find_nameless(const struct session *session, struct session_nameless *ret)
{
	const struct image *image, *most = NULL;

	*ret = (struct session_nameless) {};
	for (image = images__first(session->images); image; image = image->next) {
		ret->addresses += image->places;
		ret->nameless += image->nameless;
		if (image->nameless > (most ? most->nameless : 0))
			most = image;
	}
	ret->file = most ? most->file->path : "";
	ret->has_build_id = most && most->file->build_id_len > 0;
}

static int open_capture(struct session *session, struct err *err)
{
	const struct session_opts *opts = &session->opts;
	struct sink *sink =
		opts->live ? live_profile__sink(opts->live) : recording__sink(session->recording);
	uint32_t n = opts->events.n, i;

	for (i = 0; i < n; i++) {
		const struct event_spec *spec = &opts->events.list[i];

		session->sampled[i] = (struct capture_event) { { spec->name, spec->kind->unit },
							       spec->kind->timed,
							       spec->kind->pending,
							       spec->kind->outstanding };
	}
	if (!n) /* a trigger of the tests', or calls that are counted */
		session->sampled[0] =
			(struct capture_event) { { "cpu", SINK_UNIT_SAMPLES }, .timed = true };
	return capture__new(&(struct capture_opts) { .sink = sink,
						     .events = session->sampled,
						     .n_events = max_of(n, 1U),
						     .tracker = session->tracker,
						     .images = session->images,
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

int session__open_recording(struct session *session, struct err *err)
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
	return session__open_ring(session, err);
}

static void raw_counters(const struct session *session, uint64_t ret_counters[COUNTERS_N])
{
	kernel_half__counters(session->half, ret_counters);
	ret_counters[COUNT_PROCESS_UNREAD] = tracker__unread(session->tracker);
	ret_counters[COUNT_PROCESS_FORBIDDEN] = tracker__forbidden(session->tracker)->processes;
	ret_counters[COUNT_ALLOC_CODES] = events__left_out(session->events);
	ret_counters[COUNT_IMAGE_UNREAD] = images__stats(session->images)->unread;
	ret_counters[COUNT_TABLE_UNPLACED] = images__stats(session->images)->tableless;
}

/* Of what cumulative ones were read as. */
static void part_counters(const struct session *session, const uint64_t raw[COUNTERS_N],
			  uint64_t ret_counters[COUNTERS_N])
{
	const struct capture_stats *stats = capture__stats(session->capture);
	int i;

	for (i = 0; i < COUNTERS_N; i++)
		ret_counters[i] = raw[i] - min_of(session->part.before[i], raw[i]);
	ret_counters[COUNT_WALK_EARLY] = stats->early;
	ret_counters[COUNT_NAME_STALE] = stats->stale;
	ret_counters[COUNT_SECTION_UNPLACED] = stats->unplaced;
	ret_counters[COUNT_UNFINISHED] = stats->unfinished;
	ret_counters[COUNT_KNOWN_LOST] = stats->known_lost;
	ret_counters[COUNT_UNTIMED] = stats->untimed;
	for (i = 1; i < COUNTERS_N; i++)
		ret_counters[i] -= min_of(stats->recovered[i], ret_counters[i]);
	ret_counters[COUNT_ENDED_MAPPING] += stats->unsure;
}

void session__counters(const struct session *session, uint64_t ret_counters[COUNTERS_N])
{
	uint64_t raw[COUNTERS_N];

	raw_counters(session, raw);
	part_counters(session, raw, ret_counters);
}

void session__end_part(struct session *session, uint64_t ret_counters[COUNTERS_N])
{
	part_counters(session, session->part.written, ret_counters);
	memcpy(session->part.before, session->part.written, sizeof(session->part.before));
	session->part.unread += session->part.unread_written;
}

/* When the recording began, by two clocks, and how long it is. */
static int write_times(struct session *session, struct err *err)
{
	uint64_t now = session__now_ns(session), start_ns = session->part.start_ns;
	char duration[32], start[32], offset[32], boot[32];
	struct timespec real, since_boot;
	int ret;

	clock_gettime(CLOCK_REALTIME, &real);
	clock_gettime(CLOCK_BOOTTIME, &since_boot);
	snprintf(boot, sizeof(boot), "%.2f",
		 real.tv_sec - since_boot.tv_sec + (real.tv_nsec - since_boot.tv_nsec) / 1e9);

	snprintf(duration, sizeof(duration), "%.3f", (now - min_of(start_ns, now)) / 1e9);
	snprintf(start, sizeof(start), "%" PRIu64, start_ns);
	snprintf(offset, sizeof(offset), "%" PRId64, session->part.clock_offset_ns);
	ret = recording__meta(session->recording, META_START_NS, start, err);
	if (!ret)
		ret = recording__meta(session->recording, META_CLOCK_OFFSET_NS, offset, err);
	if (!ret)
		ret = recording__meta(session->recording, META_BOOT_S, boot, err);
	return ret ? ret : recording__meta(session->recording, META_DURATION_S, duration, err);
}

int session__write_counters(struct session *session, struct err *err)
{
	const struct capture_stats *stats = capture__stats(session->capture);
	unsigned all_unread = unread_files__count(images__unread(session->images));
	unsigned unread = all_unread - min_of(all_unread, session->part.unread);
	uint64_t counters[COUNTERS_N];
	struct compiled_stats compiled;
	char text[32];
	int i, ret = 0;

	if (!session->recording)
		return 0;
	session->part.unread_written = unread;
	capture__compiled_stats(session->capture, &compiled);
	raw_counters(session, session->part.written);
	part_counters(session, session->part.written, counters);
	for (i = COUNT_FIRST_LOSS; !ret && i < COUNTERS_N; i++)
		ret = recording__counter(session->recording, counter__text(i), counters[i], err);
	if (!ret && counters[COUNT_KEPT_SAME])
		ret = recording__counter(session->recording, counter__text(COUNT_KEPT_SAME),
					 counters[COUNT_KEPT_SAME], err);
	if (!ret)
		ret = recording__counter(session->recording, JIT_SKIPPED, compiled.skipped, err);
	if (!ret && stats->kernel_unnamed)
		ret = recording__counter(session->recording,
					 "kernel addresses without a name: the kernel hid its "
					 "symbols from braid",
					 stats->kernel_unnamed, err);
	if (!ret)
		ret = recording__counter(session->recording,
					 "samples of processes that braid did not know of",
					 stats->unowned, err);
	if (!ret)
		ret = recording__counter(session->recording, "samples lost: malformed",
					 stats->malformed, err);
	if (!ret && unread)
		ret = recording__counter(session->recording,
					 "files with code that braid could not open", unread, err);
	if (!ret)
		ret = recording__counter(session->recording,
					 "per thousand of the time without samples: the kernel "
					 "stopped the clock (perf_event_max_sample_rate)",
					 (uint64_t)(1000 * events__stopped(session->events)), err);
	const struct {
		const char *key;
		uint64_t value;
	} rows[] = { { "samples", stats->samples },
		     { "samples_complete", stats->complete },
		     { "samples_kernel_only", counters[COUNT_NO_USER_REGS] },
		     { "jit_places", compiled.places },
		     { "jit_places_named", compiled.named },
		     { "jit_symbols", compiled.symbols },
		     { "copies_used", stats->copies_used } };

	for (i = 0; !ret && i < (int)ARRAY_SIZE(rows); i++) {
		snprintf(text, sizeof(text), "%llu", (unsigned long long)rows[i].value);
		ret = recording__meta(session->recording, rows[i].key, text, err);
	}
	if (!ret)
		ret = session__write_limit(session, err);
	if (!ret)
		ret = session__write_lag(session, err);
	return ret ? ret : write_times(session, err);
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

	if (!events->n || !session->recording)
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

	if (!session->recording) { /* a live profile has it at once */
		session->in_file = *stats;
		return 0;
	}
	fd_limit__open_reserve(); /* for the journal */
	ret = session->dir ? recording_dir__commit(session->dir, err)
			   : recording__commit(session->recording, err);
	fd_limit__close_reserve();
	if (!ret && recording__committed(session->recording) == stats->samples)
		session->in_file = *stats;
	return ret;
}
