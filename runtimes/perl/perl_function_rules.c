// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/perl/perl_function_rules.h"

#include <stddef.h>

/* Directories of perl -V:privlib, sitelib and vendorlib; functions in C have no file. */
static const char *const library_files[] = { "/usr/share/perl*",
					     "/usr/lib/*/perl*",
					     "/usr/local/@(lib|share)*/perl*",
					     "*/perl5/*",
					     "",
					     NULL };

static const char *const nameless[] = { "*__ANON__", NULL };

const struct function_rules perl_function_rules = { .runtime = "perl",
						    .library_files = library_files,
						    .nameless = nameless };
