// SPDX-License-Identifier: GPL-2.0-or-later
/* A PHP whose version has no row: the machine's own with its row hidden, and its row with one field
 * changed. The layout is accepted only if it matches the build. */
#include "runtimes/php/php_fit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/target/procfs.h"
#include "runtimes/runtime.h"
#include "tests/tap.h"

extern const struct runtime runtime_php;

static struct elf_file *file;
static struct php_build build;
static const struct php_version *own;

/* A script that writes a byte and then calls functions until its reader closes the pipe. */
static const char script[] =
	"function inner($n) { return strlen(implode(',', range(1, $n))); }\n"
	"function outer($n) { return array_sum(array_map('inner', [$n, 7])); }\n"
	"echo 'x'; while (true) outer(100);";

static pid_t start(const char *path, const char *code)
{
	int pipes[2];
	char byte;
	pid_t pid = pipe(pipes) ? -1 : fork();

	if (!pid) {
		dup2(pipes[1], 1);
		execl(path, path, "-n", "-d", "max_execution_time=0", "-r", code, NULL);
		_exit(127);
	}
	close(pipes[1]);
	if (pid < 0 || read(pipes[0], &byte, 1) != 1)
		printf("Bail out! php does not run\n");
	close(pipes[0]);
	return pid;
}

static uint64_t find_bias(pid_t pid)
{
	struct procfs_mappings mappings = {};
	uint64_t bias = 0;

	if (procfs__mappings(pid, &mappings))
		return 0;
	for (size_t i = 0; !bias && i < mappings.n; i++)
		if (!mappings.list[i].anonymous && strstr(mappings.list[i].path, "/php"))
			bias = mappings.list[i].start - mappings.list[i].offset;
	procfs_mappings__done(&mappings);
	return file->type == ET_EXEC ? 0 : bias;
}

/* Returns the part in which @offsets differ from those of the build; NULL: no difference. */
static const char *part_of(pid_t pid, uint64_t bias, const struct php_offsets *offsets)
{
	const char *part = php_fit__file(file, &build, offsets);
	int ret = part ? 0 : php_fit__process(pid, file, bias, &build, offsets, &part);

	return ret == -EAGAIN ? NULL : part;
}

/* Moves each field of the row by each of these distances. */
static void test_mutations(pid_t pid, uint64_t bias)
{
	static const struct {
		const char *name;
		size_t at;
	} fields[] = {
#define FIELD(name) { #name, offsetof(struct php_offsets, name) }
		FIELD(current), FIELD(exception_opline), FIELD(fiber),
		FIELD(last),	FIELD(opcodes),		 FIELD(filename),
		FIELD(handler), FIELD(generator_parent), FIELD(generator_fake),
#undef FIELD
	};
	static const int moves[] = { -40, -24, -16, -8, -4, 4, 8, 16, 24, 40 };

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		const char *part = NULL;
		size_t accepted = 0;

		for (size_t k = 0; k < ARRAY_SIZE(moves); k++) {
			struct php_offsets offsets = own->offsets;
			const char *differs;

			*(uint16_t *)((char *)&offsets + fields[i].at) += moves[k];
			differs = part_of(pid, bias, &offsets);
			part = differs ?: part;
			accepted += !differs;
			if (!differs)
				tap__diag("%s moved by %d is accepted", fields[i].name, moves[k]);
		}
		is_int(accepted, 0, "%s that has moved is refused: %s", fields[i].name,
		       part ?: "no part");
	}
}

static void test_rows(pid_t pid, uint64_t bias)
{
	for (unsigned int minor = 1; minor < 20; minor++) {
		const struct php_version *row = php_version__find(minor);

		if (row && row != own && memcmp(&row->offsets, &own->offsets, sizeof(row->offsets)))
			ok(part_of(pid, bias, &row->offsets) != NULL, "the row of 8.%u: %s", minor,
			   part_of(pid, bias, &row->offsets));
	}
}

static void test_verdict(void)
{
	struct runtime_image *image = NULL;
	struct runtime_verdict verdict;

	php_version__hide(own->minor - 1);
	ok(!runtime_php.files->prepare(file, &image, &verdict) && !image &&
		   verdict.support == RUNTIME_REFUSED &&
		   strstr(verdict.reason, "this version is newer than 8."),
	   "without its row: %s", verdict.reason);
	php_version__hide(UINT_MAX);
}

int main(void)
{
	char path[PATH_MAX], version[RUNTIME_VERSION_BYTES];
	struct php_offsets offsets;
	struct err err = {};
	unsigned int minor;
	uint64_t bias;
	pid_t pid;

	if (!realpath(getenv("BRAID_PHP") ?: "/usr/bin/php", path) ||
	    elf_file__open(open(path, O_RDONLY), path, &file, &err) ||
	    php_build__version(file, version) || sscanf(version, "8.%u", &minor) != 1 ||
	    php_build__read(file, &build) || !(own = php_version__find(minor))) {
		printf("1..0 # SKIP no PHP 8 here\n");
		return 0;
	}
	pid = start(path, script);
	bias = find_bias(pid);
	offsets = own->offsets;
	is_str(part_of(pid, bias, &offsets) ?: "", "", "PHP %s has the layout of its row", version);
	test_mutations(pid, bias);
	test_rows(pid, bias);
	test_verdict();
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	elf_file__free(file);
	return tap__done();
}
