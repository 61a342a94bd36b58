// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/node/node_function_rules.h"

#include <stddef.h>

/* Node's own modules are "node:NAME"; V8's functions have no file. */
static const char *const library_files[] = { "*/node_modules/*",    "node:*", "internal/*", "",
					     "/usr/share/nodejs/*", NULL };

static const char *const nameless[] = { "*[(]anonymous[)]", NULL };

const struct function_rules node_function_rules = { .runtime = "node",
						    .library_files = library_files,
						    .nameless = nameless };
