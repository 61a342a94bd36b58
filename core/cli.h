/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CLI_H
#define BRAID_CLI_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/err.h"
#include "core/load.h"
#include "runtimes/runtime.h"

/* The command-line layer: the only one that prints. Exit statuses: */
#define EXIT_OK	     0
#define EXIT_FAILED  1
#define EXIT_MISUSED 2

#define BRAID_VERSION "0.1.0"

struct command {
	const char *name;
	const char *summary; /* one line of `braid --help` */
	/* argv[0] is "braid NAME". Returns the exit status. */
	int (*run)(int argc, char **argv, const struct runtime *const *runtimes);
};

int cmd_record(int argc, char **argv, const struct runtime *const *runtimes);
int cmd_report(int argc, char **argv, const struct runtime *const *runtimes);
int cmd_flame(int argc, char **argv, const struct runtime *const *runtimes);
int cmd_doctor(int argc, char **argv, const struct runtime *const *runtimes);

/* "braid: TEXT" on stderr; returns EXIT_FAILED. */
int cli__fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Parsers of option values: they end the program by argp_error (exit 2) on nonsense, naming the
 * option and what it takes. */
double cli__number(struct argp_state *state, const char *option, const char *text, double min,
		   double max);
/* "1,2,3" into a malloc'ed array. */
void cli__pids(struct argp_state *state, const char *text, uint32_t **ret_pids, size_t *ret_n);

/* Options that all commands which read a recording share. */
struct view_opts {
	const char *file;   /* "braid.db" */
	const char *output; /* NULL: standard output */
	bool annotate;
	struct load_filter filter;
};
extern const struct argp view_argp; /* child parser; its input is a struct view_opts */

/* Loads and merges what `opts` asks for. Prints the error. Returns an exit status. */
int view__load(const struct view_opts *opts, struct profile **ret);

/* Opens the output, calls `write`, closes it; a half-written new file is removed. */
int view__write(const char *path, int (*write)(const struct profile *, void *ctx, FILE *),
		const struct profile *profile, void *ctx);

#endif
