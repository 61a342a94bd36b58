// SPDX-License-Identifier: GPL-2.0-or-later
/* Figures about a recording: the keys that it begins with, the counters that are written with each
 * commit, and the metrics that are published. The kernel half's counters only grow. A recording
 * counts from its own beginning, so `before` holds the counters of that moment. Metrics count from
 * the session's beginning, so the counters of finished recordings are added up. */
#include "core/record/parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "core/base/util.h"

#define JIT_SKIPPED "entries of perf maps and jitdumps left out: malformed, or too many"

static int add_kind(struct session *session, int kind, const char *name, const char *suffix,
		    struct err *err)
{
	if (session->output.recording)
		return recording__kind(session->output.recording, kind, name, suffix, err);
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
		if (runtimes[i]->walker || runtime__has(runtimes[i], jit, label) ||
		    runtime__has(runtimes[i], files, resolve))
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
	} rows[] = { { "target", session->targets.text },
		     { "frequency_hz", hz },
		     { "unwind", session__unwind_name(opts->unwind) },
		     { META_STARTED_AT, start },
		     { META_HOST, uts.nodename },
		     { "kernel", uts.release },
		     { "machine", uts.machine } };

	for (i = 0; !ret && i < (int)ARRAY_SIZE(rows); i++)
		ret = recording__meta(session->output.recording, rows[i].key, rows[i].value, err);
	for (i = 0; !ret && opts->runtimes[i]; i++)
		if (runtime__has(opts->runtimes[i], walker, task))
			ret = recording__meta(session->output.recording, META_TASK,
					      opts->runtimes[i]->walker->task, err);
	return ret;
}

int session__write_head(struct session *session, struct err *err)
{
	int ret = add_kinds(session, err);

	return ret || !session->output.recording ? ret : write_meta(session, err);
}

int session__write_queried(struct session *session, struct err *err)
{
	const struct capture_stats *stats = capture__stats(session->capture);
	char queried[16];

	if (!session->output.recording || !stats->fetched.queried)
		return 0;
	snprintf(queried, sizeof(queried), "%u", stats->fetched.queried);
	return recording__meta(session->output.recording, META_SYMBOLS_QUERIED, queried, err);
}

static void insert_nameless(struct session_nameless *nameless, const struct image *image)
{
	for (size_t i = 0; image && i < SESSION_NAMELESS_FILES; i++) {
		const struct image *there = nameless->images[i];

		if (there && there->nameless >= image->nameless)
			continue;
		nameless->images[i] = image;
		image = there;
	}
}

void session__find_nameless(const struct session *session, struct session_nameless *ret)
{
	const struct image *image, *first = images__first(session->code.images);

	*ret = (struct session_nameless) {};
	for (image = first; image; image = image->next) {
		ret->addresses += image->places;
		ret->nameless += image->nameless;
	}
	for (image = first; image; image = image->next)
		if (image->nameless && image->nameless >= ret->nameless / 10)
			insert_nameless(ret, image);
}

static void raw_counters(const struct session *session, uint64_t ret_counters[COUNTERS_N])
{
	kernel_half__counters(session->half, ret_counters);
	ret_counters[COUNT_PROCESS_UNREAD] = tracker__unread(session->tracker);
	ret_counters[COUNT_PROCESS_FORBIDDEN] = tracker__forbidden(session->tracker)->processes;
	ret_counters[COUNT_ALLOC_CODES] = events__left_out(session->events);
	ret_counters[COUNT_IMAGE_UNREAD] = images__stats(session->code.images)->unread;
	ret_counters[COUNT_TABLE_UNPLACED] = images__stats(session->code.images)->tableless;
	ret_counters[COUNT_PARKED_MOVED] = session->parked.n_moved;
}

/* Returns the counters of the current recording, from the cumulative counters @raw. */
static void file_counters(const struct session *session, const uint64_t raw[COUNTERS_N],
			  uint64_t ret_counters[COUNTERS_N])
{
	const struct capture_stats *stats = capture__stats(session->capture);
	int i;

	for (i = 0; i < COUNTERS_N; i++)
		ret_counters[i] = raw[i] - min_of(session->publishing.before[i], raw[i]);
	ret_counters[COUNT_WALK_EARLY] = stats->early;
	ret_counters[COUNT_NAME_STALE] = stats->stale;
	ret_counters[COUNT_SECTION_UNPLACED] = stats->unplaced;
	ret_counters[COUNT_UNFINISHED] = stats->unfinished;
	ret_counters[COUNT_REPEAT_LOST] = stats->repeat_lost;
	ret_counters[COUNT_UNTIMED] = stats->untimed;
	ret_counters[COUNT_CONTEXT_GONE] = stats->contexts_lost;
	ret_counters[COUNT_CONTEXT_MALFORMED] = stats->contexts_malformed;
	for (i = 1; i < COUNTERS_N; i++)
		ret_counters[i] -= min_of(stats->recovered[i], ret_counters[i]);
	ret_counters[COUNT_ENDED_MAPPING] += stats->unsure;
}

void session__counters(const struct session *session, uint64_t ret_counters[COUNTERS_N])
{
	uint64_t raw[COUNTERS_N];

	raw_counters(session, raw);
	file_counters(session, raw, ret_counters);
}

/* Adds all members of @from to those of @to. */
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

void session__end_file(struct session *session)
{
	struct session_publishing *publishing = &session->publishing;
	uint64_t counters[COUNTERS_N];

	file_counters(session, publishing->written, counters);
	memcpy(publishing->before, publishing->written, sizeof(publishing->before));
	publishing->unread += publishing->unread_written;
	add_counters(publishing->finished_counters, counters);
	add_stats(&publishing->finished, capture__stats(session->capture));
}

void session__add_finished(const struct session *session, struct capture_stats *stats,
			   uint64_t counters[COUNTERS_N])
{
	add_stats(stats, &session->publishing.finished);
	add_counters(counters, session->publishing.finished_counters);
}

/* Writes the start of the recording, by two clocks, and its length. */
static int write_times(struct session *session, struct err *err)
{
	uint64_t now = session__now_ns(session), start_ns = session->output.start_ns;
	char duration[32], start[32], offset[32], boot[32];
	struct timespec real, since_boot;
	int ret;

	clock_gettime(CLOCK_REALTIME, &real);
	clock_gettime(CLOCK_BOOTTIME, &since_boot);
	snprintf(boot, sizeof(boot), "%.2f",
		 real.tv_sec - since_boot.tv_sec + (real.tv_nsec - since_boot.tv_nsec) / 1e9);

	snprintf(duration, sizeof(duration), "%.3f", (now - min_of(start_ns, now)) / 1e9);
	snprintf(start, sizeof(start), "%" PRIu64, start_ns);
	snprintf(offset, sizeof(offset), "%" PRId64, session->output.clock_offset_ns);
	ret = recording__meta(session->output.recording, META_START_NS, start, err);
	if (!ret)
		ret = recording__meta(session->output.recording, META_CLOCK_OFFSET_NS, offset, err);
	if (!ret)
		ret = recording__meta(session->output.recording, META_BOOT_S, boot, err);
	return ret ? ret
		   : recording__meta(session->output.recording, META_DURATION_S, duration, err);
}

static int write_totals(struct session *session, const uint64_t counters[COUNTERS_N],
			const struct compiled_stats *compiled, struct err *err)
{
	const struct capture_stats *stats = capture__stats(session->capture);
	char text[32];
	int ret = 0;
	const struct {
		const char *key;
		uint64_t value;
	} rows[] = { { "samples", stats->samples },
		     { "samples_complete", stats->complete },
		     { "samples_kernel_only", counters[COUNT_NO_USER_REGS] },
		     { "jit_places", compiled->places },
		     { "jit_places_named", compiled->named },
		     { "jit_symbols", compiled->symbols },
		     { "copies_used", stats->copies_used } };

	for (size_t i = 0; !ret && i < ARRAY_SIZE(rows); i++) {
		snprintf(text, sizeof(text), "%llu", (unsigned long long)rows[i].value);
		ret = recording__meta(session->output.recording, rows[i].key, text, err);
	}
	return ret;
}

int session__write_counters(struct session *session, struct err *err)
{
	const struct capture_stats *stats = capture__stats(session->capture);
	unsigned all_unread = unread_files__count(images__unread(session->code.images));
	unsigned unread = all_unread - min_of(all_unread, session->publishing.unread);
	uint64_t counters[COUNTERS_N];
	struct compiled_stats compiled;
	int i, ret = 0;

	if (!session->output.recording)
		return 0;
	session->publishing.unread_written = unread;
	capture__compiled_stats(session->capture, &compiled);
	raw_counters(session, session->publishing.written);
	file_counters(session, session->publishing.written, counters);
	for (i = COUNT_FIRST_LOSS; !ret && i < COUNTERS_N; i++)
		ret = recording__counter(session->output.recording, counter__text(i), counters[i],
					 err);
	if (!ret && counters[COUNT_CACHED_SAME])
		ret = recording__counter(session->output.recording,
					 counter__text(COUNT_CACHED_SAME),
					 counters[COUNT_CACHED_SAME], err);
	if (!ret)
		ret = recording__counter(session->output.recording, JIT_SKIPPED, compiled.skipped,
					 err);
	if (!ret && stats->kernel_unnamed)
		ret = recording__counter(
			session->output.recording,
			"kernel addresses without a name: the kernel hides its symbols from braid",
			stats->kernel_unnamed, err);
	if (!ret)
		ret = recording__counter(session->output.recording,
					 "samples of processes that braid was not following",
					 stats->unowned, err);
	if (!ret)
		ret = recording__counter(session->output.recording, "samples lost: malformed",
					 stats->malformed, err);
	if (!ret && unread)
		ret = recording__counter(session->output.recording,
					 "files with code that braid could not open", unread, err);
	if (!ret)
		ret = recording__counter(session->output.recording,
					 "per thousand of the time without samples: the kernel "
					 "stopped the clock (perf_event_max_sample_rate)",
					 (uint64_t)(1000 * events__stopped(session->events)), err);
	if (!ret)
		ret = write_totals(session, counters, &compiled, err);
	if (!ret)
		ret = session__write_limit(session, err);
	if (!ret)
		ret = session__write_lag(session, err);
	return ret ? ret : write_times(session, err);
}

int session__publish(struct session *session, struct err *err)
{
	struct capture_stats stats = *capture__stats(session->capture);
	uint64_t counters[COUNTERS_N];
	struct metrics_loss losses[COUNTERS_N];
	struct metrics_values values = { .losses = losses };
	struct err note = {};
	int ret;

	if (!session->publishing.metrics)
		return 0;
	session__counters(session, counters);
	session__add_finished(session, &stats, counters);
	/* A loss that was repaired since is no loss any more. But a metric that falls is regarded
	 * as restarted, so the published value never falls. */
	for (int i = COUNT_FIRST_LOSS; i < COUNTERS_N; i++) {
		uint64_t *published = &session->publishing.losses[i];

		*published = max_of(*published, counters[i]);
		losses[values.n_losses++] = (struct metrics_loss) { counter__text(i), *published };
	}
	values.samples = stats.samples;
	values.samples_complete = stats.complete;
	values.cpu_s = own_cpu_s();
	values.running_s = (now_ns() - session->start_ns) / 1e9;
	values.processes = tracker__count_living(session->tracker);
	values.table_bytes = table_arena__bytes(session->code.arena);
	values.frequency_hz = session->opts.frequency_hz;
	values.probes_given_up = session->limit.exceeded_ns > 0;
	values.files = images__stats(session->code.images)->known;
	values.files_released = images__stats(session->code.images)->released;
	values.dir = session->output.dir ? recording_dir__stats(session->output.dir) : NULL;
	ret = metrics__publish(session->publishing.metrics, &values, &note);
	if (*note.text && session->opts.on_note)
		session->opts.on_note(session->opts.ctx, note.text);
	return ret ? err__set(err, ret, "out of memory") : 0;
}
