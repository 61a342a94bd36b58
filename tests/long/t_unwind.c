// SPDX-License-Identifier: GPL-2.0-or-later
/* Runs the kernel half's unwinder on the native fixtures, stopped at any point: it finds the same
 * frames as libunwind and as libdwfl.
 *
 * t_unwind COMMAND...: checks a command instead, after it has written its first line. */
#include "tests/long/live.h"

#include "core/target/procfs.h"
#include "core/unwind/unwind_table.h"

#include "tests/unit/tables.h"

#define SNAPSHOTS  40
#define STEPS	   37	 /* instructions between two snapshots */
#define RUN_US	   10000 /* us that a command runs before these */
#define IMAGES_MAX 64

static const struct fixture {
	const char *name;
	const char *argument; /* argument after the seconds */
	bool cut;	      /* libunwind's copy ends with the stack of the handler */
} fixtures[] = {
	{ .name = "shares" },
	{ .name = "recurse", .argument = "60" },
	{ .name = "static", .argument = "5" },
	{ .name = "nopie", .argument = "5" },
	{ .name = "debugframe", .argument = "5" },
	{ .name = "threads" },
	{ .name = "signal" },
	{ .name = "signal", .argument = "altstack", .cut = true },
	{ .name = "syscalls" },
	{ .name = "vdso" },
	{ .name = "dlopen" },
	{ .name = "jitcode" },
	{ .name = "realign" },
	{ .name = "cxx" },
};

/* --- tables, once per file --- */

static struct image {
	char *path;
	struct unwind_table table;
	uint32_t base;
} images[IMAGES_MAX];
static size_t n_images;

static const struct image *image__get(const struct elf_file *file)
{
	static uint32_t used;
	struct image *image;
	uint32_t boundary;

	for (size_t i = 0; i < n_images; i++)
		if (strcmp(images[i].path, file->path) == 0)
			return &images[i];
	image = &images[n_images];
	if (n_images == IMAGES_MAX || unwind_table__build(file, &image->table, NULL) != 0)
		return NULL;
	n_images++;
	image->path = strdup(file->path);
	/* Each table contains the end of a chunk, each at another place. */
	boundary = (used + image->table.n_words + CHUNK_WORDS) & ~(CHUNK_WORDS - 1);
	image->base = boundary - image->table.n_words * (n_images % 7 + 1) / 9;
	image->base &= ~(UNWIND_RULE_WORDS - 1U);
	sampler__put_words(image->base, image->table.words, image->table.n_words);
	used = image->base + image->table.n_words;
	return image;
}

static void free_images(void)
{
	for (size_t i = 0; i < n_images; i++) {
		unwind_table__done(&images[i].table);
		free(images[i].path);
	}
}

/* Writes the mappings into the inactive list, as user space does. */
static bool publish_mappings(struct target *target)
{
	struct mappings_rec *shared = sampler__mappings();
	struct mapping_list *list = &shared->lists[!shared->active];
	struct procfs_mappings maps = { 0 };
	const struct elf_file *file;
	const struct image *image;
	uint64_t bias;

	if (procfs__mappings(target->pid, &maps) != 0 || maps.n > MAPPINGS_MAX)
		return false;
	for (list->n = 0; list->n < maps.n; list->n++) {
		const struct procfs_mapping *map = &maps.list[list->n];
		struct mapping_rec *rec = &list->mappings[list->n];

		*rec = (struct mapping_rec) { .start = map->start, .end = map->end };
		file = target__find_image(target, map->start, &bias);
		image = file ? image__get(file) : NULL;
		if (!image)
			continue;
		rec->bias = bias;
		rec->vaddr_start = image->table.vaddr_start;
		rec->n_pages = image->table.n_pages;
		rec->base = image->base;
		rec->rules_at = image->table.rules_at;
		rec->rows_at = image->table.rows_at;
	}
	shared->active = !shared->active;
	procfs_mappings__done(&maps);
	return true;
}

/* --- snapshots --- */

static void take_sample(struct stack *ret)
{
	const struct rec_sample *sample = &host.sample.head;

	memset(ret, 0, sizeof(*ret));
	for (; ret->n < sample->n_native; ret->n++) {
		ret->frames[ret->n] = (struct unwind_copy_frame) {
			.ip = NATIVE_ADDRESS(sample__ip(ret->n)),
			.exact = sample__ip(ret->n) & NATIVE_EXACT,
			.cfa = sample__cfa(ret->n),
		};
	}
	ret->complete = sample->flags & SAMPLE_COMPLETE && !sample->stop;
}

/* Compares the details of frames. libunwind gives no CFA of the outermost frame. */
static bool same_details(const struct stack *got, const struct stack *want)
{
	for (int i = 0; i < want->n && i < got->n; i++) {
		const struct unwind_copy_frame *a = &got->frames[i], *b = &want->frames[i];

		if (a->exact == b->exact && (a->cfa == b->cfa || !b->cfa))
			continue;
		tap__diag("frame %d at %#" PRIx64 ": exact %d, want %d; CFA %#" PRIx64
			  ", want %#" PRIx64,
			  i, a->ip, a->exact, b->exact, a->cfa, b->cfa);
		return false;
	}
	return true;
}

static bool check_snapshot(const struct fixture *fixture, pid_t pid)
{
	static struct stack got, from_copy, from_libdwfl;
	struct memory *memory = NULL;
	struct target target;
	bool good = false;

	if (!target__open(&target, pid) || !publish_mappings(&target) ||
	    memory__of_process(pid, &memory))
		goto out;
	target__snapshot(&target, 0);
	target__unwind(&target, &from_copy);
	target__unwind_with_libdwfl(&target, &from_libdwfl);
	host.memory = memory;
	sampler__run(target.input.regs);
	host.memory = NULL;
	take_sample(&got);
	good = got.complete && (stack__same(&got, &from_copy) || fixture->cut) &&
	       stack__count_equal(&got, &from_copy) == from_copy.n &&
	       same_details(&got, &from_copy);
	if (!good)
		target__show_difference(&target, &got, &from_copy);
	/* libdwfl sometimes ends inside the dynamic linker. */
	if (stack__count_equal(&got, &from_libdwfl) < from_libdwfl.n) {
		target__show_difference(&target, &got, &from_libdwfl);
		good = false;
	}
	if (!good)
		tap__diag("stop %d", host.sample.head.stop);
out:
	memory__free(memory);
	target__close(&target);
	return good;
}

/* Returns false if the process has ended, or a stack is wrong. */
static bool check_snapshots(const struct fixture *fixture, pid_t pid, unsigned run_us)
{
	for (int n = 0; n < SNAPSHOTS; n++) {
		ptrace(PTRACE_CONT, pid, NULL, NULL);
		usleep(run_us);
		if (!live__stop(pid) || !live__step(pid, STEPS) || !check_snapshot(fixture, pid)) {
			tap__diag("snapshot %d of %d", n + 1, SNAPSHOTS);
			return false;
		}
	}
	return true;
}

static void test_command(char **argv)
{
	static const struct fixture fixture = {};
	pid_t pid = live__start(argv[0], argv);

	if (!ok(pid > 0 && live__stop(pid), "%s runs", argv[0]))
		return;
	ok(check_snapshots(&fixture, pid, RUN_US), "%s: all stacks are right", argv[0]);
	live__end(pid);
}

static void test_fixture(const struct fixture *fixture)
{
	const char *output = getenv("OUTPUT");
	char *argv[] = { (char *)fixture->name, "0", (char *)fixture->argument, NULL };
	char path[4096];
	pid_t pid;

	snprintf(path, sizeof(path), "%s/fixtures/native/%s", output ? output : "build",
		 fixture->name);
	pid = live__start(path, argv);
	if (!ok(pid > 0 && live__stop(pid), "%s runs", fixture->name))
		return;
	ok(check_snapshots(fixture, pid, 0), "%s %s: all stacks are right", fixture->name,
	   fixture->argument ? fixture->argument : "");
	live__end(pid);
}

int main(int argc, char **argv)
{
	sampler__open();
	if (argc > 1)
		test_command(argv + 1);
	for (size_t i = 0; argc == 1 && i < ARRAY_SIZE(fixtures); i++)
		test_fixture(&fixtures[i]);
	free_images();
	sampler__close();
	return tap__done();
}
