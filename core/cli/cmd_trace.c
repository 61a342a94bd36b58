// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/live/live_profile.h"
#include "core/profile/frames.h"

/* braid trace: a line for each occurrence, or a table of counts each interval. Samples wait in a
 * queue of the live profile until a round of the session is over, and are then printed. */

#define QUEUE_MAX    65536	/* samples that wait to be printed */
#define LIVE_BYTES   (40 << 20) /* names and stacks (core/live/live_profile.h) */
#define TALLIES_MAX  4096	/* rows of a table of counts */
#define LABEL_BYTES  300
#define FREQUENCY_HZ 99 /* rate of events that are sampled by time */

enum { OPT_STACKS = 0x100, OPT_INTERVAL, OPT_LIMIT, OPT_MAX_OVERHEAD, OPT_FORCE };

static const struct argp_option options[] = {
	{ "pid", 'p', "PID[,PID...]", 0, "Trace these running processes and their child processes",
	  0 },
	CLI_NO_CHILDREN_OPTION,
	CLI_SCOPE_OPTIONS,
	{ "event", 'e', "EVENT,...", 0,
	  "Events to print, as for braid record; may be given several times. Values are part of "
	  "the lines: -e 'uprobe:libc.so.6:write(fd:s32, buf:ptr, n:u64)'",
	  0 },
	{ "duration", 'd', "SECONDS", 0,
	  "Stop after SECONDS (default: when the target exits or on Ctrl-C)", 0 },
	{ "stacks", OPT_STACKS, NULL, 0, "Print the merged stack below each line, innermost first",
	  1 },
	{ "interval", OPT_INTERVAL, "SECONDS", 0,
	  "Print no lines, but each SECONDS (0.1 to 3600) the number of occurrences per second "
	  "of each event, and of each function of a pattern",
	  1 },
	{ "limit", OPT_LIMIT, "N", 0, "Stop after N lines", 1 },
	{ "runtimes", 'r', "RUNTIME,...", 0,
	  "With --stacks: only these runtimes (default: all that are found)", 1 },
	{ "max-overhead", OPT_MAX_OVERHEAD, "PCT", 0,
	  "Limit the cost of samples to PCT percent of this machine, 0.1 to 100, or none (default "
	  "5 with -p, none with a command): above it, one line stands for several occurrences",
	  2 },
	{ "force", OPT_FORCE, NULL, 0, "Replace return addresses where returns cannot be probed",
	  2 },
	CLI_VERBOSE_OPTION,
	{}
};

struct tally {
	char name[LABEL_BYTES];
	uint64_t count;
};

struct trace {
	struct session_opts opts;
	uint32_t *pids;
	struct live_profile *live;
	struct session *session;
	bool stacks;
	double interval_s; /* 0: lines */
	uint64_t limit;	   /* 0: none */
	uint64_t lines, occurrences;
	uint64_t table_ns; /* time of the last table; CLOCK_MONOTONIC */
	int64_t offset_ns; /* CLOCK_REALTIME less CLOCK_MONOTONIC */
	struct tally *tallies;
	size_t n_tallies, cap_tallies;
	uint64_t untallied;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct trace *trace = state->input;
	struct session_opts *opts = &trace->opts;
	struct err err = {};

	switch (key) {
	case 'e':
		if (event_list__parse(arg, &opts->events, &err))
			cli__misused(state, "-e: %s", err.text);
		break;
	case OPT_STACKS:
		trace->stacks = true;
		break;
	case OPT_INTERVAL:
		trace->interval_s = cli__number(state, "--interval", arg, 0.1, 3600);
		break;
	case OPT_LIMIT:
		trace->limit = cli__number(state, "--limit", arg, 1, 1e15);
		break;
	case OPT_MAX_OVERHEAD:
		cli__max_overhead(state, arg, opts);
		break;
	case OPT_FORCE:
		opts->force = true;
		break;
	case ARGP_KEY_END:
		cli__parse_target(key, arg, state, opts, &trace->pids);
		cli__default_max_overhead(opts);
		if (!opts->events.n)
			cli__misused(state, "-e is missing: give the events to print");
		if (trace->interval_s && (trace->stacks || trace->limit))
			cli__misused(state, "--interval prints counts and cannot be used with "
					    "--stacks or --limit");
		break;
	default:
		return cli__parse_target(key, arg, state, opts, &trace->pids);
	}
	return 0;
}

static void on_note(void *ctx, const char *text)
{
	(void)ctx;
	escape__line(stderr, "%s", text);
}

/* --- lines --- */

/* Returns the function of a pattern; NULL: none. Values follow the labels of a request, which may
 * have the same key. */
static const char *place_of(const struct queued_sample *queued)
{
	for (size_t i = queued->n_labels; i > 0; i--)
		if (!strcmp(queued->labels[i - 1].key, VALUE_LABEL PLACE_NAME))
			return queued->labels[i - 1].value;
	return NULL;
}

static void write_clock(const struct trace *trace, uint64_t time_ns, char *ret, size_t size)
{
	uint64_t real_ns = time_ns + trace->offset_ns;
	time_t seconds = real_ns / NSEC_PER_SEC;
	struct tm tm;
	size_t used = strftime(ret, size, "%H:%M:%S", localtime_r(&seconds, &tm));

	snprintf(ret + used, size - used, ".%06u", (unsigned)(real_ns % NSEC_PER_SEC / 1000));
}

/* Writes the values, and the sample's own value if the event has one. */
static void write_values(const struct live_sample *sample, char *ret, size_t size)
{
	const struct queued_sample *queued = sample->queued;
	size_t used = 0;

	*ret = '\0';
	if (!strcmp(sample->unit, SINK_UNIT_NS))
		used += snprintf(ret, size, " %.3f us", queued->sample.value / 1000.0);
	else if (!strcmp(sample->unit, SINK_UNIT_BYTES))
		used += snprintf(ret, size, " %" PRIu64 " B", queued->sample.value);
	for (size_t i = 0; i < queued->n_labels && used < size; i++) {
		const struct sink_label *label = &queued->labels[i];
		bool value = !strncmp(label->key, VALUE_LABEL, strlen(VALUE_LABEL));

		if (strcmp(label->key, VALUE_LABEL PLACE_NAME) != 0)
			used += snprintf(ret + used, size - used, " %s=%s",
					 label->key + (value ? strlen(VALUE_LABEL) : 0),
					 label->value);
	}
	if (queued->sample.weight > 1 && used < size)
		snprintf(ret + used, size - used, " (stands for %" PRIu64 ")",
			 queued->sample.weight);
}

/* Prints the stack of the only sample in the live profile. */
static int print_stack(const struct trace *trace, const struct live_sample *sample, struct err *err)
{
	const struct profile_filter filter = { .event = sample->event, .lines = true };
	struct profile *profile, *view;
	char label[LABEL_BYTES];
	uint32_t node = 0;

	if (live_profile__get(trace->live, &filter, &profile, NULL, err)) {
		puts("        [no stack]");
		return 0;
	}
	if (frames__differ(profile)) { /* the interpreter's own frames are one, as in reports */
		if (frames__view(profile, FRAMES_COLLAPSED, &view)) {
			profile__free(profile);
			return -ENOMEM;
		}
		profile__free(profile);
		profile = view;
	}
	for (size_t i = 1; i < profile->n_nodes; i++)
		if (profile->nodes[i].self)
			node = i;
	for (; node; node = profile->nodes[node].parent) {
		profile__label(profile, &profile->frames[profile->nodes[node].frame], 0, label,
			       sizeof(label));
		escape__line(stdout, "        %s", label);
	}
	profile__free(profile);
	return 0;
}

static int print_line(struct trace *trace, const struct live_sample *sample, struct err *err)
{
	const struct profile_thread_of *thread = &sample->thread;
	const char *place = place_of(sample->queued);
	char clock[32], values[2000];

	write_clock(trace, sample->queued->sample.time_ns, clock, sizeof(clock));
	write_values(sample, values, sizeof(values));
	escape__line(stdout, "%s %7u %7u %-15s %s%s", clock, thread->pid, thread->tid, thread->name,
		     place ? place : sample->event, values);
	trace->lines++;
	return trace->stacks ? print_stack(trace, sample, err) : 0;
}

/* --- counts --- */

static int tally(struct trace *trace, const struct live_sample *sample)
{
	const char *place = place_of(sample->queued);
	char name[LABEL_BYTES];
	size_t i;

	snprintf(name, sizeof(name), "%s%s%s", sample->event, place ? "  " : "",
		 place ? place : "");
	for (i = 0; i < trace->n_tallies; i++)
		if (!strcmp(trace->tallies[i].name, name))
			break;
	if (i == trace->n_tallies && i == TALLIES_MAX) {
		trace->untallied += sample->queued->sample.weight;
		return 0;
	}
	if (i == trace->n_tallies) {
		if (array__reserve(&trace->tallies, &trace->cap_tallies, i + 1,
				   sizeof(*trace->tallies)))
			return -ENOMEM;
		trace->tallies[trace->n_tallies++] = (struct tally) {};
		strcpy(trace->tallies[i].name, name);
	}
	trace->tallies[i].count += sample->queued->sample.weight;
	return 0;
}

static int compare_tallies(const void *a, const void *b)
{
	const struct tally *x = a, *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return strcmp(x->name, y->name);
}

static void print_table(struct trace *trace, uint64_t now)
{
	double seconds = (now - trace->table_ns) / (double)NSEC_PER_SEC;
	char clock[32];

	write_clock(trace, now, clock, sizeof(clock));
	printf("%.8s  (%.1f s)\n", clock, seconds);
	if (trace->n_tallies)
		qsort(trace->tallies, trace->n_tallies, sizeof(*trace->tallies), compare_tallies);
	for (size_t i = 0; i < trace->n_tallies && trace->tallies[i].count; i++) {
		escape__line(stdout, "%12.1f/s %10" PRIu64 "  %s",
			     trace->tallies[i].count / seconds, trace->tallies[i].count,
			     trace->tallies[i].name);
		trace->tallies[i].count = 0;
	}
	trace->table_ns = now;
}

/* --- the loop --- */

static bool is_full(const struct trace *trace)
{
	return trace->limit && trace->lines >= trace->limit;
}

/* Prints the samples of the last round. */
static int print_round(struct trace *trace, struct err *err)
{
	struct live_sample sample;
	int ret = 0;

	if (trace->stacks)
		ret = session__name_frames(trace->session, err);
	while (!ret && !is_full(trace)) {
		ret = live_profile__next(trace->live, trace->stacks, &sample);
		if (ret <= 0)
			break;
		trace->occurrences += sample.queued->sample.weight;
		ret = trace->interval_s ? tally(trace, &sample) : print_line(trace, &sample, err);
	}
	if (!ret && fflush(stdout))
		return err__set(err, -errno, "cannot write: %s", strerror(errno));
	return ret == -ENOMEM ? err__set(err, ret, "out of memory") : ret;
}

static int loop(struct trace *trace, struct err *err)
{
	uint64_t each_ns = trace->interval_s * NSEC_PER_SEC, now;
	bool over = false;
	int ret = 0;

	trace->table_ns = now_ns();
	while (!ret && !over && !is_full(trace)) {
		ret = session__step(trace->session, &over, err);
		if (!ret)
			ret = print_round(trace, err);
		now = now_ns();
		if (!ret && each_ns && now - trace->table_ns >= each_ns)
			print_table(trace, now);
	}
	return ret;
}

/* Prints the losses. Those of stacks matter only if stacks are printed. */
static void print_losses(const struct trace *trace, const uint64_t *all)
{
	uint64_t counters[COUNTERS_N];

	memcpy(counters, all, sizeof(counters));
	for (int i = 0; i < COUNTERS_N; i++)
		if (!trace->stacks && !strncmp(counter__text(i), "stacks cut", 10))
			counters[i] = 0;
	cli__print_losses(counters);
}

static void print_end(const struct trace *trace, const struct session_summary *summary)
{
	struct live_profile_stats stats;

	live_profile__stats(trace->live, &stats);
	escape__line(stderr, "%" PRIu64 " occurrences in %.1f s", trace->occurrences,
		     summary->duration_s);
	print_losses(trace, summary->counters);
	if (stats.dropped)
		fprintf(stderr, "%8" PRIu64 "  samples lost: not printed fast enough\n",
			stats.dropped);
	if (trace->untallied)
		fprintf(stderr, "%8" PRIu64 "  occurrences of further functions: too many rows\n",
			trace->untallied);
	for (uint32_t i = 0; i < trace->opts.events.n; i++)
		if (summary->event_notes[i] && *summary->event_notes[i])
			escape__line(stderr, "%s: %s", trace->opts.events.list[i].name,
				     summary->event_notes[i]);
	if (trace->opts.command)
		cli__print_command_end(summary->command_pid, summary->command_status);
}

static int finish(struct trace *trace, int ret, struct err *err)
{
	struct session_summary summary;
	struct err ignored = {};
	int finished = session__finish(trace->session, &summary, ret ? &ignored : err);

	ret = ret ? ret : finished;
	if (!ret)
		ret = print_round(trace, err);
	if (!ret && trace->interval_s)
		print_table(trace, max_of(now_ns(), trace->table_ns + 1));
	fflush(stdout);
	if (!ret)
		print_end(trace, &summary);
	return ret;
}

static int64_t clock_offset(void)
{
	struct timespec real;

	clock_gettime(CLOCK_REALTIME, &real);
	return (int64_t)real.tv_sec * (int64_t)NSEC_PER_SEC + real.tv_nsec - (int64_t)now_ns();
}

static int run(struct trace *trace)
{
	struct err err = {};
	int ret = live_profile__new(LIVE_BYTES, &trace->live);

	if (ret)
		return cli__fail("out of memory");
	live_profile__queue(trace->live, QUEUE_MAX);
	trace->opts.live = trace->live;
	trace->offset_ns = clock_offset();
	if (!trace->stacks) { /* the shortest stacks */
		trace->opts.enabled = 0;
		trace->opts.unwind = UNWIND_MODE_FP;
	}
	ret = session__open(&trace->opts, &trace->session, &err);
	if (ret) {
		live_profile__free(trace->live);
		return cli__fail_open(&trace->opts, ret, &err);
	}
	escape__line(stderr, "tracing %s (Ctrl-C ends)", session__target(trace->session));
	ret = loop(trace, &err);
	ret = finish(trace, ret, &err);
	session__free(trace->session);
	live_profile__free(trace->live);
	free(trace->tallies);
	return ret ? cli__fail("%s", err.text) : EXIT_OK;
}

int cmd_trace(int argc, char **argv, const struct runtime *const *runtimes)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "-e EVENT -p PID[,PID...]\n-e EVENT -a|--cgroup PATH|--container ID|"
			    "--name REGEX|--user NAME\n-e EVENT -- COMMAND...",
		.doc = "Print each occurrence of events when it happens: time, process, thread, "
		       "name of the thread, event or function, and values; or counts per second. "
		       "Nothing is recorded. Needs what braid record needs.\v"
		       "Examples:\n"
		       "  braid trace -e 'uprobe:libc.so.6:write(fd:s32, buf:ptr, n:u64)' -p 4711\n"
		       "  braid trace -e 'tracepoint:syscalls:sys_enter_openat(_, name:str)' -a\n"
		       "  braid trace --stacks --limit 10 -e syscall:fsync -p 4711\n"
		       "  braid trace --interval 1 -e 'uprobe:libpq.so.5:PQ*' -p 4711\n",
	};
	struct trace trace = { .opts = { .runtimes = runtimes,
					 .enabled = UINT32_MAX,
					 .frequency_hz = FREQUENCY_HZ,
					 .on_note = on_note } };
	int status;

	trace.opts.ctx = &trace;
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &trace);
	status = run(&trace);
	free(trace.pids);
	return status;
}
