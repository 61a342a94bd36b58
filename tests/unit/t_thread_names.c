// SPDX-License-Identifier: GPL-2.0-or-later
/* Names of threads from a search: the times of searches, and the last result. */
#include "runtimes/common/thread_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/util.h"
#include "tests/tap.h"

#define SPACE 1

/* The program's present names of its threads; NULL: no such thread. */
static const char *called[3];
static int searches;

static int search(void *process, struct thread_finds *finds)
{
	int ret = 0;

	(void)process;
	searches++;
	for (size_t i = 0; !ret && i < ARRAY_SIZE(called); i++)
		if (called[i])
			ret = thread_finds__add(finds, i + 1, strdup(called[i]));
	return ret;
}

static const char *ask(struct thread_names *names, uint32_t tid, const char *kernel)
{
	static char name[64];
	int rc = thread_names__get(names, getpid(), tid, kernel, name, sizeof(name));

	if (rc)
		snprintf(name, sizeof(name), "error %s", strerrorname_np(-rc));
	return name;
}

/* Requests names until no search is allowed. */
static void exhaust(struct thread_names *names, uint32_t tid)
{
	char kernel[16] = "";

	for (int i = 0; strcmp(ask(names, tid, kernel), "error EAGAIN") != 0; i++)
		snprintf(kernel, sizeof(kernel), "k%d", i);
}

int main(void)
{
	struct thread_names *names = thread_names__new(search, 1);
	int before;

	if (!names || thread_names__attach(names, getpid(), SPACE, "")) {
		perror("t_thread_names");
		return 1;
	}
	called[0] = "one";
	called[1] = "two";
	is_str(ask(names, 1, "a"), "one", "a thread has the name that the search has found");
	is_str(ask(names, 2, "b"), "two", "so has another one");
	before = searches;
	called[0] = "other";
	is_str(ask(names, 1, "a"), "one", "which is not looked for again");
	is_int(searches, before, "under the same name of the kernel's");

	called[0] = "one";
	exhaust(names, 1);
	called[0] = "late";
	called[1] = "late, too";
	ask(names, 1, "new"); /* may be too early or not: a slow machine may search */
	before = searches;
	is_str(ask(names, 1, NULL), "late", "at the end the last name is found");
	is_str(ask(names, 2, NULL), "late, too", "of each thread");
	is_str(ask(names, 3, NULL), "error EAGAIN", "or none");
	is_int(searches, before + 1, "by one search");

	called[1] = NULL;
	is_str(ask(names, 3, "c"), "error EAGAIN", "after that it goes on,");
	before = searches;
	is_str(ask(names, 2, NULL), "error EAGAIN",
	       "a thread that is gone has no name at the next end");
	is_int(searches, before + 1, "which is searched for again");
	thread_names__free(names);
	return tap__done();
}
