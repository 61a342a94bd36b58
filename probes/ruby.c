// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/util.h"
#include "probes/catalogue.h"

/* Ruby built with --enable-dtrace, as Debian's up to 3.2. Arguments of all four: class, method,
 * file, line (probes.d).
 *
 * In vm_insnhelper.c at 2.7.4 to 3.3.8, vm_trace_hook() reaches vm_dtrace(), and with it method__*,
 * only if a global hook requests the event. The probes' semaphores have no effect on that. Returns
 * by raise or throw always fire (hook_before_rewind). Methods in C always fire. */

#define HOOK_WHEN "while a hook for calls and returns exists in the process"
#define HOOK_REMEDY                                                                              \
	"start it with `braid calls -- COMMAND`, or run this line in it: TracePoint.new(:call, " \
	":return) {}.enable (which makes calls several times slower)"
#define METHODS                                                                                  \
	{ "ruby",                                                                                \
	  "method__entry",                                                                       \
	  "method__return",                                                                      \
	  PROBE_ENTRY,                                                                           \
	  PROBE_LIVES_WHEN,                                                                      \
	  true,                                                                                  \
	  "every call of a method written in Ruby",                                              \
	  HOOK_WHEN,                                                                             \
	  HOOK_REMEDY },                                                                         \
	{                                                                                        \
		"ruby", "method__return", "method__entry", PROBE_RETURN, PROBE_LIVES_WHEN, true, \
			"every return of a method written in Ruby", HOOK_WHEN, HOOK_REMEDY       \
	}

static const struct probe_want wants[] = {
	METHODS,
	{ "ruby", "cmethod__entry", "cmethod__return", PROBE_ENTRY, PROBE_LIVES, false,
	  "every call of a method written in C", NULL, NULL },
	{ "ruby", "cmethod__return", "cmethod__entry", PROBE_RETURN, PROBE_LIVES, false,
	  "every return of a method written in C", NULL, NULL },
};

/* Probes of methods in C make these versions crash: runtimes/ruby/ruby_probing.c, is_unsafe(). */
static const struct probe_want wants_3_0[] = { METHODS };

#define NO_DTRACE "this Ruby was built without --enable-dtrace"

static const struct probe_edition editions[] = {
	{ "Ruby", wants, ARRAY_SIZE(wants), NO_DTRACE, NULL },
	{ "Ruby 3.0 and 3.1 (without methods in C, which crash when traced)", wants_3_0,
	  ARRAY_SIZE(wants_3_0), NO_DTRACE, NULL },
};

static const struct probe_edition *choose(const struct elf_file *file)
{
	char version[4];
	uint64_t vaddr;

	if (elf_file__find_symbol(file, "ruby_version", &vaddr, NULL))
		return NULL;
	if (elf_file__read(file, vaddr, version, sizeof(version)) || version[0] != '3' ||
	    version[1] != '.' || version[2] > '1')
		return &editions[0];
	return &editions[1];
}

const struct probe_catalogue probe_catalogue_ruby = {
	.runtime = "ruby",
	.choose = choose,
	.version_symbol = "ruby_version",
};
