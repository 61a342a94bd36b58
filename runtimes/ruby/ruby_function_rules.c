// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/ruby/ruby_function_rules.h"

#include <stddef.h>

/* RbConfig::CONFIG's rubylibdir and vendordir, Gem.path, and methods in C, which have no file. */
static const char *const library_files[] = { "*/lib/ruby/*",
					     "*/gems/*",
					     "*/vendor/bundle/*",
					     "*/lib/*/ruby/*",
					     "<internal:*",
					     "*/rubygems-integration/*",
					     "/usr/bin/*",
					     "/usr/share/rubygems*",
					     "/usr/local/bin/*",
					     "",
					     NULL };

static const struct wait_rule waits[] = { { "*Mutex#@(lock|synchronize)", "a lock", NULL },
					  { "*Monitor#@(enter|synchronize)", "a lock", NULL },
					  { "*ConditionVariable#wait", "a condition", NULL },
					  { "*Queue#pop", "a queue", NULL },
					  {} };

const struct function_rules ruby_function_rules = { .runtime = "ruby",
						    .library_files = library_files,
						    .waits = waits };
