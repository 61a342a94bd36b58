// SPDX-License-Identifier: GPL-2.0-or-later
/* Data that runtimes/python/python_build.c reads from machine code. Covers small programs that
 * compilers made of functions like CPython's, and the CPython builds on this machine, compared with
 * nm. */
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "runtimes/python/python_build.h"
#include "runtimes/python/python_versions.h"
#include "tests/tap.h"
#include "tests/unit/python_roots.h"

/* --- made-up interpreters --- */

/* VERSION is a string, TSS the offset of the key in _PyRuntime. */
static const char source[] =
	"#include <pthread.h>\n"
	"#include <stdio.h>\n"
	"struct tss { int is_initialized; pthread_key_t key; };\n"
	"struct runtime { char before[TSS]; struct tss key; char behind[400]; };\n"
	"struct runtime _PyRuntime = { .key = { 0, 0 }, .behind = { 1 } };\n"
	"static int autoTLSkey = -1, autoInterpreterState = 1;\n"
	"const char *Py_GetVersion(void) {\n"
	"    static char version[250];\n"
	"    snprintf(version, sizeof(version), \"%.80s (%.80s) %.80s\", VERSION, __DATE__, "
	"__VERSION__);\n"
	"    return version;\n"
	"}\n"
	"void *PyThread_tss_get(struct tss *);\n"
	"__attribute__((noipa, noinline)) void *PyThread_tss_get(struct tss *t) {\n"
	"    return pthread_getspecific(t->key);\n"
	"}\n"
	"void *PyGILState_GetThisThreadState(void) {\n"
	"#if PLAIN\n"
	"    return autoInterpreterState ? pthread_getspecific(autoTLSkey) : 0;\n"
	"#elif INLINE\n"
	"    return _PyRuntime.key.is_initialized ? pthread_getspecific(_PyRuntime.key.key) : 0;\n"
	"#else\n"
	"    return PyThread_tss_get(&_PyRuntime.key);\n"
	"#endif\n"
	"}\n"
	"void use(int *a) { autoTLSkey = *a; autoInterpreterState = a[1]; }\n"
	"__attribute__((cold, noinline)) int fail(const char *s, int n) { return puts(s) + n; }\n"
	"volatile int in[4];\n"
	"int other(int n) { if (n == 7) { n = fail(\"a\", n); n += fail(\"b\", n); } return n; }\n"
	"int _PyEval_EvalFrameDefault(int n) {\n"
	"    for (;;) switch (in[n & 3]) {\n"
	"    case 0: n = n * 3 + in[1]; if (n == 3) { n = fail(\"x\", n) * 3; break; } continue;\n"
	"    case 1: n ^= in[2]; if (n == 4) { n += fail(\"y\", n); goto error; } continue;\n"
	"    case 2: n += other(n); if (n == 5) goto error; continue;\n"
	"    case 9: return n;\n"
	"    error: n = fail(\"error\", n); if (in[3]) return -1;\n"
	"    }\n"
	"}\n"
	"int main(int n, char **v) { use(&n); return Py_GetVersion()[n] + (v == 0) +\n"
	"    !PyGILState_GetThisThreadState() + _PyEval_EvalFrameDefault(n); }\n";

static const char tls_source[] =
	"static __thread long before = 3, zero[5];\n"
	"static __thread void *_Py_tss_gilstate __attribute__((aligned(16)));\n"
	"void *PyGILState_GetThisThreadState(void) { return _Py_tss_gilstate; }\n"
	"void set(void *to) { _Py_tss_gilstate = to; before += zero[before]++; }\n"
	"int main(int n, char **v) { set(v); return PyGILState_GetThisThreadState() == v; }\n";

static const char *const ways[] = {
	"gcc -O2 -fPIC -shared",      "gcc -O2 -fPIE -pie",
	"gcc -O2 -fno-pic -no-pie",   "gcc -O3 -fcf-protection -fPIE -pie",
	"clang -O2 -fPIC -shared",    "clang -O2 -fPIE -pie",
	"clang -O2 -fno-pic -no-pie",
};

static struct elf_file *build(const char *how, const char *version, unsigned int tss,
			      const char *defines)
{
	struct elf_file *file = NULL;

	unlink("made");
	workdir__run("%s -w -rdynamic -DVERSION='\"%s\"' -DTSS=%u %s -o made source.c", how,
		     version, tss, defines);
	elf_file__open(workdir__open("made"), "made", &file, NULL);
	return file;
}

static void test_version(const char *how, const char *version, uint32_t want)
{
	struct elf_file *file = build(how, version, 600, "");
	uint32_t hex = 0;

	is_int(python_build__version(file, &hex), want ? 0 : -ENOENT, "%s: \"%s\"", how, version);
	ok(hex == want, "%s: \"%s\" is %#x", how, version, hex);
	elf_file__free(file);
}

/* The compiler decides how the code refers to the text; the text alone decides the version. */
static void test_versions(const char *how)
{
	test_version(how, "3.9.18", 0x030912f0);
	if (how != ways[0])
		return;
	test_version(how, "3.10.0", 0x030a00f0);
	test_version(how, "3.8.5+", 0x030805f0);
	test_version(how, "3.10.0rc1", 0x030a00c1);
	test_version(how, "3.7.0b5", 0x030700b5);
	test_version(how, "2.7.18", 0x020712f0);
	test_version(how, "3.9", 0);
	test_version(how, "3.9.x", 0);
	test_version(how, "3.9.18-custom", 0);
	test_version(how, "3.9.0alpha", 0);
}

/* Tests a key at offset @tss. @expected is the offset where it is expected; 0: the actual one. */
static void test_key(const char *how, unsigned int tss, unsigned int expected, const char *defines)
{
	struct elf_file *file = build(how, "3.9.18", tss, defines);
	uint64_t runtime = 0, size = 0, got = 0;

	elf_file__find_symbol(file, "_PyRuntime", &runtime, &size);
	is_int(python_build__key(file, runtime, size, runtime + (expected ? expected : tss), &got),
	       0, "%s %s: key at %u, expected at %u", how, defines, tss, expected);
	is_int(got - runtime, tss, "%s %s: is found there", how, defines);
	elf_file__free(file);
}

static void test_plain_key(const char *how)
{
	struct elf_file *file = build(how, "3.6.15", 600, "-DPLAIN=1");
	uint64_t want = 0, got = 0;

	elf_file__find_symbol(file, "autoTLSkey", &want, NULL);
	elf_file__free(file);
	workdir__run("strip --strip-all made");
	elf_file__open(workdir__open("made"), "made", &file, NULL);
	is_int(python_build__key(file, 0, 0, 0, &got), 0, "%s: plain key", how);
	is_int(got, want, "%s: is found where the symbol was", how);
	elf_file__free(file);
}

/* --- thread-local variables --- */

/* Returns an address from a listing of a binary. */
static uint64_t ask(const char *command)
{
	FILE *pipe = workdir__pipe("%s", command);
	uint64_t answer = 0;

	if (fscanf(pipe, "%" SCNx64, &answer) != 1)
		answer = 0;
	pclose(pipe);
	return answer;
}

static void test_tls(const char *how, int kind, const char *relocation)
{
	uint64_t variable, size, slot;
	struct elf_file *file = NULL;
	struct x86_tls tls;
	char command[128];

	if (!workdir__try("%s -O2 -o made tls.c 2>/dev/null", how)) {
		tap__skip("not compiled", "%s: thread-local variable", how);
		return;
	}
	variable = ask("nm made | grep ' _Py_tss_gilstate$'");
	size = ask("readelf -lW made | awk '$1 == \"TLS\" { print $6 }'");
	snprintf(command, sizeof(command), "readelf -rW made | grep R_X86_64_%s", relocation);
	slot = ask(command);
	elf_file__open(workdir__open("made"), "made", &file, NULL);
	if (!ok(python_build__tls(file, &tls) == 0 && (int)tls.kind == kind, "%s: kind %d", how,
		kind))
		tls = (struct x86_tls) { 0 };
	if (kind == X86_TLS_FIXED)
		is_int(tls.offset, variable - ((size + 15) & ~15ULL), "%s: offset", how);
	else
		is_int(tls.slot_vaddr, slot, "%s: slot", how);
	if (kind == X86_TLS_INDEX)
		is_int(tls.offset, variable, "%s: offset in the block", how);
	elf_file__free(file);
}

static void test_thread_locals(const char *compiler)
{
	static const char shared[] = "-fPIC -shared -ftls-model=";
	char how[128];

	snprintf(how, sizeof(how), "%s -fPIE -pie -rdynamic", compiler);
	test_tls(how, X86_TLS_FIXED, "NONE");
	snprintf(how, sizeof(how), "%s -fcf-protection -fno-pic -no-pie -rdynamic", compiler);
	test_tls(how, X86_TLS_FIXED, "NONE");
	snprintf(how, sizeof(how), "%s %sinitial-exec", compiler, shared);
	test_tls(how, X86_TLS_SLOT, "TPOFF64");
	snprintf(how, sizeof(how), "%s %slocal-dynamic", compiler, shared);
	test_tls(how, X86_TLS_INDEX, "DTPMOD64");
}

/* --- all builds --- */

static void test_synthetic(const char *how)
{
	char compiler[16];

	sscanf(how, "%15s", compiler);
	if (!workdir__try("command -v %s >/dev/null", compiler)) {
		tap__skip("no such compiler", "%s", how);
		return;
	}
	test_versions(how);
	test_key(how, 584, 0, "");
	test_key(how, 584, 0, "-DINLINE=1");
	test_key(how, 1416, 1504, "");
	test_key(how, 1416, 1504, "-DINLINE=1");
	test_plain_key(how);
}

/* --- loops --- */

/* Stores nm's ranges of the loop and its cold part in @ret. A cold part that the loop does not jump
 * to is a remainder of unreachable code. It is optional in the result, so it is left out here. */
static size_t ask_nm(const char *path, struct runtime_range *ret)
{
	FILE *pipe = workdir__pipe("{ nm -S '%s'; nm -SD '%s'; } 2>/dev/null", path, path);
	uint64_t start, size;
	char line[512], name[256];

	memset(ret, 0, PYTHON_LOOPS_MAX * sizeof(*ret));
	while (fgets(line, sizeof(line), pipe)) {
		if (sscanf(line, "%" SCNx64 " %" SCNx64 " %*c %255s", &start, &size, name) != 3)
			continue;
		if (strcmp(name, "_PyEval_EvalFrameDefault") == 0)
			ret[0] = (struct runtime_range) { start, start + size };
		if (strcmp(name, "_PyEval_EvalFrameDefault.cold") == 0)
			ret[1] = (struct runtime_range) { start, start + size };
	}
	pclose(pipe);
	if (!ret[1].start)
		return ret[0].start != 0;
	return 1 + workdir__try("objdump -d --disassemble=_PyEval_EvalFrameDefault '%s' | "
				"grep -q 'j.*<_PyEval_EvalFrameDefault\\.cold'",
				path);
}

static bool same_loops(const struct elf_file *file, const struct runtime_range *want, size_t n)
{
	struct runtime_range got[PYTHON_LOOPS_MAX];
	size_t n_got = python_build__loops(file, got);
	bool good = n_got == n;

	for (size_t i = 0; i < n_got; i++)
		good = good && got[i].start == want[i].start && got[i].end == want[i].end;
	for (size_t i = 0; !good && i < n_got; i++)
		tap__diag("%#" PRIx64 " to %#" PRIx64 ", want %#" PRIx64 " to %#" PRIx64,
			  got[i].start, got[i].end, want[i].start, want[i].end);
	return good;
}

/* Checks the loops before and after the local symbols are stripped. @path is absolute, or in the
 * working directory. */
static size_t check_loops(const char *path, const char *label)
{
	struct runtime_range want[PYTHON_LOOPS_MAX];
	struct elf_file *file = NULL;
	size_t n = ask_nm(path, want);

	workdir__run("strip --strip-all -o stripped '%s'", path);
	ok(elf_file__open(*path == '/' ? open(path, O_RDONLY | O_CLOEXEC) : workdir__open(path),
			  path, &file, NULL) == 0 &&
		   same_loops(file, want, n),
	   "%s: the loop has %zu ranges", label, n);
	elf_file__free(file);
	file = NULL;
	ok(elf_file__open(workdir__open("stripped"), path, &file, NULL) == 0 &&
		   same_loops(file, want, n),
	   "%s: also when it is stripped", label);
	elf_file__free(file);
	return n;
}

static void test_synthetic_loops(const char *how)
{
	struct elf_file *file;

	if (!workdir__try("%s -w -DVERSION='\"3.9.1\"' -DTSS=8 -rdynamic -o made source.c", how)) {
		tap__skip("not compiled", "%s: loop", how);
		return;
	}
	ok(check_loops("made", how) == (strncmp(how, "gcc", 3) == 0 ? 2 : 1),
	   "%s: with a cold part, if the compiler is one for it", how);
	workdir__run("objcopy --remove-section .eh_frame --remove-section .eh_frame_hdr made bare");
	ok(elf_file__open(workdir__open("bare"), "bare", &file, NULL) == 0, "opened");
	ok(python_build__loops(file, (struct runtime_range[PYTHON_LOOPS_MAX]) { { 0 } }) == 1,
	   "%s: no frame descriptions", how);
	elf_file__free(file);
}

/* --- real builds --- */

static void check_version(const char *path, const struct python_facts *facts)
{
	struct elf_file *file = NULL;
	char got[16] = "?";
	uint32_t hex;

	if (elf_file__open(open(path, O_RDONLY | O_CLOEXEC), path, &file, NULL) == 0 &&
	    python_build__version(file, &hex) == 0)
		snprintf(got, sizeof(got), "%u.%u.%u", hex >> 24, hex >> 16 & 0xff,
			 hex >> 8 & 0xff);
	is_str(got, facts->version, "%s: version", path);
	elf_file__free(file);
}

static bool has_symtab(const char *path)
{
	return workdir__try("nm '%s' 2>/dev/null | grep -q .", path);
}

/* Checks the kind of the loop and the presence of a compiler by the names of functions. */
static void check_kind(const char *path)
{
	struct elf_file *file = NULL;

	if (!ok(elf_file__open(open(path, O_RDONLY | O_CLOEXEC), path, &file, NULL) == 0, "%s",
		path))
		return;
	is_int(python_build__tail_calls(file), workdir__try("nm '%s' | grep -q _TAIL_CALL_", path),
	       "%s: tail calls", path);
	is_int(python_build__compiles(file), workdir__try("nm '%s' | grep -q _PyJIT_Compile", path),
	       "%s: a compiler", path);
	elf_file__free(file);
}

/* Builds a program with a function of tail calls, and with a message of the compiler. */
static void test_synthetic_kind(const char *how)
{
	struct elf_file *file = NULL;

	workdir__run("printf 'const char *const said = \"unable to protect executable memory\";"
		     "int _TAIL_CALL_start_frame(void) { return 1; }' >said.c");
	if (!workdir__try("%s -w -DVERSION='\"3.9.1\"' -DTSS=8 -rdynamic -o made source.c said.c",
			  how)) {
		tap__skip("not compiled", "%s: kind", how);
		return;
	}
	ok(elf_file__open(workdir__open("made"), "made", &file, NULL) == 0 &&
		   python_build__tail_calls(file) && python_build__compiles(file),
	   "%s: tail calls, and a compiler", how);
	elf_file__free(file);
}

static void check_real(const struct python *python)
{
	struct python_facts facts;

	if (!ok(python_facts__ask(python->command, &facts), "%s has facts", python->command))
		return;
	check_version(facts.path, &facts);
	if (!has_symtab(facts.path)) {
		tap__skip("no .symtab to compare with", "%s: loops", facts.path);
		return;
	}
	check_loops(facts.path, facts.path);
	check_kind(facts.path);
}

int main(void)
{
	static struct pythons pythons;

	workdir__make();
	workdir__write("source.c", source);
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		test_synthetic(ways[i]);
		test_synthetic_loops(ways[i]);
		test_synthetic_kind(ways[i]);
	}
	workdir__write("tls.c", tls_source);
	test_thread_locals("gcc");
	test_thread_locals("clang");
	pythons__find_everywhere(&pythons);
	for (size_t i = 0; i < pythons.n; i++)
		check_real(&pythons.list[i]);
	return tap__done();
}
