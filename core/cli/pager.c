// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/pager.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t pager;

static bool is_terminal(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0;
}

bool pager__wants_colour(void)
{
	const char *no = getenv("NO_COLOR");

	return is_terminal() && (!no || !*no);
}

/* Returns true if less is installed. Otherwise a shell would print an error, and the output would
 * be lost. */
static bool has_less(void)
{
	char *path = strdup(getenv("PATH") ? getenv("PATH") : ""), *rest = path, *folder;
	bool found = false;
	char file[4096];

	while (path && !found && (folder = strsep(&rest, ":"))) {
		snprintf(file, sizeof(file), "%s/less", folder);
		found = *folder && !access(file, X_OK);
	}
	free(path);
	return found;
}

static const char *choice(void)
{
	const char *command = getenv("BRAID_PAGER");

	if (!command)
		command = getenv("PAGER");
	if (!command)
		command = has_less() ? "less" : "";
	return *command && strcmp(command, "cat") != 0 ? command : NULL;
}

static void run(const char *command, int input)
{
	/* Quit if one screen suffices, show colours, do not clear the screen; as git does. */
	setenv("LESS", "FRX", 0);
	setenv("LV", "-c", 0);
	/* A user who may run braid by sudo may not be allowed to run other commands. */
	if (getenv("SUDO_UID"))
		setenv("LESSSECURE", "1", 1);
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	if (dup2(input, STDIN_FILENO) < 0)
		_exit(127);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

void pager__start(void)
{
	const char *command = is_terminal() ? choice() : NULL;
	int ends[2];

	if (!command || pipe(ends))
		return;
	fflush(stdout);
	fflush(stderr);
	pager = fork();
	if (!pager) {
		close(ends[1]);
		run(command, ends[0]);
	}
	close(ends[0]);
	if (pager > 0 && dup2(ends[1], STDOUT_FILENO) >= 0) {
		/* Ctrl-C is for the pager; the shell must not return before the pager ends. */
		signal(SIGINT, SIG_IGN);
		signal(SIGQUIT, SIG_IGN);
		signal(SIGPIPE, SIG_IGN); /* a reader that has seen enough is not an error */
	}
	close(ends[1]);
}

void pager__finish(void)
{
	int status;

	if (pager <= 0)
		return;
	fflush(stdout);
	close(STDOUT_FILENO); /* the pager sees the end of its input */
	while (waitpid(pager, &status, 0) < 0 && errno == EINTR)
		;
	pager = 0;
}
