// SPDX-License-Identifier: GPL-2.0-or-later
/* Files of arm64 that the cross compiler makes, compared with readelf, objdump and nm, and a core
 * file that qemu writes. */
#include "core/arch/arch.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>

#include "core/base/util.h"
#include "core/elf/cfi.h"
#include "core/elf/elf_words.h"
#include "core/elf/symbols.h"
#include "core/files/memory_core.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

static const char lib_c[] = "extern int imported(int), other(int *);\n"
			    "extern int data_elsewhere;\n"
			    "int *pointer = &data_elsewhere;\n"
			    "static int local_data;\n"
			    "int *own = &local_data;\n"
			    "int leaf(int a) { return a * 3 + data_elsewhere; }\n"
			    "int caller(int a) { int array[64]; array[a & 63] = a; return "
			    "imported(a) + other(array); }\n"
			    "int moved(int n) { char text[n + 16]; text[n] = 1;\n"
			    "	return other((int *)text) + imported(text[0]); }\n"
			    "void last(void) { asm volatile(\".cfi_undefined x30\"); }\n";

static const char start_s[] = ".global _start\n_start:\n"
			      "	mov x0, #100\n	mov x1, #101\n	mov x19, #119\n"
			      "	mov x28, #128\n	mov x29, #129\n	mov x30, #130\n"
			      ".global fault\nfault:\n	udf #0\n";

#define ROWS_MAX 256

static struct row {
	uint64_t vaddr;
	struct unwind_rule rule;
} rows[ROWS_MAX];
static size_t n_rows;

static int add_row(void *ctx, uint64_t vaddr, const struct unwind_rule *rule)
{
	(void)ctx;
	if (n_rows < ROWS_MAX)
		rows[n_rows++] = (struct row) { vaddr, *rule };
	return 0;
}

static const struct unwind_rule *rule_at(uint64_t vaddr)
{
	const struct unwind_rule *rule = NULL;

	for (size_t i = 0; i < n_rows && rows[i].vaddr <= vaddr; i++)
		rule = &rows[i].rule;
	return rule;
}

static struct elf_file *open_foreign(const char *name)
{
	struct elf_file *file = NULL;
	struct err err = { 0 };

	if (!ok(!elf_file__open_foreign(workdir__open(name), name, &file, &err), "%s: opened",
		name))
		tap__diag("%s", err.text);
	return file;
}

static uint64_t address_of(const char *file, const char *symbol)
{
	FILE *pipe = workdir__pipe("aarch64-linux-gnu-nm %s | grep ' %s$'", file, symbol);
	uint64_t address = 0;

	if (fscanf(pipe, "%" SCNx64, &address) != 1)
		tap__diag("%s: no symbol %s", file, symbol);
	pclose(pipe);
	return address;
}

/* Returns the place of a saved register in readelf's @column, in words from the CFA. */
static int words_of(const char *column)
{
	return *column == 'c' ? atoi(column + 1) / 8 : UNWIND_WORDS_SAME;
}

static bool agrees(const struct unwind_rule *rule, const char *cfa, const char *fp, const char *ra)
{
	const char *sign = strpbrk(cfa, "+-");

	if (!rule)
		return false;
	if (*ra == 'u' && rule->kind == UNWIND_END)
		return true;
	return rule->kind == UNWIND_REG && sign && rule->cfa_off == atoi(sign) &&
	       !strncmp(arch_arm64.register_names[rule->reg], cfa, sign - cfa) &&
	       rule->fp_words == words_of(fp) && rule->aux_words == words_of(ra);
}

/* Compares each line of readelf's tables, whose columns differ between functions. */
static void test_rules(const char *name)
{
	struct elf_file *file = open_foreign(name);
	FILE *pipe = workdir__pipe("readelf --debug-dump=frames-interp %s 2>/dev/null", name);
	unsigned checked = 0, differ = 0, saved = 0;
	char line[256], columns[8][32], text[8][32];
	int n_columns = 0;

	n_rows = 0;
	ok(file && !cfi__read(file, add_row, NULL, NULL), "%s: rules were read", name);
	while (fgets(line, sizeof(line), pipe)) {
		const char *fp = "u", *ra = "u";
		int n = sscanf(line, "%31s%31s%31s%31s%31s%31s%31s%31s", text[0], text[1], text[2],
			       text[3], text[4], text[5], text[6], text[7]);

		if (n > 1 && !strcmp(text[0], "LOC")) {
			memcpy(columns, text, sizeof(text));
			n_columns = n;
		}
		if (n < 2 || n != n_columns || strlen(text[0]) != 16 || text[0][0] != '0' ||
		    !strtoull(text[0], NULL, 16))
			continue;
		for (int i = 2; i < n; i++) {
			fp = strcmp(columns[i], "x29") ? fp : text[i];
			ra = strcmp(columns[i], "ra") ? ra : text[i];
		}
		checked++;
		saved += *ra == 'c';
		if (!agrees(rule_at(strtoull(text[0], NULL, 16)), text[1], fp, ra)) {
			differ++;
			tap__diag("readelf: %s", line);
		}
	}
	pclose(pipe);
	ok(checked >= 8 && saved >= 2 && !differ, "%s: %u rows as in readelf, %u differ", name,
	   checked, differ);
	elf_file__free(file);
}

static void test_words(void)
{
	struct elf_file *file = open_foreign("lib.so");
	struct elf_words *words = NULL;
	uint64_t value = 0;

	if (!file || !ok(!elf_words__open(file, &words), "words of data"))
		goto out;
	ok(elf_words__get(words, address_of("lib.so", "own"), &value) &&
		   value == address_of("lib.so", "local_data"),
	   "R_AARCH64_RELATIVE gives the address of the file's own data");
	ok(elf_words__get(words, address_of("lib.so", "pointer"), &value) &&
		   value == ELF_WORD_IMPORT,
	   "R_AARCH64_ABS64 gives an import");
out:
	elf_words__free(words);
	elf_file__free(file);
}

/* Compares the stubs of the PLT with the labels of objdump: "00000000000004a0 <other@plt>:". */
static void test_stubs(const char *name)
{
	FILE *pipe = workdir__pipe("aarch64-linux-gnu-objdump -d -j .plt %s | grep '@plt>:'", name);
	struct elf_file *file = open_foreign(name);
	struct symbol_frame frames[SYMBOL_INLINES_MAX];
	struct symbols *symbols = NULL;
	char label[64];
	uint64_t address;
	int found = 0;

	if (!file || symbols__new(file, "", &symbols))
		goto out;
	while (fscanf(pipe, "%" SCNx64 " <%63[^>]>:", &address, label) == 2) {
		found++;
		for (uint64_t at = 0; at < 16; at += 4) {
			int n = symbols__resolve(symbols, address + at, frames, ARRAY_SIZE(frames));

			if (n == 1 && !strcmp(frames[0].function, label))
				continue;
			tap__diag("%s+%" PRIu64 ": %s", label, at,
				  n == 1 ? frames[0].function : "none");
			found = -100;
		}
	}
	is_int(found, 2, "%s: stubs have objdump's names", name);
out:
	pclose(pipe);
	symbols__free(symbols);
	elf_file__free(file);
}

static void test_refusals(void)
{
	struct elf_file *file = NULL;
	struct err err = { 0 };

	is_int(elf_file__open(workdir__open("lib.so"), "lib.so", &file, &err), -ENOTSUP,
	       "what this build does not unwind is refused");
	is_str(err.text, "lib.so: an arm64 ELF file: this build of braid unwinds x86-64 code only",
	       "the sentence names the machine");
	ok(!arch__of_machine(EM_RISCV) && arch__of_machine(EM_AARCH64) == &arch_arm64,
	   "machines are known by number");
}

static void test_core(void)
{
	struct arch_thread thread = { 0 };
	struct memory *memory = NULL;
	struct err err = { 0 };
	struct core_note note;
	struct core_elf core;
	unsigned threads = 0;
	uint64_t at = 0;

	pclose(workdir__pipe(
		"ulimit -c unlimited; qemu-aarch64 ./start 2>/dev/null; mv qemu_start*.core core"));
	if (access("/usr/bin/qemu-aarch64", X_OK)) {
		tap__skip("no qemu-user", "core files of arm64");
		return;
	}
	if (!ok(!core_elf__open(workdir__open("core"), "core", &core, &err), "core: opened")) {
		tap__diag("%s", err.text);
		return;
	}
	while (core_elf__next_note(&core, &at, &note))
		threads += core.arch->core_note(note.type, note.desc, note.size, &thread);
	ok(core.arch == &arch_arm64 && threads == 1 && thread.tid > 0, "core: one thread");
	is_int(thread.signal, 4, "core: SIGILL");
	ok(thread.regs[0] == 100 && thread.regs[1] == 101 && thread.regs[19] == 119 &&
		   thread.regs[28] == 128 && thread.regs[arch_arm64.fp] == 129 &&
		   thread.regs[arch_arm64.aux] == 130,
	   "core: registers have what the program put there");
	is_int(thread.regs[arch_arm64.pc], address_of("start", "fault"), "core: pc");
	ok(thread.regs[arch_arm64.sp] && thread.regs[arch_arm64.sp] % 16 == 0, "core: sp");
	core_elf__close(&core);
	is_int(memory__of_core(workdir__open("core"), "core", &memory, &err), -ENOTSUP,
	       "core: memory of another machine is refused");
	is_str(err.text,
	       "cannot read core: it is the core file of an arm64 process. braid reads core files "
	       "of 64-bit x86-64 processes only",
	       "core: the sentence names the machine");
}

int main(void)
{
	if (system("command -v aarch64-linux-gnu-gcc >/dev/null")) {
		tap__skip("no gcc-aarch64-linux-gnu", "files of arm64");
		return tap__done();
	}
	workdir__make();
	workdir__write("lib.c", lib_c);
	workdir__write("start.s", start_s);
	workdir__run("aarch64-linux-gnu-gcc -O2 -fPIC -shared -nostdlib lib.c -o lib.so && "
		     "aarch64-linux-gnu-gcc -O2 -fPIC -shared -nostdlib "
		     "-mbranch-protection=standard -Wl,-z,force-bti lib.c -o bti.so && "
		     "aarch64-linux-gnu-gcc -nostdlib -static start.s -o start");
	test_rules("lib.so");
	test_rules("bti.so"); /* with DW_CFA_AARCH64_negate_ra_state */
	test_words();
	test_stubs("lib.so");
	test_stubs("bti.so");
	test_refusals();
	test_core();
	return tap__done();
}
