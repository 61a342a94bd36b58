// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "core/base/util.h"
#include "probes/catalogue.h"

/* HotSpot. Arguments of method__*: thread, then address and length of the names of class and method
 * and of the signature (src/hotspot/share/runtime/sharedRuntime.cpp). Tested with 17, 21, 25 and
 * 26. Both probes also fire for native and for inlined methods. They do not fire where a compiler
 * replaces a method by its own instructions (Math.max and similar methods). */

#define FLAG_WHEN "if Java is started with -XX:+DTraceMethodProbes"
#define FLAG_REMEDY                                                                              \
	"start Java with -XX:+DTraceMethodProbes, as `braid calls -- java ...` does; it cannot " \
	"be enabled later. Code with many calls becomes 15 to 20 times slower"

/* JDK 17 has the flag, JDK 21 does not. */
#define OLD_FLAG "ExtendedDTraceProbes"

#define RETURNS                                                                                  \
	"every return, also by exceptions, except of methods inlined by the compiler C1 (start " \
	"Java with -XX:-Inline for these)"

#define WANTS(remedy)                                                                          \
	{                                                                                      \
		{ "hotspot", "method__entry", "method__return", PROBE_ENTRY, PROBE_LIVES_WHEN, \
		  true,	     "every call",    FLAG_WHEN,	remedy },                      \
			{ "hotspot",	"method__return", "method__entry",                     \
			  PROBE_RETURN, PROBE_LIVES_WHEN, true,                                \
			  RETURNS,	FLAG_WHEN,	  remedy },                            \
	}

static const struct probe_want wants_old[] =
	WANTS(FLAG_REMEDY " (-XX:+" OLD_FLAG " implies it; later JDKs have dropped that)");
static const struct probe_want wants[] =
	WANTS(FLAG_REMEDY " (-XX:+" OLD_FLAG " of JDK 17 does not exist in this one)");

#define NO_SITES "this Java was built without --enable-dtrace"
#define MAP	 "jcmd PID Compiler.perfmap, with Java 17 or later"

static const struct probe_edition editions[] = {
	{ "HotSpot with " OLD_FLAG, wants_old, ARRAY_SIZE(wants_old), NO_SITES, MAP },
	{ "HotSpot", wants, ARRAY_SIZE(wants), NO_SITES, MAP },
};

static const struct probe_edition *choose(const struct elf_file *file)
{
	const Elf_Data *texts = elf_file__section(file, ".rodata", NULL);
	uint64_t vaddr;

	if (elf_file__find_symbol(file, "gHotSpotVMStructs", &vaddr, NULL))
		return NULL;
	return &editions[!texts ||
			 !memmem(texts->d_buf, texts->d_size, OLD_FLAG, sizeof(OLD_FLAG))];
}

const struct probe_catalogue probe_catalogue_jvm = {
	.runtime = "jvm",
	.choose = choose,
};
