// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/cli.h"
#include "core/cli/record_rotation.h"
#include "core/cli/record_summary.h"
#include "core/cli/waiting_line.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/escape.h"
#include "core/base/privilege.h"
#include "core/base/util.h"

#define FREQUENCY_MAX_HZ 10000
#define FREQUENCY_HZ	 99 /* default */
#define PERIOD_MAX	 1e9
#define BYTES_MAX	 1e12
#define BYTES		 (512 << 10) /* as in Go and tcmalloc */

/* Reports about processes that were printed; equal ones are not printed again. */
#define SOURCES_REPORTED_MAX 32
struct reported_source {
	const struct runtime *runtime;
	char version[32], source[16], reason[RUNTIME_REASON_BYTES];
};

struct record_opts {
	struct session_opts session;
	uint32_t *pids;
	bool status;	 /* a status line on the terminal */
	bool quiet_line; /* the status line is on the screen and must be ended */
	struct waiting_line reading;
	bool native_only;
	bool waker;	  /* also record the wakers of waits */
	bool outstanding; /* only allocations that are not freed */
	bool verbose;
	bool output_given;
	struct reported_source reported[SOURCES_REPORTED_MAX];
};

enum {
	OPT_SOURCE = 0x100,
	OPT_UNWIND,
	OPT_FORCE,
	OPT_MAX_OVERHEAD,
	OPT_WAKER,
	OPT_OUTSTANDING,
	OPT_NO_PRELOAD
};

static const struct argp_option options[] = {
	{ "pid", 'p', "PID[,PID...]", 0,
	  "Record these running processes with all their threads, and the processes below them",
	  0 },
	CLI_NO_CHILDREN_OPTION,
	CLI_SCOPE_OPTIONS,
	{ "duration", 'd', "SECONDS", 0,
	  "Stop after SECONDS (default: when the target exits or on Ctrl-C)", 0 },
	{ "event", 'e', "EVENT,...", 0,
	  "Events to sample, up to 16 (default: cpu): cpu, wall[:MIN] (all time of "
	  "threads), off-cpu[:MIN] (their waits), wakeup[:MIN], lock[:MIN], "
	  "lock:pthread[:MIN], alloc[:DOMAIN], block-io[:MIN], page-fault, "
	  "syscall[:NAME][:MIN], tracepoint:SYS:NAME[/FILTER/], uprobe:FILE:SYMBOL "
	  "or uprobe:FILE:0xOFFSET, uretprobe:, usdt:FILE:PROVIDER:NAME, "
	  "kprobe:FUNCTION, A:latency:B[:MIN], cycles and others; braid events lists "
	  "them. A comma ends an event, also inside a filter",
	  0 },
	{ "frequency", 'F', "HZ", 0,
	  "Samples per second and CPU, 1 to 10000 (default 99), of the event cpu, "
	  "and of hardware events (cycles, ...) without -c",
	  0 },
	{ "count", 'c', "N", 0,
	  "For other events: sample every Nth occurrence, which stands for N "
	  "(default: every one); for alloc: one sample per N bytes (default 512k)",
	  0 },
	{ "waker", OPT_WAKER, NULL, 0,
	  "With off-cpu or wall: also record which thread ends each wait, as the "
	  "event wakeup; report --waker and flame --waker show it inside the wait",
	  0 },
	{ "outstanding", OPT_OUTSTANDING, NULL, 0,
	  "With alloc: record only allocations that are not freed when the recording "
	  "ends; report --by age and --min-age group and select them by age",
	  0 },
	{ "no-preload", OPT_NO_PRELOAD, NULL, 0,
	  "With alloc:usdt and a command: do not load libbraid-heap.so into the command", 0 },
	{ "runtimes", 'r', "RUNTIME,...", 0,
	  "Only these runtimes (default: all that are found); native frames are always recorded",
	  1 },
	{ "source", OPT_SOURCE, "SOURCE", 0,
	  "Where runtime frames come from: auto (default), walk, probes, map (names of compiled "
	  "code "
	  "only), none",
	  1 },
	{ "unwind", OPT_UNWIND, "HOW", 0,
	  "Unwinding of native stacks: auto (tables, default), fp (frame pointers "
	  "only), copy (stack copies unwound in user space, slow; compares them with "
	  "the tables), twice (auto, and again without the cached stack; compares "
	  "both)",
	  1 },
	{ "max-overhead", OPT_MAX_OVERHEAD, "PCT", 0,
	  "Limit the cost of probes to PCT percent of all CPUs' time, 0.1 to 100, or "
	  "none (default 5 with -p, none with a command): above it, probes are "
	  "detached and frames walked. Also limit the cost of sampling frequent "
	  "events to PCT percent of each CPU (default 3): above it, one sample "
	  "stands for several. If given, braid also samples less often when its own "
	  "CPU use exceeds PCT",
	  1 },
	{ "output", 'o', "FILE|DIR", 0,
	  "Output file (default braid.db); with --rotate, the directory: a new or "
	  "empty one, or one that braid has filled before",
	  2 },
	{ "force", OPT_FORCE, NULL, 0,
	  "Overwrite FILE even if it is not a recording; probe returns by replacing "
	  "return addresses where there is no other way, which aborts a target if an "
	  "exception passes through one",
	  2 },
	{ "verbose", 'v', NULL, 0,
	  "Show at the end the numbers of frames, how complete stacks are, and "
	  "braid's own cost; show the source of frames for each process, not only "
	  "for the first of its kind. Also show " CLI_VERBOSE_HELP,
	  2 },
	{}
};

static void parse_source(struct argp_state *state, struct record_opts *record, const char *arg)
{
	static const char *const names[] = { [RUNTIME_SOURCE_AUTO] = "auto",
					     [RUNTIME_SOURCE_WALK] = "walk",
					     [RUNTIME_SOURCE_PROBES] = "probes",
					     [RUNTIME_SOURCE_CALLS] = "",
					     [RUNTIME_SOURCE_MAP] = "map" };
	size_t i;

	record->native_only = !strcmp(arg, "none");
	if (record->native_only)
		return;
	for (i = 0; i < ARRAY_SIZE(names) && (!*arg || strcmp(arg, names[i])); i++)
		;
	if (i == ARRAY_SIZE(names))
		cli__misused(state, "--source takes auto, walk, probes, map or none, not '%s'",
			     arg);
	record->session.source = i;
}

static enum unwind_mode parse_unwind(struct argp_state *state, const char *arg)
{
	for (int mode = 0; mode < UNWIND_MODES_N; mode++)
		if (!strcmp(arg, session__unwind_name(mode)))
			return mode;
	cli__misused(state, "--unwind takes auto, fp, copy or twice, not '%s'", arg);
	return UNWIND_MODE_AUTO;
}

static void parse_events(struct argp_state *state, struct session_opts *opts, const char *arg)
{
	struct err err = {};

	if (event_list__parse(arg, &opts->events, &err))
		cli__misused(state, "-e: %s", err.text);
}

/* Parses a number of occurrences; with a unit, a number of bytes. */
static void parse_count(struct argp_state *state, struct session_opts *opts, const char *arg)
{
	static const char units[] = "bkmg";
	size_t len = strlen(arg);
	const char *unit = len > 1 ? strchr(units, tolower((unsigned char)arg[len - 1])) : NULL;
	char number[32];

	if (!unit || len >= sizeof(number)) {
		opts->period = cli__number(state, "-c", arg, 1, PERIOD_MAX);
		return;
	}
	snprintf(number, sizeof(number), "%.*s", (int)len - 1, arg);
	opts->bytes = cli__number(state, "-c (with the unit b, k, m or g)", number, 1, BYTES_MAX) *
		      (1 << 10 * (unit - units));
	if (opts->bytes > BYTES_MAX)
		cli__misused(state, "-c takes at most %g bytes, not '%s'", BYTES_MAX, arg);
}

/* Adds the event wakeup. A wait that is too short for a sample has no waker either. */
static void add_waker(struct argp_state *state, struct session_opts *opts)
{
	uint32_t waiting = event_list__waiting(&opts->events);

	if (!waiting)
		cli__misused(state, "--waker requires -e off-cpu or -e wall");
	for (uint32_t i = 0; i < opts->events.n; i++)
		if (opts->events.list[i].kind == &event_wakeup)
			return;
	parse_events(state, opts, event_wakeup.name);
	opts->events.list[opts->events.n - 1].minimum = opts->events.list[waiting - 1].minimum;
}

/* Converts alloc:DOMAIN to outstanding:DOMAIN. */
static void want_outstanding(struct argp_state *state, struct session_opts *opts)
{
	uint32_t number = event_list__of_slot(&opts->events, EVENT_ALLOC);
	char domain[EVENT_NAME_BYTES];
	struct event_spec *spec;
	struct err err = {};

	if (!number)
		cli__misused(state, "--outstanding requires -e alloc");
	spec = &opts->events.list[number - 1];
	if (spec->kind->outstanding)
		return;
	snprintf(domain, sizeof(domain), "%s", event__argument(spec));
	snprintf(spec->name, sizeof(spec->name), "%s%s%.400s", event_outstanding.name,
		 *domain ? ":" : "", domain);
	if (event_spec__parse(spec, &err))
		cli__misused(state, "-e alloc:%s --outstanding: %s", domain, err.text);
}

/* Checks that the rates apply to events of the session. */
static void check_rates(struct argp_state *state, struct session_opts *opts)
{
	bool timed = !opts->events.n || event_list__has_timed(&opts->events, true);
	bool rated = event_list__has_rated(&opts->events) && !opts->period;

	if (opts->frequency_hz && !timed && event_list__has_rated(&opts->events) && !rated)
		cli__misused(state, "-F and -c both set how often to sample: give one of them");
	if (opts->frequency_hz && !timed && !rated)
		cli__misused(
			state,
			"-F applies only to events sampled by time, and none is given: add -e cpu, "
			"or give -c");
	if ((opts->period || opts->bytes) && !event_list__has_timed(&opts->events, false))
		cli__misused(
			state,
			"-c applies only to counted events, and cpu is sampled by time: give -F");
	if (opts->bytes && !event_list__has_counted(&opts->events, true))
		cli__misused(
			state,
			"-c with a unit applies only to events in bytes, and none is given: add -e "
			"alloc, or give a number of occurrences");
	if (opts->period && !event_list__has_counted(&opts->events, false)) {
		opts->bytes = opts->bytes ?: opts->period;
		opts->period = 0;
	}
	if (!opts->bytes)
		opts->bytes = BYTES;
	if (!opts->frequency_hz)
		opts->frequency_hz = FREQUENCY_HZ;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct record_opts *record = state->input;
	struct session_opts *opts = &record->session;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = opts;
		break;
	case 'e':
		parse_events(state, opts, arg);
		break;
	case 'F':
		opts->frequency_hz = cli__number(state, "-F", arg, 1, FREQUENCY_MAX_HZ);
		break;
	case 'c':
		parse_count(state, opts, arg);
		break;
	case OPT_WAKER:
		record->waker = true;
		break;
	case OPT_NO_PRELOAD:
		opts->no_preload = true;
		break;
	case OPT_OUTSTANDING:
		record->outstanding = true;
		break;
	case OPT_SOURCE:
		parse_source(state, record, arg);
		break;
	case OPT_UNWIND:
		opts->unwind = parse_unwind(state, arg);
		break;
	case 'o':
		if (!*arg)
			cli__misused(state, "-o takes the name of a file, or of a directory with "
					    "--rotate");
		if (!strcmp(arg, "-"))
			cli__misused(state, "cannot write a recording to standard output. Name a "
					    "file with -o (./- for "
					    "a file named -)");
		opts->output = arg;
		record->output_given = true;
		break;
	case OPT_FORCE:
		opts->force = true;
		break;
	case OPT_MAX_OVERHEAD:
		cli__max_overhead(state, arg, opts);
		break;
	case ARGP_KEY_END:
		cli__parse_target(key, arg, state, opts, &record->pids);
		cli__default_max_overhead(opts);
		if (record->waker)
			add_waker(state, opts);
		if (!opts->events.n)
			parse_events(state, opts, (char[]) { "cpu" });
		if (record->outstanding)
			want_outstanding(state, opts);
		check_rates(state, opts);
		record_rotation__check(state, opts, record->output_given);
		if (record->native_only)
			opts->enabled = 0;
		if (!opts->enabled)
			opts->source = RUNTIME_SOURCE_WALK;
		break;
	default:
		record->verbose |= key == 'v';
		return cli__parse_target(key, arg, state, opts, &record->pids);
	}
	return 0;
}

static void end_status_line(struct record_opts *record)
{
	if (record->quiet_line)
		fputc('\n', stderr);
	record->quiet_line = false;
}

/* Returns true if an equal report was printed: a server's workers would otherwise repeat it. */
static bool was_reported(struct record_opts *record, const struct reported_source *now)
{
	size_t i;

	for (i = 0; i < SOURCES_REPORTED_MAX && record->reported[i].runtime; i++)
		if (!memcmp(&record->reported[i], now, sizeof(*now)))
			return !record->verbose;
	if (i < SOURCES_REPORTED_MAX)
		record->reported[i] = *now;
	return false;
}

static void on_source(void *ctx, struct process *process, const struct runtime *runtime,
		      const char *version, const char *source, const char *reason)
{
	struct reported_source now;

	memset(&now, 0, sizeof(now));
	now.runtime = runtime;
	snprintf(now.version, sizeof(now.version), "%s", version ?: "");
	snprintf(now.source, sizeof(now.source), "%s", source);
	snprintf(now.reason, sizeof(now.reason), "%s", reason ?: "");
	if (was_reported(ctx, &now))
		return;
	end_status_line(ctx);
	cli__print_source(process->pid, runtime->name, version, source, reason);
}

static void on_note(void *ctx, const char *text)
{
	struct record_opts *record = ctx;

	end_status_line(record);
	waiting_line__clear(&record->reading);
	escape__line(stderr, "%s", text);
}

static void on_progress(void *ctx, const struct session_progress *progress)
{
	struct record_opts *record = ctx;

	if (!record->status)
		return;
	fprintf(stderr,
		"\r\033[K%.0f s, %" PRIu64 " samples (%.0f/s), %" PRIu64 " lost, own CPU %.1f %%",
		progress->elapsed_s, progress->samples, progress->samples / progress->elapsed_s,
		progress->lost, progress->own_cpu_percent);
	if (progress->unread)
		fprintf(stderr, "; braid lacks CPU: %u processes still unread", progress->unread);
	fflush(stderr);
	record->quiet_line = true;
}

static void go_on(int number)
{
	(void)number;
}

static int record(struct record_opts *record)
{
	struct session_summary summary;
	struct session *session;
	struct err err = {}, finish_err = {};
	int ret, finished, status = EXIT_OK;

	/* Makes the limit of the file's size an error, as a full disk is. The command inherits only
	 * whether the signal is ignored. */
	if (signal(SIGXFSZ, go_on) == SIG_IGN)
		signal(SIGXFSZ, SIG_IGN);
	ret = session__open(&record->session, &session, &err);
	if (ret)
		return cli__fail_open(&record->session, ret, &err);
	cli__print_start(session, &record->session);
	ret = session__run(session, &err);
	end_status_line(record);
	if (record->status)
		waiting_line__begin(&record->reading, "reading symbols ...");
	finished = session__finish(session, &summary, &finish_err);
	waiting_line__end(&record->reading);
	record_summary__print(&record->session, &summary, record->verbose);
	if (ret == -ESTALE || finished == -ESTALE)
		status = cli__fail("%s", ret ? err.text : finish_err.text);
	else if (ret || finished)
		status = cli__fail("%s. The samples recorded until then are in %s",
				   ret ? err.text : finish_err.text, record->session.output);
	session__free(session); /* from here on Ctrl-C ends braid */
	return status;
}

int cmd_record(int argc, char **argv, const struct runtime *const *runtimes)
{
	static const struct argp_child children[] = { { &record_rotation_argp, 0, NULL, 0 }, {} };
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.children = children,
		.args_doc = "-p PID[,PID...]\n-a|--cgroup PATH|--container ID|--name REGEX|--user "
			    "NAME\n-- COMMAND...",
		.doc = "Record where processes spend CPU time: kernel, native and interpreted "
		       "frames of every thread, also of threads and child processes that start "
		       "later. Needs root, or CAP_BPF and CAP_PERFMON; some targets need more, "
		       "which braid doctor shows.\v"
		       "With -a, --cgroup, --container, --name or "
		       "--user, and for a command, braid's reading thread runs at nice -10, and "
		       "at -20 while processes wait to be read. A sample taken before braid has "
		       "read the process's interpreter has only native frames and is counted as "
		       "'runtime stacks missing: taken before the interpreter was known'; 'braid "
		       "lacks CPU: N processes still unread' means that there are many such "
		       "samples.\n"
		       "\n"
		       "Examples:\n"
		       "  braid record -p 4711 -d 10\n"
		       "  braid record -p 4711,4712 -F 999 -o web.db\n"
		       "  braid record -r python -- python3 app.py --option\n"
		       "  braid record -a -d 10\n"
		       "  braid record --container web --user www-data -d 10\n"
		       "  braid record -e wall -p 4711 -d 10\n"
		       "  braid record --rotate 60 --keep 1440 -o recordings -p 4711\n"
		       "  braid record -e off-cpu:1ms --waker -p 4711 -d 10\n"
		       "  braid record -e cpu,tracepoint:sched:sched_switch -p 4711 -d 10\n"
		       "  braid record -e uprobe:libc.so.6:malloc -c 100 -- ./program\n"
		       "  braid record -e page-fault,syscall:fsync:1ms -p 4711\n"
		       "  braid record -e 'tracepoint:sched:sched_switch/prev->prio < 100/' -p "
		       "4711\n"
		       "Then: braid flame, braid report",
	};
	struct record_opts opts = { .session = { .runtimes = runtimes,
						 .enabled = UINT32_MAX,
						 .output = OUTPUT_DEFAULT,
						 .on_source = on_source,
						 .on_note = on_note,
						 .on_progress = on_progress },
				    .status = isatty(STDERR_FILENO) };
	int status;

	opts.session.ctx = &opts;
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &opts);
	status = record(&opts);
	free(opts.pids);
	return status;
}
