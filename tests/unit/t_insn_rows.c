// SPDX-License-Identifier: GPL-2.0-or-later
/* Rules from machine code. Covers code that a compiler described, where the rules must equal the
 * call frame information; musl's assembly; and code that contradicts itself. */
#include <fcntl.h>

#include "core/base/util.h"
#include "core/unwind/unwind_table.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

static const char source[] =
	"#include <stdarg.h>\n"
	"extern int out(const char *, ...);\n"
	"extern void fill(char *, int);\n"
	"static __attribute__((noinline, noreturn)) void die(int n)\n"
	"{ for (;;) out(\"die\", n); }\n"
	"static __attribute__((noinline)) int by_pointer(int n) { out(\"a\"); return n * 3; }\n"
	"static __attribute__((noinline)) int ends(int n) { if (n > 3) die(n); out(\"b\"); return "
	"n; }\n"
	"int (*const pointers[])(int) = { by_pointer, ends };\n"
	"int choose(int n, int m) {\n"
	"    char text[300]; int s = 0;\n"
	"    fill(text, n);\n"
	"    for (int i = 0; i < n; i++) switch (text[i]) {\n"
	"    case 0: s += out(\"0\", i, s); break;\n"
	"    case 1: s ^= out(\"1\", m); break;\n"
	"    case 2: if (s == m) die(s); s += ends(s); break;\n"
	"    case 3: s -= pointers[i & 1](s); break;\n"
	"    case 4: s *= 3; if (s > 100) return out(\"4\"); break;\n"
	"    case 5: return s;\n"
	"    case 6: s += out(\"6\", 1, 2, 3, 4, 5, 6, 7, 8, 9); break;\n"
	"    case 7: s |= text[m & 255];\n"
	"    }\n"
	"    return s;\n"
	"}\n"
	"int tail(int n) { return n ? choose(n, 1) : out(\"t\"); }\n"
	"int many(int n, ...) { va_list l; int s = 0; va_start(l, n);\n"
	"    while (n--) s += out(\"m\", va_arg(l, int)); va_end(l); return s; }\n"
	"int last(int n) { die(n); }\n";

static const char assembly[] =
	".text\n"
	".macro function name\n.globl \\name\n.type \\name,@function\n\\name:\n.endm\n"
	"function cloned\n" /* as musl's __clone */
	"mov %rcx,(%rsi)\nsyscall\ntest %eax,%eax\njnz 1f\n"
	"xor %ebp,%ebp\npop %rdi\nat_call: call *%r9\nmov %eax,%edi\nsyscall\nhlt\n"
	"1: ret\n"
	"function forked\n" /* vfork */
	"pop %rdx\nat_fork: mov $58,%eax\nsyscall\npush %rdx\npushed: jmp cloned\n"
	"function restored\n"
	"mov $15,%rax\nsyscall\n"
	"function variable\n"
	"push %rbp\nmov %rsp,%rbp\npush %rbx\nin_frame: sub %rdi,%rsp\nunknown: call *%rsi\n"
	"lea -8(%rbp),%rsp\npop %rbx\nleave\nleft: ret\n"
	"function jumper\n" /* longjmp */
	"mov 48(%rdi),%rsp\nlost: jmp *56(%rdi)\n"
	"function contradicts\n"
	"test %edi,%edi\njz 2f\npush %rax\n2: nop\nboth: mov %eax,%edx\nret\n"
	"function pointless\n" /* rbp is not a frame pointer on one of two paths */
	"push %rbp\ntest %edi,%edi\njz 3f\nmov %rsp,%rbp\n3: mov %eax,%edx\nafter: pop %rbp\nret\n"
	".globl at_call,at_fork,pushed,in_frame,unknown,left,lost,both,after\n";

/* As in musl, which describes only its PLT: a number that is not a distance, and a jump to a stub.
 * The caller of main, which only an address refers to, never returns. */
static const char endless[] =
	".text\n.macro function name\n.globl \\name\n.type \\name,@function\n\\name:\n.endm\n"
	"function compares\nand $0x7fffffff,%edi\ncompared: cmp $0x7ffffffe,%edi\nret\n"
	"function tails\nmov %edi,%esi\nto_stub: jmp outer@PLT\n"
	"function starter\nlea .Lendless(%rip),%rax\njmp *%rax\n.p2align 4\n"
	".Lendless: push %rbx\nsub $16,%rsp\nmov %rdi,%rbx\ncall outer@PLT\n"
	"behind: mov %ebx,%edi\ncall *%rbx\nbehind_too: mov %eax,%edi\ncall outer@PLT\nhlt\n"
	".globl compared,to_stub,behind,behind_too\n";

/* Code beside code with descriptions. Only paths that lead to a return are trusted. */
static const char gaps_c[] = "int described(int n) { return n + 1; }\n"
			     "int described_too(int n) { return n - 1; }\n";
static const char gaps_s[] =
	".text\n.p2align 4\n"
	".macro at name\n.globl \\name\n\\name:\n.L\\name:\n.endm\n"
	"mov %eax,%edx\nat leaf\nadd %edi,%eax\nrepz ret\n.p2align 4\n"
	/* saves the registers that it changes, and jumps through its own table (as GMP's) */
	"add $-40,%rsp\nmov %rbx,32(%rsp)\nmov %rbp,24(%rsp)\nat saved\nxor %ebp,%ebp\n"
	"lea .Ltable(%rip),%rax\nmovslq (%rax,%rdi,4),%rcx\nadd %rax,%rcx\nat switches\n"
	"jmp *%rcx\n"
	"at first_case\nimul %rbp,%rbx\njmp .Llast_case\n"
	"nop\nat other_case\nadd %rbp,%rbx\n"
	"at last_case\nmov 24(%rsp),%rbp\nat one_back\nadd $32,%rsp\npop %rbx\n"
	"at popped\nret\n.p2align 4\n"
	"mov %rdi,%rbx\nat gone\nret\n.p2align 4\n" /* and never restores it */
	/* saves its stack pointer in the area that it aligned (as x264's), and lets rbp point to it
	 * (as libjpeg-turbo's) */
	"push %rbp\nmov %rsp,%rax\nsub $64,%rsp\nand $-32,%rsp\nat aligned\nmov %rax,56(%rsp)\n"
	"at kept\npush %rdi\nat kept_below\npop %rdi\nmov 56(%rsp),%rsp\nat back\npop %rbp\nret\n"
	".p2align 4\n"
	"push %rbp\nmov %rsp,%rax\nsub $8,%rsp\nand $-32,%rsp\nmov %rax,(%rsp)\nmov %rsp,%rbp\n"
	"lea -256(%rbp),%rsp\npush %rbx\nat far\npop %rbx\nmov %rbp,%rsp\npop %rsp\nat near\n"
	"pop %rbp\nret\n.p2align 4\n"
	/* an instruction that is newer than the disassembler: vpcompressd %zmm1,%zmm2{%k1}{z} */
	"push %rbx\n.byte 0x62,0xf2,0x7d,0xc9,0x8b,0xca\nat vector\npop %rbx\nret\n.p2align 4\n"
	/* prefetch 128(%rax), which Capstone 4 does not support */
	"push %rbx\n.byte 0x0f,0x0d,0x80,0x80,0,0,0\nat prefetches\npop %rbx\nret\n.p2align 4\n"
	/* an instruction of no CPU, whose operand can be read as two other instructions */
	"push %rbx\ntest %edi,%edi\njz .Lcertain\n.byte 0x06\nat operand\n.byte 0x5b,0x5b\n"
	"at doubtful\nmov %edi,%eax\nat certain\npop %rbx\nret\n.p2align 4\n"
	/* has its own stack, and never returns (as GHC's) */
	"at elsewhere\nmov (%rbp),%rax\nadd $8,%rbp\njmp *(%rax)\n.p2align 4\n"
	"at elsewhere_too\nmov 8(%rbp),%rax\njmp .Lelsewhere\n.p2align 4\n"
	".section .rodata\n.p2align 2\n.Ltable: .long .Lfirst_case-.Ltable,.Lother_case-.Ltable\n"
	".section .note.GNU-stack\n";

static bool build(const char *name, struct unwind_table *ret, struct elf_file **ret_file)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", workdir, name);
	fd = open(path, O_RDONLY);
	return fd >= 0 && !elf_file__open(fd, path, ret_file, NULL) &&
	       !unwind_table__build(*ret_file, ret, NULL);
}

/* Returns true if both rules have the same CFA. Only the CFA must match: call frame information
 * still lists the place of a saved register after its restore. */
static bool same_cfa(const struct unwind_rule *a, const struct unwind_rule *b)
{
	return a->kind == b->kind && a->reg == b->reg && a->cfa_off == b->cfa_off;
}

/* Compares all code that the compiler describes. */
static void compare(const char *options)
{
	struct unwind_table with_tables = {}, found = {};
	struct elf_file *with = NULL, *without = NULL;
	size_t n = 0, n_wrong = 0;

	if (!ok(workdir__try("gcc %s -shared -nostdlib -fPIC -fno-plt -fno-stack-protector -o "
			     "with.so source.c && objcopy -R .eh_frame -R .eh_frame_hdr with.so "
			     "without.so",
			     options) &&
			build("with.so", &with_tables, &with) &&
			build("without.so", &found, &without),
		"%s: built", options))
		return;
	for (uint64_t at = with_tables.vaddr_start;
	     at < with_tables.vaddr_start + (uint64_t)with_tables.n_pages * UNWIND_PAGE_BYTES;
	     at++) {
		const struct unwind_rule *a = unwind_table__find(&with_tables, at);
		const struct unwind_rule *b = unwind_table__find(&found, at);

		if (a->kind != UNWIND_REG || b->kind == UNWIND_NONE)
			continue;
		n++;
		n_wrong += !same_cfa(a, b);
		if (!same_cfa(a, b) && n_wrong < 5)
			tap__diag("%#lx: rsp+%d, found %u+%d", (long)at, a->cfa_off, b->reg,
				  b->cfa_off);
	}
	ok(n > 500 && !n_wrong, "%s: %zu bytes of code as the compiler says, %zu otherwise",
	   options, n, n_wrong);
	unwind_table__done(&with_tables);
	unwind_table__done(&found);
	elf_file__free(with);
	elf_file__free(without);
}

static void check(const struct elf_file *file, const struct unwind_table *table, const char *symbol,
		  struct unwind_rule want)
{
	const struct unwind_rule *got = NULL;
	uint64_t vaddr;

	if (!elf_file__find_symbol(file, symbol, &vaddr, NULL))
		got = unwind_table__find(table, vaddr);
	if (!ok(got && !memcmp(got, &want, sizeof(want)), "%s", symbol) && got)
		tap__diag("kind %u reg %u off %d add %d rbp %d rbx %d", got->kind, got->reg,
			  got->cfa_off, got->cfa_add, got->fp_words, got->aux_words);
}

static struct unwind_rule by(uint8_t reg, int cfa_off, short fp_words, short aux_words)
{
	return (struct unwind_rule) { .kind = UNWIND_REG,
				      .reg = reg,
				      .cfa_off = cfa_off,
				      .fp_words = fp_words,
				      .aux_words = aux_words };
}

/* Returns the rule in which a word of the stack contains the stack pointer after `push %rbp`. */
static struct unwind_rule maintained(int cfa_off, short aux_words)
{
	struct unwind_rule rule = by(UNWIND_REG_RSP, cfa_off, -2, aux_words);

	rule.kind = UNWIND_DEREF;
	rule.cfa_add = 16;
	return rule;
}

static void test_assembly(void)
{
	struct unwind_rule none = {}, fork = by(UNWIND_REG_RSP, 0, 0, 0);
	struct unwind_table table = {};
	struct elf_file *file = NULL;

	fork.kind = UNWIND_LINK;
	fork.cfa_add = UNWIND_REG_RDX;
	if (!ok(workdir__try("gcc -shared -nostdlib -o asm.so asm.s") &&
			build("asm.so", &table, &file),
		"assembly"))
		return;
	check(file, &table, "cloned", by(UNWIND_REG_RSP, 8, 0, 0));
	check(file, &table, "at_call",
	      (struct unwind_rule) { .kind = UNWIND_END, .reg = UNWIND_REG_RSP });
	check(file, &table, "forked", by(UNWIND_REG_RSP, 8, 0, 0));
	check(file, &table, "at_fork", fork);
	check(file, &table, "pushed", by(UNWIND_REG_RSP, 8, 0, 0));
	check(file, &table, "restored", (struct unwind_rule) { .kind = UNWIND_SIGNAL });
	check(file, &table, "in_frame", by(UNWIND_REG_RSP, 24, -2, -3));
	check(file, &table, "unknown", by(UNWIND_REG_RBP, 16, -2, -3));
	check(file, &table, "left", by(UNWIND_REG_RSP, 8, 0, 0));
	check(file, &table, "jumper", by(UNWIND_REG_RSP, 8, 0, 0));
	check(file, &table, "lost", none);
	check(file, &table, "both", none);
	check(file, &table, "after", by(UNWIND_REG_RSP, 16, -2, 0));
	unwind_table__done(&table);
	elf_file__free(file);
}

static void test_endless(void)
{
	struct unwind_table table = {};
	struct elf_file *file = NULL;

	if (!ok(workdir__try("gcc -shared -nostdlib -o endless.so endless.s") &&
			build("endless.so", &table, &file),
		"a library that describes its PLT alone"))
		return;
	check(file, &table, "compared", by(UNWIND_REG_RSP, 8, 0, 0));
	check(file, &table, "to_stub", by(UNWIND_REG_RSP, 8, 0, 0));
	check(file, &table, "behind", by(UNWIND_REG_RSP, 32, 0, -2));
	check(file, &table, "behind_too", by(UNWIND_REG_RSP, 32, 0, -2));
	unwind_table__done(&table);
	elf_file__free(file);
}

/* In a static program, only functions without frame descriptions have such rules, by their symbols.
 */
static void test_static(void)
{
	struct unwind_table table = {};
	struct elf_file *file = NULL;

	workdir__write("main.c", "int bare(int n);\n"
				 "int main(int n, char **v) { return v ? bare(n) : 1; }\n");
	workdir__write("bare.c",
		       "int bare(int n) { volatile char a[100]; a[n] = 1; return a[1]; }\n"
		       "asm(\".type more,@function\\nmore: .fill 20000,1,0x90\\nret\\n.size "
		       "more,.-more\");\n");
	if (ok(workdir__try(
		       "gcc -O1 -c main.c && gcc -O1 -fno-asynchronous-unwind-tables "
		       "-fno-stack-protector -c bare.c && gcc -static -o static main.o bare.o") &&
		       build("static", &table, &file),
	       "a static program"))
		check(file, &table, "bare", by(UNWIND_REG_RSP, 8, 0, 0));
	unwind_table__done(&table);
	elf_file__free(file);
	file = NULL;
	if (ok(workdir__try("sed /asm/d bare.c >small.c && gcc -O1 -fno-asynchronous-unwind-tables "
			    "-c small.c && "
			    "gcc -no-pie -o dynamic main.o small.o") &&
		       build("dynamic", &table, &file),
	       "a dynamic one"))
		check(file, &table, "bare", (struct unwind_rule) {});
	unwind_table__done(&table);
	elf_file__free(file);
}

/* As lld links: the PLT has no descriptions. Its first stub, and the code that binds the others,
 * are not functions. */
static void test_plt(void)
{
	static const struct unwind_rule none = {};
	struct unwind_table table = {};
	struct elf_file *file = NULL;
	uint64_t plt = 0;
	GElf_Shdr shdr;
	size_t i, n = 0;

	if (!ok(workdir__try(
			"gcc -O2 -shared -fPIC -Wl,-z,lazy,--no-ld-generated-unwind-info -o plt.so "
			"source.c") &&
			build("plt.so", &table, &file) && elf_file__section(file, ".plt", &shdr),
		"a PLT without frame descriptions"))
		return;
	plt = shdr.sh_addr;
	for (i = 16; i < shdr.sh_size; i += 16) {
		struct unwind_rule want = by(UNWIND_REG_RSP, 8, 0, 0);

		n += !memcmp(unwind_table__find(&table, plt + i), &want, sizeof(want)) &&
		     !memcmp(unwind_table__find(&table, plt + i + 6), &none, sizeof(none));
	}
	ok(n && n == shdr.sh_size / 16 - 1 &&
		   !memcmp(unwind_table__find(&table, plt + 6), &none, sizeof(none)),
	   "the jumps of its PLT, and nothing else there");
	unwind_table__done(&table);
	elf_file__free(file);
}

static void test_gaps(void)
{
	const short away = UNWIND_WORDS_LOST;
	struct unwind_rule none = {};
	struct unwind_table table = {};
	struct elf_file *file = NULL;

	if (!ok(workdir__try("gcc -O2 -shared -nostdlib -o gaps.so gaps.c gaps.s gaps2.c") &&
			build("gaps.so", &table, &file),
		"assembly between compiled code"))
		return;
	check(file, &table, "leaf", by(UNWIND_REG_RSP, 8, 0, 0));
	check(file, &table, "saved", by(UNWIND_REG_RSP, 48, -3, -2));
	check(file, &table, "switches", by(UNWIND_REG_RSP, 48, -3, -2));
	check(file, &table, "first_case", by(UNWIND_REG_RSP, 48, -3, -2));
	check(file, &table, "other_case", by(UNWIND_REG_RSP, 48, -3, -2));
	check(file, &table, "one_back", by(UNWIND_REG_RSP, 48, 0, -2));
	check(file, &table, "popped", by(UNWIND_REG_RSP, 8, 0, 0));
	check(file, &table, "gone", by(UNWIND_REG_RSP, 8, 0, away));
	check(file, &table, "aligned", by(UNWIND_REG_RAX, 16, -2, 0));
	check(file, &table, "kept", maintained(56, UNWIND_WORDS_SAME));
	check(file, &table, "kept_below", maintained(64, UNWIND_WORDS_SAME));
	check(file, &table, "back", by(UNWIND_REG_RSP, 16, -2, 0));
	check(file, &table, "far", maintained(264, UNWIND_WORDS_LOST));
	check(file, &table, "near", by(UNWIND_REG_RSP, 16, -2, away));
	check(file, &table, "vector", by(UNWIND_REG_RSP, 16, 0, -2));
	check(file, &table, "prefetches", by(UNWIND_REG_RSP, 16, 0, -2));
	check(file, &table, "operand", none);
	check(file, &table, "doubtful", none);
	check(file, &table, "certain", by(UNWIND_REG_RSP, 16, 0, -2));
	check(file, &table, "elsewhere", none);
	check(file, &table, "elsewhere_too", none);
	check(file, &table, "described", by(UNWIND_REG_RSP, 8, 0, 0));
	unwind_table__done(&table);
	elf_file__free(file);
}

/* A range whose last call never returns proves nothing about the first function of the next range.
 * A call to a function of another file that never returns does not lead to the function behind it.
 */
static void test_ends(void)
{
	struct unwind_table table = {};
	struct elf_file *file = NULL;

	workdir__write("ends.s", ".text\n.p2align 4\nsub $24,%rsp\n.fill 64,1,0x90\n"
				 "call abort@plt\n");
	workdir__write("next.s",
		       ".text\n.p2align 4\n.globl next,ends_too,last\nnext: push %rbx\n"
		       ".fill 64,1,0x90\nin_next: pop %rbx\nret\n.p2align 4\n"
		       "ends_too: sub $24,%rsp\ncall abort@plt\n.p2align 4\n"
		       "last: push %rbx\n.globl in_last,in_next\nin_last: pop %rbx\nret\n");
	if (!ok(workdir__try("gcc -shared -nostdlib -O2 -o ends.so gaps.c ends.s gaps2.c next.s") &&
			build("ends.so", &table, &file),
		"calls that never return"))
		return;
	check(file, &table, "next", by(UNWIND_REG_RSP, 8, 0, 0));
	check(file, &table, "in_next", by(UNWIND_REG_RSP, 16, 0, -2));
	check(file, &table, "last", by(UNWIND_REG_RSP, 8, 0, 0));
	check(file, &table, "in_last", by(UNWIND_REG_RSP, 16, 0, -2));
	unwind_table__done(&table);
	elf_file__free(file);
}

/* Sections claim a size; only the size of the file counts. */
static void test_sizes(void)
{
	static const uint64_t sizes[] = { UINT64_MAX, 0xf2f2f2f2f2f2f2f2, 1ULL << 40 };
	size_t size;
	unsigned char *bytes = workdir__read("asm.so", &size);
	Elf64_Ehdr *head = (Elf64_Ehdr *)bytes;
	Elf64_Shdr *sections = (Elf64_Shdr *)(bytes + head->e_shoff);

	for (size_t k = 0; k < ARRAY_SIZE(sizes); k++) {
		struct unwind_table table = {};
		struct elf_file *file = NULL;

		for (int i = 0; i < head->e_shnum; i++)
			if (sections[i].sh_flags & SHF_EXECINSTR)
				sections[i].sh_size = sizes[k];
		if (!elf_file__open_memory(bytes, size, "asm.so", &file, NULL))
			unwind_table__build(file, &table, NULL);
		if (ok(file && table.n_pages, "code of %#lx bytes", (long)sizes[k]))
			check(file, &table, "left", by(UNWIND_REG_RSP, 8, 0, 0));
		unwind_table__done(&table);
		elf_file__free(file);
	}
	free(bytes);
}

/* The cache must distinguish files by their code, as such a table is made from the code. */
static void test_cache(const char *title, const char *id, const char *sources, const char *change)
{
	struct unwind_table first = {}, second = {}, made = {};
	struct elf_file *file = NULL;
	char dir[256];

	snprintf(dir, sizeof(dir), "%s/cache", workdir);
	if (!ok(workdir__try("mkdir -p cache && gcc -O2 -shared -nostdlib -Wl,--build-id=0x%s -o "
			     "id.so %s",
			     id, sources) &&
			build("id.so", &made, &file) &&
			!unwind_table__get(file, dir, NULL, &first, NULL) &&
			workdir__try("test -s cache/%s.utab", id),
		"%s: a table is kept", title))
		return;
	unwind_table__done(&first);
	ok(!unwind_table__get(file, dir, NULL, &first, NULL) && first.n_words == made.n_words &&
		   !memcmp(first.words, made.words, made.n_words * sizeof(*made.words)),
	   "%s: and found", title);
	unwind_table__done(&made);
	elf_file__free(file);
	file = NULL;
	if (ok(workdir__try(
		       "sed -i '%s' $(echo %s | tr ' ' '\\n' | grep '[.]s$') && gcc -O2 -shared "
		       "-nostdlib -Wl,--build-id=0x%s -o id.so %s",
		       change, sources, id, sources) &&
		       build("id.so", &made, &file) &&
		       !unwind_table__get(file, dir, NULL, &second, NULL),
	       "%s: another file with its build id", title))
		ok(second.n_words == made.n_words &&
			   !memcmp(second.words, made.words, made.n_words * sizeof(*made.words)) &&
			   (second.n_words != first.n_words ||
			    memcmp(second.words, first.words,
				   first.n_words * sizeof(*first.words))),
		   "%s: has its own", title);
	unwind_table__done(&made);
	unwind_table__done(&first);
	unwind_table__done(&second);
	elf_file__free(file);
}

/* A function of a few bytes without a description, between two described functions. */
static const char short_s[] = ".text\n.globl before\nbefore: .cfi_startproc\nret\n.cfi_endproc\n"
			      "1: dec %edi\njnz 1b\nret # short\n"
			      ".balign 16\nbehind: .cfi_startproc\nret\n.cfi_endproc\n";

int main(void)
{
	workdir__make();
	workdir__write("source.c", source);
	workdir__write("asm.s", assembly);
	workdir__write("endless.s", endless);
	workdir__write("gaps.c", gaps_c);
	workdir__write("gaps2.c", "int described_last(int n) { return n * 3; }\n");
	workdir__write("gaps.s", gaps_s);
	workdir__write("short.s", short_s);
	compare("-O2");
	compare("-Os");
	compare("-O1 -fno-jump-tables");
	compare("-O3 -fomit-frame-pointer");
	test_assembly();
	test_endless();
	test_sizes();
	test_static();
	test_gaps();
	test_plt();
	test_ends();
	test_cache("assembly alone", "0123456789abcdef", "asm.s", "s/push %rbx/nop/");
	test_cache("between compiled code", "00aa00bb", "gaps.c gaps.s gaps2.c",
		   "s/add $-40,%rsp/add $-48,%rsp/;s/add $32,%rsp/add $40,%rsp/");
	test_cache("a short function between others", "00aa00cc", "short.s",
		   "s/dec %edi/xchg %ax,%ax/;s/jnz 1b/xchg %ax,%ax/;s/ret # short/nop/");
	return tap__done();
}
