// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/cli.h"

#include <errno.h>

#include "core/base/privilege.h"
#include "core/cli/dump_print.h"
#include "core/dump/dump.h"
#include "core/fetch/debuginfod.h"
#include "core/target/threads.h"

struct opts {
	const struct runtime *const *runtimes;
	uint32_t *pids;
	size_t n_pids;
	struct dump_opts dump;
	size_t n_named; /* the first ones, named by the user; the others are their children */
	const char *core, *sysroot;
	bool json, alone;
	struct dump_view view; /* .frames FRAMES_N: the default */
};

enum {
	OPT_CORE = 256,
	OPT_SYSROOT,
	OPT_JSON,
	OPT_NONBLOCKING,
	OPT_NO_CHILDREN,
	OPT_KEEP_VM,
	OPT_FRAMES,
	OPT_ALL,
	OPT_MIN_AGE
};

static const struct argp_option options[] = {
	{ "pid", 'p', "PID[,PID...]", 0, "Dump these processes and their child processes", 0 },
	{ "core", OPT_CORE, "FILE", 0, "Dump a core file instead of a process", 0 },
	{ "sysroot", OPT_SYSROOT, "DIR", 0,
	  "With --core: directory of the programs and libraries that the process had "
	  "mapped, if the core file is from another machine",
	  0 },
	{ "no-children", OPT_NO_CHILDREN, NULL, 0, "Leave out child processes", 0 },
	{ "json", OPT_JSON, NULL, 0,
	  "Print one JSON document, for programs (docs/reference/dump.md)", 0 },
	{ "nonblocking", OPT_NONBLOCKING, NULL, 0,
	  "Stop no thread, not even for microseconds; stacks of running threads may "
	  "be inconsistent or missing",
	  0 },
	{ "frames", OPT_FRAMES, "WHICH", 0,
	  "Frames of threads that run scripts: script (only those of runtimes), "
	  "collapsed (default: one line for three or more other frames in a row), or "
	  "all",
	  0 },
	{ "all", OPT_ALL, NULL, 0,
	  "Show the stack of each thread, also of idle threads and of threads with "
	  "equal stacks",
	  0 },
	{ "min-age", OPT_MIN_AGE, "SECONDS", 0,
	  "Only tasks that may have waited for SECONDS, as far as the runtime knows: those of "
	  "Go that a garbage collection has seen wait (docs/runtimes/go.md)",
	  0 },
	{ "keep-vm", OPT_KEEP_VM, NULL, 0, "Also show the interpreters' own frames", 0 },
	{ "runtimes", 'r', "RUNTIME,...", 0, "Only frames of these runtimes (default: of all)", 0 },
	{}
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct opts *opts = state->input;

	switch (key) {
	case 'p':
		cli__pids(state, arg, &opts->pids, &opts->n_pids);
		break;
	case 'r':
		cli__runtimes(state, opts->runtimes, arg, &opts->dump.enabled);
		break;
	case OPT_CORE:
		opts->core = cli__text(state, "--core", arg);
		break;
	case OPT_SYSROOT:
		opts->sysroot = cli__text(state, "--sysroot", arg);
		break;
	case OPT_JSON:
		opts->json = true;
		break;
	case OPT_NO_CHILDREN:
		opts->alone = true;
		break;
	case OPT_NONBLOCKING:
		opts->dump.nonblocking = true;
		break;
	case OPT_FRAMES:
		opts->view.frames = frames__find(arg);
		if (opts->view.frames == FRAMES_N || opts->view.frames == FRAMES_APP)
			cli__misused(state, "--frames takes script, collapsed or all, not '%s'",
				     arg);
		break;
	case OPT_ALL:
		opts->view.all = true;
		break;
	case OPT_MIN_AGE:
		opts->dump.min_age_ns = 1e9 * cli__number(state, "--min-age", arg, 0, 1e9);
		break;
	case OPT_KEEP_VM:
		opts->dump.native = true;
		break;
	case ARGP_KEY_ARG:
		cli__misused(state, "cannot dump '%s': name a process by its PID with -p", arg);
		break;
	case ARGP_KEY_END:
		if (!opts->n_pids == !opts->core)
			cli__misused(state, "give either -p PID or --core FILE");
		if (opts->sysroot && !opts->core)
			cli__misused(state, "--sysroot requires --core FILE");
		if (opts->json && opts->view.frames != FRAMES_N)
			cli__misused(state,
				     "--frames cannot be used with --json, which has all frames");
		if (opts->json && opts->view.all)
			cli__misused(state,
				     "--all cannot be used with --json, which has all threads");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

/* Returns 0 or -ENOMEM. */
static int show(const struct opts *opts, struct dump_process *process, const char **separator)
{
	struct dump_view view = opts->view;
	int ret = 0;

	if (view.frames == FRAMES_N)
		view.frames = FRAMES_COLLAPSED;
	fputs(*separator, stdout);
	*separator = opts->json ? ",\n" : "\n";
	if (opts->json)
		dump__json(stdout, process, opts->runtimes);
	else
		ret = dump__print(stdout, process, opts->runtimes, &view);
	dump_process__done(process);
	return ret;
}

/* Dumps one process after the other, so that all share the data of mapped files. */
static int dump_all(const struct opts *opts)
{
	const char *separator = "";
	struct dump *dump = NULL;
	struct dump_process process;
	struct err err = {};
	int status = EXIT_OK, code;

	if (dump__new(&opts->dump, &dump, &err))
		return cli__fail("%s", err.text);
	if (opts->json)
		printf("{\"version\":1,\"processes\":[");
	if (opts->core) {
		if (dump__core(dump, opts->core, opts->sysroot ? opts->sysroot : "/", &process,
			       &err))
			status = cli__fail("%s", err.text);
		else if (show(opts, &process, &separator))
			status = cli__fail("out of memory");
	}
	for (size_t i = 0; i < opts->n_pids; i++) {
		code = dump__process(dump, opts->pids[i], &process, &err);
		if (!code && show(opts, &process, &separator))
			status = cli__fail("out of memory");
		else if (code && (i < opts->n_named || (code != -ESRCH && code != -EINVAL)))
			status = cli__fail("%s", err.text); /* otherwise a child that has ended */
	}
	if (opts->json)
		printf("]}\n");
	dump__free(dump);
	if (debuginfod__failure())
		fprintf(stderr, "DEBUGINFOD_URLS: no further requests: %s\n",
			debuginfod__failure());
	return status;
}

int cmd_dump(int argc, char **argv, const struct runtime *const *runtimes)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.args_doc = "-p PID[,PID...]\n--core FILE",
		.doc = "Show what each thread of a process does now: one stack of its kernel, "
		       "native and interpreted frames, what the thread waits for, and which "
		       "thread holds that.\v"
		       "Examples:\n"
		       "  braid dump -p 4711\n"
		       "  braid dump --core core.4711\n"
		       "  braid dump -p 4711 --json | jq '.processes[].threads[].name'\n",
	};
	struct opts opts = { .runtimes = runtimes,
			     .view.frames = FRAMES_N,
			     .dump = { .runtimes = runtimes, .enabled = ~0U } };
	int status;

	argp_parse(&argp, argc, argv, 0, NULL, &opts);
	if (opts.core)
		privilege__drop_lent();
	opts.n_named = opts.n_pids;
	status = !opts.alone && opts.n_pids && processes__add_children(&opts.pids, &opts.n_pids)
			 ? cli__fail("out of memory")
			 : dump_all(&opts);
	free(opts.pids);
	return status;
}
