// SPDX-License-Identifier: GPL-2.0-or-later
/* The verdict on a program with V8 whose version has no row, with any other difference in it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtimes/node/node_layout.h"
#include "runtimes/node/node_versions.h"
#include "runtimes/runtime.h"
#include "tests/tap.h"

extern const struct runtime runtime_node;

#define WORD(name, value) \
	".globl " name "\n.type " name ", @object\n.size " name ", 4\n" name ": .long " value "\n"

/* Makes a library with V8's version, and with one constant that no version with a row has. */
static struct elf_file *make_file(const char *major, const char *minor)
{
	char name[] = "/tmp/braid-v8-XXXXXX", command[128];
	struct elf_file *file = NULL;
	int fd = mkstemp(name);
	FILE *as;

	snprintf(command, sizeof(command), "cc -shared -nostdlib -x assembler -o %s -", name);
	as = popen(command, "w");
	if (!as)
		return NULL;
	fprintf(as,
		".data\n" WORD("_ZN2v88internal7Version6major_E", "%s")
			WORD("_ZN2v88internal7Version6minor_E", "%s") WORD("v8dbg_TaggedSize", "8")
				WORD("v8dbg_SmiShiftSize", "31") WORD("v8dbg_HeapObjectTag", "3")
					WORD("v8dbg_APIObjectType", "1"),
		major, minor);
	if (pclose(as) || close(fd))
		return NULL;
	fd = open(name, O_RDONLY | O_CLOEXEC);
	unlink(name);
	return fd >= 0 && !elf_file__open(fd, name, &file, NULL) ? file : NULL;
}

static void test_unknown(void)
{
	struct elf_file *file = make_file("14", "9");
	struct runtime_image *image = NULL;
	struct runtime_verdict verdict;
	struct runtime_target target;
	uint64_t record[RUNTIME_RECORD_MAX / 8];
	struct err err = {};

	ok(file && runtime_node.files->detect(file) > 0, "a program with V8 14.9");
	ok(!runtime_node.files->prepare(file, &image, &verdict) && verdict.map_only,
	   "has a map at most");
	ok(!strncmp(verdict.reason, "V8 14.9 is not supported by this version of braid; ", 51),
	   "its version is the reason: %s", verdict.reason);
	target = (struct runtime_target) {
		.pid = getpid(), .image = image, .file = file, .map = true
	};
	ok(runtime_node.attach(NULL, &target, record, &err) > 0, "this process has none");
	ok(!strncmp(err.text, "V8 14.9 is not supported by this version of braid; ", 51) &&
		   strstr(err.text, "NODE_OPTIONS='--perf-basic-prof") &&
		   strlen(err.text) < RUNTIME_REASON_BYTES,
	   "its version comes first, then the advice: %s", err.text);
	runtime_node.files->free(image);
	elf_file__free(file);
}

static void test_known(void)
{
	struct elf_file *file = make_file("14", "6");
	struct node_layout layout;
	struct err err = {};

	ok(file && node_layout__read(file, &layout, &err) < 0, "a known version, wrong inside");
	is_str(err.text, "V8's constant v8dbg_HeapObjectTag is not 1", "the constant is named");
	elf_file__free(file);
	for (uint32_t i = 0; node_versions__at(i); i++)
		ok(node_versions__find(node_versions__at(i)->major, node_versions__at(i)->minor) ==
			   node_versions__at(i),
		   "V8 %u.%u has one row", node_versions__at(i)->major,
		   node_versions__at(i)->minor);
}

#define LENGTHS "kBytecodeSizesE"

/* Returns the verdict on the machine's own Node.js. With @is_stripped, the symbols for the lengths
 * of bytecodes are removed, as in Debian's libnode. */
static struct runtime_verdict verdict_of(const char *path, bool is_stripped)
{
	struct runtime_verdict verdict = {};
	struct runtime_image *image = NULL;
	struct elf_file *file = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t size = lseek(fd, 0, SEEK_END);
	char *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0), *at = data;

	while (is_stripped && (at = memmem(at, data + size - at, LENGTHS, strlen(LENGTHS))))
		*at = '-';
	if (!elf_file__open_memory(data, size, path, &file, NULL))
		runtime_node.files->prepare(file, &image, &verdict);
	runtime_node.files->free(image);
	elf_file__free(file);
	munmap(data, size);
	close(fd);
	return verdict;
}

static void test_stripped(const char *path)
{
	struct runtime_verdict verdict;

	if (access(path, R_OK)) {
		tap__diag("there is no %s", path);
		return;
	}
	verdict = verdict_of(path, false);
	ok(verdict.support == RUNTIME_SUPPORTED && !verdict.reason[0], "%s: nothing is missing: %s",
	   path, verdict.reason);
	verdict = verdict_of(path, true);
	ok(verdict.support == RUNTIME_DEGRADED && !verdict.map_only &&
		   strstr(verdict.reason, "frames of Sparkplug's code have the line where their "
					  "function begins"),
	   "%s, stripped: lines of Sparkplug's code are said to be missing: %s", path,
	   verdict.reason);
}

int main(void)
{
	test_unknown();
	test_known();
	test_stripped("/usr/bin/node");
	return tap__done();
}
