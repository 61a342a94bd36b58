// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/python/python_function_rules.h"

#include <stddef.h>

/* Places of the standard library and of packages: sysconfig.get_paths(), Debian's dist-packages,
 * frozen modules, whose files are
 * "<frozen NAME>", and the commands that packages install. */
static const char *const library_files[] = { "*/lib/python[23]*",
					     "*/lib64/python[23]*",
					     "*/site-packages/*",
					     "*/dist-packages/*",
					     "<*",
					     "/usr/bin/*",
					     "/usr/local/bin/*",
					     NULL };

static const char *const nameless[] = { "*<lambda>", NULL };

/* Functions of asyncio by their own files. A stream may be a socket or a pipe, and wait_for() may
 * wait for any future. */
static const struct wait_rule waits[] = {
	{ "PyThread_acquire_lock*", "a lock", NULL },
	{ "Lock.acquire", "a lock", "*/asyncio/locks.py" },
	{ "*Semaphore.acquire", "a semaphore", "*/asyncio/locks.py" },
	{ "sleep", "a timer (sleep)", "*/asyncio/tasks.py" },
	{ "@(wait|_wait|wait_for)", "other tasks or futures", "*/asyncio/tasks.py" },
	{ "*TaskGroup.*", "other tasks", "*/asyncio/taskgroups.py" },
	{ "?(*Queue.)@(get|put|join)", "a queue", "*/asyncio/queues.py" },
	{ "*", "a stream", "*/asyncio/@(streams|sslproto).py" },
	{ "*", "a socket", "*/asyncio/selector_events.py" },
	{ "*", "a child process", "*/asyncio/@(subprocess|base_subprocess).py" },
	{}
};

const struct function_rules python_function_rules = {
	.runtime = "python", .library_files = library_files, .nameless = nameless, .waits = waits
};
