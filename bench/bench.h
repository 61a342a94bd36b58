/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_BENCH_H
#define BRAID_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/result.h"
#include "core/base/err.h"

struct runtime;

/* The command, for main.c. As the commands of core/cli/cli.h. */
int cmd_bench(int argc, char **argv, const struct runtime *const *runtimes);

/* --- parts of the command; each adds its tables to @result --- */

struct bench_opts {
	const struct runtime *const *runtimes; /* all runtimes of braid, NULL-terminated */
	uint32_t enabled;		       /* bit n: runtimes[n] is enabled */
	uint32_t pid;
	char *const *command; /* NULL-terminated */
	double duration_s;    /* 0: the default of each part */
	/* Prints a line on the terminal that states the present step. */
	void (*on_step)(const char *fmt, ...);
};

/* Measures this machine, for a call without a target. */
int bench__machine(const struct bench_opts *opts, struct result *result, struct err *err);
/* Measures the bundled workloads of the enabled runtimes that are installed (-r). */
int bench__runtimes(const struct bench_opts *opts, struct result *result, struct err *err);
/* Measures the user's command, in several runs (-- COMMAND). */
int bench__command(const struct bench_opts *opts, struct result *result, struct err *err);
/* Counts the hits of the probes of a running process, and multiplies them by the cost of a hit (-p
 * PID). */
int bench__process(const struct bench_opts *opts, struct result *result, struct err *err);

#endif
