// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/go/go_function_rules.h"

#include <stddef.h>

/* GOROOT/src, wherever the program was built, and the cache of modules. */
static const char *const library_files[] = { "*/go/src/*",	    "*/go-[0-9]*/src/*",
					     "*/pkg/mod/*",	    "*/vendor/*",
					     "/usr/share/gocode/*", "",
					     "*/golang*/src/*",	    NULL };
/* Programs that were built with -trimpath have no paths of GOROOT. */
static const char *const library_functions[] = { "runtime.*",  "runtime/*", "internal/*",
						 "sync.*",     "syscall.*", "net.*",
						 "net/http.*", "reflect.*", NULL };

/* The runtime's functions that park a goroutine. Their time is that of the call which waits:
 * sync.(*Mutex).Lock, time.Sleep, or the program's own receive. */
static const char *const machinery[] = { "runtime.gopark",
					 "runtime.goparkunlock",
					 "runtime.semacquire*",
					 "runtime.chanrecv*",
					 "runtime.chansend*",
					 "runtime.selectgo",
					 "runtime.block",
					 "runtime.netpollblock",
					 "sync.runtime_*",
					 "internal/poll.runtime_*",
					 NULL };

static const struct wait_rule waits[] = {
	{ "sync.??@(Mutex|RWMutex)?.@(Lock|RLock)*", "a lock", NULL },
	{ "sync.??WaitGroup?.Wait", "other goroutines", NULL },
	{ "sync.??Cond?.Wait", "a condition", NULL },
	{ "runtime.@(chanrecv|chansend|selectgo)*", "a channel", NULL },
	{ "internal/poll.runtime_pollWait", "I/O", NULL },
	{ "time.Sleep", "a timer", NULL },
	{}
};

const struct function_rules go_function_rules = { .runtime = "go",
						  .library_files = library_files,
						  .library_functions = library_functions,
						  .machinery = machinery,
						  .compiled = true,
						  .tasks = "goroutines",
						  .waits = waits };
