// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/util.h"
#include "probes/catalogue.h"

/* PHP built with --enable-dtrace, as in Debian's 8.2 and Remi's builds. The arguments of execute__*
 * are file and line of the caller. Those of function__* are function, file, line, class, and "::"
 * or "->" (Zend/zend_dtrace.d). Tested with 8.0, 8.1, 8.2, 8.3, 8.4 and 8.5: entries and returns
 * balance, also over exceptions, generators, fibers and exit(). PHP uses the functions with these
 * probes if USE_ZEND_DTRACE is in the environment at its start (zend_startup, Zend/zend.c).
 * opcache's JIT disables itself then. */

#define WHEN "if PHP is started with USE_ZEND_DTRACE=1 in its environment"
#define REMEDY \
	"start PHP with USE_ZEND_DTRACE=1 in its environment, as `braid calls -- php ...` does"

static const struct probe_want wants[] = {
	{ "php", "execute__entry", "execute__return", PROBE_ENTRY, PROBE_LIVES_WHEN, true,
	  "every call, also of functions in C, and resume of a generator", WHEN, REMEDY },
	{ "php", "execute__return", "execute__entry", PROBE_RETURN, PROBE_LIVES_WHEN, true,
	  "every return, yield and unwinding by an exception", WHEN, REMEDY },
	{ "php", "function__entry", "function__return", PROBE_ENTRY, PROBE_LIVES_WHEN, false,
	  "calls of functions written in PHP, except evaluated text", WHEN, REMEDY },
	{ "php", "function__return", "function__entry", PROBE_RETURN, PROBE_LIVES_WHEN, false,
	  "the ends of these calls", WHEN, REMEDY },
};

static const struct probe_edition edition = {
	"PHP", wants, ARRAY_SIZE(wants), "this PHP was built without --enable-dtrace", NULL,
};

static const struct probe_edition *choose(const struct elf_file *file)
{
	uint64_t vaddr;

	return elf_file__find_symbol(file, "execute_ex", &vaddr, NULL) ||
			       elf_file__find_symbol(file, "std_object_handlers", &vaddr, NULL)
		       ? NULL
		       : &edition;
}

const struct probe_catalogue probe_catalogue_php = {
	.runtime = "php",
	.choose = choose,
};
