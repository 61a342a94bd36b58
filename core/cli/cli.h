/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CLI_H
#define BRAID_CLI_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/base/err.h"
#include "core/cli/output_file.h"
#include "core/cli/view_db.h"
#include "core/out/output.h"
#include "core/record/session.h"
#include "core/store/load.h"
#include "runtimes/runtime.h"

/* The command-line layer is the only one that prints. Exit statuses: */
#define EXIT_OK	     0
#define EXIT_FAILED  1
#define EXIT_MISUSED 2

#define BRAID_VERSION "0.2.0"

#define OUTPUT_DEFAULT "braid.db" /* default output of record, and input of flame and report */

struct command {
	const char *name;
	const char *summary; /* one line of `braid --help` */
	/* argv[0] is "braid NAME". Returns the exit status. */
	int (*run)(int argc, char **argv, const struct runtime *const *runtimes);
};

int cmd_record(int argc, char **argv, const struct runtime *const *runtimes);
int cmd_report(int argc, char **argv, const struct runtime *const *runtimes);
int cmd_flame(int argc, char **argv, const struct runtime *const *runtimes);
int cmd_calls(int argc, char **argv, const struct runtime *const *runtimes);
int cmd_dump(int argc, char **argv, const struct runtime *const *runtimes);
int cmd_top(int argc, char **argv, const struct runtime *const *runtimes);
int cmd_trace(int argc, char **argv, const struct runtime *const *runtimes);
int cmd_ps(int argc, char **argv, const struct runtime *const *runtimes);
int cmd_events(int argc, char **argv, const struct runtime *const *runtimes);
int cmd_push(int argc, char **argv, const struct runtime *const *runtimes);
int cmd_doctor(int argc, char **argv, const struct runtime *const *runtimes);

/* Texts from targets, recordings and the command line are printed by escape__line()
 * (core/base/escape.h) or by one of the next two functions. */

/* Prints "braid: TEXT" on stderr. Returns EXIT_FAILED. */
int cli__fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Calls argp_error(), which ends the program with EXIT_MISUSED. */
void cli__misused(const struct argp_state *state, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Prints a report of tracker_source_fn (core/target/tracker.h) as one line on stderr. */
void cli__print_source(uint32_t pid, const char *runtime, const char *version, const char *source,
		       const char *reason);

/* Prints how the session's command ended; @status is as from wait(). If @pid is not 0, prints that
 * it continues. */
void cli__print_command_end(int pid, int status);

/* Prints the losses by the kernel half's COUNTERS_N counters. */
void cli__print_losses(const uint64_t *counters);

/* Returns @text, the value of an option or argument that is a name. An empty text is misuse. */
const char *cli__text(const struct argp_state *state, const char *option, const char *text);

/* The following parse option values. For an invalid value they end the program (exit 2), with the
 * option and its valid values. */
double cli__number(struct argp_state *state, const char *option, const char *text, double min,
		   double max);
/* Adds the list of -r to the bits of @enabled; UINT32_MAX: no earlier option. */
void cli__runtimes(struct argp_state *state, const struct runtime *const *runtimes, char *list,
		   uint32_t *enabled);
/* Adds the processes of "1,2,3" to a malloc()ed array of *@ret_n elements, initially NULL. */
void cli__pids(struct argp_state *state, const char *text, uint32_t **ret_pids, size_t *ret_n);

/* The key of --no-children, and its row in a table of options. */
#define CLI_NO_CHILDREN 0x1000
#define CLI_NO_CHILDREN_OPTION                                                               \
	{                                                                                    \
		"no-children", CLI_NO_CHILDREN, NULL, 0,                                     \
			"Leave out the child processes of the given ones, and those that a " \
			"command starts (default: include them)",                            \
			0                                                                    \
	}

/* The row of -v in a table of options; cli__parse_target() parses it. */
#define CLI_VERBOSE_HELP \
	"all messages of libbpf and the kernel's verifier, for BPF programs that do not load"
#define CLI_VERBOSE_OPTION                                           \
	{                                                            \
		"verbose", 'v', NULL, 0, "Show " CLI_VERBOSE_HELP, 2 \
	}

/* The keys of the options that select among all processes, and their rows. */
enum { CLI_CGROUP = 0x1001, CLI_CONTAINER, CLI_NAME, CLI_USER };
#define CLI_SCOPE_OPTIONS                                                                   \
	{ "all", 'a', NULL, 0, "All processes, and the kernel's threads", 0 },              \
		{ "cgroup",                                                                 \
		  CLI_CGROUP,                                                               \
		  "PATH",                                                                   \
		  0,                                                                        \
		  "Processes of this cgroup (version 2) and of the cgroups below it; "      \
		  "PATH is its directory, or its path as in /proc/PID/cgroup",              \
		  0 },                                                                      \
		{ "container",                                                              \
		  CLI_CONTAINER,                                                            \
		  "ID|NAME",                                                                \
		  0,                                                                        \
		  "Processes of this container, by the name of its cgroup; the first "      \
		  "characters suffice",                                                     \
		  0 },                                                                      \
		{ "name",                                                                   \
		  CLI_NAME,                                                                 \
		  "REGEX",                                                                  \
		  0,                                                                        \
		  "Processes whose name or command line matches this extended "             \
		  "regular expression",                                                     \
		  0 },                                                                      \
	{                                                                                   \
		"user", CLI_USER, "NAME|UID", 0,                                            \
			"Processes of this user. With several of these options, a process " \
			"must match all",                                                   \
			0                                                                   \
	}

/* Parses options that commands for processes share: -p, --no-children, the options above, -d, -r,
 * -v, and the command after them. Returns ARGP_ERR_UNKNOWN for other keys. The caller frees
 * *@pids. */
error_t cli__parse_target(int key, char *arg, struct argp_state *state, struct session_opts *opts,
			  uint32_t **pids);

/* Prints the targets and the end condition of the recording. To be called when the first sample can
 * arrive. */
void cli__print_start(const struct session *session, const struct session_opts *opts);

/* Prints why session__open() failed with @error. If @opts has a command that does not exist, adds
 * the process that the user may mean. Returns EXIT_FAILED. */
int cli__fail_open(const struct session_opts *opts, int error, const struct err *err);

/* Parse --max-overhead: percent of this machine, or none. The default limits the cost for a process
 * that was running before, but not for a command. */
#define MAX_OVERHEAD_DEFAULT 5
void cli__max_overhead(struct argp_state *state, const char *text, struct session_opts *opts);
void cli__default_max_overhead(struct session_opts *opts);

/* Prints the measures against an excess of the limit, if any; @way_out is the remedy. */
void cli__print_limit(const struct session_limit *limit, const char *way_out);

/* Returns true, with a message, if a binary format would go to a terminal. */
bool cli__refuses_terminal(const struct output_format *format, const char *output);

/* Options of all commands that read a recording. */
struct view_opts {
	const char *file; /* "braid.db" */
	bool file_given;
	struct db_opts db;  /* replaces the file if it has a URL */
	const char *output; /* NULL: standard output */
	bool output_given;  /* false: flame's default name */
	bool force;
	bool annotate;
	bool show_idle;
	const struct runtime *const *runtimes; /* their groups are valid for --by */
	struct profile_filter filter;
};
#define VIEW_OPTS_DEFAULT(words)                                                   \
	{                                                                          \
		.file = OUTPUT_DEFAULT, .db = DB_OPTS_DEFAULT, .runtimes = (words) \
	}
extern const struct argp view_argp; /* child parser; its input is a struct view_opts */

/* Loads and merges the recording in @opts; the runtimes define idle time. Prints the error. Returns
 * an exit status. */
int view__load(const struct view_opts *opts, const struct runtime *const *runtimes,
	       struct profile **ret);

/* As view__load(), with the profiles of the other events, unless the user selected one; as in
 * load__profiles(). */
int view__load_all(const struct view_opts *opts, const struct runtime *const *runtimes,
		   struct profile **ret, struct profile ***ret_others, size_t *ret_n);

/* Computes the place of the output, with the permissions of the recording and of @old_file (NULL:
 * none). Finds errors early. Prints the error. Returns an exit status. */
int view__place(const struct view_opts *opts, const char *old_file, struct output_place *ret);

/* Returns the profile of a live profile, as from a recording. Errors are those of
 * live_profile__get(). */
struct live_profile;
int cli__live_profile(const struct live_profile *live, const struct runtime *const *runtimes,
		      struct profile **ret, struct err *err);

/* Calls @write with a stream to @place (core/cli/output_file.h). Prints the error. Returns an exit
 * status. */
#define FORCE_HELP                                                           \
	"Replace a recording or another user's file, or write into a block " \
	"device"
int cli__write(const struct output_place *place, int (*write)(void *ctx, FILE *out), void *ctx);

/* Permissions of output from a recording, or from counted calls. */
#define PRIVATE_MODE 0600

#endif
