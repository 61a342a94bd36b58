// SPDX-License-Identifier: GPL-2.0-or-later
/* A CPython of an untested version: one that describes itself, with each of its offsets moved. The
 * layout is accepted only if it matches the build. */
#include "runtimes/python/python_fit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/target/procfs.h"
#include "runtimes/python/python_build.h"
#include "runtimes/runtime.h"
#include "tests/tap.h"
#include "tests/unit/pythons.h"

extern const struct runtime runtime_python;

static const char script[] =
	"import os, sys, threading, time\n"
	"class C:\n"
	"  def inner(self, n):\n"
	"    return sorted(range(n), key=lambda i: -i)\n"
	"  def outer(self):\n"
	"    return self.gr\u00f6\u00dfe()\n"
	"  def gr\u00f6\u00dfe(self):\n"
	"    return sum(len(self.inner(n)) for n in (5, 10))\n"
	"threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n"
	"os.write(1, b'x')\n"
	"while True: C().outer()\n";

struct target {
	pid_t pid;
	struct elf_file *file;
	uint64_t bias, runtime;
	struct python_version version;
};

static pid_t start(const char *command)
{
	int pipes[2];
	char byte;
	pid_t pid = pipe(pipes) ? -1 : fork();

	if (!pid) {
		dup2(pipes[1], 1);
		execlp(command, command, "-c", script, NULL);
		_exit(127);
	}
	close(pipes[1]);
	if (pid < 0 || read(pipes[0], &byte, 1) != 1)
		printf("Bail out! %s does not run\n", command);
	close(pipes[0]);
	return pid;
}

/* Opens the file of the process that has _PyRuntime. */
static bool find_file(struct target *target)
{
	struct procfs_mappings mappings = {};
	struct err err = {};
	uint64_t size;

	if (procfs__mappings(target->pid, &mappings))
		return false;
	for (size_t i = 0; i < mappings.n && !target->file; i++) {
		const char *path = mappings.list[i].path;

		if (mappings.list[i].anonymous || !strstr(path, "python") ||
		    elf_file__open(open(path, O_RDONLY), path, &target->file, &err))
			continue;
		for (size_t k = 0; k < target->file->n_segments; k++)
			if (target->file->segments[k].exec)
				target->bias = mappings.list[i].start - mappings.list[i].offset -
					       target->file->segments[k].vaddr +
					       target->file->segments[k].offset;
		if (elf_file__find_symbol(target->file, "_PyRuntime", &target->runtime, &size)) {
			elf_file__free(target->file);
			target->file = NULL;
		}
	}
	procfs_mappings__done(&mappings);
	return target->file;
}

/* Returns the part in which @version's layout differs from that of the build; NULL: no difference.
 */
static const char *part_of(const struct target *target, const struct python_version *version)
{
	const char *part = python_fit__offsets(version);
	int ret = part ? 0
		       : python_fit__process(target->pid, target->file, target->bias,
					     target->bias + target->runtime + version->interpreters,
					     version, &part);

	return ret == -EAGAIN ? "nothing runs" : part;
}

static void test_field(const struct target *target, const char *name, size_t at)
{
	static const int moves[] = { -32, -24, -16, -8, -4, 4, 8, 16, 24, 32 };
	const char *part = NULL;
	size_t accepted = 0;

	for (size_t i = 0; i < ARRAY_SIZE(moves); i++) {
		struct python_version version = target->version;
		const char *differs;

		*(uint16_t *)((char *)&version.offsets + at) += moves[i];
		differs = part_of(target, &version);
		part = differs ?: part;
		accepted += !differs;
		if (!differs)
			tap__diag("%s moved by %d is accepted", name, moves[i]);
	}
	is_int(accepted, 0, "3.%u: %s that has moved is refused: %s", target->version.minor, name,
	       part ?: "no part");
}

static void test_fields(const struct target *target)
{
	struct python_version version = target->version;

#define FIELD(name) test_field(target, #name, offsetof(struct python_offsets, name))
	FIELD(tstate_frame);
	FIELD(tstate_thread_id);
	FIELD(tstate_native_id);
	FIELD(frame_previous);
	FIELD(frame_code);
	FIELD(frame_instr);
	FIELD(frame_owner);
	FIELD(code_first_line);
	FIELD(code_file);
	FIELD(code_name);
	FIELD(code_line_table);
	FIELD(code_bytecode);
	FIELD(code_version);
	FIELD(unicode_ascii_data);
	FIELD(interp_threads);
	FIELD(interp_gil);
	FIELD(object_bytes);
#undef FIELD
	version.modules += 8;
	ok(part_of(target, &version), "3.%u: modules that have moved: %s", version.minor,
	   part_of(target, &version));
	version = target->version;
	version.interpreters -= 8;
	ok(part_of(target, &version), "3.%u: interpreters that have moved: %s", version.minor,
	   part_of(target, &version));
}

/* Removes the row of the version, so that the row of 3.@minor is tried. */
static void test_verdict(const struct target *target, unsigned int minor)
{
	struct runtime_image *image = NULL;
	struct runtime_verdict verdict;

	python_version__hide(minor);
	ok(!runtime_python.files->prepare(target->file, &image, &verdict) && !image &&
		   verdict.support == RUNTIME_REFUSED,
	   "3.%u without its row: %s", target->version.minor, verdict.reason);
	python_version__hide(UINT_MAX);
}

static void test_python(const struct python *python)
{
	struct target target = { .pid = start(python->command) };
	uint32_t hex;

	if (ok(find_file(&target) && !python_build__version(target.file, &hex), "the file of 3.%u",
	       python->minor)) {
		target.version = *python_version__find(python->minor);
		is_str(python_version__read(target.file, target.runtime, hex, &target.version)
			       ?: "",
		       "", "3.%u describes itself", python->minor);
		is_str(part_of(&target, &target.version) ?: "", "", "3.%u has its own layout",
		       python->minor);
		test_fields(&target);
		test_verdict(&target, 12);
	}
	elf_file__free(target.file);
	kill(target.pid, SIGKILL);
	waitpid(target.pid, NULL, 0);
}

int main(void)
{
	static struct pythons pythons;
	size_t n = 0;

	pythons__find(&pythons);
	for (size_t i = 0; i < pythons.n; i++) {
		const struct python_version *version = python_version__find(pythons.list[i].minor);

		if (!version || !python_version__is_described(version))
			continue;
		test_python(&pythons.list[i]);
		n++;
	}
	if (!n) {
		printf("1..0 # SKIP no CPython from 3.13 on here\n");
		return 0;
	}
	return tap__done();
}
