// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/kernel/libbpf_warning.h"

/* What of a command line says which processes. */

#define DURATION_MAX_S 31536000.0 /* a year */

void cli__pids(struct argp_state *state, const char *text, uint32_t **ret_pids, size_t *ret_n)
{
	const char *at = text;
	unsigned long pid;
	size_t cap = 0;
	char *end;

	*ret_pids = NULL;
	*ret_n = 0;
	do {
		errno = 0;
		pid = strtoul(at, &end, 10);
		if (*at < '0' || *at > '9' || errno || !pid || pid > INT32_MAX ||
		    (*end && *end != ','))
			cli__misused(state, "-p takes process ids separated by commas, not '%s'",
				     text);
		if (array__reserve(ret_pids, &cap, *ret_n + 1, sizeof(**ret_pids)))
			argp_failure(state, EXIT_FAILED, ENOMEM, "-p");
		(*ret_pids)[(*ret_n)++] = pid;
		at = end + 1;
	} while (*end);
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
			     "-a, --cgroup, --container, --name and --user choose among all "
			     "processes, and %s says which one: give one of both",
			     opts->command ? "-- COMMAND" : "-p");
	if (scope && opts->no_children)
		cli__misused(state,
			     "--no-children is for -p: processes are chosen one by one here");
}

/* Prints each line of a text of libbpf's, which may be a verifier's log. */
static void print_warning(const char *text)
{
	for (size_t len; *text; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		escape__line(stderr, "%.*s", (int)len, text);
	}
}

error_t cli__parse_target(int key, char *arg, struct argp_state *state, struct session_opts *opts,
			  uint32_t **pids)
{
	switch (key) {
	case 'p':
		free(*pids);
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
		opts->scope.cgroup = arg;
		break;
	case CLI_CONTAINER:
		opts->scope.container = arg;
		break;
	case CLI_NAME:
		opts->scope.name = arg;
		break;
	case CLI_USER:
		opts->scope.user = arg;
		break;
	case 'd':
		opts->duration_s = cli__number(state, "-d", arg, 0.001, DURATION_MAX_S);
		break;
	case 'r':
		opts->enabled = cli__runtimes(state, opts->runtimes, arg);
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
