// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/tracker.h"

#include <stdlib.h>

#include "core/base/util.h"
#include "core/target/tracker_state.h"
#include "tests/tap.h"

/* Two neighbours, then a gap. */
static struct mapped mapped[] = { { .start = 0x1000, .end = 0x3000 },
				  { .start = 0x3000, .end = 0x4000 },
				  { .start = 0x8000, .end = 0x9000 } };

static const struct {
	uint64_t address;
	int at; /* -1: nowhere */
} cases[] = { { 0, -1 },     { 0xfff, -1 }, { 0x1000, 0 },  { 0x2fff, 0 },
	      { 0x3000, 1 }, { 0x3fff, 1 }, { 0x4000, -1 }, { 0x7fff, -1 },
	      { 0x8000, 2 }, { 0x8fff, 2 }, { 0x9000, -1 }, { UINT64_MAX, -1 } };

static void test_find(void)
{
	struct process process = { .mapped = mapped, .n_mapped = ARRAY_SIZE(mapped) };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct mapped *found = process__find(&process, cases[i].address);

		is_int(found ? found - mapped : -1, cases[i].at, "mapping of %#llx",
		       (unsigned long long)cases[i].address);
	}
	process.n_mapped = 0;
	ok(!process__find(&process, 0x1000), "nothing mapped");
}

#define NOBODY 0x7ffffff0 /* no PID is so high: there is nothing to be read of it */

/* Another program is another row of the recording, and nothing of the one before is its own. */
static void test_exec(void)
{
	static const struct runtime *const none[] = { NULL };
	static const struct images_opts no_images = { .files_fd = -1, .runtimes = none };
	const struct rec_program rec = { .type = REC_EXEC,
					 .tgid = NOBODY,
					 .program = 3,
					 .command_len = 17,
					 .comm = "a\033name",
					 .command = "/bin/a\0-x\0\033[2J\0y" };
	struct tracker tracker = { .opts.runtimes = none, .targets_fd = -1, .last_serial = 7 };
	struct process process = { .pid = NOBODY,
				   .pidfd = -1,
				   .starting = true,
				   .serial = 5,
				   .mapped = calloc(1, sizeof(*process.mapped)),
				   .n_mapped = 1 };

	images__new(&no_images, &tracker.opts.images);
	ok(!tracker__on_exec(&tracker, &process, &rec), "exec");
	is_str(process.info.name, "a?name", "its name, which cannot steer a terminal");
	is_str(process.info.command, "/bin/a -x ?[2J y", "its arguments");
	is_int(process.program, 3, "its number");
	is_int(process.serial, 8,
	       "it is another one: nothing that is kept under its old number is its own");
	is_int(process.n_mapped, 0, "nothing is mapped");
	ok(!process.starting, "it has begun");
	images__free(tracker.opts.images);
}

int main(void)
{
	test_find();
	test_exec();
	return tap__done();
}
