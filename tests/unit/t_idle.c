// SPDX-License-Identifier: GPL-2.0-or-later
/* The rules of all runtimes for idle waits: mistakes that make a rule match nothing or too much.
 * tests/unit/report.t has stacks that they match, tests/live/idle.t programs. */
#include "runtimes/idle.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "core/base/syscalls.h"
#include "runtimes/registry.h"
#include "tests/tap.h"

static bool calls_are_known(const char *list)
{
	char copy[200], *rest = copy, *name;
	bool known = true;

	if (!list)
		return true;
	snprintf(copy, sizeof(copy), "%s", list);
	while ((name = strsep(&rest, " ")))
		known &= syscall__number(name) >= 0;
	return known;
}

/* Returns true if all brackets and parentheses are closed. The C library reads an unclosed one as
 * itself, or ignores it. */
static bool is_pattern(const char *pattern)
{
	int depth = 0;

	if (!pattern)
		return true;
	for (const char *at = pattern; *at && depth >= 0; at++) {
		depth += (*at == '(') - (*at == ')');
		if (*at == '\\')
			return false;
		if (*at == '[' && !strchr(at, ']'))
			return false;
	}
	return !depth && *pattern;
}

static void check_rule(const char *runtime, const struct idle_rule *rule)
{
	const char *name = rule->function ? rule->function : rule->thread;

	ok(name && (rule->function || rule->image || !strchr(rule->thread, '*')),
	   "%s: %s is a function, or a thread of a file", runtime, name ? name : "nothing");
	ok(calls_are_known(rule->syscalls), "%s: its system calls are known", name);
	ok(is_pattern(rule->thread) && is_pattern(rule->image) && is_pattern(rule->function) &&
		   is_pattern(rule->file) && is_pattern(rule->through) && is_pattern(rule->outer),
	   "%s: its patterns are whole", name);
	/* A native function may call any function, which then waits. */
	ok(!rule->native || (rule->through && rule->syscalls),
	   "%s: says what it waits in, if it is native", name);
	ok(!rule->through || fnmatch(rule->through, "main", FNM_EXTMATCH) == FNM_NOMATCH,
	   "%s: not all functions are waits", name);
}

int main(void)
{
	for (size_t i = 0; runtimes[i]; i++)
		for (const struct idle_rule *rule = runtimes[i]->idle; rule && rule->source; rule++)
			check_rule(runtimes[i]->name, rule);
	return tap__done();
}
