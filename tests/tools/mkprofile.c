// SPDX-License-Identifier: GPL-2.0-or-later
/* mkprofile SHAPE FORMAT [FRAMES]: writes a made-up profile to stdout, the same at each run. FRAMES
 * (default: all) selects its frames; for a page, the frames that it shows at first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/out/output.h"

static uint64_t seed = 1;

static uint32_t random_below(uint32_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (seed >> 33) % n;
}

static uint32_t frame_of(struct profile *profile, uint8_t kind, const char *name, const char *file,
			 uint32_t line)
{
	uint32_t frame;

	if (profile__frame(profile, kind, name, file, line, &frame))
		abort();
	return frame;
}

static void add_stack(struct profile *profile, const uint32_t *frames, size_t n, uint64_t weight)
{
	if (profile__add(profile, frames, n, weight))
		abort();
}

static void make_empty(struct profile *profile)
{
	(void)profile;
}

static void make_zero(struct profile *profile)
{
	uint32_t frame = frame_of(profile, KIND_NATIVE, "main", NULL, 0);

	add_stack(profile, &frame, 1, 0);
}

/* Makes 1,000 samples with recursion: "fib" is in 700 of them, up to three times. */
static void make_small(struct profile *profile)
{
	int python = profile__kind(profile, "python", "_[py]");
	uint32_t start = frame_of(profile, KIND_NATIVE, "_start", NULL, 0);
	uint32_t main_py = frame_of(profile, python, "<module>", "/srv/app/main.py", 0);
	uint32_t fib = frame_of(profile, python, "fib", "/srv/app/math.py", 12);
	uint32_t load = frame_of(profile, python, "Loader.load", "/srv/app/load.py", 3);
	uint32_t parse = frame_of(profile, KIND_NATIVE, "parse_value", "/src/parse.c", 99);
	uint32_t skip = frame_of(profile, KIND_INLINED, "skip_space", "/src/parse.c", 12);
	uint32_t sys_read = frame_of(profile, KIND_KERNEL, "ksys_read", NULL, 0);
	uint32_t copy = frame_of(profile, KIND_KERNEL, "copy_to_user", NULL, 0);

	add_stack(profile, (uint32_t[]) { start, main_py, load, sys_read, copy }, 5, 80);
	add_stack(profile, (uint32_t[]) { start, main_py, load, sys_read }, 4, 20);
	add_stack(profile, (uint32_t[]) { start, main_py, load, parse }, 4, 120);
	add_stack(profile, (uint32_t[]) { start, main_py, load, parse, skip }, 5, 60);
	add_stack(profile, (uint32_t[]) { start, main_py, fib }, 3, 100);
	add_stack(profile, (uint32_t[]) { start, main_py, fib, fib }, 4, 200);
	add_stack(profile, (uint32_t[]) { start, main_py, fib, fib, fib }, 5, 400);
	add_stack(profile, (uint32_t[]) { start, main_py }, 2, 20);
	profile__add_loss(profile, "ring buffer full", 12);
	profile__add_loss(profile, "stacks cut", 3);
}

/* Makes about 50,000 distinct stacks, of 15 to 35 frames, and eight runtimes. */
static void make_wide(struct profile *profile)
{
	uint32_t frames[3000], stack[40], depth, i, n;
	char name[64], file[64];

	for (i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "runtime%u", i);
		profile__kind(profile, name, "_[r]");
	}
	for (i = 0; i < ARRAY_SIZE(frames); i++) {
		snprintf(name, sizeof(name), "module%u::function_%u", i % 37, i);
		snprintf(file, sizeof(file), "/usr/lib/app/module%u.src", i % 37);
		frames[i] = frame_of(profile, i % 11, name, file, 0);
	}
	for (n = 0; n < 50000; n++) {
		depth = 15 + random_below(21);
		/* few branches near the root, many at the leaves */
		for (i = 0; i < depth; i++)
			stack[i] = frames[(i * 71 + random_below(i < 8		 ? 2
								 : i + 4 < depth ? 1 + (i % 5 == 0)
										 : 40)) %
					  ARRAY_SIZE(frames)];
		add_stack(profile, stack, depth, 1 + random_below(3));
	}
}

static void make_deep(struct profile *profile)
{
	int ruby = profile__kind(profile, "ruby", "_[rb]");
	uint32_t stack[1500], i;
	char name[64];

	for (i = 0; i < ARRAY_SIZE(stack); i++) {
		snprintf(name, sizeof(name), "Level#step_%u", i + 1);
		stack[i] = frame_of(profile, i % 4 ? ruby : KIND_NATIVE, name, "level.rb", 0);
		add_stack(profile, stack, i + 1, 1);
	}
	add_stack(profile, stack, ARRAY_SIZE(stack), 500);
}

/* Makes functions with names that might break a page; each evil sets window.pwned if it runs. */
static void make_hostile(struct profile *profile)
{
	static const char *const evils[] = {
		"<script>window.pwned=1</script>",
		"\"]]></script><!--<script>window.pwned=2</script>",
		"</style></title></svg><img src=x onerror=\"window.pwned=3\">",
		"]]></script><script>window.pwned=4</script>",
		"<!-- <script> \\u003cscript\\u003e",
		"a\nb\tc\rd",
		"line\xe2\x80\xa8separator\xe2\x80\xa9paragraph",
		"\xff\xfe\xc0\xaf invalid \xed\xa0\x80 utf-8 \xf4\x90\x80\x80 \xe2\x82",
		"\"+(window.pwned=5)+\"",
		"'+(window.pwned=6)+'",
		"${window.pwned=7}",
		"esc\x1b[31mape;semi\x07",
		"rtl \xe2\x80\xae override",
		"wide \xe6\xbc\xa2\xe5\xad\x97\xf0\x9f\x94\xa5",
		"__proto__",
		"constructor",
		"\xef\xbf\xbe noncharacter",
	};
	int kind = profile__kind(profile, "<b onclick=window.pwned=8>", "_<k>");
	char *big = calloc(1, 10241);
	uint32_t stack[ARRAY_SIZE(evils) + 1];
	size_t i;

	if (!big)
		abort();
	memset(big, '<', 10240);
	for (i = 0; i < ARRAY_SIZE(evils); i++) {
		stack[i] = frame_of(profile, kind, evils[i], evils[(i + 1) % ARRAY_SIZE(evils)], 7);
		add_stack(profile, stack, i + 1, 50);
		add_stack(profile, &stack[i], 1, 50);
		profile__add_loss(profile, evils[i], i + 1);
	}
	stack[i] = frame_of(profile, KIND_NATIVE, big, big, 1);
	add_stack(profile, stack, i + 1, 500);
	free(profile->target);
	profile->target = strdup("</title><script>window.pwned=9</script>]]>&amp;\"'\xff");
	free(big);
}

/* Makes the small profile with times: a sample is 1.23 ms, and each stack has 21,891 calls. */
static void make_times(struct profile *profile)
{
	size_t i;

	make_small(profile);
	profile->unit = PROFILE_NANOSECONDS;
	profile->counts_calls = true;
	profile->total *= 1230000;
	for (i = 0; i < profile->n_nodes; i++) {
		profile->nodes[i].self *= 1230000;
		profile->nodes[i].calls = profile->nodes[i].self ? 21891 : 0;
	}
}

/* Makes the small profile for another event. The value of a sample is @value. */
static void make_event(struct profile *profile, const char *unit, uint64_t value)
{
	make_small(profile);
	profile__measures(profile, "page <faults>", unit);
	profile->frequency_hz = 0;
	profile->samples = profile->total;
	profile->total *= value;
	for (size_t i = 0; i < profile->n_nodes; i++) {
		profile->nodes[i].samples = profile->nodes[i].self;
		profile->nodes[i].self *= value;
	}
}

static void make_bytes(struct profile *profile)
{
	make_event(profile, "bytes", 1536);
}

static void make_odd(struct profile *profile)
{
	make_event(profile, "<furlongs>", 10);
}

/* Makes the small profile as the whole life of threads. Frames that read wait, fib is preempted for
 * a tenth, and all stacks are below a state. */
static void make_wall(struct profile *profile)
{
	make_event(profile, "ns", 1000000);
	profile__kind(profile, "state", "");
	profile->group_kind = profile->n_kinds - 1;
	profile->frames[0].kind = profile->group_kind; /* _start */
	for (size_t i = 1; i < profile->n_nodes; i++) {
		struct profile_node *node = &profile->nodes[i];
		const struct profile_frame *frame = &profile->frames[node->frame];

		if (frame->kind == KIND_KERNEL)
			node->waiting = node->self;
		else if (!strcmp(strtab__get(profile->strings, frame->name), "fib"))
			node->preempted = node->self / 10;
		profile->waiting += node->waiting;
		profile->preempted += node->preempted;
	}
	profile->idle.weight = 2 * profile->total;
	profile->idle.whole = 3 * profile->total;
	profile->idle.threads = 8;
}

static uint32_t code_of(struct profile *profile, uint8_t kind, const char *name,
			const char *library)
{
	uint32_t frame;

	if (profile__code(profile, kind, name, NULL, 0, library, &frame))
		abort();
	return frame;
}

/* Makes stacks with frames of a runtime, an interpreter, libraries, inlined ones, the kernel and
 * labels. They are in any order, in runs of all lengths. */
static void make_mixed(struct profile *profile)
{
	static const char *const callers[] = { "call_c*", NULL };
	static const char *const libraries[] = { "libvm", "libvm", "libvm", "libq", "libc", "" };
	int script = profile__kind(profile, "script", "_[s]");
	int label = profile__label_kind(profile, "waker");
	uint32_t frames[64], stack[40], n = 0, depth, at, i;
	char name[64];

	profile->callers = callers;
	profile__interpreter(profile, "libvm");
	for (i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "%s%u", i % 9 ? "native" : "call_c", i);
		frames[n++] = code_of(profile, i % 7 ? KIND_NATIVE : KIND_INLINED, name,
				      libraries[i / 3 % ARRAY_SIZE(libraries)]);
	}
	for (i = 0; i < 9; i++) {
		snprintf(name, sizeof(name), "%s%u", i % 3 ? "kernel" : "__x64_sys_", i);
		frames[n++] = code_of(profile, KIND_KERNEL, name, "kernel");
	}
	for (i = 0; i < 13; i++) {
		snprintf(name, sizeof(name), "%s%u", i ? "script" : "woken by ", i);
		frames[n++] = frame_of(profile, i ? script : label, name, NULL, 0);
	}
	for (i = 0; i < 4000; i++) {
		depth = random_below(ARRAY_SIZE(stack));
		for (at = 0, n = 0; at < depth; at++) {
			/* three neighbours are of one library: runs */
			n = random_below(3) ? n / 3 * 3 + random_below(3) : random_below(62);
			stack[at] = frames[min_of(n, 61U)];
		}
		add_stack(profile, stack, depth, 1 + random_below(9));
	}
}

/* Makes a server: frames that all samples have in common, then a fork, with native code in runs. */
static void make_server(struct profile *profile)
{
	int script = profile__kind(profile, "script", "_[s]");
	uint32_t stack[9], n = 0, add, malloc_, render, query, step, exec, sys, enter;

	profile__interpreter(profile, "libvm");
	stack[n++] = code_of(profile, KIND_NATIVE, "_start", "app");
	stack[n++] = frame_of(profile, script, "<main>", "/srv/app.s", 0);
	stack[n++] = code_of(profile, KIND_NATIVE, "vm_call", "libvm");
	stack[n++] = frame_of(profile, script, "serve", "/srv/app.s", 0);
	stack[n++] = frame_of(profile, script, "request", "/srv/app.s", 0);
	render = frame_of(profile, script, "render", "/srv/app.s", 0);
	query = frame_of(profile, script, "query", "/srv/app.s", 0);
	add = code_of(profile, KIND_NATIVE, "vm_add", "libvm");
	malloc_ = code_of(profile, KIND_NATIVE, "vm_malloc", "libvm");
	step = code_of(profile, KIND_NATIVE, "sql_step", "libsql");
	exec = code_of(profile, KIND_NATIVE, "sql_exec", "libsql");
	enter = code_of(profile, KIND_KERNEL, "entry_SYSCALL_64", "kernel");
	sys = code_of(profile, KIND_KERNEL, "__x64_sys_pread64", "kernel");
	stack[n] = render;
	add_stack(profile, stack, n + 1, 100);
	stack[n + 1] = add;
	add_stack(profile, stack, n + 2, 200);
	stack[n + 2] = malloc_;
	add_stack(profile, stack, n + 3, 300);
	stack[n] = query;
	stack[n + 1] = step;
	stack[n + 2] = exec;
	add_stack(profile, stack, n + 3, 350);
	stack[n + 2] = enter;
	stack[n + 3] = sys;
	add_stack(profile, stack, n + 4, 50);
}

static void add_cell(struct profile *profile, uint32_t column, uint32_t thread, uint32_t node,
		     uint8_t state, uint64_t weight)
{
	const struct profile_cell cell = { column, thread, node, state, weight };

	if (profile__add_cell(profile, &cell))
		abort();
}

/* Makes the small profile over 10 s, in 100 columns: a worker in fib for the first 5 s, then one in
 * load. A thread of another process reads all the time. */
static void make_moments(struct profile *profile)
{
	uint32_t thread, i;

	make_small(profile);
	if (profile__add_thread(
		    profile,
		    &(struct profile_thread_of) {
			    .pid = 4711, .tid = 4712, .process = "python3", .name = "worker-1" },
		    &thread) ||
	    profile__add_thread(
		    profile,
		    &(struct profile_thread_of) {
			    .pid = 4711, .tid = 4713, .process = "python3", .name = "<b>worker-2" },
		    &thread) ||
	    profile__add_thread(
		    profile,
		    &(struct profile_thread_of) {
			    .pid = 4800, .tid = 4800, .process = "reader", .name = "reader" },
		    &thread))
		abort();
	profile->n_columns = 100;
	profile->column_ns = 100000000;
	for (i = 1; i < profile->n_nodes; i++) {
		const struct profile_node *node = &profile->nodes[i];
		const char *name = strtab__get(profile->strings, profile->frames[node->frame].name);
		bool fib = !strcmp(name, "fib"), parse = !strcmp(name, "parse_value");

		if (fib || !node->self)
			add_cell(profile, fib ? 5 * i : 0, 0, i, PROFILE_RUNNING, node->self);
		else if (parse || !strcmp(name, "skip_space"))
			add_cell(profile, 60 + i, 1, i, PROFILE_RUNNING, node->self);
		else
			add_cell(profile, 90, 2, i, PROFILE_LOCKED, node->self);
	}
	for (i = 0; i < profile->n_cells;)
		if (profile->cells[i].weight)
			i++;
		else
			profile->cells[i] = profile->cells[--profile->n_cells];
	profile__finish_cells(profile, PROFILE_CELLS_MAX);
}

/* Makes 200,000 distinct stacks on 200 paths through a program, a tenth of which are 1,000 frames
 * deep. */
static void make_huge(struct profile *profile)
{
	enum { WAYS = 200, DEPTH = 1000, ENDS = 4 };
	int script = profile__kind(profile, "script", "_[s]");
	uint32_t frames[5000], stack[DEPTH], way, depth, i, n;
	char name[64];

	for (i = 0; i < ARRAY_SIZE(frames); i++) {
		snprintf(name, sizeof(name), "module%u::function_%u", i % 37, i);
		frames[i] = frame_of(profile, i % 3 ? script : KIND_NATIVE, name,
				     i % 3 ? "/srv/app.s" : NULL, 0);
	}
	for (n = 0; n < 200000; n++) {
		way = n % WAYS;
		depth = way % 10 ? 20 + way % 60 : DEPTH;
		for (i = 0; i < depth - ENDS; i++) /* neighbours part late */
			stack[i] =
				frames[(i * 71 + (i < 4 ? 0 : way * i / 8)) % ARRAY_SIZE(frames)];
		for (; i < depth; i++)
			stack[i] = frames[random_below(ARRAY_SIZE(frames))];
		add_stack(profile, stack, depth, 1 + random_below(3));
	}
}

static const struct {
	const char *name;
	void (*make)(struct profile *profile);
} shapes[] = {
	{ "empty", make_empty },     { "zero", make_zero },   { "small", make_small },
	{ "wide", make_wide },	     { "deep", make_deep },   { "hostile", make_hostile },
	{ "times", make_times },     { "bytes", make_bytes }, { "odd", make_odd },
	{ "wall", make_wall },	     { "mixed", make_mixed }, { "server", make_server },
	{ "moments", make_moments }, { "huge", make_huge },
};

static const struct {
	const char *name;
	int (*write)(const struct profile *profile, const struct output_opts *opts, FILE *out);
} pages[] = {
	/* contain all frames, also hidden ones */
	{ "html", output__flame_html },
	{ "svg", output__flame_svg },
};

/* Adds another event, and a file. */
static void add_more(struct output_opts *opts)
{
	static const struct output_source source = {
		(char *)"/src/parse.c", 97,
		(char *)"int parse(void)\n{\n\treturn skip(\"<b>\");\n}", false
	};
	static struct profile *others[1];

	others[0] = profile__new();
	if (!others[0])
		abort();
	make_bytes(others[0]);
	opts->others = others;
	opts->n_others = 1;
	opts->sources = &source;
	opts->n_sources = 1;
	opts->joins_lines = true;
}

int main(int argc, char **argv)
{
	struct profile *profile = profile__new(), *view;
	struct output_opts opts = { 0 };
	const struct output_format *format;
	size_t i;
	int err = -1;

	if (!profile || argc < 3)
		return 2;
	opts.frames = argc > 3 ? frames__find(argv[3]) : FRAMES_ALL;
	if (opts.frames == FRAMES_N)
		return 2;
	profile->target = strdup("pid 4711 (python3 app.py)");
	profile->duration_s = 10;
	profile->frequency_hz = 99;
	for (i = 0; i < ARRAY_SIZE(shapes); i++)
		if (!strcmp(shapes[i].name, argv[1]))
			shapes[i].make(profile);
	if (frames__view(profile, opts.frames, &view))
		return 1;
	format = output__find_format(argv[2]);
	if (format)
		err = format->write(view, &opts, stdout);
	if (!strcmp(argv[1], "moments"))
		add_more(&opts);
	for (i = 0; i < ARRAY_SIZE(pages); i++)
		if (!strcmp(pages[i].name, argv[2]))
			err = pages[i].write(profile, &opts, stdout);
	for (i = 0; i < opts.n_others; i++)
		profile__free(opts.others[i]);
	profile__free(profile);
	profile__free(view);
	return err ? 1 : 0;
}
