// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <inttypes.h>

#include "core/elf/symbols.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

/* Three levels of inlining, a C++ lambda, a cold part, aliases and assembly without sizes. */
static const char source[] =
	"#include <cstdlib>\n"
	"#include <cstdio>\n"
	"volatile int sink;\n"
	"namespace ns {\n"
	"inline __attribute__((always_inline)) int deep(int x)\n"
	"{\n"
	"	sink = x;\n"
	"	return sink * 3;\n"
	"}\n"
	"template <typename T> struct Box {\n"
	"	T value;\n"
	"	explicit Box(T v) : value(v) { sink++; }\n"
	"	inline __attribute__((always_inline)) int get(int x)\n"
	"	{\n"
	"		return deep(x) +\n"
	"		       deep(value);\n"
	"	}\n"
	"};\n"
	"__attribute__((noinline)) int work(int x)\n"
	"{\n"
	"	Box<int> box(x);\n"
	"	for (int i = 0; i < x; i++)\n"
	"		sink += box.get(i);\n"
	"	return sink;\n"
	"}\n"
	"}\n"
	"extern \"C\" __attribute__((noinline, cold)) void complain(void) { puts(\"bad\"); }\n"
	"extern \"C\" __attribute__((noinline)) int checked(int x)\n"
	"{\n"
	"	if (__builtin_expect(x > 1000, 0)) {\n"
	"		complain();\n"
	"		puts(\"cold code of checked\");\n"
	"		abort();\n"
	"	}\n"
	"	return ns::work(x) + 1;\n"
	"}\n"
	"extern \"C\" __attribute__((noipa)) int __aliased_name(int x) { return sink + x; }\n"
	"extern \"C\" int aliased(int x) __attribute__((alias(\"__aliased_name\")));\n"
	"extern \"C\" int weak_alias(int x) __attribute__((weak, alias(\"__aliased_name\")));\n"
	"asm(\".text\\n.globl asm_one\\nasm_one: nop\\nnop\\n.globl asm_two\\nasm_two: "
	"nop\\nret\\n\"\n"
	"    \".p2align 6\\n\");\n"
	"extern \"C\" void asm_one(void);\n"
	"__attribute__((noinline)) static int apply(int (*f)(int), int x) { return f(x); }\n"
	"int main(int argc, char **)\n"
	"{\n"
	"	asm_one();\n"
	"	auto lambda = [](int x) { return ns::deep(x) + checked(x); };\n"
	"	return apply(lambda, argc) + aliased(argc);\n"
	"}\n";

struct image {
	struct elf_file *file;
	struct symbols *symbols;
};

static struct image image_open(const char *name)
{
	struct image image = { NULL, NULL };
	struct err err = { "" };
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", workdir, name);
	if (elf_file__open(workdir__open(name), path, &image.file, &err) != 0 ||
	    symbols__new(image.file, "", &image.symbols) != 0) {
		printf("Bail out! %s: %s\n", name, err.text);
		exit(1);
	}
	return image;
}

static void image_close(struct image *image)
{
	symbols__free(image->symbols);
	elf_file__free(image->file);
}

/* Returns the function that owns the code, or NULL. */
static const char *owner_at(struct image *image, uint64_t vaddr)
{
	struct symbol_frame frames[SYMBOL_INLINES_MAX];
	int n = symbols__resolve(image->symbols, vaddr, frames, SYMBOL_INLINES_MAX);

	return n > 0 ? frames[n - 1].function : NULL;
}

/* Converts a name to the form of braid's demangler: no parameters, and no suffixes of parts and
 * clones. */
static void normalize(char *name)
{
	char *clone = strstr(name, " [clone ");
	char *scope = strrchr(name, ':');
	char *parameters = strchr(scope ? scope : name, '(');

	if (clone)
		*clone = '\0';
	if (parameters)
		*parameters = '\0';
	name[strcspn(name, ".")] = '\0';
}

/* Compares the first and last byte of every function that has its address alone. Oracle: nm of the
 * file with all symbols; @nm_flags selects them. */
static void test_against_nm(const char *name, const char *full, const char *nm_flags)
{
	struct image image = image_open(name);
	uint64_t vaddr, size;
	int n = 0, wrong = 0;
	char type, want[512], line[1024];
	FILE *pipe = workdir__pipe("nm -S --defined-only %s %s | "
				   "awk 'NF == 4 {n[$1]++; l[$1] = $0} "
				   "END {for (i in n) if (n[i] == 1) print l[i]}' | "
				   "grep -i ' [tw] ' | c++filt",
				   nm_flags, full);

	while (fgets(line, sizeof(line), pipe)) {
		if (sscanf(line, "%" SCNx64 " %" SCNx64 " %c %511[^\n]", &vaddr, &size, &type,
			   want) != 4 ||
		    !size)
			continue;
		normalize(want);
		for (int last = 0; last < 2; last++) {
			const char *got = owner_at(&image, last ? vaddr + size - 1 : vaddr);

			n++;
			if (got && !strcmp(got, want))
				continue;
			wrong++;
			tap__diag("%" PRIx64 ": got %s, want %s", vaddr, got ? got : "none", want);
		}
	}
	pclose(pipe);
	ok(n >= 10, "%s: %d addresses to compare", name, n);
	is_int(wrong, 0, "%s: names as nm has them", name);
	image_close(&image);
}

/* Reads the block of one address from addr2line's pipe and compares it. @line contains the line
 * that was read ahead. */
static bool same_frames(FILE *pipe, char *line, size_t size, const struct symbol_frame *got, int n)
{
	char function[512], *colon;
	bool same = true;
	int i;

	for (i = 0; fgets(line, size, pipe) && strncmp(line, "0x", 2) != 0; i++) {
		snprintf(function, sizeof(function), "%.*s", (int)strcspn(line, "\n"), line);
		normalize(function);
		if (!fgets(line, size, pipe))
			return false;
		colon = strrchr(line, ':');
		if (!same || i >= n || !colon) {
			same = false;
			continue;
		}
		same = !strcmp(got[i].function, function) &&
		       got[i].line == strtoul(colon + 1, NULL, 10) && got[i].file &&
		       !strcmp(basename(got[i].file), "a.cc") && got[i].inlined == (i < n - 1);
		if (!same)
			tap__diag("entry %d: got %s:%u, want %s%s", i, got[i].function, got[i].line,
				  function, colon);
	}
	return same && i == n;
}

/* Compares the second byte of each instruction of the functions of interest. Oracle: addr2line -i
 * -f -C. These functions have linkage names: without one, binutils 2.40 prints the name of the
 * enclosing symbol. */
static void test_against_addr2line(const char *name, const char *full)
{
	struct image image = image_open(name);
	struct symbol_frame frames[SYMBOL_INLINES_MAX];
	int n_addresses = 0, n_inlined = 0, wrong = 0;
	char line[1024];
	FILE *pipe;

	pipe = workdir__pipe(
		"for f in _ZN2ns4workEi checked main __aliased_name; do "
		"objdump -d --disassemble=$f %s | "
		"sed -n 's/^ *\\([0-9a-f]*\\):\\t[0-9a-f][0-9a-f] [0-9a-f][0-9a-f] .*/\\1/p'; "
		"done | while read -r a; do printf '%%x\\n' $((0x$a + 1)); done | "
		"addr2line -a -i -f -C -e %s | sed 's/ (discriminator.*//'",
		full, full);
	if (!fgets(line, sizeof(line), pipe))
		line[0] = '\0';
	while (!strncmp(line, "0x", 2)) {
		uint64_t vaddr = strtoull(line, NULL, 16);
		int n = symbols__resolve(image.symbols, vaddr, frames, SYMBOL_INLINES_MAX);

		n_addresses++;
		n_inlined += n > 1;
		line[0] = '\0';
		if (!same_frames(pipe, line, sizeof(line), frames, n)) {
			wrong++;
			tap__diag("differs at %" PRIx64, vaddr);
		}
	}
	pclose(pipe);
	ok(n_addresses > 25, "%s: %d addresses to compare", name, n_addresses);
	ok(n_inlined > 5, "%s: %d of them inlined", name, n_inlined);
	is_int(wrong, 0, "%s: frames as addr2line has them", name);
	image_close(&image);
}

static uint64_t address_of(const char *name, const char *symbol)
{
	uint64_t vaddr = 0;
	FILE *pipe = workdir__pipe("nm %s | grep ' %s$'", name, symbol);

	if (fscanf(pipe, "%" SCNx64, &vaddr) != 1)
		tap__diag("%s has no %s", name, symbol);
	pclose(pipe);
	return vaddr;
}

static void test_details(void)
{
	struct image image = image_open("pie");
	struct symbol_frame frames[4], one;
	uint64_t asm_two = address_of("pie", "asm_two");
	uint64_t cold = address_of("pie", "checked.cold");
	uint64_t work = address_of("pie", "_ZN2ns4workEi");
	uint64_t at = work;
	int n;

	is_str(owner_at(&image, asm_two - 1), "asm_one", "size 0 reaches to the next symbol");
	is_str(owner_at(&image, asm_two), "asm_two", "and not beyond");
	is_str(owner_at(&image, address_of("pie", "_start") + 4), "_start", "_start");
	is_str(owner_at(&image, address_of("pie", "aliased")), "aliased", "the best alias");
	is_str(owner_at(&image, cold), "checked",
	       "a cold part has the name of the function that it is a part of");
	n = symbols__resolve(image.symbols, cold, frames, 4);
	ok(n > 0 && frames[n - 1].line > 0, "and has a line");
	is_str(owner_at(&image, address_of("pie", "sink")), NULL, "data");
	is_str(owner_at(&image, UINT64_MAX), NULL, "far away");

	while (symbols__resolve(image.symbols, at, frames, 4) != 3 && at < work + 256)
		at++;
	is_int(symbols__resolve(image.symbols, at, frames, 4), 3, "three frames");
	is_int(symbols__resolve(image.symbols, at, &one, 1), 1, "no more than asked for");
	is_str(one.function, "ns::work", "which is the owner");
	is_int(one.line, frames[2].line, "at its own line");
	is_int(symbols__resolve(image.symbols, at, NULL, 0), 0, "none asked for");
	image_close(&image);
	symbols__free(NULL);
}

/* Oracle: objdump's synthetic symbols. */
static void test_plt(const char *name)
{
	struct image image = image_open(name);
	char want[256], line[512];
	int n = 0, wrong = 0;
	uint64_t vaddr;
	FILE *pipe = workdir__pipe("objdump -d %s | grep '@plt>:$'", name);

	while (fgets(line, sizeof(line), pipe)) {
		if (sscanf(line, "%" SCNx64 " <%255[^>]", &vaddr, want) != 2)
			continue;
		const char *got = owner_at(&image, vaddr + 3);

		n++;
		wrong += !got || strcmp(got, want) != 0;
	}
	pclose(pipe);
	ok(n >= 2, "%s: %d stubs", name, n);
	is_int(wrong, 0, "%s: stubs as objdump has them", name);
	image_close(&image);
}

/* Assembly without sizes, as musl's. A file that lost its table proves nothing about the functions
 * between its exported ones. Oracle: the file with its table. */
static void test_unsized(void)
{
	struct image full, bare;
	int named = 0, wrong = 0;

	workdir__write("unsized.s", ".globl jumps, calls, cases\n"
				    "jumps: test %edi,%edi; jnz 2f; 1: ret; 2: nop; jmp 1b\n"
				    "hidden: nop; ret\n"
				    "calls: call never\n"
				    "never: 1: pause; jmp 1b\n"
				    "cases: jmp *%rdi; nop; ret\n");
	workdir__run("gcc -shared -nostdlib unsized.s -o unsized.so && strip -o bare unsized.so");
	full = image_open("unsized.so");
	bare = image_open("bare");
	for (uint64_t at = address_of("unsized.so", "jumps"); owner_at(&full, at); at++) {
		const char *got = owner_at(&bare, at);

		named += got != NULL;
		wrong += got && strcmp(got, owner_at(&full, at)) != 0;
	}
	is_int(named, 8 + 5 + 2, "bytes with a name: all of jumps and calls, a jump of cases");
	is_int(wrong, 0, "none has the name of what is exported before it");
	image_close(&bare);
	image_close(&full);
}

static void test_nothing_to_find(void)
{
	struct image image = image_open("wrongdebug");

	is_str(owner_at(&image, address_of("pie", "checked")), NULL, "debug file of another build");
	image_close(&image);
}

/* The file may be replaced on disk while it is open. */
static void test_replaced(void)
{
	struct image image;

	workdir__run("cp pie gone");
	image = image_open("gone");
	workdir__run("rm gone && echo other > gone");
	is_str(owner_at(&image, address_of("pie", "checked")), "checked", "file gone from disk");
	image_close(&image);
}

/* A debug file below a root, by build-id. */
static void test_root(void)
{
	struct symbols *symbols = NULL;
	struct symbol_frame frame;
	struct elf_file *file = NULL;
	uint64_t vaddr = address_of("pie", "checked");
	char root[128];

	workdir__run("id=$(readelf -n pie | sed -n 's/.*Build ID: //p') && "
		     "d=root/usr/lib/debug/.build-id/$(echo $id | cut -c1-2) && mkdir -p $d && "
		     "objcopy --only-keep-debug pie $d/$(echo $id | cut -c3-).debug");
	is_int(elf_file__open(workdir__open("stripped"), "/x", &file, NULL), 0, "open");
	snprintf(root, sizeof(root), "%s/root", workdir);
	is_int(symbols__new(file, root, &symbols), 0, "with a root");
	is_int(symbols__resolve(symbols, vaddr, &frame, 1), 1, "resolve");
	is_str(frame.function, "checked", "name from the debug file below the root");
	ok(frame.line > 0, "line, too");
	symbols__free(symbols);
	elf_file__free(file);
}

static void resolve_all(const unsigned char *image, size_t len, int *ret_opened, int *ret_named)
{
	struct symbol_frame frames[SYMBOL_INLINES_MAX];
	struct symbols *symbols = NULL;
	struct elf_file *file = NULL;

	if (elf_file__open_memory(image, len, "bad", &file, NULL) != 0)
		return;
	++*ret_opened;
	if (symbols__new(file, "", &symbols) == 0) {
		for (uint64_t vaddr = 0x1000; vaddr < 0x1400; vaddr += 5)
			*ret_named +=
				symbols__resolve(symbols, vaddr, frames, SYMBOL_INLINES_MAX) > 0;
	}
	symbols__free(symbols);
	elf_file__free(file);
}

static void test_hostile(void)
{
	int opened = 0, named = 0;
	uint32_t random = 12345;
	size_t len;
	unsigned char *good = workdir__read("pie", &len), *bad = malloc(len);

	for (size_t cut = 0; cut < len; cut += 97) {
		memcpy(bad, good, cut);
		resolve_all(bad, cut, &opened, &named);
	}
	ok(opened > 100, "truncated: %d opened", opened);
	opened = named = 0;
	for (int i = 0; i < 600; i++) {
		memcpy(bad, good, len);
		for (int flip = 0; flip < 1 << (i % 8); flip++) {
			random = random * 1664525 + 1013904223;
			/* Every third variant changes the header. */
			bad[(random >> 8) % (i % 3 ? len : 1024)] ^= 1 << (random >> 5) % 8;
		}
		resolve_all(bad, len, &opened, &named);
	}
	ok(opened > 100 && named > 1000, "flipped: %d opened, %d names", opened, named);
	free(bad);
	free(good);
}

static void build(void)
{
	workdir__write("a.cc", source);
	workdir__run("g++ -g -O2 -pie -fpie -Wl,-z,lazy -Wl,--build-id a.cc -o pie");
	workdir__run("g++ -gdwarf-4 -O2 -no-pie -gz -Wl,-z,now -Wl,--build-id=none a.cc -o nopie");
	workdir__run("g++ -g -O2 -static a.cc -o static 2>/dev/null");
	workdir__run("g++ -O2 -pie -fpie -rdynamic a.cc -o dynamic && strip dynamic");
	workdir__run("g++ -O2 -pie -fpie -fcf-protection -Wl,-z,ibtplt a.cc -o ibt");
	workdir__run("strip -o stripped pie");
	/* By link and checksum: this file has no build-id. */
	workdir__run("mkdir .debug && objcopy --only-keep-debug nopie .debug/nopie.debug && "
		     "strip -o linked nopie && "
		     "objcopy --add-gnu-debuglink=.debug/nopie.debug linked");
	workdir__run("g++ -g -O1 -Wl,--build-id a.cc -o other && "
		     "objcopy --only-keep-debug other other.debug && strip -o wrongdebug pie && "
		     "objcopy --add-gnu-debuglink=other.debug wrongdebug");
}

static void test_minidebug(void)
{
	if (!workdir__try("command -v xz >/dev/null")) {
		tap__skip("no xz", ".gnu_debugdata");
		return;
	}
	workdir__run("objcopy --only-keep-debug pie mini && strip --strip-debug mini && xz mini && "
		     "objcopy --add-section .gnu_debugdata=mini.xz stripped minidebug");
	test_against_nm("minidebug", "pie", "");
}

/* Checks the name of the innermost of two inlined frames; "": no such frame. */
static void check_shared(const char *want, const char *what)
{
	struct image image = image_open("shares.so");
	struct symbol_frame frames[2] = {};
	uint64_t vaddr = address_of("shares.so", "the_outer_function");
	int n = symbols__resolve(image.symbols, vaddr, frames, 2);

	is_str(n == 2 ? frames[0].function : "", want, "%s", what);
	is_str(n ? frames[n - 1].function : "", "the_outer_function", "and the function");
	image_close(&image);
}

/* Debug information that is partly in another file, as dwz makes it: the names are read from there.
 * The link may lead to any file. */
static void test_shared(void)
{
	workdir__write(
		"shares.c",
		"volatile int sink;\n"
		"static inline __attribute__((always_inline)) void the_inner_function(void)\n"
		"{ sink = 1; }\n"
		"void the_outer_function(void) { the_inner_function(); }\n");
	workdir__run("gcc -O2 -g -fPIC -fno-reorder-functions -S -dA shares.c -o own.s && "
		     "sed '/DW_AT_name/!b;n;s/0xe\\b/0x1f21/' own.s >alt.s && "
		     "gcc -shared -nostdlib -Wl,--build-id=0x11223344 own.s -o shared.debug && "
		     "gcc -shared -nostdlib alt.s -o plain.so && "
		     "printf 'shared.debug\\0\\021\\042\\063\\104' >link && "
		     "printf 'shared.debug\\0\\021\\042\\063\\105' >link2 && "
		     "objcopy --add-section .gnu_debugaltlink=link2 plain.so shares.so");
	check_shared("", "a file with another build-id");
	workdir__run("objcopy --add-section .gnu_debugaltlink=link plain.so shares.so");
	check_shared("the_inner_function", "the file");
	workdir__run("mv shared.debug gone.debug && mkfifo shared.debug");
	check_shared("", "a pipe, which is not opened");
	workdir__run("rm shared.debug && ln -s /dev/ptmx shared.debug");
	check_shared("", "nor is a device");
	workdir__run("rm shared.debug && "
		     "objcopy --add-section .gnu_debugaltlink=link gone.debug shared.debug");
	check_shared("", "a file that itself shares with another");
}

int main(void)
{
	workdir__make();
	build();
	test_against_nm("pie", "pie", "");
	test_against_nm("nopie", "nopie", "");
	test_against_nm("static", "static", "");
	test_against_nm("dynamic", "dynamic", "-D");
	test_against_nm("linked", "nopie", "");
	test_minidebug();
	test_against_addr2line("pie", "pie");
	test_against_addr2line("nopie", "nopie");
	test_against_addr2line("linked", "nopie");
	test_details();
	test_plt("pie");
	test_plt("nopie");
	test_plt("ibt");
	test_unsized();
	test_nothing_to_find();
	test_replaced();
	test_root();
	test_shared();
	test_hostile();
	return tap__done();
}
