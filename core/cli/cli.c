// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/cli/view_time.h"
#include "core/kernel/kernel_half.h"

int cli__fail(const char *fmt, ...)
{
	va_list args;
	char *text;

	fflush(stdout);
	va_start(args, fmt);
	text = escape__format(fmt, args);
	va_end(args);
	fprintf(stderr, "braid: %s\n", text ? text : "out of memory");
	free(text);
	return EXIT_FAILED;
}

void cli__misused(const struct argp_state *state, const char *fmt, ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	text = escape__format(fmt, args);
	va_end(args);
	argp_error(state, "%s", text ? text : "out of memory");
	free(text);
}

const char *cli__text(const struct argp_state *state, const char *option, const char *text)
{
	if (!*text)
		cli__misused(state, "%s is empty: give it a value, or leave it out", option);
	return text;
}

double cli__number(struct argp_state *state, const char *option, const char *text, double min,
		   double max)
{
	char *end;
	double value;

	errno = 0;
	value = strtod(text, &end);
	/* strtod() also accepts blanks and hexadecimal numbers. */
	if (end == text || *end || text[strspn(text, "0123456789.+-eE")] || errno ||
	    !(value >= min && value <= max))
		cli__misused(state, "%s takes a number from %.10g to %.10g, not '%s'", option, min,
			     max, text);
	return value;
}

void cli__print_source(uint32_t pid, const char *runtime, const char *version, const char *source,
		       const char *reason)
{
	escape__line(stderr, "pid %u: %s%s%s: %s%s%s", pid, runtime, version[0] ? " " : "", version,
		     source, reason[0] ? ": " : "", reason);
}

void cli__print_command_end(int pid, int status)
{
	if (pid)
		fprintf(stderr, "the command continues as PID %d\n", pid);
	else if (WIFEXITED(status) && WEXITSTATUS(status))
		fprintf(stderr, "the command ended with status %d\n", WEXITSTATUS(status));
	else if (WIFSIGNALED(status))
		fprintf(stderr, "the command was ended by signal %d (%s)\n", WTERMSIG(status),
			strsignal(WTERMSIG(status)));
}

void cli__print_losses(const uint64_t *counters)
{
	for (int i = COUNT_FIRST_LOSS; i < COUNTERS_N; i++)
		if (counters[i])
			fprintf(stderr, "%8" PRIu64 "  %s\n", counters[i], counter__text(i));
}

void cli__runtimes(struct argp_state *state, const struct runtime *const *runtimes, char *list,
		   uint32_t *enabled)
{
	char *name, *rest = list, available[200] = "";
	uint32_t bits = 0;
	int i;

	for (i = 0; runtimes[i]; i++)
		snprintf(available + strlen(available), sizeof(available) - strlen(available),
			 "%s%s", i ? ", " : "", runtimes[i]->name);
	while ((name = strsep(&rest, ","))) {
		for (i = 0; runtimes[i]; i++)
			if (!strcmp(name, runtimes[i]->name))
				break;
		if (!runtimes[i])
			cli__misused(state, "-r: there is no runtime '%s'; there are: %s", name,
				     available);
		bits |= 1U << i;
	}
	*enabled = (*enabled == UINT32_MAX ? 0 : *enabled) | bits;
}

void cli__max_overhead(struct argp_state *state, const char *text, struct session_opts *opts)
{
	opts->insist = true;
	opts->max_overhead_percent = 0;
	if (strcmp(text, "none") != 0)
		opts->max_overhead_percent =
			cli__number(state, "--max-overhead (or none)", text, 0.1, 100);
}

void cli__default_max_overhead(struct session_opts *opts)
{
	if (!opts->insist && !opts->command)
		opts->max_overhead_percent = MAX_OVERHEAD_DEFAULT;
}

void cli__print_limit(const struct session_limit *limit, const char *way_out)
{
	if (limit->exceeded)
		fprintf(stderr, "probes were detached after %.1f s: %s%s\n", limit->exceeded_s,
			limit->exceeded, way_out);
	if (limit->lowest_hz)
		fprintf(stderr,
			"the sampling rate was lowered to %u Hz, where one sample counts "
			"for several, because of --max-overhead %g\n",
			limit->lowest_hz, limit->max_percent);
}

bool cli__refuses_terminal(const struct output_format *format, const char *output)
{
	if (!format->binary || output || !isatty(STDOUT_FILENO))
		return false;
	cli__fail("cannot write a binary format to a terminal. Name a file with -o");
	return true;
}

enum {
	OPT_FORCE = 0x100,
	OPT_LINES,
	OPT_KEEP_VM,
	OPT_ANNOTATE,
	OPT_EVENT,
	OPT_PID,
	OPT_THREAD,
	OPT_RUNTIME,
	OPT_NOT_THREAD,
	OPT_STATE,
	OPT_IDLE,
	OPT_WAKER,
	OPT_BY,
	OPT_MIN_AGE,
	OPT_FROM,
	OPT_TO,
	OPT_CONTAINER,
	OPT_CGROUP,
};

static const struct argp_option view_options[] = {
	{ "output", 'o', "OUT", 0, "Write to OUT instead of standard output", 1 },
	{ "force", OPT_FORCE, NULL, 0,
	  FORCE_HELP "; flame: also replace a braid.html that braid did not write", 1 },
	{ "lines", OPT_LINES, NULL, 0, "Show line numbers, and separate the lines of each function",
	  1 },
	{ "keep-vm", OPT_KEEP_VM, NULL, 0,
	  "Also show the frames of interpreter loops, not only the script "
	  "frames that they run",
	  1 },
	{ "annotate", OPT_ANNOTATE, NULL, 0,
	  "Append the frame's kind to its name: _[k] kernel, _[n] native, _[i] inlined, ..., with "
	  "a "
	  "question mark if the frame is inferred: _[n?]",
	  1 },
	{ "by", OPT_BY, "WHAT", 0,
	  "Group stacks by state (running, waiting, ..., with and without "
	  "the interpreter's lock), syscall (the thread's system call), "
	  "process, thread, task (of the runtime: goroutine), service (of the "
	  "process), trace, span or label:KEY (of the request, such as "
	  "label:http.route), value:NAME (of a probe), container, cgroup, or age (of outstanding "
	  "allocations)",
	  1 },
	{ "event", OPT_EVENT, "EVENT,...", 0,
	  "Only samples of this event, or of several with one unit (default: "
	  "cpu, or the first recorded event)",
	  2 },
	{ "pid", OPT_PID, "PID", 0, "Only samples of this process", 2 },
	{ "thread", OPT_THREAD, "TID|NAME", 0, "Only samples of this thread", 2 },
	{ "container", OPT_CONTAINER, "ID|NAME", 0,
	  "Only samples of this container; the first characters suffice", 2 },
	{ "cgroup", OPT_CGROUP, "PATH", 0,
	  "Only samples of this cgroup and the cgroups below it; PATH as in "
	  "/proc/PID/cgroup",
	  2 },
	{ "not-thread", OPT_NOT_THREAD, "TID|REGEX", 0,
	  "Leave out this thread, or all threads whose whole name matches an "
	  "extended regular expression",
	  2 },
	{ "state", OPT_STATE, "STATE,...", 0,
	  "Only samples of threads that were running, preempted, waiting or stopped", 2 },
	{ "idle", OPT_IDLE, "hide|auto|show", 0,
	  "Time that threads waited for work (pool workers, event loops, "
	  "threads of the runtime): hide (default; the heading has its sum), "
	  "show, or auto (also hide threads that did one wait during the whole "
	  "recording; such threads may be stuck)",
	  2 },
	{ "min-age", OPT_MIN_AGE, "SECONDS", 0,
	  "Only outstanding allocations that are at least SECONDS old "
	  "(recorded with --outstanding)",
	  2 },
	{ "waker", OPT_WAKER, NULL, 0,
	  "Show inside each wait the stack that ended it, the waker's "
	  "innermost frame first (recorded with --waker)",
	  1 },
	{ "from", OPT_FROM, "TIME", 0, "Only samples from TIME on: " TIMES_TAKEN, 2 },
	{ "to", OPT_TO, "TIME", 0, "Only samples before TIME", 2 },
	{ "runtime", OPT_RUNTIME, "KIND", 0,
	  "Only samples with a frame of this kind (kernel, native, python, ...)", 2 },
	{}
};

static uint32_t parse_states(struct argp_state *state, const char *list)
{
	uint32_t bits = 0;
	const char *at = list;

	do {
		size_t len = strcspn(at, ",");
		struct rec_condition condition = { .state = THREAD_STATES_N };

		while (condition.state-- > 0) {
			const char *name = group__state(&condition);

			if (name && strlen(name) == len && !memcmp(name, at, len))
				break;
		}
		if (condition.state >= THREAD_STATES_N)
			cli__misused(
				state,
				"--state takes running, preempted, waiting, stopped, parked, or "
				"several with commas, not '%s'",
				list);
		bits |= 1U << condition.state;
		at += len + 1;
	} while (at[-1]);
	return bits;
}

static void parse_time(struct argp_state *state, const char *option, const char *text,
		       struct profile_time *ret)
{
	if (view_time__parse(text, time(NULL), ret))
		cli__misused(state, "%s takes " TIMES_TAKEN ", not '%s'", option, text);
}

static void parse_idle(struct argp_state *state, const char *text, struct view_opts *opts)
{
	if (strcmp(text, "hide") != 0 && strcmp(text, "auto") != 0 && strcmp(text, "show") != 0)
		cli__misused(state, "--idle takes hide, auto or show, not '%s'", text);
	opts->show_idle = !strcmp(text, "show");
	opts->filter.hide_unbroken = !strcmp(text, "auto");
}

/* Returns true if a runtime uses @name for its tasks. */
static bool is_task(const struct runtime *const *runtimes, const char *name)
{
	for (int i = 0; runtimes[i]; i++)
		if (runtime__has(runtimes[i], walker, task) &&
		    !strcmp(name, runtimes[i]->walker->task))
			return true;
	return false;
}

/* Returns the key in label:KEY or value:NAME, and changes the latter to that key. */
static const char *label_of(char *arg)
{
	if (strncmp(arg, GROUP_VALUE_PREFIX, strlen(GROUP_VALUE_PREFIX)) != 0)
		return arg + strlen(GROUP_LABEL_PREFIX);
	arg[strlen(GROUP_VALUE_PREFIX) - 1] = '.';
	return arg;
}

/* Parses the options that select threads. */
static error_t parse_threads(int key, char *arg, struct argp_state *state)
{
	struct view_opts *opts = state->input;

	switch (key) {
	case OPT_PID:
		opts->filter.pid = cli__number(state, "--pid", arg, 1, INT32_MAX);
		break;
	case OPT_THREAD:
		opts->filter.thread = cli__text(state, "--thread", arg);
		break;
	case OPT_CONTAINER:
		opts->filter.container = cli__text(state, "--container", arg);
		break;
	case OPT_CGROUP:
		opts->filter.cgroup = cli__text(state, "--cgroup", arg);
		break;
	case OPT_RUNTIME:
		opts->filter.runtime = cli__text(state, "--runtime", arg);
		break;
	case OPT_NOT_THREAD:
		opts->filter.not_thread = cli__text(state, "--not-thread", arg);
		break;
	case OPT_STATE:
		opts->filter.states = parse_states(state, arg);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static error_t parse_view(int key, char *arg, struct argp_state *state)
{
	struct view_opts *opts = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &opts->db;
		break;
	case 'o':
		opts->output = cli__text(state, "-o", arg);
		opts->output_given = true;
		break;
	case OPT_FORCE:
		opts->force = true;
		break;
	case OPT_LINES:
		opts->filter.lines = true;
		break;
	case OPT_KEEP_VM:
		opts->filter.keep_vm = true;
		break;
	case OPT_ANNOTATE:
		opts->annotate = true;
		break;
	case OPT_EVENT:
		opts->filter.event = cli__text(state, "--event", arg);
		break;
	case OPT_MIN_AGE:
		opts->filter.min_age_ns =
			cli__number(state, "--min-age", arg, 1e-9, 1e9) * NSEC_PER_SEC;
		break;
	case OPT_FROM:
		parse_time(state, "--from", arg, &opts->filter.from);
		break;
	case OPT_TO:
		parse_time(state, "--to", arg, &opts->filter.to);
		break;
	case OPT_WAKER:
		opts->filter.wakers = true;
		break;
	case OPT_IDLE:
		parse_idle(state, arg, opts);
		break;
	case OPT_BY:
		opts->filter.by = is_task(opts->runtimes, arg) ? PROFILE_BY_TASK : group__find(arg);
		if (opts->filter.by == PROFILE_BY_LABEL)
			opts->filter.label = label_of(arg);
		if (opts->filter.by == PROFILE_BYS_N)
			cli__misused(state, "--by takes " GROUPS ", not '%s'", arg);
		break;
	case ARGP_KEY_ARG:
		if (state->arg_num)
			cli__misused(state, "one recording at a time, not also '%s'", arg);
		opts->file = cli__text(state, "the name of the recording", arg);
		opts->file_given = true;
		break;
	case ARGP_KEY_END:
		if (opts->db.text && opts->file_given)
			cli__misused(state, "either a recording or --from-db, not also '%s'",
				     opts->file);
		opts->filter.where = opts->db.tree;
		if (opts->db.text)
			opts->file = opts->db.text;
		break;
	default:
		return parse_threads(key, arg, state);
	}
	return 0;
}

static const struct argp_child view_children[] = { { &db_argp, 0, NULL, 0 }, {} };

const struct argp view_argp = { .options = view_options,
				.parser = parse_view,
				.children = view_children };

/* Returns the idle rules of all runtimes, ended by NULL; the caller owns the array. */
static const struct idle_rule **idle_rules(const struct runtime *const *runtimes)
{
	const struct idle_rule **rules;
	size_t n = 0, i;

	while (runtimes[n])
		n++;
	rules = calloc(n + 1, sizeof(*rules));
	for (n = 0, i = 0; rules && runtimes[i]; i++)
		if (runtimes[i]->idle)
			rules[n++] = runtimes[i]->idle;
	return rules;
}

/* Returns the names of all runtimes' functions that call others for scripts. The array is static,
 * as profiles refer to it. */
static const char *const *all_callers(const struct runtime *const *runtimes)
{
	static const char *callers[64];
	size_t n = 0;

	for (; *runtimes; runtimes++)
		for (size_t i = 0; (*runtimes)->callers && (*runtimes)->callers[i]; i++)
			if (n + 1 < ARRAY_SIZE(callers))
				callers[n++] = (*runtimes)->callers[i];
	callers[n] = NULL;
	return callers;
}

/* Returns the code rules of all runtimes, in a static array. */
static const struct function_rules *const *all_rules(const struct runtime *const *runtimes)
{
	static const struct function_rules *rules[RUNTIMES_MAX + 1];
	size_t n = 0;

	for (; *runtimes && n < RUNTIMES_MAX; runtimes++)
		if ((*runtimes)->function_rules)
			rules[n++] = (*runtimes)->function_rules;
	rules[n] = NULL;
	return rules;
}

static void print_skipped(void *ctx, const char *why)
{
	(void)ctx;
	escape__line(stderr, "left out: %s", why);
}

int view__load(const struct view_opts *opts, const struct runtime *const *runtimes,
	       struct profile **ret)
{
	return view__load_all(opts, runtimes, ret, NULL, NULL);
}

int view__load_all(const struct view_opts *opts, const struct runtime *const *runtimes,
		   struct profile **ret, struct profile ***ret_others, size_t *ret_n)
{
	struct profile_filter filter = opts->filter;
	const struct idle_rule **rules = idle_rules(runtimes);
	struct err err = {};
	int code;

	if (!rules)
		return cli__fail("out of memory");
	filter.idle = opts->show_idle ? NULL : rules;
	filter.callers = all_callers(runtimes);
	filter.rules = all_rules(runtimes);
	filter.on_skipped = print_skipped;
	if (ret_others && opts->filter.event)
		ret_others = NULL;
	if (opts->db.text)
		code = view_db__load(&opts->db, &filter, ret, ret_others, ret_n, &err);
	else if (ret_others)
		code = load__profiles(opts->file, &filter, ret, ret_others, ret_n, &err);
	else
		code = load__profile(opts->file, &filter, ret, NULL, &err);
	free(rules);
	if (code)
		return cli__fail("%s", err.text);
	if (!ret_others && !opts->filter.event && *(*ret)->other_events)
		escape__line(stderr, "other events in %s: %s (--event)", opts->file,
			     (*ret)->other_events);
	return EXIT_OK;
}

int cli__live_profile(const struct live_profile *live, const struct runtime *const *runtimes,
		      struct profile **ret, struct err *err)
{
	const struct idle_rule **rules = idle_rules(runtimes);
	const struct profile_filter filter = { .threads = true,
					       .idle = rules,
					       .callers = all_callers(runtimes),
					       .rules = all_rules(runtimes) };
	int code = rules ? live_profile__get(live, &filter, ret, NULL, err)
			 : err__set(err, -ENOMEM, "out of memory");

	free(rules);
	return code;
}

/* Returns the permissions of the recording at @path; those of its owner alone for a directory. */
static mode_t mode_of(const char *path)
{
	struct stat st;

	return stat(path, &st) || !S_ISREG(st.st_mode) ? PRIVATE_MODE : st.st_mode & 0777;
}

int view__place(const struct view_opts *opts, const char *old_file, struct output_place *ret)
{
	mode_t mode = opts->db.text ? PRIVATE_MODE : mode_of(opts->file);
	struct err err = {};

	if (!opts->db.text && old_file)
		mode &= mode_of(old_file);
	*ret = (struct output_place) { opts->output, opts->output_given, opts->force,
				       mode | S_IRUSR | S_IWUSR };
	return output_file__check(ret, &err) ? cli__fail("%s", err.text) : EXIT_OK;
}

int cli__write(const struct output_place *place, int (*write)(void *ctx, FILE *out), void *ctx)
{
	struct output_file file;
	struct err err = {};
	int ret;

	if (output_file__open(place, &file, &err))
		return cli__fail("%s", err.text);
	ret = output_file__close(&file, write(ctx, file.stream));
	if (!ret || ret == -EPIPE) /* the reader has seen enough, as in `| head` */
		return EXIT_OK;
	return cli__fail("cannot write %s: %s", place->path ? place->path : "to standard output",
			 strerror(-ret));
}
