// SPDX-License-Identifier: GPL-2.0-or-later
/* record_at [-p PID,...] -n N [-b RING_BYTES] [-t TABLE_BYTES] [-r native] -o OUT.db FILE:SYMBOL
 *           [-- COMMAND...]
 *
 * Records as braid does, but takes its samples where a function is entered, and ends after N of
 * them, or with the target. Prints lines that a test may wait for:
 *
 *   source PID RUNTIME VERSION SOURCE   source of a runtime's frames
 *   ready                               the session is open
 *   recorded K                          samples that the recording received
 *   tableless K PATH                    files without room for an unwind table, if any; the first
 *   taken K, recorded K                 at the end: all samples, and those that were not lost */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/record/session.h"
#include "runtimes/registry.h"

#define PIDS_MAX 8

struct options {
	struct session_opts session;
	struct trigger_place trigger;
	uint32_t pids[PIDS_MAX];
	uint64_t n;
};

static void on_source(void *ctx, struct process *process, const struct runtime *runtime,
		      const char *version, const char *source, const char *reason)
{
	(void)ctx;
	(void)reason;
	printf("source %u %s %s %s\n", process->pid, runtime->name, version, source);
}

static void parse_pids(char *text, struct options *options)
{
	struct session_opts *session = &options->session;
	char *pid;

	for (pid = strtok(text, ","); pid && session->n_pids < PIDS_MAX; pid = strtok(NULL, ","))
		options->pids[session->n_pids++] = strtoul(pid, NULL, 10);
}

static int parse(int argc, char **argv, struct options *options)
{
	struct session_opts *session = &options->session;
	char *colon;
	int opt;

	while ((opt = getopt(argc, argv, "+p:n:b:t:r:o:")) >= 0) {
		if (opt == 'p')
			parse_pids(optarg, options);
		else if (opt == 'n')
			options->n = strtoull(optarg, NULL, 10);
		else if (opt == 'b')
			session->ring_bytes = strtoul(optarg, NULL, 10);
		else if (opt == 't')
			session->table_bytes = strtoul(optarg, NULL, 10);
		else if (opt == 'r') /* only native frames */
			session->enabled = 0, session->source = RUNTIME_SOURCE_WALK;
		else if (opt == 'o')
			session->output = optarg;
		else
			return -1;
	}
	colon = optind < argc ? strrchr(argv[optind], ':') : NULL;
	if (!colon || !session->output || !options->n)
		return -1;
	*colon = '\0';
	options->trigger = (struct trigger_place) { argv[optind], colon + 1 };
	session->trigger = &options->trigger;
	session->pids = options->pids;
	if (optind + 1 < argc && !strcmp(argv[optind + 1], "--"))
		session->command = argv + optind + 2;
	return !session->n_pids == !session->command ? -1 : 0;
}

static void say_recorded(uint64_t now)
{
	static uint64_t before;

	if (now != before)
		printf("recorded %" PRIu64 "\n", now);
	before = now;
}

static int run(struct session *session, uint64_t n, struct err *err)
{
	bool over = false;
	int code = 0;

	while (!code && !over && session__taken(session) < n) {
		code = session__step(session, &over, err);
		say_recorded(session__recorded(session));
	}
	return code;
}

int main(int argc, char **argv)
{
	struct options options = { .session = { .runtimes = runtimes,
						.enabled = UINT32_MAX,
						.frequency_hz = 99,
						.on_source = on_source } };
	struct session_summary summary;
	struct session *session;
	struct err err = {};
	int code, finished;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (parse(argc, argv, &options)) {
		fputs("record_at [-p PID,...] -n N [-b RING_BYTES] [-t TABLE_BYTES] [-r native] "
		      "-o OUT FILE:SYMBOL [-- COMMAND...]\n",
		      stderr);
		return 2;
	}
	code = session__open(&options.session, &session, &err);
	if (!code) {
		puts("ready");
		code = run(session, options.n, &err);
		finished = session__finish(session, &summary, code ? NULL : &err);
		say_recorded(summary.stats->samples);
		if (summary.images->tableless)
			printf("tableless %" PRIu64 " %s\n", summary.images->tableless,
			       summary.images->first_tableless);
		printf("taken %" PRIu64 ", recorded %" PRIu64 "\n", session__taken(session),
		       summary.stats->samples);
		session__free(session);
		code = code ? code : finished;
	}
	if (code)
		fprintf(stderr, "record_at: %s\n", err.text);
	return code != 0;
}
