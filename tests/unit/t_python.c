// SPDX-License-Identifier: GPL-2.0-or-later
/* What runtimes/python.c makes of the CPython builds on this machine, against what they say about
 * themselves (tests/tools/python_facts.py), and of builds that were tampered with. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/util.h"
#include "runtimes/python_versions.h"
#include "runtimes/runtime.h"
#include "tests/tap.h"

extern const struct runtime runtime_python;

#define FACTS "-I tests/tools/python_facts.py"

struct facts {
	char version[RUNTIME_VERSION_BYTES];
	char path[256]; /* of the file with the interpreter */
};

static struct facts walkable; /* the first that is supported */

static bool read_facts(const char *python, struct facts *ret)
{
	char command[512];
	FILE *pipe;
	int n;

	snprintf(command, sizeof(command), "%s " FACTS " 2>/dev/null", python);
	pipe = popen(command, "r");
	n = pipe ? fscanf(pipe, "%31s %255s", ret->version, ret->path) : 0;
	if (pipe)
		pclose(pipe);
	return n == 2;
}

static bool key_is_at(const char *python, unsigned int offset)
{
	char command[512];
	int answer = 0;
	FILE *pipe;

	snprintf(command, sizeof(command), "%s " FACTS " %u 2>/dev/null", python, offset);
	pipe = popen(command, "r");
	if (!pipe || fscanf(pipe, "%d", &answer) != 1)
		answer = 0;
	if (pipe)
		pclose(pipe);
	return answer == 1;
}

static void check_supported(const char *python, const struct facts *facts,
			    const struct runtime_verdict *verdict)
{
	is_int(verdict->support, RUNTIME_SUPPORTED, "%s is supported", facts->path);
	is_str(verdict->version, facts->version, "%s: version", facts->path);
	is_str(verdict->reason, "", "%s: nothing to say", facts->path);
	ok(key_is_at(python, python_version__find(11)->runtime_tss), "%s: thread key is there",
	   python);
	walkable = *facts;
}

static void check_refused(const struct facts *facts, const struct runtime_verdict *verdict)
{
	size_t len = strlen(verdict->version);

	is_int(verdict->support, RUNTIME_REFUSED, "%s is refused", facts->path);
	ok(len >= 3 && strncmp(verdict->version, facts->version, len) == 0, "%s: version %s of %s",
	   facts->path, verdict->version, facts->version);
	ok(strstr(verdict->reason, verdict->version) && strstr(verdict->reason, "native"), "%s: %s",
	   facts->path, verdict->reason);
}

static void check_python(const char *python)
{
	struct runtime_image *image = NULL;
	struct runtime_verdict verdict;
	struct elf_file *file;
	struct facts facts;

	if (!read_facts(python, &facts))
		return;
	if (elf_file__open(open(facts.path, O_RDONLY | O_CLOEXEC), facts.path, &file, NULL)) {
		ok(false, "%s opens", facts.path);
		return;
	}
	is_int(runtime_python.detect(file), 1, "%s is CPython", facts.path);
	is_int(runtime_python.prepare(file, &image, &verdict), 0, "%s: verdict", facts.path);
	if (strncmp(facts.version, "3.11.", 5) == 0)
		check_supported(python, &facts, &verdict);
	else
		check_refused(&facts, &verdict);
	ok(!image == (verdict.support == RUNTIME_REFUSED), "%s: image if not refused", facts.path);
	runtime_python.image_free(image);
	elf_file__free(file);
}

static void check_pythons(void)
{
	static const char *const places[] = {
		"/usr/bin/python3",
		"/usr/local/bin/python3",
		"~/.pyenv/versions/*/bin/python",
	};
	glob_t found = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		glob(places[i], GLOB_TILDE | (i ? GLOB_APPEND : 0), NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++)
		check_python(found.gl_pathv[i]);
	globfree(&found);
}

static void check_others(void)
{
	struct elf_file *file;

	if (elf_file__open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "/self", &file, NULL))
		return;
	is_int(runtime_python.detect(file), 0, "this test is no CPython");
	elf_file__free(file);
	runtime_python.image_free(NULL);
	runtime_python.close(NULL);
}

/* A copy of the file in memory with `bytes` at the start of `symbol`. */
static void check_tampered(const char *symbol, const void *bytes, size_t size, const char *why)
{
	int fd = open(walkable.path, O_RDONLY | O_CLOEXEC);
	struct runtime_verdict verdict = { 0 };
	struct runtime_image *image = NULL;
	struct elf_file *file = NULL;
	struct stat st = { 0 };
	uint64_t vaddr;
	char *data;

	fstat(fd, &st);
	data = malloc(st.st_size + 1);
	if (!data || read(fd, data, st.st_size) != st.st_size ||
	    elf_file__open(fd, walkable.path, &file, NULL) ||
	    elf_file__find_symbol(file, symbol, &vaddr, NULL)) {
		ok(false, "%s: %s can be tampered with", walkable.path, symbol);
		goto out;
	}
	for (size_t i = 0; i < file->n_segments; i++)
		if (vaddr - file->segments[i].vaddr < file->segments[i].filesz)
			memcpy(data + vaddr - file->segments[i].vaddr + file->segments[i].offset,
			       bytes, size);
	elf_file__free(file);
	file = NULL;
	is_int(elf_file__open_memory(data, st.st_size, "/x", &file, NULL), 0, "%s changed", symbol);
	is_int(file ? runtime_python.prepare(file, &image, &verdict) : -1, 0, "verdict");
	is_int(verdict.support, RUNTIME_REFUSED, "refused");
	ok(strstr(verdict.reason, why) && !image, "%s", verdict.reason);
out:
	elf_file__free(file);
	free(data);
}

int main(void)
{
	static const uint64_t candidate = 0x030b00c2, next = 0x030c00f0, other = 0x040b00f0;
	static const uint8_t zeroes[64];

	check_pythons();
	check_others();
	if (*walkable.path) {
		check_tampered("Py_Version", &candidate, sizeof(candidate), "3.11.0rc2: no walker");
		check_tampered("Py_Version", &next, sizeof(next), "3.12.0: no walker");
		check_tampered("Py_Version", &other, sizeof(other), "4.11.0: no walker");
		check_tampered("PyGILState_GetThisThreadState", zeroes, sizeof(zeroes),
			       "thread key");
	} else {
		tap__skip("no CPython 3.11 found", "tampered builds");
	}
	return tap__done();
}
