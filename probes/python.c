// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/util.h"
#include "probes/catalogue.h"

/* CPython built with --with-dtrace, as distributions do. Arguments of function__*: file name, code
 * name, line (Include/pydtrace.d). */

#define NO_DTRACE  "this Python was built without --with-dtrace"
#define CALL_WHY   "every call, and resume of a generator"
#define RETURN_WHY "every return, yield and unwinding by an exception"
#define EVAL	   "_PyEval_EvalFrameDefault"

/* Tested with 3.8.2, 3.9.2 and 3.10.4: entries and returns balance, also over exceptions,
 * generators and coroutines. */
static const struct probe_want wants_to_3_10[] = {
	{ "python", "function__entry", "function__return", PROBE_ENTRY, PROBE_LIVES, true, CALL_WHY,
	  NULL, NULL },
	{ "python", "function__return", "function__entry", PROBE_RETURN, PROBE_LIVES, true,
	  RETURN_WHY, NULL, NULL },
	{ NULL, EVAL, EVAL, PROBE_ENTRY, PROBE_LIVES, true, CALL_WHY, NULL, NULL },
	{ NULL, EVAL, EVAL, PROBE_RETURN, PROBE_LIVES, true, RETURN_WHY, NULL, NULL },
};

/* Python/ceval.c at 3.11.2 reaches DTRACE_FUNCTION_ENTRY only through DO_TRACING. That is reached
 * through OR_DTRACE_LINE, which is 255 while python:line's semaphore is raised.
 * DTRACE_FUNCTION_EXIT is always reached. Since 3.11 the loop runs calls from Python to Python
 * itself. */
#define LINE_WHEN "while the semaphore of python:line is raised"
#define LINE_REMEDY                                                                             \
	"raise the semaphore of python:line as well, which makes the interpreter 5 to 8 times " \
	"slower. Stacks need no probes: --source walk"
#define INLINED "calls from C to Python; those from Python to Python stay in the same loop"

static const struct probe_want wants_3_11[] = {
	{ "python", "function__entry", "function__return", PROBE_ENTRY, PROBE_LIVES_WHEN, true,
	  CALL_WHY, LINE_WHEN, LINE_REMEDY },
	{ "python", "function__return", "function__entry", PROBE_RETURN, PROBE_LIVES, true,
	  RETURN_WHY, NULL, NULL },
	{ NULL, EVAL, EVAL, PROBE_ENTRY, PROBE_LIVES, false, CALL_WHY, INLINED, NULL },
	{ NULL, EVAL, EVAL, PROBE_RETURN, PROBE_LIVES, false, RETURN_WHY, INLINED, NULL },
};

/* Include/pydtrace.d still declares function__*, but no code uses them since PEP 669. */
static const struct probe_want wants_3_12[] = {
	{ NULL, EVAL, EVAL, PROBE_ENTRY, PROBE_LIVES, false, CALL_WHY, INLINED, NULL },
	{ NULL, EVAL, EVAL, PROBE_RETURN, PROBE_LIVES, false, RETURN_WHY, INLINED, NULL },
};

/* The probes exist again: tested with 3.15.0. The creation of a generator counts as a call, too. */
static const struct probe_want wants_since_3_15[] = {
	{ "python", "function__entry", "function__return", PROBE_ENTRY, PROBE_LIVES, true, CALL_WHY,
	  NULL, NULL },
	{ "python", "function__return", "function__entry", PROBE_RETURN, PROBE_LIVES, true,
	  RETURN_WHY, NULL, NULL },
	{ NULL, EVAL, EVAL, PROBE_ENTRY, PROBE_LIVES, false, CALL_WHY, INLINED, NULL },
	{ NULL, EVAL, EVAL, PROBE_RETURN, PROBE_LIVES, false, RETURN_WHY, INLINED, NULL },
};

#define PERF_MAP "start Python with -X perf, or PYTHONPERFSUPPORT=1"

static const struct probe_edition editions[] = {
	{ "CPython 3.6 to 3.10", wants_to_3_10, ARRAY_SIZE(wants_to_3_10), NO_DTRACE, NULL },
	{ "CPython 3.11", wants_3_11, ARRAY_SIZE(wants_3_11), NO_DTRACE, NULL },
	{ "CPython 3.12 to 3.14", wants_3_12, ARRAY_SIZE(wants_3_12),
	  "CPython 3.12 to 3.14 have no probes for calls", PERF_MAP },
	{ "CPython 3.15 or later", wants_since_3_15, ARRAY_SIZE(wants_since_3_15), NO_DTRACE,
	  PERF_MAP },
};

/* Chooses by Py_Version, which contains PY_VERSION_HEX and exists since 3.11. */
static const struct probe_edition *choose(const struct elf_file *file)
{
	uint64_t vaddr, version;

	if (elf_file__find_symbol(file, "Py_GetVersion", &vaddr, NULL))
		return NULL;
	if (elf_file__find_symbol(file, "Py_Version", &vaddr, NULL) ||
	    elf_file__read(file, vaddr, &version, sizeof(version)))
		return &editions[0];
	version = version >> 16 & 0xffff;
	return &editions[version <= 0x030b ? 1 : version < 0x030f ? 2 : 3];
}

const struct probe_catalogue probe_catalogue_python = {
	.runtime = "python",
	.choose = choose,
};
