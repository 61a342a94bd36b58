// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/cli/running.h"
#include "core/events/events.h"
#include "core/kernel/libbpf_warning.h"

/* Parses the parts of a command line that select processes. */

#define DURATION_MAX_S 31536000.0 /* a year */

static void refuse_pids(const struct argp_state *state, const char *text)
{
	char hint[RUNNING_HINT_BYTES];

	running__hint(text, hint, sizeof(hint));
	cli__misused(state, "-p takes process ids separated by commas, not '%s'%s%s", text,
		     *hint ? ": " : "", hint);
}

void cli__pids(struct argp_state *state, const char *text, uint32_t **ret_pids, size_t *ret_n)
{
	const char *at = text;
	unsigned long pid;
	size_t cap = *ret_n;
	char *end;

	do {
		errno = 0;
		pid = strtoul(at, &end, 10);
		if (*at < '0' || *at > '9' || errno || !pid || pid > INT32_MAX ||
		    (*end && *end != ','))
			refuse_pids(state, text);
		if (array__reserve(ret_pids, &cap, *ret_n + 1, sizeof(**ret_pids)))
			argp_failure(state, EXIT_FAILED, ENOMEM, "-p");
		(*ret_pids)[(*ret_n)++] = pid;
		at = end + 1;
	} while (*end);
}

/* Fails for a single word, without "--", that names a running program or an event. Users write that
 * for -p and -e. */
static void check_word(struct argp_state *state, char *const *command)
{
	const char *event = event__meant(*command);
	char hint[RUNNING_HINT_BYTES];

	if (command[1] || (command > state->argv && !strcmp(command[-1], "--")))
		return;
	if (event)
		cli__misused(state, "did you mean -e %s -p PID? The command %s is run by -- %s",
			     event, *command, *command);
	running__hint(*command, hint, sizeof(hint));
	if (*hint)
		cli__misused(state, "%s To start %s once more, write -- %s", hint, *command,
			     *command);
}

static void check_target(struct argp_state *state, const struct session_opts *opts)
{
	bool scope = scope_opts__any(&opts->scope);

	if (!scope && !opts->command == !opts->n_pids)
		cli__misused(state, "give either -p PID or -- COMMAND%s",
			     opts->source == RUNTIME_SOURCE_CALLS
				     ? ""
				     : ", or -a, --cgroup, --container, --name or --user");
	if (scope && (opts->command || opts->n_pids))
		cli__misused(state,
			     "-a, --cgroup, --container, --name and --user select among all "
			     "processes: they cannot be used with %s",
			     opts->command ? "-- COMMAND" : "-p");
	if (opts->command && running__is_pid(opts->command[0]))
		cli__misused(state, "'%s' is the id of a process: did you mean -p %s?",
			     opts->command[0], opts->command[0]);
	if (opts->command && !*opts->command[0])
		cli__misused(state, "the name of the command after -- is empty");
	if (opts->command)
		check_word(state, opts->command);
	if (scope && opts->no_children)
		cli__misused(state,
			     "--no-children requires -p or -- COMMAND: the other options select "
			     "each process by itself");
}

/* Prints each line of a message of libbpf, which may be a verifier's log. */
static void print_warning(const char *text)
{
	for (size_t len; *text; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		escape__line(stderr, "%.*s", (int)len, text);
	}
}

/* Sets a selection of processes; each kind of selection may occur once. */
static void choose(struct argp_state *state, const char *option, const char *text,
		   const char **choice)
{
	if (*choice)
		cli__misused(state, "%s is given twice: a process would have to match both. %s",
			     option,
			     !strcmp(option, "--name")
				     ? "To match either of them, write --name 'A|B'"
				     : "Record them separately");
	*choice = text;
}

error_t cli__parse_target(int key, char *arg, struct argp_state *state, struct session_opts *opts,
			  uint32_t **pids)
{
	switch (key) {
	case 'p':
		cli__pids(state, arg, pids, &opts->n_pids);
		opts->pids = *pids;
		break;
	case CLI_NO_CHILDREN:
		opts->no_children = true;
		break;
	case 'a':
		opts->scope.all = true;
		break;
	case CLI_CGROUP:
		choose(state, "--cgroup", arg, &opts->scope.cgroup);
		break;
	case CLI_CONTAINER:
		choose(state, "--container", arg, &opts->scope.container);
		break;
	case CLI_NAME:
		choose(state, "--name", arg, &opts->scope.name);
		break;
	case CLI_USER:
		choose(state, "--user", arg, &opts->scope.user);
		break;
	case 'd':
		opts->duration_s = cli__number(state, "-d", arg, 0.001, DURATION_MAX_S);
		break;
	case 'r':
		cli__runtimes(state, opts->runtimes, arg, &opts->enabled);
		break;
	case 'v':
		libbpf_warning__show(print_warning);
		break;
	case ARGP_KEY_ARGS:
		opts->command = state->argv + state->next;
		break;
	case ARGP_KEY_END:
		check_target(state, opts);
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int cli__fail_open(const struct session_opts *opts, int error, const struct err *err)
{
	char hint[RUNNING_HINT_BYTES] = "";

	if (opts->command && error == -ENOENT)
		running__hint(opts->command[0], hint, sizeof(hint));
	return cli__fail("%s%s%s", err->text, *hint ? ": " : "", hint);
}

void cli__print_start(const struct session *session, const struct session_opts *opts)
{
	unsigned n = session__children(session);
	char children[64] = "", until[64] = "";

	if (n)
		snprintf(children, sizeof(children), " and %u child process%s", n,
			 n > 1 ? "es" : "");
	if (opts->duration_s)
		snprintf(until, sizeof(until), " for %g s", opts->duration_s);
	else if (!scope_opts__any(&opts->scope))
		snprintf(until, sizeof(until), " until %s",
			 opts->command || (opts->n_pids == 1 && !n) ? "it ends" : "they end");
	escape__line(stderr, "recording %s%s%s (Ctrl-C ends the recording%s)",
		     session__target(session), children, until,
		     n ? "; --no-children leaves child processes out" : "");
}
