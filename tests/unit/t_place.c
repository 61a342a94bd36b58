// SPDX-License-Identifier: GPL-2.0-or-later
/* The code at an address, in a simulated process with files of the test: its executable, and the
 * perf map that it writes. */
#include "core/target/place.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/kernel/spaces.h"
#include "core/target/compiled_code.h"
#include "tests/tap.h"

#define LOOP_RUNTIME  0 /* an interpreter: its loop is LOOP bytes of code */
#define OTHER_RUNTIME 1 /* another one, in the same image, without a loop there */
#define COMPILER      2 /* one that compiles to anonymous memory, and reports names */

#define LOOP_VADDR 0x1000
#define LOOP	   0x100
#define BIAS	   0x400000
#define GENERATED  0x900000 /* anonymous memory */
#define AT_ONCE	   1	    /* ns; earlier than any time of the clock */

static size_t loops(const struct runtime_image *image, const struct runtime_range **ret)
{
	static const struct runtime_range range = { LOOP_VADDR, LOOP_VADDR + LOOP };

	(void)image;
	*ret = &range;
	return 1;
}

static int detect(const struct elf_file *file)
{
	(void)file;
	return 1;
}

static bool label(const char *symbol, char *buf, size_t size, struct runtime_label *ret)
{
	(void)buf, (void)size;
	ret->symbol.function = symbol;
	return true;
}

static const struct runtime_files with_loop = { .loops = loops }, detected = { .detect = detect };
static const struct runtime_jit jit = { .code = "[code]", .label = label };
static const struct runtime looping = { .name = "loops", .files = &with_loop };
static const struct runtime other = { .name = "other" };
static const struct runtime compiler = { .name = "compiles", .files = &detected, .jit = &jit };
static const struct runtime *const list[] = { &looping, &other, &compiler, NULL };
static const struct runtime_set runtimes = { .list = list, .enabled = 7 };

static struct image one = {
	.runtimes = { [LOOP_RUNTIME].image = (void *)&one, [OTHER_RUNTIME].image = (void *)&one }
};
static struct image two;
static struct mapped mapped[4];
static struct space space;
static struct process process;
static struct jit_sources *sources;
static char map_path[64];

static void begin(void)
{
	process__forget_code(&process);
	space = (struct space) {};
	mapped[0] = (struct mapped) {
		.start = BIAS, .end = BIAS + 0x10000, .bias = BIAS, .image = &one, .path = "/one"
	};
	mapped[1] = (struct mapped) {
		.start = GENERATED, .end = GENERATED + 0x10000, .bias = GENERATED, .path = ""
	};
	mapped[2] = (struct mapped) { .start = 0xa00000, .end = 0xa10000, .path = "/memfd:code" };
	mapped[3] = (struct mapped) { .start = 0xb00000, .end = 0xb10000, .path = "/unreadable" };
	process = (struct process) { .runtimes = &runtimes,
				     .space = &space,
				     .mapped = mapped,
				     .n_mapped = ARRAY_SIZE(mapped),
				     .jit_sources = sources,
				     .changed_ns = 1 };
	if (procfs__info(getpid(), &process.info, NULL))
		exit(1);
	process.pid = process.info.pid;
	unlink(map_path);
}

static struct place at_time(uint64_t address, uint64_t time_ns)
{
	const struct place *place;

	if (place__at(&process, address, time_ns, &place))
		exit(1);
	return *place;
}

static struct place at(uint64_t address)
{
	return at_time(address, AT_ONCE);
}

static void test_kinds(void)
{
	static const struct {
		uint64_t address;
		enum place_kind kind;
		uint32_t loops;
		const char *name;
	} cases[] = {
		{ BIAS + LOOP_VADDR - 1, PLACE_IMAGE, 0, "the byte before the loop" },
		{ BIAS + LOOP_VADDR, PLACE_IMAGE, 1 << LOOP_RUNTIME, "the loop's first byte" },
		{ BIAS + LOOP_VADDR + LOOP - 1, PLACE_IMAGE, 1 << LOOP_RUNTIME, "its last" },
		{ BIAS + LOOP_VADDR + LOOP, PLACE_IMAGE, 0, "the byte behind it" },
		{ GENERATED + 0x10, PLACE_ANONYMOUS, 0, "anonymous memory" },
		{ 0xa00010, PLACE_ANONYMOUS, 0, "memory without a file, though with a path" },
		{ 0xb00010, PLACE_UNKNOWN, 0, "a file that could not be read" },
		{ 0xc00010, PLACE_UNKNOWN, 0, "nothing" },
	};

	begin();
	is_int(places__epoch(&process), 0, "nobody has asked");
	for (size_t again = 0; again < 2; again++)
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			struct place place = at(cases[i].address);

			is_int(place.kind, cases[i].kind, "%s", cases[i].name);
			is_int(place.loops, cases[i].loops, "... its loops");
			is_int(place.number, i + 1, "... its number");
			is_int(place.address, cases[i].address, "... its address");
			is_int(place.compiler, -1, "... of no compiler");
		}
	is_int(at(BIAS + 0x10).vaddr, 0x10, "link-time address");
	ok(at(BIAS + 0x10).image == &one, "image");
	is_int(at(BIAS + 0x10).runtimes, 1 << LOOP_RUNTIME | 1 << OTHER_RUNTIME, "its runtimes");
	is_int(places__count(&process), ARRAY_SIZE(cases) + 1, "one number for each");
	is_int(places__epoch(&process), 1, "in the first epoch");
}

static void test_changed_mappings(void)
{
	struct place first, second;

	begin();
	first = at(BIAS + LOOP_VADDR);
	second = at(BIAS + 0x20);
	process.changed_ns = 2;
	is_int(at(BIAS + LOOP_VADDR).number, first.number, "what is mapped as before is the same");
	at(BIAS + 0x20);
	mapped[0].image = &two;
	is_int(at(BIAS + 0x20).number, second.number, "what is known holds until a change");
	process.changed_ns = 3;
	ok(at(BIAS + 0x20).number == 3 && at(BIAS + 0x20).image == &two, "another image");
	is_int(at(BIAS + LOOP_VADDR).loops, 0, "which has no loop there");
	process.n_mapped = 0;
	process.changed_ns = 4;
	is_int(at(BIAS + 0x20).kind, PLACE_UNKNOWN, "nothing is mapped any more");
	is_int(place__numbered(&process, second.number)->vaddr, 0x20,
	       "the number stands for what was there");
	is_int(at(GENERATED).generation, 0, "what is met for the first time");
	ok(at(BIAS + 0x20).generation > 0, "what is not: no code that was recorded before");
}

static void test_compiler(void)
{
	uint32_t number;

	begin();
	number = at(GENERATED + 0x10).number;
	at(0xa00010);
	space.attached = 1 << COMPILER;
	is_int(place__numbered(&process, number)->compiler, COMPILER, "attached: seen by number");
	is_int(at(GENERATED + 0x10).kind, PLACE_COMPILED, "memory that a compiler has");
	is_int(at(GENERATED + 0x10).number, number, "is the same place");
	is_int(at(0xa00010).kind, PLACE_ANONYMOUS, "a compiler has no memory with a path");
	process.attached = space.attached;
	process.space = NULL;
	is_int(at(GENERATED + 0x10).compiler, COMPILER,
	       "the same in the last samples of a process");
}

__attribute__((format(printf, 2, 3))) static void write_map(const char *mode, const char *fmt, ...)
{
	FILE *file = fopen(map_path, mode);
	va_list args;

	va_start(args, fmt);
	if (!file || vfprintf(file, fmt, args) < 0 || fclose(file))
		exit(1);
	va_end(args);
}

static const char *name_of(uint32_t number)
{
	static struct jit_symbol symbol;

	return place__symbol(&process, number, &symbol) ? symbol.name : "";
}

/* Each sample is taken now, so that the map is read up to it. */
static void test_map(void)
{
	struct place old, new;
	struct err err;

	begin();
	space.attached = 1 << COMPILER;
	mapped[2].path = ""; /* both belong to the compiler */
	old = at_time(GENERATED + 0x10, now_ns());
	is_str(name_of(old.number), "", "no map yet");
	write_map("w", "%x 100 first\n", GENERATED);
	compiled_code__read(&process, JIT_LOOK_FILES);
	new = at_time(GENERATED + 0x10, now_ns());
	is_int(new.number, old.number, "to become known is no change");
	is_str(name_of(new.number), "first", "its name");
	compiled_code__read(&process, JIT_LOOK_ALL);
	write_map("a", "%x 100 second\n", GENERATED);
	new = at_time(GENERATED + 0x10, now_ns());
	is_int(new.number, old.number + 1, "other code is another place");
	is_int(new.generation, old.generation + 1, "of the next generation");
	is_str(name_of(new.number), "second", "with its own name");
	is_str(name_of(old.number), "first", "as the old one has");
	unlink(map_path);
	write_map("w", "%x 100 second\n", GENERATED);
	compiled_code__read(&process, JIT_LOOK_FILES);
	is_int(at_time(GENERATED + 0x10, now_ns()).number, new.number,
	       "a map that was written anew, and says the same");
	unlink(map_path);
	write_map("w", "%x 100 third\n", GENERATED);
	compiled_code__read(&process, JIT_LOOK_FILES);
	is_int(at_time(GENERATED + 0x10, now_ns()).number, new.number + 1,
	       "... and something else");
	ok(!compiled_code__refusal(&process, &err), "nothing was refused");
	process.runtimes = &(struct runtime_set) { .list = list };
	process__forget_code(&process);
	is_str(name_of(at_time(GENERATED + 0x10, now_ns()).number), "", "a map that nobody wants");
}

/* Only the map shows that this is compiled code; the memory belongs to no compiler. */
static void test_named_by_map(void)
{
	begin();
	space.attached = 1 << COMPILER;
	write_map("w", "%x 100 elsewhere\n", 0xb00000);
	is_int(at_time(0xb00010, now_ns()).kind, PLACE_COMPILED, "by the map alone");
	is_int(at_time(0xb00010, now_ns()).compiler, -1, "in no compiler's memory");
	is_int(at_time(0xb00210, now_ns()).kind, PLACE_UNKNOWN, "what the map does not have");
	write_map("a", "%x 100 in the image\n", BIAS);
	compiled_code__read(&process, JIT_LOOK_ALL);
	is_int(at_time(BIAS + 0x10, now_ns()).kind, PLACE_IMAGE, "an image's code is its own");
}

static void test_bounds(void)
{
	uint32_t before, n;

	begin();
	before = at(GENERATED).generation;
	for (n = 1; n < PLACES_MAX; n++)
		at(BIAS + n);
	is_int(places__count(&process), PLACES_MAX, "as many as are remembered");
	is_int(at(GENERATED).number, 1, "all of them are");
	is_int(at(BIAS + n).number, 1, "with one more it begins anew");
	is_int(places__epoch(&process), 2, "in another epoch");
	ok(at(GENERATED).generation > before, "where no code is taken for that of the one before");
}

/* This function, in the real process. */
static void test_function(void)
{
	static const struct runtime *const none[] = { NULL };
	const struct images_opts opts = { .files_fd = -1, .runtimes = none };
	uint64_t here = (uintptr_t)test_function;
	struct procfs_mappings mappings;
	struct images *images;
	struct place place;

	begin();
	if (images__new(&opts, &images) || procfs__mappings(getpid(), &mappings))
		exit(1);
	process.n_mapped = 1;
	for (size_t i = 0; i < mappings.n; i++) {
		const struct procfs_mapping *from = &mappings.list[i];

		if (here < from->start || here >= from->end)
			continue;
		mapped[0] = (struct mapped) { .start = from->start, .end = from->end, .path = "" };
		images__get(images, getpid(), from, &mapped[0].image, NULL);
		mapped[0].bias = image__bias(mapped[0].image, from);
	}
	place = at(here + 1);
	ok(place.image && place__function(&process, place.number) == here, "where it begins");
	ok(place__function(&process, at(here + 1).number) == here, "the second time");
	is_int(place__function(&process, at(0x10).number), 0, "code without an image");
	process__forget_code(&process);
	procfs_mappings__done(&mappings);
	images__free(images);
}

static void remove_map(void)
{
	unlink(map_path);
}

int main(void)
{
	snprintf(map_path, sizeof(map_path), "/tmp/perf-%d.map", getpid());
	atexit(remove_map);
	sources = jit_sources__new();
	test_kinds();
	test_changed_mappings();
	test_compiler();
	test_map();
	test_named_by_map();
	test_bounds();
	test_function();
	process__forget_code(&process);
	jit_sources__free(sources);
	return tap__done();
}
