// SPDX-License-Identifier: GPL-2.0-or-later
/* Data that runtimes/ruby/ruby_build.c reads from files. Covers small programs that compilers made
 * of functions like CRuby's, and the CRuby builds on this machine. The oracles are nm and readelf,
 * before strip removes the symbols. */
#include <errno.h>
#include <inttypes.h>

#include "runtimes/ruby/ruby_build.h"
#include "tests/tap.h"
#include "tests/unit/rubies.h"

/* --- made-up interpreters --- */

/* VERSION is a string. HIDDEN is an attribute of functions, as from 3.3 on. LOOP selects
 * vm_exec_loop. */
static const char source[] =
	"#include <pthread.h>\n"
	"#include <stdio.h>\n"
	"#define SECRET __attribute__((visibility(\"hidden\")))\n"
	"const char ruby_version[] = VERSION;\n"
	"void ruby_init(void) {}\n"
	"struct thread { long node[2]; void *self; };\n"
	"struct ec { long stack[6]; struct thread *thread; };\n"
	"static __thread long before = 3, zero[5];\n"
	"HIDDEN __thread struct ec *ruby_current_ec;\n"
	"SECRET __attribute__((noinline)) struct ec *rb_current_ec_noinline(void)\n"
	"    { return ruby_current_ec; }\n"
	"void *rb_thread_current(void) { return ruby_current_ec->thread->self; }\n"
	"void set(struct ec *to) { ruby_current_ec = to; before += zero[before]++; }\n"
	"static pthread_key_t native_thread_key;\n"
	"int ruby_native_thread_p(void) { return pthread_getspecific(native_thread_key) != 0; }\n"
	"int create(void) { return pthread_key_create(&native_thread_key, 0); }\n"
	"struct table { long type[2]; long n; };\n"
	"struct symbols { unsigned last_id; struct table *str; long ids, hash; };\n"
	"struct symbols decoys[2] = { { 7 }, { 300, 0, 1, 0 } };\n"
	"SECRET struct symbols ruby_global_symbols = { 240 };\n"
	"__attribute__((noipa)) long each(void *table, long n) { return n + (table == 0); }\n"
	"long rb_sym_all_symbols(void) {\n"
	"    struct symbols *symbols = &ruby_global_symbols;\n"
	"    each(decoys, decoys[0].last_id);\n"
	"    return each(symbols->str, symbols->str->n);\n"
	"}\n"
	"__attribute__((cold, noinline)) long fail(const char *s, long n) { return puts(s) + n; }\n"
	"volatile long in[4];\n"
	"const void **program;\n"
	"static __attribute__((noinline)) long vm_exec_core(long n) {\n"
	"    static const void *const labels[] = {\n"
	"#define OP(n) &&op##n,\n"
	"#include \"ops.h\"\n"
	"#undef OP\n"
	"    };\n"
	"#define OP(k) op##k: n = n * k + in[k & 3]; if (n == k + 99) n += fail(#k, n); "
	"pc += 2; goto **pc;\n"
	"    const void **pc = program;\n"
	"    if (!n) return (long)labels;\n"
	"    goto **pc;\n"
	"#include \"ops.h\"\n"
	"}\n"
	"__attribute__((noipa)) long helper(long n) { return n == 3 ? fail(\"helper\", n) : n; }\n"
	"#if LOOP\n"
	"static __attribute__((noinline)) long vm_exec_loop(long n) {\n"
	"    while (n & 4) n = vm_exec_core(helper(n)) + 1;\n"
	"    return n;\n"
	"}\n"
	"#else\n"
	"#define vm_exec_loop(n) n\n"
	"#endif\n"
	"HIDDEN __attribute__((noipa)) long rb_vm_exec(long n) {\n"
	"    for (;;) {\n"
	"        n = vm_exec_core(helper(n));\n"
	"        if (in[2] == 5) n = helper(n) + vm_exec_core(n);\n"
	"        n = vm_exec_loop(n) + 1;\n"
	"        if (n == 7) { n = fail(\"exec\", n) * 3; n += fail(\"again\", n); }\n"
	"        if (in[1]) return n;\n"
	"    }\n"
	"}\n"
	"long rb_iseq_eval(long n) {\n"
	"    if (n == 3) fail(\"not an iseq\", n);\n"
	"    in[0] = helper(n) + (ruby_current_ec != 0);\n"
	"    return rb_vm_exec(n);\n"
	"}\n"
	"int main(int n, char **v) { return create() + (int)rb_iseq_eval(n); }\n";

static const char *const ways[] = {
	"gcc -O2 -fPIC -shared",      "gcc -O2 -fPIE -pie",
	"gcc -O2 -fno-pic -no-pie",   "gcc -O3 -fcf-protection -fstack-protector-all -fPIE -pie",
	"gcc -O0 -fPIC -shared",      "gcc -O2 -fPIC -shared -ftls-model=initial-exec",
	"gcc -O1 -fPIC -static-pie",  "gcc -O2 -fPIC -pie -ftls-model=global-dynamic",
	"clang -O2 -fPIC -shared",    "clang -O2 -fPIE -pie",
	"clang -O2 -fno-pic -no-pie",
};

static void write_ops(void)
{
	char text[4096];
	size_t n = 0;

	for (int i = 0; i < 128; i++)
		n += snprintf(text + n, sizeof(text) - n, "OP(%d)\n", i);
	workdir__write("ops.h", text);
}

/* Opens a file, absolute or relative to the working directory. */
static struct elf_file *open_file(const char *path)
{
	struct elf_file *file = NULL;

	elf_file__open(*path == '/' ? open(path, O_RDONLY | O_CLOEXEC) : workdir__open(path), path,
		       &file, NULL);
	return file;
}

static void compile(const char *how, const char *version, const char *defines)
{
	workdir__run("%s -w -rdynamic -DVERSION='\"%s\"' %s -o made source.c", how, version,
		     defines);
}

static void test_version(const char *version, int rc, unsigned int major, unsigned int minor,
			 unsigned int teeny)
{
	struct ruby_number number = {};
	struct elf_file *file;

	workdir__write("version.c", "const char ruby_version[] = VERSION;\n");
	workdir__run("cc -shared -DVERSION='\"%s\"' -o made version.c", version);
	file = open_file("made");
	is_int(ruby_build__version(file, &number), rc, "\"%s\"", version);
	ok(number.major == major && number.minor == minor && number.teeny == teeny,
	   "\"%s\" is %u.%u.%u", version, major, minor, teeny);
	ok(!ruby_build__is_ruby(file), "that alone is no Ruby");
	elf_file__free(file);
}

static void test_versions(void)
{
	test_version("2.7.0", 0, 2, 7, 0);
	test_version("3.1.2", 0, 3, 1, 2);
	test_version("3.3.11", 0, 3, 3, 11);
	test_version("10.12.345", 0, 10, 12, 345);
	test_version("3.1", -ENOENT, 0, 0, 0);
	test_version("3.1.x", -ENOENT, 0, 0, 0);
	test_version("3.1.2-dev", -ENOENT, 0, 0, 0);
	test_version("3.1.2.4", -ENOENT, 0, 0, 0);
	test_version("", -ENOENT, 0, 0, 0);
	test_version("3.1.2            ", -ENOENT, 0, 0, 0);
}

/* --- output of binutils --- */

static uint64_t ask(const char *path, const char *command)
{
	FILE *pipe = workdir__pipe("f='%s'; %s", path, command);
	uint64_t answer = 0;

	if (fscanf(pipe, "%" SCNx64, &answer) != 1)
		answer = 0;
	pclose(pipe);
	return answer;
}

struct facts {
	struct runtime_range loops[RUBY_LOOPS_MAX];
	size_t n_loops;
	uint64_t key, symbols;
	uint64_t ec, tls_size; /* ruby_current_ec in the TLS block, and the block's size */
	bool is_library;
};

/* Returns true if a jump leads to the cold part. Otherwise it is a remainder of unreachable code,
 * which is optional in the result, and is left out. */
static bool is_reached(const char *path, const char *name)
{
	return workdir__try("objdump -d --disassemble=%.*s '%s' | grep -q 'j.*<%s'",
			    (int)strcspn(name, "."), name, path, name);
}

static void ask_loops(const char *path, struct facts *facts)
{
	FILE *pipe = workdir__pipe("nm -S '%s' | grep -E ' (rb_vm_exec|vm_exec_(core|loop))"
				   "(\\.cold)?$' | sort",
				   path);
	uint64_t start, size;
	char name[64];

	while (facts->n_loops < RUBY_LOOPS_MAX &&
	       fscanf(pipe, "%" SCNx64 " %" SCNx64 " %*c %63s", &start, &size, name) == 3)
		if (!strchr(name, '.') || is_reached(path, name))
			facts->loops[facts->n_loops++] =
				(struct runtime_range) { start, start + size };
	pclose(pipe);
}

static void ask_facts(const char *path, struct facts *facts)
{
	*facts = (struct facts) {};
	ask_loops(path, facts);
	facts->key = ask(path, "nm $f | grep ' native_thread_key$'");
	facts->symbols = ask(path, "nm $f | grep ' ruby_global_symbols$'");
	facts->ec = ask(path, "nm $f | grep ' ruby_current_ec$'");
	facts->tls_size = ask(path, "readelf -lW $f | awk '$1 == \"TLS\" { print \"(\" $6 \"+\" $8 "
				    "\"-1)/\" $8 \"*\" $8 }' | { read e && printf %x $(($e)); }");
	facts->is_library = !workdir__try("readelf -dW '%s' | grep -q ' PIE$' || "
					  "readelf -hW '%s' | grep -q EXEC",
					  path, path);
}

/* --- comparison --- */

/* Returns the value that the dynamic linker, or the linker of a program, stores in a word of @slot:
 * the distance of a variable from the start of its TLS block. */
static uint64_t slot_value(const struct elf_file *file, const char *path, uint64_t slot,
			   uint64_t tls_size)
{
	char command[256];
	uint64_t value = 0;

	snprintf(command, sizeof(command),
		 "readelf -rW $f | awk '$1 == \"%016" PRIx64 "\" && $3 ~ /TPOFF/ "
		 "{ print (NF > 4 ? $4 : $NF); exit }'",
		 slot);
	value = ask(path, command);
	if (value)
		return value;
	elf_file__read(file, slot, &value, sizeof(value));
	return value + tls_size;
}

static void check_state(const struct elf_file *file, const char *path, const char *label,
			const struct facts *facts)
{
	static const struct ruby_number number = { 3, 1, 2 };
	struct ruby_state state = {};
	uint64_t got = 0;

	if (!ok(ruby_build__state(file, &number, &state) == 0, "%s: has a state", label))
		return;
	if (facts->is_library)
		ok(state.tls.kind != X86_TLS_FIXED, "%s: a library's is not fixed", label);
	if (state.tls.kind == X86_TLS_FIXED)
		got = state.tls.offset + facts->tls_size;
	if (state.tls.kind == X86_TLS_SLOT)
		got = slot_value(file, path, state.tls.slot_vaddr, facts->tls_size);
	if (state.tls.kind == X86_TLS_INDEX) /* the file has the library's own distance */
		got = slot_value(file, path, state.tls.slot_vaddr + 8, 0) + state.tls.offset;
	is_int(got, facts->ec, "%s: state, kind %d", label, state.tls.kind);
}

static int compare_starts(const void *a, const void *b)
{
	const struct runtime_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void check_loops(const struct elf_file *file, const char *label, const struct facts *facts)
{
	struct runtime_range got[RUBY_LOOPS_MAX];
	size_t n = ruby_build__loops(file, got);
	bool good = n && n == facts->n_loops;

	qsort(got, n, sizeof(*got), compare_starts);
	for (size_t i = 0; good && i < n; i++)
		good = got[i].start == facts->loops[i].start && got[i].end == facts->loops[i].end;
	if (ok(good, "%s: %zu ranges of loops", label, facts->n_loops))
		return;
	for (size_t i = 0; i < n; i++)
		tap__diag("got %#" PRIx64 " to %#" PRIx64, got[i].start, got[i].end);
	for (size_t i = 0; i < facts->n_loops; i++)
		tap__diag("want %#" PRIx64 " to %#" PRIx64, facts->loops[i].start,
			  facts->loops[i].end);
}

static void check_file(const char *path, const char *label, const struct facts *facts)
{
	static const struct ruby_number old = { 2, 7, 4 };
	struct elf_file *file = open_file(path);
	struct ruby_state state = {};
	uint64_t symbols = 0;

	if (!ok(file && ruby_build__is_ruby(file), "%s: is Ruby", label))
		return;
	ok(!ruby_build__other(file), "%s: is no other Ruby", label);
	if (facts->key) {
		is_int(ruby_build__state(file, &old, &state), 0, "%s: has a key", label);
		is_int(state.key_vaddr, facts->key, "%s: key", label);
	}
	if (facts->ec)
		check_state(file, path, label, facts);
	is_int(ruby_build__symbols(file, &symbols), 0, "%s: has symbols", label);
	is_int(symbols, facts->symbols, "%s: symbols", label);
	check_loops(file, label, facts);
	elf_file__free(file);
}

static void check_with_and_without(const char *path, const char *label, bool strip)
{
	struct facts facts;
	char stripped[256];

	ask_facts(path, &facts);
	check_file(path, label, &facts);
	if (!strip)
		return;
	workdir__run("strip --strip-all -o stripped '%s'", path);
	snprintf(stripped, sizeof(stripped), "%s, stripped", label);
	check_file("stripped", stripped, &facts);
}

/* --- all builds --- */

static void test_synthetic(const char *how)
{
	/* Without optimization vm_exec_core has only one indirect jump. A static program has no
	 * .dynsym. */
	bool strip = !strstr(how, "-O0") && !strstr(how, "-static");
	char label[256], compiler[16];

	sscanf(how, "%15s", compiler);
	if (!workdir__try("command -v %s >/dev/null", compiler)) {
		tap__skip("no such compiler", "%s", how);
		return;
	}
	compile(how, "3.1.2", "-DHIDDEN=");
	check_with_and_without("made", how, strip);
	compile(how, "3.4.5", "-DHIDDEN=SECRET -DLOOP=1");
	snprintf(label, sizeof(label), "%s, hidden", how);
	check_with_and_without("made", label, strip);
}

static void test_without_descriptions(void)
{
	struct runtime_range loops[RUBY_LOOPS_MAX];
	struct elf_file *file;

	compile("gcc -O2 -fPIC -shared", "3.1.2", "-DHIDDEN=");
	workdir__run("objcopy --remove-section .eh_frame --remove-section .eh_frame_hdr made bare");
	file = open_file("bare");
	is_int(ruby_build__loops(file, loops), 0, "no frame descriptions: no loops");
	elf_file__free(file);
}

static void test_others(void)
{
	struct ruby_number number = { 3, 1, 2 };
	struct runtime_range loops[RUBY_LOOPS_MAX];
	struct ruby_state state;
	struct elf_file *file;
	uint64_t symbols;

	workdir__write("other.c", "int truffleposix_stat(void) { return 0; }\n");
	workdir__run("cc -shared -o made other.c");
	file = open_file("made");
	is_str(ruby_build__other(file), "TruffleRuby", "TruffleRuby is told");
	ok(!ruby_build__is_ruby(file), "and is no CRuby");
	is_int(ruby_build__version(file, &number), -ENOENT, "it has no version");
	is_int(ruby_build__state(file, &number, &state), -ENOENT, "no state");
	is_int(ruby_build__symbols(file, &symbols), -ENOENT, "no symbols");
	is_int(ruby_build__loops(file, loops), 0, "no loops");
	elf_file__free(file);
}

static void check_real(const struct ruby *ruby)
{
	struct elf_file *file = open_file(ruby->file);
	struct ruby_number number = {};
	char got[32];

	ruby_build__version(file, &number);
	snprintf(got, sizeof(got), "%u.%u.%u", number.major, number.minor, number.teeny);
	is_str(got, ruby->version, "%s: version", ruby->file);
	elf_file__free(file);
	if (workdir__try("nm '%s' 2>/dev/null | grep -q .", ruby->file))
		check_with_and_without(ruby->file, ruby->file, true);
	else
		tap__skip("no .symtab to compare with", "%s", ruby->file);
}

int main(void)
{
	static struct rubies rubies;

	workdir__make();
	workdir__write("source.c", source);
	write_ops();
	test_versions();
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
		test_synthetic(ways[i]);
	test_without_descriptions();
	test_others();
	rubies__find(&rubies);
	for (size_t i = 0; i < rubies.n; i++)
		check_real(&rubies.list[i]);
	return tap__done();
}
