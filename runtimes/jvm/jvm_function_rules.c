// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/jvm/jvm_function_rules.h"

#include <stddef.h>

/* Packages of the JDK; stubs and the interpreter's parts, which are not methods; and the
 * commonest libraries of servers. A frame has no path, so that other libraries cannot be
 * distinguished. */
static const char *const library_functions[] = { "java.*",
						 "javax.*",
						 "jdk.*",
						 "sun.*",
						 "com.sun.*",
						 "jakarta.*",
						 "kotlin.*",
						 "kotlinx.*",
						 "scala.*",
						 "groovy.*",
						 "org.springframework.*",
						 "org.apache.*",
						 "org.eclipse.*",
						 "org.hibernate.*",
						 "io.netty.*",
						 "reactor.*",
						 "com.fasterxml.*",
						 "com.zaxxer.*",
						 "*stub*",
						 NULL };

/* A method's name has its class before a dot; a stub or an entry of the VM has no dot. */
static const char *const machinery[] = { "!(*.*)", NULL };

static const struct wait_rule waits[] = {
	{ "java.lang.Thread.sleep*", "a timer (sleep)", NULL },
	{ "java.util.concurrent.locks.*Condition*.await*", "a condition", NULL },
	{ "java.util.concurrent.locks.Abstract*Synchronizer.acquire*", "a lock", NULL },
	{ "java.lang.Object.wait*", "a notification", NULL },
	{ "java.util.concurrent.FutureTask.awaitDone", "a task", NULL },
	{ "java.util.concurrent.CompletableFuture.*et*", "a task", NULL },
	{}
};

const struct function_rules jvm_function_rules = { .runtime = "jvm",
						   .library_functions = library_functions,
						   .machinery = machinery,
						   .compiled = true,
						   .waits = waits };
