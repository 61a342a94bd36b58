// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/php/php_function_rules.h"

#include <stddef.h>

/* Packages of Composer and of distributions; functions in C have no file. */
static const char *const library_files[] = { "*/vendor/*", "/usr/share/php*", "phar:*", "", NULL };

static const char *const nameless[] = { "*{closure}", NULL };

const struct function_rules php_function_rules = { .runtime = "php",
						   .library_files = library_files,
						   .nameless = nameless };
