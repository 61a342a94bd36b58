/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_BENCH_H
#define BRAID_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/result.h"
#include "core/base/err.h"

struct runtime;

/* What main.c sees of bench/: the command. As the commands of core/cli/cli.h. */
int cmd_bench(int argc, char **argv, const struct runtime *const *runtimes);

/* --- what the command is made of: each adds its tables to `result` --- */

struct bench_opts {
	const struct runtime *const *runtimes; /* all known, NULL-terminated */
	uint32_t enabled;		       /* bit n: runtimes[n] was asked for */
	uint32_t pid;
	char *const *command; /* NULL-terminated */
	double duration_s;    /* 0: the default of each */
	/* A line on the terminal that says what is being done. */
	void (*on_step)(const char *fmt, ...);
};

/* No target: this machine. */
int bench__machine(const struct bench_opts *opts, struct result *result, struct err *err);
/* -r: bundled workloads of the enabled runtimes that are found here. */
int bench__runtimes(const struct bench_opts *opts, struct result *result, struct err *err);
/* -- COMMAND: the user's own, run several times. */
int bench__command(const struct bench_opts *opts, struct result *result, struct err *err);
/* -p PID: how often the probes of a running process are hit, times what a hit costs. */
int bench__process(const struct bench_opts *opts, struct result *result, struct err *err);

#endif
