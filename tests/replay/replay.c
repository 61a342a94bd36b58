// SPDX-License-Identifier: GPL-2.0-or-later
/* Replays bundles of the corpus: replay [--accept] BUNDLE...
 *
 * Each case is a check: the recorded instant goes through all of braid (pipeline.h), and the
 * resulting stack must be the expected one, frame by frame. A case that reads data that were not
 * recorded fails with "record again", regardless of its result. --accept checks the sections of the
 * program and of libdwfl, then writes the resulting merged stacks into the expected texts. */
#include <getopt.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/elf/elf_file.h"
#include "core/target/procfs.h"
#include "tests/replay/bundle.h"
#include "tests/replay/expect.h"
#include "tests/tap.h"

static struct bundle *bundle;	  /* the bundle that is replayed */
static struct pipeline *pipeline; /* its pipeline */

/* --- reads of images: the linker redirects braid's calls to here --- */

int __real_elf_file__read(const struct elf_file *file, uint64_t vaddr, void *buf, size_t len);
int __wrap_elf_file__read(const struct elf_file *file, uint64_t vaddr, void *buf, size_t len);

#define SUFFIX ".bundle"

/* Longer reads are searches. The bundle contains the text if it was found. */
#define READ_MAX (128 * 1024)

int __wrap_elf_file__read(const struct elf_file *file, uint64_t vaddr, void *buf, size_t len)
{
	for (size_t i = 0; bundle && len <= READ_MAX && i < file->n_segments; i++) {
		const struct elf_segment *segment = &file->segments[i];

		if (vaddr >= segment->vaddr && vaddr - segment->vaddr < segment->filesz)
			bundle__check_bytes(
				bundle, file->path, segment->offset + (vaddr - segment->vaddr),
				min_of(len, segment->filesz - (vaddr - segment->vaddr)));
	}
	return __real_elf_file__read(file, vaddr, buf, len);
}

/* --- */

static char work[] = "/tmp/braid-replay-XXXXXX";

static void check_code(void *ctx, struct process *process, const struct pipeline_stack *stack)
{
	(void)process, (void)ctx;
	for (size_t i = 0; i < stack->n_natives; i++)
		if (stack->natives[i].image[0])
			bundle__check_code(bundle, stack->natives[i].image,
					   stack->natives[i].vaddr);
}

/* Ignores missing data of repeated samples, which may read more than was recorded. */
static void on_repeat(void *ctx, bool begins)
{
	(void)ctx;
	bundle__forgive(bundle, begins);
}

static void add_call(void *ctx, const char *image, uint64_t vaddr)
{
	(void)ctx;
	bundle__add_call(bundle, image, vaddr);
}

/* Prints the reason if the stack is cut, and other counters. */
static void print_counters(const struct pipeline_stack *stack, FILE *out)
{
	static const char *const texts[] = {
#define X(name, text) [COUNT_##name] = text,
		COUNTERS(X)
#undef X
	};

	for (int i = 0; i < COUNTERS_N; i++)
		if (stack->counters[i] && texts[i])
			fprintf(out, "# counted: %s\n", texts[i]);
}

static void replay_case(const char *title, struct bundle_case *one, const struct expect *expect,
			FILE *accepted)
{
	struct pipeline_input input = { .thread = one->thread,
					.memory = one->memory,
					.work = work,
					.inspect = check_code,
					.on_repeat = on_repeat };
	struct pipeline_stack stack;
	struct err err = {};
	char *why = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&why, &n);
	bool good;

	expect__each_return(expect, one->name, add_call, NULL);
	good = !pipeline__run(pipeline, &input, &stack, &err);
	if (!good)
		fprintf(out, "# %s\n", err.text);
	if (bundle__lacks(bundle))
		fprintf(out, "# record again: not in the bundle: %s\n", bundle__lacks(bundle));
	good = good && !bundle__lacks(bundle) &&
	       expect__check(expect, one->name, &stack, !accepted, out);
	if (!good)
		print_counters(&stack, out);
	fclose(out);
	ok(good, "%s: %s", title, one->name);
	if (!good)
		fputs(why, stderr);
	free(why);
	if (accepted)
		expect__write(expect, one->name, &stack, accepted);
	pipeline__done(&stack);
}

static void replay_cases(const char *title, const struct expect *expect, FILE *accepted)
{
	struct bundle_case one;
	struct err err = {};
	int ret, n = 0;

	while ((ret = bundle__next(bundle, &one, &err)) > 0) {
		replay_case(title, &one, expect, accepted);
		n++;
	}
	if (!ok(!ret && n, "%s: %d cases", title, n))
		tap__diag("%s", err.text);
}

static void replay_bundle(const char *path, bool accept)
{
	char images[4096], texts[4096], beside[4100], *dir = strdup(path);
	const char *title = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	struct expect expect = {};
	struct err err = {};
	FILE *accepted = NULL;

	snprintf(images, sizeof(images), "%s/images", dirname(dir));
	snprintf(texts, sizeof(texts), "%.*s.txt", (int)(strlen(path) - strlen(SUFFIX)), path);
	snprintf(beside, sizeof(beside), "%s.new", texts);
	free(dir);
	if (!ok(!expect__read(texts, &expect, &err) &&
			!bundle__open(path, images, work, &bundle, &err) &&
			!pipeline__new(&pipeline),
		"%s can be read", title)) {
		tap__diag("%s", err.text);
		goto out;
	}
	accepted = accept ? fopen(beside, "we") : NULL;
	replay_cases(title, &expect, accepted);
	if (accepted && (fclose(accepted) || rename(beside, texts)))
		ok(false, "%s is written", texts);
out:
	pipeline__free(pipeline);
	pipeline = NULL;
	bundle__close(bundle);
	bundle = NULL;
	expect__done(&expect);
}

int main(int argc, char **argv)
{
	bool accept = argc > 1 && !strcmp(argv[1], "--accept");

	for (int i = 1 + accept; i < argc || i == 1 + accept; i++) {
		size_t length = i < argc ? strlen(argv[i]) : 0;

		if (length <= strlen(SUFFIX) || strcmp(argv[i] + length - strlen(SUFFIX), SUFFIX)) {
			fprintf(stderr, "usage: replay [--accept] NAME" SUFFIX "...\n");
			return 2;
		}
	}
	if (!mkdtemp(work))
		return 1;
	for (int i = 1 + accept; i < argc; i++)
		replay_bundle(argv[i], accept);
	rmdir(work);
	return tap__done();
}
