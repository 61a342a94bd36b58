// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/top.h"

#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/live/live_window.h"

#define FREQUENCY_HZ	 99
#define FREQUENCY_MAX_HZ 10000
#define INTERVAL_S	 1
#define WINDOW_S	 10
#define WINDOW_MAX_S	 3600
#define LIVE_BYTES	 (40 << 20)  /* see core/live/live_profile.h */
#define MAPPED_BYTES	 (256 << 10) /* larger blocks return to the system when freed */
#define ENDED_POLL_MS	 100
#define FIRST_LOOK_NS	 (NSEC_PER_SEC / 5) /* after the first sample can come */

enum { OPT_FRAMES = 0x100, OPT_SORT, OPT_BY, OPT_WINDOW, OPT_ONCE };

static const struct argp_option options[] = {
	{ "pid", 'p', "PID[,PID...]", 0, "Show these running processes and their child processes",
	  0 },
	CLI_NO_CHILDREN_OPTION,
	CLI_SCOPE_OPTIONS,
	{ "event", 'e', "cpu|wall", 0,
	  "Event to sample: cpu (default), or wall (all time of threads, with their "
	  "waits)",
	  0 },
	{ "frequency", 'F', "HZ", 0, "Samples per second and CPU, 1 to 10000 (default 99)", 0 },
	{ "runtimes", 'r', "RUNTIME,...", 0, "Only these runtimes (default: all that are found)",
	  0 },
	{ "frames", OPT_FRAMES, "WHICH", 0,
	  "script: only frames of runtimes, with the time of the native code that "
	  "they call; collapsed (default): one frame for each run of native frames "
	  "of one library; all",
	  1 },
	{ "sort", OPT_SORT, "COLUMN", 0,
	  "script (default: own time with the native code that it calls; the column is called Own "
	  "if all languages are compiled), self, total or name",
	  1 },
	{ "by", OPT_BY, "WHAT", 0, "Rows of functions (default) or of threads: function, thread",
	  1 },
	{ "rows", 'n', "ROWS", 0, "At most ROWS rows (default: as many as fit)", 1 },
	{ "interval", 'i', "SECONDS", 0, "Time between two updates, 0.1 to 3600 (default 1)", 2 },
	{ "window", OPT_WINDOW, "SECONDS", 0, "Show the last SECONDS, up to 3600 (default 10)", 2 },
	{ "once", OPT_ONCE, NULL, 0,
	  "Write one table of one interval as plain text; the default if standard "
	  "output is not a terminal",
	  2 },
	{}
};

static enum output_sort parse_sort(struct argp_state *state, const char *arg)
{
	static const char *const names[] = { [OUTPUT_SORT_SELF] = "self",
					     [OUTPUT_SORT_TOTAL] = "total",
					     [OUTPUT_SORT_SCRIPT] = "script",
					     [OUTPUT_SORT_NAME] = "name" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i] && !strcmp(arg, names[i]))
			return i;
	cli__misused(state, "--sort takes script, self, total or name, not '%s'", arg);
	return OUTPUT_SORT_DEFAULT;
}

static enum top_by parse_by(struct argp_state *state, const char *arg)
{
	if (strcmp(arg, "function") != 0 && strcmp(arg, "thread") != 0)
		cli__misused(state, "--by takes function or thread, not '%s'", arg);
	return strcmp(arg, "thread") ? TOP_FUNCTIONS : TOP_THREADS;
}

static void parse_event(struct argp_state *state, struct session_opts *opts, const char *arg)
{
	struct err err = {};

	if (strcmp(arg, "cpu") != 0 && strcmp(arg, "wall") != 0)
		cli__misused(state,
			     "-e takes cpu or wall, not '%s': other events are for braid record",
			     arg);
	opts->events.n = 0;
	if (event_list__parse(arg, &opts->events, &err))
		cli__misused(state, "-e: %s", err.text);
}

static void check(struct argp_state *state, struct top *top)
{
	if (top->once && top->window_s > 0)
		cli__misused(state,
			     "--once shows one interval (-i) and cannot be used with --window");
	if (top->window_s > 0 && top->window_s < top->interval_s)
		cli__misused(state, "--window (%g s) is shorter than the interval (-i, %g s)",
			     top->window_s, top->interval_s);
	if (top->window_s <= 0)
		top->window_s = max_of(WINDOW_S, top->interval_s);
	if (!top->opts.events.n)
		parse_event(state, &top->opts, "cpu");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct top *top = state->input;
	error_t ret;

	switch (key) {
	case 'e':
		parse_event(state, &top->opts, arg);
		break;
	case 'F':
		top->opts.frequency_hz = cli__number(state, "-F", arg, 1, FREQUENCY_MAX_HZ);
		break;
	case OPT_FRAMES:
		top->frames = frames__find(arg);
		if (top->frames == FRAMES_N)
			cli__misused(state, "--frames takes " FRAMES_CHOICES ", not '%s'", arg);
		break;
	case OPT_SORT:
		top->sort = parse_sort(state, arg);
		break;
	case OPT_BY:
		top->by = parse_by(state, arg);
		break;
	case 'n':
		top->rows_max = cli__number(state, "-n", arg, 1, 1e6);
		break;
	case 'i':
		top->interval_s = cli__number(state, "-i", arg, 0.1, WINDOW_MAX_S);
		break;
	case OPT_WINDOW:
		top->window_s = cli__number(state, "--window", arg, 0.1, WINDOW_MAX_S);
		break;
	case OPT_ONCE:
		top->once = true;
		break;
	default:
		ret = cli__parse_target(key, arg, state, &top->opts, &top->pids);
		if (key != ARGP_KEY_END)
			return ret;
		cli__default_max_overhead(&top->opts);
		check(state, top);
	}
	return 0;
}

/* --- notices of the session --- */

static void on_source(void *ctx, struct process *process, const struct runtime *runtime,
		      const char *version, const char *source, const char *reason)
{
	struct top *top = ctx;
	char text[64];
	uint32_t ignored;

	(void)process, (void)reason;
	snprintf(text, sizeof(text), "%s%s%.20s (%.20s)", runtime->name, *version ? " " : "",
		 version, source);
	if (strtab__count(top->runtimes) <= TOP_RUNTIMES_COUNT_MAX)
		strtab__intern(top->runtimes, text, &ignored);
}

static void on_note(void *ctx, const char *text)
{
	struct top *top = ctx;

	snprintf(top->note, sizeof(top->note), "%s", text);
	if (top->once)
		escape__line(stderr, "%s", text);
}

static void on_progress(void *ctx, const struct session_progress *progress)
{
	struct top *top = ctx;

	top->samples_per_s =
		(progress->samples - top->samples) / (progress->elapsed_s - top->elapsed_s);
	top->samples = progress->samples;
	top->elapsed_s = progress->elapsed_s;
	top->own_cpu_percent = progress->own_cpu_percent;
	top->lost = progress->lost;
}

/* --- one table --- */

static int terminal_columns(void)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
		return INT_MAX;
	return size.ws_col;
}

static void sum_up(struct top *top, const struct session_summary *summary, double cpu_s)
{
	if (summary->duration_s > 0) {
		top->samples_per_s = summary->stats->samples / summary->duration_s;
		top->own_cpu_percent = 100 * cpu_s / summary->duration_s;
	}
	top->lost = summary->counters[COUNT_RING_FULL] + summary->counters[COUNT_SCRATCH];
	top->ended = summary->end == SESSION_TARGETS_ENDED;
}

static int show_once(struct top *top, struct err *err)
{
	struct session_summary summary;
	clock_t begun = clock(); /* excludes the setup */
	struct err ignored;
	int ret = session__run(top->session, err), finished;

	finished = session__finish(top->session, &summary, ret ? &ignored : err);
	ret = ret ? ret : finished;
	sum_up(top, &summary, (double)(clock() - begun) / CLOCKS_PER_SEC);
	if (!ret)
		ret = top__take(top, err);
	if (ret)
		return ret;
	top->shown_s = summary.duration_s;
	setlocale(LC_CTYPE, "");
	top__print(top, terminal_columns(), stdout);
	if (top->opts.command)
		cli__print_command_end(summary.command_pid, summary.command_status);
	return 0;
}

/* --- the screen --- */

struct loop {
	uint64_t look_ns, advance_ns; /* time of the next update and turn */
	uint64_t look_each_ns, advance_each_ns;
	unsigned slots;
	struct session_summary summary; /* set when the session ends */
};

/* Turns the window's slots. After a long stop of braid, skips the slots that are outdated. */
static void advance(struct top *top, struct loop *loop, uint64_t now)
{
	for (unsigned i = 0; i <= loop->slots && now >= loop->advance_ns; i++) {
		live_profile__advance(top->live, loop->advance_ns);
		loop->advance_ns += loop->advance_each_ns;
	}
	if (now >= loop->advance_ns)
		loop->advance_ns = now + loop->advance_each_ns;
}

/* Returns the time of the next table. The first one is due before the first interval is over, and
 * is repeated while it is empty. */
static uint64_t next_look(const struct top *top, const struct loop *loop, uint64_t now)
{
	uint64_t first_ns = top->begun_ns + loop->look_each_ns;

	if (now + FIRST_LOOK_NS >= first_ns)
		return max_of(max_of(loop->look_ns + loop->look_each_ns, now), first_ns);
	return top->rows.n ? first_ns : now + FIRST_LOOK_NS;
}

static int look(struct top *top, struct loop *loop, uint64_t now, struct err *err)
{
	int ret;

	loop->look_ns = next_look(top, loop, now);
	if (top->paused)
		return 0;
	ret = session__look_at_waits(top->session, err);
	if (!ret)
		ret = session__name_frames(top->session, err);
	return ret ? ret : top__take(top, err);
}

static int step(struct top *top, struct loop *loop, struct err *err)
{
	bool over, was_paused = top->paused;
	int ret = session__step(top->session, &over, err);
	uint64_t now = now_ns();

	if (ret || !over) {
		advance(top, loop, now);
		return ret || now < loop->look_ns ? ret : look(top, loop, now, err);
	}
	ret = session__finish(top->session, &loop->summary, err);
	top->ended = top->changed = true;
	top->quits = top->quits || session__has_signal(top->session);
	top->paused = false;
	if (!ret && !was_paused)
		ret = top__take(top, err);
	return ret;
}

static int show(struct top *top, struct loop *loop, struct err *err)
{
	bool hung_up = false;
	int ret = 0, key;

	top->changed = true;
	while (!ret && !top->quits && !hung_up) {
		if (top->changed)
			screen__draw(top);
		if (!top->ended)
			ret = step(top, loop, err);
		key = screen__key(top->ended ? ENDED_POLL_MS : 0, &hung_up);
		for (; !ret && key >= 0; key = screen__key(0, &hung_up))
			ret = top__key(top, key) ? err__set(err, -ENOMEM, "out of memory") : 0;
		if (session__has_signal(top->session))
			top->quits = true;
	}
	return ret;
}

static int show_live(struct top *top, struct loop *loop, struct err *err)
{
	struct err ignored;
	int ret = screen__open(err);

	if (!ret) {
		ret = show(top, loop, err);
		screen__close();
	}
	if (!top->ended) {
		int finished = session__finish(top->session, &loop->summary, ret ? &ignored : err);

		ret = ret ? ret : finished;
	}
	if (!ret && top->opts.command)
		cli__print_command_end(loop->summary.command_pid, loop->summary.command_status);
	return ret;
}

static int prepare(struct top *top, struct loop *loop, struct err *err)
{
	int ret;

	loop->slots = ceil(top->window_s / top->interval_s);
	loop->slots = min_of(loop->slots, LIVE_WINDOW_SLOTS_MAX);
	loop->look_each_ns = top->interval_s * NSEC_PER_SEC;
	loop->advance_each_ns = top->window_s / loop->slots * NSEC_PER_SEC;
	top->begun_ns = now_ns();
	ret = live_profile__new(LIVE_BYTES, &top->live);
	top->runtimes = strtab__new();
	if (!ret && !top->runtimes)
		ret = -ENOMEM;
	if (!ret && !top->once)
		ret = live_profile__window(top->live, loop->slots, top->begun_ns);
	if (ret)
		return err__set(err, ret, "out of memory");
	top->opts.live = top->live;
	if (top->once) {
		top->opts.duration_s = top->interval_s;
		return 0;
	}
	ret = screen__check(err);
	return ret ? ret : screen__open_streams(err);
}

static int run(struct top *top)
{
	struct loop loop = {};
	struct err err = {};
	int ret = prepare(top, &loop, &err);

	mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES);
	if (!ret)
		ret = session__open(&top->opts, &top->session, &err);
	if (!ret && top->once)
		ret = show_once(top, &err);
	else if (!ret) {
		top->begun_ns = now_ns();
		loop.look_ns = top->begun_ns + min_of(loop.look_each_ns, FIRST_LOOK_NS);
		loop.advance_ns = top->begun_ns + loop.advance_each_ns;
		ret = show_live(top, &loop, &err);
	}
	screen__close();
	session__free(top->session);
	top__done(top);
	strtab__free(top->runtimes);
	live_profile__free(top->live);
	return ret ? cli__fail("%s", err.text) : EXIT_OK;
}

int cmd_top(int argc, char **argv, const struct runtime *const *runtimes)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "-p PID[,PID...]\n-a|--cgroup PATH|--container ID|--name REGEX|--user "
			    "NAME\n-- COMMAND...",
		.doc = "Show what processes do now: functions by their share of the last seconds, "
		       "or threads. Keys: ? shows them, q quits. What a COMMAND writes to the "
		       "terminal is not shown. Needs what braid record needs.\v"
		       "Examples:\n"
		       "  braid top -p 4711\n"
		       "  braid top -e wall --by thread -p 4711\n"
		       "  braid top -- python3 app.py --option\n"
		       "  braid top --once -i 5 -n 10 -p 4711 | mail -s top me",
	};
	struct top top = { .opts = { .runtimes = runtimes,
				     .enabled = UINT32_MAX,
				     .frequency_hz = FREQUENCY_HZ,
				     .on_source = on_source,
				     .on_note = on_note,
				     .on_progress = on_progress },
			   .interval_s = INTERVAL_S,
			   .frames = FRAMES_COLLAPSED };
	int status;

	top.opts.ctx = &top;
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &top);
	if (!top.once && !isatty(STDOUT_FILENO)) {
		top.once = true;
		fprintf(stderr,
			"standard output is not a terminal: one table of %g s, as with --once\n",
			top.interval_s);
	}
	status = run(&top);
	free(top.pids);
	return status;
}
