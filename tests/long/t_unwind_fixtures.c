// SPDX-License-Identifier: GPL-2.0-or-later
/* Checks the native fixtures, stopped at any point: libunwind on a copy and libdwfl find the same
 * frames. These are the frames that the fixtures' header comments promise. */
#include <regex.h>
#include <sys/types.h>

#include "tests/long/live.h"

#define SNAPSHOTS 30
#define STEPS	  37 /* instructions between two snapshots */
#define INNER	  "(;[^;]+)*"
#define BURN	  "(;(burn|burn_debt|_ZL4burnl)" INNER ")?"
#define RECURSION "recurse(;recurse){4};leaf" INNER

static const struct fixture {
	const char *name;
	const char *args[3];
	const char *stacks; /* extended regular expression for the functions below main, outermost
			       first */
} fixtures[] = {
	{ "shares", { "0" }, "burn_[abc]" BURN },
	{ "recurse", { "0", "5" }, RECURSION },
	{ "static", { "0", "5" }, RECURSION },
	{ "nopie", { "0", "5" }, RECURSION },
	{ "debugframe", { "0", "5" }, RECURSION },
	{ "threads", { "0" }, "between_threads" BURN "|start" INNER "|[_a-z0-9]*pthread.*" },
	{ "signal", { "0" }, "in_main" INNER },
	{ "signal",
	  { "0", "altstack" },
	  "in_main(;burn)?(;__restore_rt;on_signal" INNER ")?" INNER },
	{ "syscalls", { "0" }, "in_(read|getdents|faults)" INNER },
	{ "vdso", { "0" }, "in_vdso" INNER },
	{ "dlopen", { "0" }, "(in_plugin|in_math|with|[_a-z]*dl[a-z]+)" INNER },
	{ "jitcode", { "0" }, "call_jit(;\\?(;after_jit" BURN ")?)?" },
	{ "realign", { "0" }, "realigned_(32|64)" BURN },
	{ "cxx",
	  { "0" },
	  "(_ZN6shapes4areaE[id]|_Z5applyI[^;]*(;[^;]*main[^;]*)?|_ZL11after_catchv)" BURN
	  "|_ZL7catcherv([.]cold)?(;_ZL11after_catchv" BURN
	  "|(;_ZL7throweri){1,4}|(;_ZL7throweri){5}" BURN "|" INNER
	  ")|_ZL6sortedv(;[^;]*sort[^;]*)*(;_ZNK6shapes8ByWeight[^;]*" BURN ")?" },
};

static pid_t start_fixture(const struct fixture *fixture)
{
	char *argv[] = { (char *)fixture->name, (char *)fixture->args[0], (char *)fixture->args[1],
			 NULL };
	const char *output = getenv("OUTPUT");
	char path[4096];

	snprintf(path, sizeof(path), "%s/fixtures/native/%s", output ? output : "build",
		 fixture->name);
	return live__start(path, argv);
}

/* Writes the functions below main, outermost first. Returns false if there is no main. */
static bool name_stack(const struct target *target, const struct stack *stack, char *ret_names,
		       size_t size)
{
	Dwfl *dwfl = target__open_libdwfl(target);
	bool in_main = false;
	size_t n = 0;

	*ret_names = 0;
	for (int i = stack->n; i-- > 0;) {
		uint64_t ip = stack->frames[i].ip - (i > 0);
		Dwfl_Module *module = dwfl_addrmodule(dwfl, ip);
		const char *name = module ? dwfl_module_addrname(module, ip) : NULL;

		if (in_main && n < size)
			n += snprintf(ret_names + n, size - n, "%s%s", n ? ";" : "",
				      name ? name : "?");
		in_main |= name && strcmp(name, "main") == 0;
	}
	dwfl_end(dwfl);
	return in_main;
}

static bool is_inferred(const struct stack *stack)
{
	for (int i = 0; i < stack->n; i++)
		if (stack->frames[i].inferred)
			return true;
	return false;
}

/* Compares two stacks. libdwfl sometimes ends inside the dynamic linker; the names must suffice for
 * the rest. A stack with generated code has an inferred frame, so that it is not complete although
 * it reaches main. */
static bool compare_stacks(const struct stack *got, const struct stack *want, bool cut)
{
	bool whole = got->complete != is_inferred(got) && got->n >= want->n;

	return (whole || cut) && stack__count_equal(got, want) == min_of(got->n, want->n);
}

static bool check_snapshot(const struct fixture *fixture, pid_t pid, const regex_t *stacks)
{
	/* The copy ends with the stack of the handler. */
	bool cut = fixture->args[1] && strcmp(fixture->args[1], "altstack") == 0;
	static struct stack got, want;
	struct target target;
	char names[4096];
	bool good = false;

	if (!target__open(&target, pid))
		goto out;
	target__snapshot(&target, 0);
	target__unwind(&target, &got);
	target__unwind_with_libdwfl(&target, &want);
	good = compare_stacks(&got, &want, cut);
	if (!good)
		target__show_difference(&target, &got, &want);
	if (got.complete && is_inferred(&got)) {
		tap__diag("a complete stack with an inferred frame");
		good = false;
	}
	if (!name_stack(&target, &got, names, sizeof(names))) {
		good &= !got.complete;
	} else if (*names && regexec(stacks, names, 0, NULL, 0) != 0) {
		tap__diag("unexpected: %s", names);
		good = false;
	}
out:
	target__close(&target);
	return good;
}

static void test_fixture(const struct fixture *fixture)
{
	pid_t pid = start_fixture(fixture);
	char pattern[1024];
	regex_t stacks;
	int n = 0;

	/* Between two calls main runs its own code. Functions without a name are libc's. */
	snprintf(pattern, sizeof(pattern),
		 "^((clock_gettime|_IO_[^;]+|__libc_sigaction|[?])%s|%s)$", INNER, fixture->stacks);
	if (!ok(regcomp(&stacks, pattern, REG_EXTENDED | REG_NOSUB) == 0 && pid > 0, "%s runs",
		fixture->name))
		goto out;
	while (n < SNAPSHOTS && (n ? live__move(pid, STEPS) : live__stop(pid)) &&
	       check_snapshot(fixture, pid, &stacks))
		n++;
	is_int(n, SNAPSHOTS, "%s %s: all snapshots are good", fixture->name,
	       fixture->args[1] ? fixture->args[1] : "");
	live__end(pid);
out:
	regfree(&stacks);
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(fixtures); i++)
		test_fixture(&fixtures[i]);
	return tap__done();
}
