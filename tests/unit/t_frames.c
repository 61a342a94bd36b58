// SPDX-License-Identifier: GPL-2.0-or-later
/* Views of a profile with fewer frames, trees, and tables by other columns than functions. */
#include "core/profile/frames.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/out/output.h"
#include "tests/tap.h"

typedef int (*writer_fn)(const struct profile *profile, const struct output_opts *opts, FILE *out);

static const char *const callers[] = { "call_c", "call_*_c", NULL };

static void check(writer_fn writer, const struct profile *profile, const struct output_opts *opts,
		  const char *want, const char *what)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	is_int(writer(profile, opts, out), 0, "%s: written", what);
	fclose(out);
	is_str(text, want, "%s", what);
	free(text);
}

static struct profile *new_profile(void)
{
	struct profile *profile = profile__new();

	profile__kind(profile, "script", "_[s]");
	profile->callers = callers;
	profile__interpreter(profile, "libvm");
	return profile;
}

/* Adds a stack of frames separated by blanks: "s:f" of the script, "k:read" of the kernel,
 * "l:label", "i:x@lib" inlined, "x@lib" native. */
static void add(struct profile *profile, const char *text, uint64_t weight)
{
	char *copy = strdup(text), *rest = copy, *name;
	const struct profile_value value = { .weight = weight, .samples = 1 };
	uint32_t frames[64], n = 0;

	while ((name = strsep(&rest, " ")) && *name) {
		char *library = strchr(name, '@');
		uint8_t kind = KIND_NATIVE;

		if (library)
			*library++ = '\0';
		if (name[1] == ':') {
			kind = name[0] == 'k'	? KIND_KERNEL
			       : name[0] == 'i' ? KIND_INLINED
			       : name[0] == 's' ? KIND_RUNTIME
						: profile__label_kind(profile, "label");
			name += 2;
		}
		profile__code(profile, kind, name, NULL, 0,
			      kind == KIND_KERNEL ? "kernel" : library, &frames[n++]);
	}
	profile__add_value(profile, frames, n, &value, NULL);
	free(copy);
}

static void check_views(struct profile *profile, const char *script, const char *collapsed,
			const char *what)
{
	static const struct output_opts plain = { 0 };
	struct profile *view = NULL;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	output__folded(profile, &plain, out);
	fclose(out);
	is_int(frames__view(profile, FRAMES_SCRIPT, &view), 0, "%s: a view", what);
	check(output__folded, view, &plain, script, what);
	profile__free(view);
	frames__view(profile, FRAMES_COLLAPSED, &view);
	ok(view->total == profile->total && view->samples == profile->samples,
	   "%s: nothing is lost", what);
	check(output__folded, view, &plain, collapsed, what);
	profile__free(view);
	frames__view(profile, FRAMES_ALL, &view);
	check(output__folded, view, &plain, text, "all frames are all frames");
	profile__free(view);
	profile__free(profile);
	free(text);
}

static void check_runs(void)
{
	struct profile *profile = new_profile();

	add(profile, "start@libc main@vm run@libvm eval@libvm s:f add@libvm", 1);
	add(profile, "start@libc main@vm run@libvm eval@libvm s:f add@libvm malloc@libc", 2);
	add(profile, "start@libc main@vm run@libvm eval@libvm s:f", 4);
	add(profile, "start@libc main@vm run@libvm eval@libvm s:f call@libvm s:g", 8);
	add(profile, "start@libc main@vm run@libvm eval@libvm s:f call@libvm call2@libvm s:g", 16);
	add(profile,
	    "start@libc main@vm run@libvm eval@libvm s:f call@libvm q@libq i:r@libq t@libq", 32);
	check_views(profile,
		    "f 39\n"
		    "f;g 24\n",
		    "start;main;libvm;f 4\n"
		    "start;main;libvm;f;libvm 1\n"
		    "start;main;libvm;f;libvm;g 24\n"
		    "start;main;libvm;f;libvm;malloc 2\n"
		    "start;main;libvm;f;libvm;q 32\n",
		    "runs of native frames");

	profile = new_profile();
	add(profile, "s:f call@libvm call_c@libvm sleep@libvm inner@libvm", 1);
	add(profile, "s:f call@libvm call_fast_c@libvm sleep@libvm", 2);
	add(profile,
	    "s:f call@libvm call_c@libvm call_fast_c@libvm sort@libvm call_c@libvm x@libvm", 4);
	add(profile, "s:f call@libvm call_c@libvm", 8);
	add(profile, "s:f call_c@libvm dump@libjson", 16);
	check_views(profile, "f 31\n",
		    "f;libvm 8\n"
		    "f;libvm;dump 16\n"
		    "f;sleep 3\n"
		    "f;sort 4\n",
		    "what a script called is named");

	profile = new_profile();
	add(profile, "s:f read@libc k:entry k:do_syscall_64 k:__x64_sys_read k:vfs_read", 1);
	add(profile, "s:f read@libc k:entry", 2);
	add(profile, "s:f read@libc k:entry k:do_syscall_64 k:__x64_sys_read k:__x64_sys_x", 4);
	add(profile, "s:f k:asm_exc_page_fault k:handle", 8);
	check_views(profile, "f 15\n",
		    "f;asm_exc_page_fault 8\n"
		    "f;read;__x64_sys_read 5\n"
		    "f;read;entry 2\n",
		    "system calls are named");
}

static void check_others(void)
{
	struct profile *profile = new_profile();

	add(profile, "start@libc gc@libvm mark@libvm", 1);
	add(profile, "start@libc gc@libvm s:final", 2);
	add(profile, "k:swapper k:idle", 4);
	add(profile, "", 8);
	check_views(profile,
		    "[no stack] 8\n"
		    "final 2\n"
		    "start;gc;mark 1\n"
		    "swapper;idle 4\n",
		    "[no stack] 8\n"
		    "start;gc;mark 1\n"
		    "start;libvm;final 2\n"
		    "swapper;idle 4\n",
		    "stacks without any frame of a runtime keep all");

	profile = new_profile();
	add(profile,
	    "l:t1 start@libc s:f wait@libvm k:a k:__x64_sys_futex l:waker k:b k:c s:g x@libvm", 1);
	add(profile, "l:t1 start@libc s:f wait@libvm k:a k:__x64_sys_futex l:waker k:b k:c", 2);
	add(profile, "l:t2 start@libc main@libvm l:waker s:g y@libvm z@libvm", 4);
	check_views(profile,
		    "t1;f;waker;b;c 2\n"
		    "t1;f;waker;g 1\n"
		    "t2;start;main;waker;g 4\n",
		    "t1;start;f;libvm;__x64_sys_futex;waker;b;c 2\n"
		    "t1;start;f;libvm;__x64_sys_futex;waker;b;g;libvm 1\n"
		    "t2;start;main;waker;g;libvm 4\n",
		    "labels divide stacks");

	profile = profile__new();
	ok(!frames__differ(profile), "an empty profile is the same in all views");
	check_views(profile, "", "", "an empty profile");
}

/* The shares of all threads follow their nodes. */
static void check_shares(void)
{
	struct profile *profile = new_profile(), *view = NULL;
	uint32_t thread;

	add(profile, "s:f add@libvm", 1);
	add(profile, "s:f add@libvm more@libvm", 2);
	profile__add_thread(profile,
			    &(struct profile_thread_of) {
				    .pid = 7, .tid = 8, .process = "app", .name = "worker" },
			    &thread);
	profile__add_share(profile, &(struct profile_share) { 2, thread, { .weight = 1 } });
	profile__add_share(profile, &(struct profile_share) { 3, thread, { .weight = 2 } });
	frames__view(profile, FRAMES_COLLAPSED, &view);
	ok(view->n_threads == 1 && view->threads[0].pid == 7 && view->threads[0].tid == 8 &&
		   !strcmp(view->threads[0].name, "worker"),
	   "threads are kept");
	ok(view->n_shares == 2 && view->shares[0].node == view->shares[1].node &&
		   view->nodes[view->shares[0].node].self == 3,
	   "and their shares are where their values are");
	profile__free(view);
	profile__free(profile);
}

static void check_libraries(void)
{
	static const struct {
		const char *file, *library;
	} cases[] = {
		{ "/usr/lib/libc.so.6", "libc" },
		{ "libx3.11.so.1.0", "libx3.11" },
		{ "_q.xpython-311-x86_64-linux-gnu.so", "_q" },
		{ "/usr/bin/vm3.11", "vm3.11" },
		{ "/lib/ld-linux-x86-64.so.2", "ld-linux-x86-64" },
		{ "a.sound", "a.sound" },
		{ ".so", ".so" },
		{ "[vdso]", "[vdso]" },
		{ "/opt/app/", "/opt/app/" },
		{ "", "" },
	};
	char text[PROFILE_LIBRARY_BYTES], small[4];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		profile__library(cases[i].file, text, sizeof(text));
		is_str(text, cases[i].library, "library %s", cases[i].file);
	}
	profile__library("libc.so.6", small, sizeof(small));
	is_str(small, "lib", "a name too long is cut");
}

static void check_tree(void)
{
	struct profile *profile = new_profile(), *view = NULL;

	add(profile, "a@m b@m c@m d@m s:e v@libvm w@libvm", 30);
	add(profile, "a@m b@m c@m d@m s:e s:f1 s:f2 s:f3 s:f4 s:f5 q1@libq q2@libq", 50);
	add(profile, "a@m b@m c@m d@m s:e s:g", 19);
	add(profile, "a@m b@m c@m d@m s:e s:h", 1);
	frames__view(profile, FRAMES_COLLAPSED, &view);
	check(output__tree, profile, &(struct output_opts) { 0 },
	      "100 samples\n"
	      "\n"
	      " Total%      Total       Self  Function\n"
	      "100.0%        100          0  4 frames common to all samples\n"
	      "100.0%        100          0  e\n"
	      " 50.0%         50          0    f1\n"
	      "                                  … 5 frames …\n"
	      " 50.0%         50         50        q2\n"
	      " 30.0%         30          0    v\n"
	      " 30.0%         30         30      w\n"
	      " 19.0%         19         19    g\n"
	      "  1.0%          1          1    h\n",
	      "a tree: the trunk and chains are elided");
	check(output__tree, view, &(struct output_opts) { .rows = 6 },
	      "100 samples\n"
	      "\n"
	      " Total%      Total       Self  Function\n"
	      "100.0%        100          0  a [m ×4]\n"
	      "100.0%        100          0    e\n"
	      " 50.0%         50          0      f1\n"
	      "                                    … 4 frames …\n"
	      " 50.0%         50         50          q1 [libq ×2]\n"
	      " 30.0%         30         30      libvm ×2\n"
	      "\n"
	      "2 more subtrees, with less than 0.1 % each or beyond --rows\n",
	      "collapsed, and as many rows as there may be");
	check(output__tree, view, &(struct output_opts) { .rows = 5, .colour = true },
	      "100 samples\n"
	      "\n"
	      " Total%      Total       Self  Function\n"
	      "100.0%        100          0  \033[33ma [m ×4]\033[m\n"
	      "                                \033[2m… 6 frames …\033[m\n"
	      " 50.0%         50         50      \033[33mq1 [libq ×2]\033[m\n"
	      "\n"
	      "3 more subtrees, with less than 0.1 % each or beyond --rows\n",
	      "in colours, one row less");
	profile__free(view);
	profile__inverted(profile, &view);
	check(output__tree, view, &(struct output_opts) { .inverted = true, .rows = 9 },
	      "100 samples\n"
	      "\n"
	      " Total%      Total  Function\n"
	      " 50.0%         50  q2\n"
	      " 50.0%         50    q1\n"
	      " 50.0%         50      f5\n"
	      "                         … 9 frames …\n"
	      " 30.0%         30  w\n"
	      " 30.0%         30    v\n"
	      " 30.0%         30      e\n"
	      "                         … 4 frames …\n"
	      "\n"
	      "2 more subtrees, with less than 0.1 % each or beyond --rows\n",
	      "inverted: the nearest callers");
	profile__free(view);
	profile__free(profile);
}

/* A tree with a fork at each of 200 levels stays within its column. */
static void check_deep_tree(void)
{
	struct profile *profile = new_profile();
	char stack[4000] = "", want[4000], *text = NULL;
	size_t size;
	FILE *out;

	for (int i = 0; i < 60; i++) {
		snprintf(stack + strlen(stack), sizeof(stack) - strlen(stack), "%ss:f%d",
			 i ? " " : "", i);
		add(profile, stack, 1);
	}
	out = open_memstream(&text, &size);
	output__tree(profile, &(struct output_opts) { 0 }, out);
	fclose(out);
	snprintf(want, sizeof(want), "%5.1f%% %10d %10d  %*sf59\n", 100.0 / 60, 1, 1, 2 * 59, "");
	ok(strstr(text, want), "a tree keeps its indentation");
	free(text);
	profile__free(profile);
}

static void check_tables(void)
{
	struct profile *profile = new_profile(), *view = NULL;

	profile__measures(profile, "wall", "ns");
	add(profile, "main@app s:f read@libc k:entry k:vfs_read", 1000);
	add(profile, "main@app s:f read@libc k:entry k:vfs_read", 1000);
	add(profile, "main@app s:f s:g", 500);
	add(profile, "main@app s:f s:g add@libvm", 700);
	add(profile, "main@app other@app", 300);
	profile->samples = 5;
	frames__view(profile, FRAMES_SCRIPT, &view);
	check(output__table, view, &(struct output_opts) { 0 },
	      "event wall: 3.50 us in 5 samples\n"
	      "\n"
	      " Self%       Self Total%      Total  Kind     Function\n"
	      " 57.1%    2.00 us  91.4%    3.20 us  script   f\n"
	      " 34.3%    1.20 us  34.3%    1.20 us  script   g\n"
	      "  8.6%     300 ns   8.6%     300 ns  native   other\n"
	      "  0.0%       0 ns   8.6%     300 ns  native   main\n",
	      "script frames: self is script self");
	check(output__table, profile,
	      &(struct output_opts) { .sort = OUTPUT_SORT_SAMPLES, .rows = 3 },
	      "event wall: 3.50 us in 5 samples\n"
	      "\n"
	      "Script%    Script  Self%       Self Total%      Total    Samples  Kind     "
	      "Function\n"
	      "  0.0%       0 ns   0.0%       0 ns 100.0%    3.50 us          5  native   main\n"
	      " 57.1%    2.00 us   0.0%       0 ns  91.4%    3.20 us          4  script   f\n"
	      "  0.0%       0 ns  57.1%    2.00 us  57.1%    2.00 us          2  kernel   "
	      "vfs_read\n"
	      "(5 more)\n"
	      "Script: a function's own weight, with the native code that it calls\n",
	      "by samples");
	check(output__table, profile, &(struct output_opts) { .sort = OUTPUT_SORT_NAME, .rows = 2 },
	      "event wall: 3.50 us in 5 samples\n"
	      "\n"
	      "Script%    Script  Self%       Self Total%      Total  Kind     Function\n"
	      "  0.0%       0 ns  20.0%     700 ns  20.0%     700 ns  native   add\n"
	      "  0.0%       0 ns   0.0%       0 ns  57.1%    2.00 us  kernel   entry\n"
	      "(6 more)\n"
	      "Script: a function's own weight, with the native code that it calls\n",
	      "by name");
	check(output__table, profile, &(struct output_opts) { .group = OUTPUT_LIBRARIES },
	      "event wall: 3.50 us in 5 samples\n"
	      "\n"
	      " Self%       Self Total%      Total  Kind     Library\n"
	      " 57.1%    2.00 us  57.1%    2.00 us  kernel   kernel\n"
	      " 20.0%     700 ns  20.0%     700 ns  native   libvm\n"
	      " 14.3%     500 ns  91.4%    3.20 us  script   script\n"
	      "  8.6%     300 ns 100.0%    3.50 us  native   app\n"
	      "  0.0%       0 ns  57.1%    2.00 us  native   libc\n",
	      "by library");
	check(output__table, profile, &(struct output_opts) { .group = OUTPUT_FILES, .rows = 2 },
	      "event wall: 3.50 us in 5 samples\n"
	      "\n"
	      "Script%    Script  Self%       Self Total%      Total  Kind     File\n"
	      " 91.4%    3.20 us  14.3%     500 ns  91.4%    3.20 us  script   [script]\n"
	      "  8.6%     300 ns   8.6%     300 ns 100.0%    3.50 us  native   [app]\n"
	      "(3 more)\n",
	      "by file");
	profile__free(view);
	profile__free(profile);
}

int main(void)
{
	check_runs();
	check_others();
	check_shares();
	check_libraries();
	check_tree();
	check_deep_tree();
	check_tables();
	return tap__done();
}
