// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/bench.h"
#include "core/base/privilege.h"
#include "core/base/util.h"
#include "core/cli/cli.h"
#include "core/cli/running.h"
#include "core/events/events.h"
#include "core/events/nearest.h"
#include "probes/probe.h"
#include "runtimes/registry.h"

static const struct command commands[] = {
	{ "record", "Record a running process, or a command, until it ends or Ctrl-C", cmd_record },
	{ "report", "Show a recording as a table or as folded stacks", cmd_report },
	{ "flame", "Draw a recording as an interactive flame graph", cmd_flame },
	{ "calls", "Count and time every call of interpreted functions, by probes", cmd_calls },
	{ "dump", "Show what each thread does now, and what it waits for", cmd_dump },
	{ "top", "Show what runs now, function by function or by thread", cmd_top },
	{ "trace", "Print each occurrence of events, with values, or counts per second",
	  cmd_trace },
	{ "ps", "List running processes that braid can profile, with their runtimes", cmd_ps },
	{ "events", "List the events that this machine has", cmd_events },
	{ "probes", "Show probe sites, whether they fire, and the source of frames in use",
	  cmd_probes },
	{ "bench", "Measure what probes and sampling cost here", cmd_bench },
	{ "push", "Send recordings to ClickHouse, Pyroscope or OpenTelemetry", cmd_push },
	{ "doctor", "Check what braid can do on this machine, and how to remedy limits",
	  cmd_doctor },
};

static void print_help(FILE *out)
{
	size_t i;

	fputs("Usage: braid COMMAND [OPTION...]\n"
	      "Profile running programs: kernel, native and interpreted frames in one stack.\n\n",
	      out);
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
	fputs("\n  braid COMMAND --help   shows the options of a command\n"
	      "  braid --version        shows the version\n\n"
	      "Examples:\n"
	      "  braid record -p 4711 -d 10 && braid flame\n"
	      "  braid record -o app.db -- python3 app.py\n"
	      "  braid report --rows 20 app.db\n",
	      out);
}

/* Opens /dev/null for closed standard streams, so that no later file gets their numbers and the
 * program's output. The direction is the wrong one, so that use still fails. */
static void fill_standard_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
			_exit(EXIT_FAILED);
}

/* Fails if output was lost, unless the reader has seen enough (`| head`). */
static int flush_output(int status)
{
	bool failed = ferror(stdout) && errno != EPIPE;

	if (fflush(stdout) && errno != EPIPE)
		failed = true;
	if (!failed || status)
		return status;
	return cli__fail("cannot write to standard output: %s", strerror(errno));
}

static int run_command(const struct command *command, int argc, char **argv)
{
	char name[64];

	/* These read and write files that the user names: use the user's own rights. */
	if (command->run == cmd_report || command->run == cmd_flame || command->run == cmd_push)
		privilege__drop_lent();

	snprintf(name, sizeof(name), "braid %s", command->name);
	argv[0] = name;
	program_invocation_name = program_invocation_short_name = name; /* for argp's messages */
	return command->run(argc, argv, runtimes);
}

/* Fails with the command or the option that the user may have meant by @word. */
static int refuse(const char *word)
{
	struct nearest nearest = nearest__to(word, strlen(word));
	char hint[RUNNING_HINT_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		nearest__add(&nearest, commands[i].name);
	running__hint(word, hint, sizeof(hint));
	if (running__is_pid(word))
		cli__fail("there is no command '%s': did you mean braid record -p %s?", word, word);
	else if (event__meant(word))
		cli__fail("there is no command '%s': did you mean braid record -e %s -p PID?", word,
			  event__meant(word));
	else if (nearest.n)
		cli__fail("there is no command '%s': did you mean %s?", word,
			  nearest__text(&nearest));
	else if (*hint)
		cli__fail("there is no command '%s'. For braid record: %s", word, hint);
	else
		cli__fail("there is no command '%s'. braid --help lists all commands", word);
	return EXIT_MISUSED;
}

int main(int argc, char **argv)
{
	size_t i;

	fill_standard_streams();
	argp_err_exit_status = EXIT_MISUSED;
	if (!privilege__become_user())
		return cli__fail("cannot switch to the rights of the calling user: %s",
				 strerror(errno));
	if (argc < 2) {
		print_help(stderr);
		return EXIT_MISUSED;
	}
	for (i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(argv[1], commands[i].name))
			return flush_output(run_command(&commands[i], argc - 1, argv + 1));
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		print_help(stdout);
		return flush_output(EXIT_OK);
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		puts("braid " BRAID_VERSION "\n"
		     "Kernel, native and interpreted frames of running programs in one stack.");
		return flush_output(EXIT_OK);
	}
	return refuse(argv[1]);
}
