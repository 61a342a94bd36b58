// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/record_summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/privilege.h"
#include "core/base/quota.h"
#include "core/cli/cli.h"
#include "core/cli/view_summary.h"
#include "core/elf/debug_missing.h"
#include "core/out/out_common.h"
#include "core/profile/nameless.h"
#include "core/target/images.h"

#define TEXT_BYTES 256

#define COMPLETE_USUAL 0.99 /* fraction of complete stacks; a lower one is reported */

static uint64_t sum_of(const uint64_t *by_state)
{
	uint64_t sum = 0;

	for (int state = 0; state < THREAD_STATES_N; state++)
		sum += by_state[state];
	return sum;
}

static const char *amount(enum profile_unit unit, double value, char buf[32])
{
	const struct profile profile = { .unit = unit };

	output__weight(&profile, value, buf, 32);
	return buf;
}

/* Writes "= 1.43 s CPU in 13.3 s (11 % of one CPU)". */
static void describe_cpu(double cpu_ns, double duration_s, char *buf, size_t size)
{
	char cpu[32];

	snprintf(buf, size, "= %s CPU in %.1f s (%.0f %% of one CPU)",
		 amount(PROFILE_NANOSECONDS, cpu_ns, cpu), duration_s,
		 duration_s > 0 ? cpu_ns / 1e7 / duration_s : 0);
}

/* Describes the time of an event about all of the threads' time, or about the time off the CPU. */
static void describe_time(const uint64_t *by_state, const char *name, double duration_s, char *buf,
			  size_t size)
{
	uint64_t waits = by_state[STATE_BLOCKED] + by_state[STATE_STOPPED];
	char sum[32], runs[32], waiting[32], preempted[32], parked[32], tasks[64] = "";

	amount(PROFILE_NANOSECONDS, by_state[STATE_RUNS] + by_state[STATE_UNKNOWN], runs);
	amount(PROFILE_NANOSECONDS, waits, waiting);
	amount(PROFILE_NANOSECONDS, by_state[STATE_PREEMPTED], preempted);
	amount(PROFILE_NANOSECONDS, sum_of(by_state) - by_state[STATE_PARKED], sum);
	if (by_state[STATE_PARKED])
		snprintf(tasks, sizeof(tasks), "; %s of parked tasks",
			 amount(PROFILE_NANOSECONDS, by_state[STATE_PARKED], parked));
	if (!strcmp(name, event_wall.name))
		snprintf(buf, size,
			 "= %s of threads' time in %.1f s: %s on CPU, %s waiting, %s preempted%s",
			 sum, duration_s, runs, waiting, preempted, tasks);
	else if (!strcmp(name, event_off_cpu.name))
		snprintf(buf, size, "= %s off the CPU in %.1f s: %s waiting, %s preempted", sum,
			 duration_s, waiting, preempted);
	else
		snprintf(buf, size, "= %s in %.1f s", sum, duration_s);
}

static void describe(const struct session_opts *opts, const struct session_summary *summary,
		     uint32_t i, char *buf, size_t size)
{
	const struct event_spec *event = &opts->events.list[i];
	const uint64_t *by_state = summary->stats->sums[i];
	const char *unit = event->kind->unit;
	char sum[32];

	if (!summary->stats->event_samples[i])
		snprintf(buf, size, "in %.1f s", summary->duration_s);
	else if (!strcmp(unit, SINK_UNIT_SAMPLES))
		describe_cpu(1e9 * sum_of(by_state) / opts->frequency_hz, summary->duration_s, buf,
			     size);
	else if (!strcmp(unit, SINK_UNIT_NS))
		describe_time(by_state, event->kind->name, summary->duration_s, buf, size);
	else
		snprintf(buf, size, "= %s%s in %.1f s",
			 amount(!strcmp(unit, SINK_UNIT_BYTES) ? PROFILE_BYTES : PROFILE_COUNT,
				sum_of(by_state), sum),
			 strcmp(unit, SINK_UNIT_BYTES) != 0 ? " occurrences" : "",
			 summary->duration_s);
}

/* Writes "; 98 % in NAME" for each runtime, as a share of CPU time. */
static void describe_runtimes(const struct session_opts *opts, const struct capture_stats *stats,
			      char *buf, size_t size)
{
	size_t len = 0;

	buf[0] = '\0';
	for (int i = 0; stats->ticks && opts->runtimes[i] && len < size; i++)
		if (stats->runtime_ticks[i])
			len += snprintf(buf + len, size - len, "%s%.0f %% in %s", len ? ", " : "; ",
					100.0 * stats->runtime_ticks[i] / stats->ticks,
					opts->runtimes[i]->name);
}

static void print_events(const struct session_opts *opts, const struct session_summary *summary)
{
	const struct capture_stats *stats = summary->stats;
	char text[TEXT_BYTES], runtimes[TEXT_BYTES];
	uint32_t i, n = opts->events.n;

	describe_runtimes(opts, stats, runtimes, sizeof(runtimes));
	if (n > 1)
		escape__line(stderr, "%s: %" PRIu64 " samples%s", opts->output, stats->samples,
			     runtimes);
	for (i = 0; i < n; i++) {
		describe(opts, summary, i, text, sizeof(text));
		escape__line(stderr, "%s%s: %" PRIu64 " samples %s%s", n > 1 ? "  " : "",
			     n > 1 ? opts->events.list[i].name : opts->output,
			     stats->event_samples[i], text, n > 1 ? "" : runtimes);
	}
}

/* Prints the activity of the processes, which explains a recording with few samples. */
static void print_activity(const struct session_opts *opts, const struct session_summary *summary)
{
	const struct activity *activity = &summary->activity;
	bool waits = event_list__waiting(&opts->events) > 0;
	char calls[TEXT_BYTES] = "", used[64] = "";
	size_t len = 0;

	if (!activity->processes)
		return;
	if (activity->cpu_s >= 0)
		snprintf(used, sizeof(used), " used %.2f s of CPU in that time with",
			 activity->cpu_s);
	for (size_t i = 0; i < activity->n_calls && len < sizeof(calls); i++)
		len += snprintf(calls + len, sizeof(calls) - len, "%s%s (%u)",
				i ? ", " : "; now in ", activity->calls[i].name,
				activity->calls[i].threads);
	fprintf(stderr, "%s%s %u thread%s%s%s\n",
		activity->processes > 1 ? "the processes have" : "the process has", used,
		activity->threads, activity->threads == 1 ? "" : "s", calls,
		waits ? "" : ": try -e wall, which also shows where threads wait");
}

/* Prints the numbers of frames, with the runtimes that were found. */
static void print_frames(const struct session_opts *opts, const struct capture_stats *stats)
{
	int i;

	fprintf(stderr, "frames: %" PRIu64 " kernel, %" PRIu64 " native", stats->kernel_frames,
		stats->native_frames);
	for (i = 0; opts->runtimes[i]; i++)
		if (stats->runtime_frames[i])
			fprintf(stderr, ", %" PRIu64 " %s", stats->runtime_frames[i],
				opts->runtimes[i]->name);
	fputc('\n', stderr);
}

/* Prints the share of inferred frames, if there are any. */
static void print_inferred(const struct capture_stats *stats)
{
	struct profile_evidence evidence = { .natives = stats->native_frames,
					     .inferred_natives = stats->inferred_frames,
					     .inferred_runtimes = stats->inferred_runtimes };
	char text[PROFILE_INFERRED_BYTES];

	for (int i = 0; i < RUNTIMES_MAX; i++)
		evidence.runtimes += stats->runtime_frames[i];
	profile__inferred(&evidence, text);
	if (*text)
		fprintf(stderr, "%s: braid report --annotate marks them\n", text);
}

/* Prints the first process with unreadable code. The losses contain the number of such
 * processes. */
static void print_forbidden(const struct tracker_forbidden *forbidden)
{
	const uint32_t privilege = 1U << PRIVILEGE_PROCESSES;
	const char *more = forbidden->processes > 1 ? " and others" : "";
	char why[128];

	if (!forbidden->processes)
		return;
	if (privilege__missing(privilege))
		privilege__lacks(privilege, why, sizeof(why));
	else
		snprintf(why, sizeof(why), "%s", strerror(-forbidden->code));
	escape__line(stderr, "code of PID %u (%s)%s has no names, and stacks end there: %s",
		     forbidden->pid, forbidden->name, more, why);
}

/* Prints code in anonymous memory. A compiler that reports its code has a runtime or a map. The
 * code here is that of other compilers, or of a program that replaced its code. */
static void print_fileless(const struct compiled_stats *compiled)
{
	if (compiled->fileless)
		escape__line(stderr,
			     "code of PID %u (%s) lies in no file, but in %" PRIu64
			     " KiB of memory that the program has filled: it has no names, and "
			     "stacks may end there. A compiler can name it in a perf map "
			     "(docs/runtimes/jit-code.md)",
			     compiled->fileless_pid, compiled->fileless_name,
			     compiled->fileless_bytes >> 10);
}

/* Prints the data that a missing privilege hides. */
static void print_unseen(const struct session_summary *summary)
{
	unsigned unread = unread_files__count(summary->unread);
	char why[300], path[400];
	uint32_t pid;

	if (summary->stats->kernel_unnamed) {
		privilege__why_hidden(why, sizeof(why));
		fprintf(stderr, "kernel frames are addresses without names: %s\n", why);
	}
	print_forbidden(summary->forbidden);
	print_fileless(&summary->compiled);
	if (!unread)
		return;
	unread_files__why(summary->unread, why, sizeof(why));
	snprintf(path, sizeof(path), "%s", unread_files__first(summary->unread, &pid));
	escape__printable(path);
	fprintf(stderr,
		"%u file%s with code cannot be opened, so stacks end there: %s of PID %u%s: %s\n",
		unread, unread > 1 ? "s" : "", path, pid, unread > 1 ? ", ..." : "", why);
}

#define TOO_LARGE_SHOWN 8

/* Prints the files that were skipped or read in part, because of the budget of the file or its
 * owner. */
static void print_too_large(void)
{
	uint64_t n = quota__over_count();
	enum quota_level level;
	const char *name;

	for (size_t i = 0; i < TOO_LARGE_SHOWN && (name = quota__over(i, &level)); i++)
		escape__line(
			stderr, "file too large to read in full: %s%s", name,
			level == QUOTA_FILE
				? ""
				: " (together with other files of its owner, or of all owners)");
	if (n > TOO_LARGE_SHOWN)
		fprintf(stderr, "%" PRIu64 " more files are too large to read in full\n",
			n - TOO_LARGE_SHOWN);
}

/* Prints available debug information that could not be used. */
static void print_debug_missing(void)
{
	const struct debug_missing *missing;
	char text[DEBUG_MISSING_BYTES];

	for (size_t i = 0; (missing = debug_missing__get(i)); i++) {
		debug_missing__text(missing, text);
		escape__line(stderr, "%s", text);
	}
	if (debug_missing__more())
		fprintf(stderr, "debug information of %" PRIu64 " more files is missing\n",
			debug_missing__more());
}

static void print_fetched(const struct fetched_names_stats *fetched)
{
	const char *failure = debuginfod__failure();

	if (fetched->queried)
		fprintf(stderr, "DEBUGINFOD_URLS: names of %u of %u stripped files%s%s\n",
			fetched->found, fetched->queried, failure ? "; no further requests: " : "",
			failure ?: "");
}

#define NAMELESS_SAMPLES 100 /* with fewer samples a share is unreliable */
#define NAMELESS_PERCENT 5

#define NAMELESS_BYTES (SESSION_NAMELESS_FILES * 160)

/* Appends the file name of @image with its build ID, by which debug servers find its symbols. */
static void put_nameless(const struct image *image, char *text)
{
	const struct elf_file *file = image->file;
	const char *slash = strrchr(file->path, '/');
	size_t n = strlen(text);

	n += snprintf(text + n, NAMELESS_BYTES - n, "%s%.60s (", n ? ", " : "",
		      slash ? slash + 1 : file->path);
	n += snprintf(text + n, NAMELESS_BYTES - n,
		      file->build_id_len ? "build ID " : "no build ID");
	for (size_t i = 0; i < file->build_id_len; i++)
		n += snprintf(text + n, NAMELESS_BYTES - n, "%02x", file->build_id[i]);
	snprintf(text + n, NAMELESS_BYTES - n, ")");
}

/* Prints the share of unnamed code from the recording's counts; reads and runs nothing. */
static void print_nameless(const struct session_opts *opts, const struct session_summary *summary)
{
	const struct session_nameless *nameless = &summary->nameless;
	uint64_t percent = nameless->addresses ? 100 * nameless->nameless / nameless->addresses : 0;
	char files[NAMELESS_BYTES] = "";
	bool has_build_id = false;

	if (opts->rotation.seconds > 0 || summary->stats->samples < NAMELESS_SAMPLES ||
	    percent < NAMELESS_PERCENT)
		return;
	for (size_t i = 0; i < SESSION_NAMELESS_FILES && nameless->images[i]; i++) {
		put_nameless(nameless->images[i], files);
		has_build_id |= nameless->images[i]->file->build_id_len > 0;
	}
	escape__line(stderr,
		     "braid report names %" PRIu64 " %% of native code by offset, most of it in "
		     "%s: %s",
		     percent, files,
		     nameless__advice(summary->stats->fetched.queried > 0, has_build_id));
}

static void print_tableless(const struct session_summary *summary)
{
	const struct images_stats *images = summary->images;
	char path[400];

	if (!images->tableless)
		return;
	snprintf(path, sizeof(path), "%s", images->first_tableless);
	escape__printable(path);
	fprintf(stderr,
		"without unwind table: %s%s; %zu MiB of tables are in use, of at most %zu "
		"MiB. Frames in such files come from stack copies, which are few. "
		"Recording fewer programs at a time (-p) leaves more room\n",
		path, images->tableless > 1 ? " and others" : "", summary->table_bytes >> 20,
		summary->table_max_bytes >> 20);
}

/* Prints how the samples of one event were selected to stay within the limit. */
static void print_choice(const char *name, uint64_t occurrences, uint64_t skipped,
			 uint64_t period_ns)
{
	if (period_ns > 1)
		escape__line(stderr,
			     "%s: %" PRIu64 " of %" PRIu64 " intervals (all under %.3g ms) were "
			     "sampled in proportion to their length and have no sample of their "
			     "own. Totals are exact (--max-overhead none samples all)",
			     name, skipped, occurrences, period_ns / 1e6);
	else
		escape__line(stderr,
			     "%s: %" PRIu64 " of %" PRIu64 " occurrences have no sample of their "
			     "own: later samples stand for them. Totals are exact "
			     "(--max-overhead none samples all)",
			     name, skipped, occurrences);
}

/* Prints the measures against an excess of the limit, by event, and the waits that were left
 * out. */
static void print_economy(const struct session_opts *opts, const struct session_summary *summary)
{
	const struct kernel_half_economy *economy = &summary->economy;

	for (uint32_t i = 0; i < opts->events.n; i++) {
		const char *name = opts->events.list[i].name;
		const struct rest_rec *rest = &summary->stats->rests[i];

		if (economy->events[i].skipped)
			print_choice(name, economy->events[i].occurrences,
				     economy->events[i].skipped, economy->events[i].period_ns);
		if (rest->weight)
			escape__line(stderr,
				     "%s: %" PRIu64 " occurrences without a sample count, but "
				     "have no stack",
				     name, (uint64_t)rest->weight);
	}
	if (economy->below)
		fprintf(stderr,
			"%" PRIu64
			" waits were shorter than the given minimum and are left out: %.3g s in "
			"all\n",
			economy->below, economy->below_ns / 1e9);
}

/* Prints the methods and the cost. */
static void print_details(const struct session_opts *opts, const struct session_summary *summary)
{
	const struct capture_stats *stats = summary->stats;

	fprintf(stderr, "own CPU %.2f s", summary->own_cpu_s);
	if (event_list__has_timed(&opts->events, true) || event_list__has_rated(&opts->events))
		fprintf(stderr, ", %u Hz", opts->frequency_hz);
	if (opts->period > 1)
		fprintf(stderr, ", one of %" PRIu64 " occurrences each", opts->period);
	if (opts->bytes > 1 && event_list__has_counted(&opts->events, true))
		fprintf(stderr, ", one in %" PRIu64 " bytes", opts->bytes);
	fputc('\n', stderr);
	print_frames(opts, stats);
	if (summary->compiled.places)
		fprintf(stderr,
			"compiled code: %" PRIu64 " places, %" PRIu64 " with a name from a map (of "
			"%" PRIu64 " symbols)\n",
			summary->compiled.places, summary->compiled.named,
			summary->compiled.symbols);
	if (stats->copies_used)
		fprintf(stderr, "%" PRIu64 " stacks completed from a stack copy\n",
			stats->copies_used);
}

static void print_complete(const struct capture_stats *stats)
{
	fprintf(stderr, "stacks complete to the root: %.2f %% (%" PRIu64 " of %" PRIu64 ")\n",
		100.0 * stats->complete / stats->samples, stats->complete, stats->samples);
}

/* A larger recording takes too long to read for these sentences. */
#define SENTENCES_SAMPLES 200000

/* Prints the findings of the recording, and suitable commands. */
static void print_findings(const struct session_opts *opts, const struct capture_stats *stats)
{
	struct view_opts view = VIEW_OPTS_DEFAULT(opts->runtimes);
	bool usual = !strcmp(opts->output, OUTPUT_DEFAULT);

	view.file = opts->output;
	view.file_given = !usual;
	if (stats->samples && stats->samples <= SENTENCES_SAMPLES && !opts->rotation.seconds)
		view_summary__print(&view, opts->runtimes, stderr);
	else if (stats->samples)
		escape__line(stderr, "next: braid flame%s%s, braid report%s%s", usual ? "" : " ",
			     usual ? "" : opts->output, usual ? "" : " ",
			     usual ? "" : opts->output);
}

static void print_lag(const struct session_lag *lag)
{
	if (lag->unread)
		fprintf(stderr,
			"braid lacked CPU for %.0f s: up to %u processes still unread, whose "
			"stacks lack frames of interpreters until then\n",
			lag->seconds, lag->unread);
}

static void print_event_note(const struct event_spec *event, const char *note)
{
	if (note && *note)
		escape__line(stderr, "%s: %s", event->name, note);
}

void record_summary__print(const struct session_opts *opts, const struct session_summary *summary,
			   bool verbose)
{
	const struct capture_stats *stats = summary->stats;

	if (opts->command)
		cli__print_command_end(summary->command_pid, summary->command_status);
	print_events(opts, summary);
	if (summary->samples_lost)
		fprintf(stderr, "%" PRIu64 " more samples could not be written\n",
			summary->samples_lost);
	print_activity(opts, summary);
	if (verbose)
		print_details(opts, summary);
	if (stats->samples && (verbose || stats->complete < COMPLETE_USUAL * stats->samples))
		print_complete(stats);
	print_inferred(stats);
	for (uint32_t i = 0; i < opts->events.n; i++) {
		print_event_note(&opts->events.list[i], summary->event_notes[i]);
		print_event_note(&opts->events.list[i], summary->event_late[i]);
	}
	print_lag(&summary->lag);
	print_unseen(summary);
	print_too_large();
	print_debug_missing();
	print_fetched(&stats->fetched);
	print_nameless(opts, summary);
	print_economy(opts, summary);
	cli__print_limit(&summary->limit, "; to keep them: --max-overhead none");
	cli__print_losses(summary->counters);
	print_tableless(summary);
	print_findings(opts, stats);
}
