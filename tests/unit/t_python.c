// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests runtimes/python/python.c on the CPython builds of this machine, compared with their own
 * report (tests/tools/python_facts.py), and on modified builds. */
#include <inttypes.h>

#include "runtimes/python/python_build.h"
#include "runtimes/python/python_versions.h"
#include "runtimes/runtime.h"
#include "tests/tap.h"
#include "tests/unit/python_roots.h"

extern const struct runtime runtime_python;

#define MINOR_FIRST 6
#define MINOR_LAST  15

static struct python_facts walkable[MINOR_LAST + 1]; /* one per installed minor version */

static struct elf_file *open_file(const char *path)
{
	struct elf_file *file = NULL;

	elf_file__open(open(path, O_RDONLY | O_CLOEXEC), path, &file, NULL);
	return file;
}

/* --- unmodified builds --- */

static bool is_walkable(const struct python_facts *facts, unsigned int *ret_minor)
{
	bool is_final = strspn(facts->version, "0123456789.") == strlen(facts->version);

	return sscanf(facts->version, "3.%u.", ret_minor) == 1 && is_final && !facts->has_no_gil &&
	       *ret_minor >= MINOR_FIRST && *ret_minor <= MINOR_LAST;
}

/* Returns the place of a thread's state that prepare() finds, in the words of python_facts.py. */
static const char *find_state(const struct elf_file *file, unsigned int minor, int wrong_by)
{
	const struct python_version *version = python_version__find(minor);
	uint64_t runtime = 0, size = 0, key;
	static char text[2][80];
	char *to = text[wrong_by != 0];
	struct x86_tls tls;

	strcpy(to, "none");
	elf_file__find_symbol(file, "_PyRuntime", &runtime, &size);
	if (version->state == PYTHON_STATE_TLS) {
		if (python_build__tls(file, &tls) == 0)
			snprintf(to, sizeof(text[0]), "%d %" PRId64 " %" PRIu64, tls.kind,
				 tls.offset + wrong_by, tls.slot_vaddr + wrong_by);
	} else if (python_build__key(file, runtime, size, runtime + version->tss, &key) == 0) {
		snprintf(to, sizeof(text[0]), "%" PRIu64, key + wrong_by);
	}
	return to;
}

static bool leads_to_state(const char *python, const char *where)
{
	char command[512];
	int answer = 0;
	FILE *pipe;

	snprintf(command, sizeof(command), "%s tests/tools/python_facts.py %s 2>/dev/null", python,
		 where);
	pipe = popen(command, "r");
	if (!pipe || fscanf(pipe, "%d", &answer) != 1)
		answer = 0;
	if (pipe)
		pclose(pipe);
	return answer == 1;
}

static void check_state(const char *python, const char *path, const struct elf_file *file,
			unsigned int minor)
{
	uint64_t symbol;
	char text[32];

	ok(leads_to_state(python, find_state(file, minor, 0)),
	   "%s: its thread state is found by way of %s", path, find_state(file, minor, 0));
	ok(!leads_to_state(python, find_state(file, minor, 16)), "%s: not by way of %s", path,
	   find_state(file, minor, 16));
	if (minor == 6 && elf_file__find_symbol(file, "autoTLSkey", &symbol, NULL) == 0) {
		snprintf(text, sizeof(text), "%" PRIu64, symbol);
		is_str(find_state(file, minor, 0), text, "%s: code and .symtab agree on it", path);
	}
}

/* Local symbols are not required. */
static void check_stripped(const char *path, const struct elf_file *whole, unsigned int minor)
{
	struct runtime_image *image = NULL;
	struct runtime_verdict verdict;
	struct elf_file *file = NULL;
	char want[80];

	snprintf(want, sizeof(want), "%s", find_state(whole, minor, 0));
	workdir__run("strip --strip-all -o stripped '%s'", path);
	elf_file__open(workdir__open("stripped"), path, &file, NULL);
	if (ok(file && runtime_python.files->prepare(file, &image, &verdict) == 0,
	       "%s opens when it is stripped", path)) {
		is_int(verdict.support, RUNTIME_SUPPORTED, "%s: %s", path, verdict.reason);
		is_str(find_state(file, minor, 0), want, "%s: with the state in the same place",
		       path);
	}
	runtime_python.files->free(image);
	elf_file__free(file);
}

static void check_supported(const char *python, const struct python_facts *facts,
			    const struct elf_file *file, unsigned int minor,
			    const struct runtime_verdict *verdict)
{
	is_int(verdict->support, RUNTIME_SUPPORTED, "%s is supported", facts->path);
	is_str(verdict->version, facts->version, "%s: version", facts->path);
	is_str(verdict->reason, "", "%s: nothing to say", facts->path);
	check_state(python, facts->path, file, minor);
	check_stripped(facts->path, file, minor);
	walkable[minor] = *facts;
}

static void check_refused(const struct python_facts *facts, const struct runtime_verdict *verdict)
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
	const struct runtime_range *loops;
	struct runtime_image *image = NULL;
	struct runtime_verdict verdict;
	struct python_facts facts;
	struct elf_file *file;
	unsigned int minor;

	if (!python_facts__ask(python, &facts))
		return;
	file = open_file(facts.path);
	if (!ok(file, "%s opens", facts.path))
		return;
	is_int(runtime_python.files->detect(file), 1, "%s is CPython", facts.path);
	is_int(runtime_python.files->prepare(file, &image, &verdict), 0, "%s: verdict", facts.path);
	if (is_walkable(&facts, &minor)) {
		check_supported(python, &facts, file, minor, &verdict);
		ok(image && (minor > 10 || runtime_python.files->loops(image, &loops)),
		   "%s: its loops are known if they are needed", facts.path);
	} else {
		check_refused(&facts, &verdict);
		ok(!image, "%s: no image", facts.path);
	}
	runtime_python.files->free(image);
	elf_file__free(file);
}

static void check_pythons(void)
{
	static struct pythons pythons;
	glob_t found = { 0 };

	pythons__find_everywhere(&pythons);
	for (size_t i = 0; i < pythons.n; i++)
		check_python(pythons.list[i].command);
	glob("/usr/bin/python2", 0, NULL, &found);
	glob("~/.pyenv/versions/2.*/bin/python", GLOB_TILDE | GLOB_APPEND, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc; i++)
		check_python(found.gl_pathv[i]);
	globfree(&found);
}

static void check_others(void)
{
	struct elf_file *file = open_file("/proc/self/exe");

	is_int(runtime_python.files->detect(file), 0, "this test is no CPython");
	elf_file__free(file);
	runtime_python.files->free(NULL);
	runtime_python.close(NULL);
}

/* --- modified builds --- */

struct copy { /* a build in memory */
	char *data;
	size_t size;
};

static struct copy copy_of(unsigned int minor)
{
	struct copy copy = { 0 };

	workdir__run("cp '%s' copy", walkable[minor].path);
	copy.data = (char *)workdir__read("copy", &copy.size);
	return copy;
}

static void copy__put(struct copy *copy, const char *symbol, size_t offset, const void *bytes,
		      size_t size)
{
	struct elf_file *file = NULL;
	uint64_t vaddr = 0;

	if (elf_file__open_memory(copy->data, copy->size, "/x", &file, NULL) == 0 &&
	    elf_file__find_symbol(file, symbol, &vaddr, NULL) == 0)
		vaddr += offset;
	for (size_t i = 0; file && vaddr && i < file->n_segments; i++)
		if (vaddr - file->segments[i].vaddr < file->segments[i].filesz)
			memcpy(copy->data + vaddr - file->segments[i].vaddr +
				       file->segments[i].offset,
			       bytes, size);
	elf_file__free(file);
}

/* Frees the copy. */
static void expect_refused(struct copy *copy, unsigned int minor, const char *why)
{
	struct runtime_verdict verdict = { 0 };
	struct runtime_image *image = NULL;
	struct elf_file *file = NULL;

	elf_file__open_memory(copy->data, copy->size, "/x", &file, NULL);
	is_int(file ? runtime_python.files->prepare(file, &image, &verdict) : -1, 0,
	       "3.%u: verdict", minor);
	is_int(verdict.support, RUNTIME_REFUSED, "3.%u: refused", minor);
	if (!ok(strstr(verdict.reason, why) && !image, "3.%u: %s", minor, why))
		tap__diag("%s", verdict.reason);
	elf_file__free(file);
	free(copy->data);
}

static void expect_refused_with(unsigned int minor, const char *symbol, size_t offset,
				uint64_t value, size_t size, const char *why)
{
	struct copy copy = copy_of(minor);

	copy__put(&copy, symbol, offset, &value, size);
	expect_refused(&copy, minor, why);
}

/* Up to 3.10 the version is a string that Py_GetVersion uses. @version is not longer than the
 * original. */
static void expect_version_refused(unsigned int minor, const char *version, const char *why)
{
	struct copy copy = copy_of(minor);
	const char *old = walkable[minor].version;
	size_t len = strlen(old) + 1;

	for (size_t i = 0; i + len <= copy.size; i++)
		if (memcmp(copy.data + i, old, len) == 0)
			strcpy(copy.data + i, version);
	expect_refused(&copy, minor, why);
}

static void test_old_versions(unsigned int minor)
{
	expect_version_refused(minor, "3.16.0", "3.16.0: it has no _Py_DebugOffsets");
	expect_version_refused(minor, "3.5.9", "3.5.9: no walker for this version");
	expect_version_refused(minor, "4.0.1", "4.0.1: no walker for this version");
	expect_version_refused(minor, "3.?", "cannot determine the version");
	if (strlen(walkable[minor].version) >= 7)
		expect_version_refused(minor, "3.9.0b2", "3.9.0b2: no walker for pre-releases");
}

static void test_new_versions(unsigned int minor)
{
	uint32_t hex = 0x03000000 | minor << 16;
	bool is_described = python_version__is_described(python_version__find(minor));
	const char *none = is_described ? "its _Py_DebugOffsets belong to another version"
					: "it has no _Py_DebugOffsets";
	char why[96];

	snprintf(why, sizeof(why), "3.%u.0rc2: %s", minor,
		 is_described ? none : "no walker for pre-releases");
	expect_refused_with(minor, "Py_Version", 0, hex | 0xc2, 4, why);
	snprintf(why, sizeof(why), "3.16.0: %s", none);
	expect_refused_with(minor, "Py_Version", 0, 0x031000f0, 4, why);
	expect_refused_with(minor, "Py_Version", 0, 0x040b00f0, 4,
			    "4.11.0: no walker for this version");
}

static void test_descriptions(unsigned int minor)
{
	static const char absurd[] = "_Py_DebugOffsets are malformed";
	static const size_t places[][6] = {
		/* next, current_frame; executable, owner; filename, linetable */
		{ 168, 184, 240, 264, 280, 304 },
		{ 192, 208, 264, 288, 320, 344 },
		{ 192, 208, 328, 352, 384, 408 },
	};
	const size_t *at = places[minor - 13];
	uint32_t next = 0x03000000 | minor << 16 | 99 << 8 | 0xf0;

	expect_refused_with(minor, "_PyRuntime", 0, 'x', 1 + 7, "has no _Py_DebugOffsets");
	expect_refused_with(minor, "_PyRuntime", 8, next, 4, "are of another version");
	expect_refused_with(minor, "Py_Version", 0, next, 4, "are of another version");
	expect_refused_with(minor, "_PyRuntime", 16, 1, 8,
			    absurd); /* with an invalid size of objects */
	expect_refused_with(minor, "_PyRuntime", 40, 1 << 16, 8, absurd); /* interpreters.head */
	expect_refused_with(minor, "_PyRuntime", at[0], 16, 8, absurd);
	expect_refused_with(minor, "_PyRuntime", at[1], ~0ULL, 8, absurd);
	expect_refused_with(minor, "_PyRuntime", at[2], 3, 8, absurd);
	expect_refused_with(minor, "_PyRuntime", at[3], 256, 8, absurd);
	expect_refused_with(minor, "_PyRuntime", at[4], 4096, 8, absurd);
	expect_refused_with(minor, "_PyRuntime", at[5], 8, 8, absurd);
}

static void test_codeless(unsigned int minor)
{
	struct copy copy;

	if (minor == 6) { /* its symbol would find it */
		workdir__run("strip --strip-all -o stripped '%s'", walkable[6].path);
		copy.data = (char *)workdir__read("stripped", &copy.size);
	} else {
		copy = copy_of(minor);
	}
	copy__put(&copy, "PyGILState_GetThisThreadState", 0, (const char[64]) { 0 }, 64);
	expect_refused(&copy, minor, minor == 6 ? "thread key" : "thread state");
}

int main(void)
{
	workdir__make();
	check_pythons();
	check_others();
	for (unsigned int minor = MINOR_FIRST; minor <= MINOR_LAST; minor++) {
		if (!*walkable[minor].path) {
			tap__skip("not here", "tampered CPython 3.%u", minor);
			continue;
		}
		test_codeless(minor);
		if (minor <= 10)
			test_old_versions(minor);
		else
			test_new_versions(minor);
		if (minor >= 13)
			test_descriptions(minor);
	}
	return tap__done();
}
