// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf/cfi.h"

#include <errno.h>
#include <unistd.h>

#include "core/base/util.h"
#include "tests/cfi_fixture.h"
#include "tests/cfi_oracle.h"
#include "tests/tap.h"

#define VARIANTS 400 /* malformed copies */
#define SAMPLES	 1000

/* Each row must have a counterpart in readelf's output; samples of the rows are compared with
 * libdw. */
static void check_file(const struct fixture *fixture, const char *name, unsigned int least_rows)
{
	struct elf_file *file = fixture__open(fixture, name);
	struct oracle_result readelf = { 0 }, libdw = { 0 };
	struct unwind_table table = { 0 };

	if (!ok(file && unwind_table__build(file, &table, NULL) == 0, "%s: built", name))
		goto out;
	ok(fixture__table_is_valid(&table), "%s: table is valid", name);
	ok(!oracle__readelf(file->path, file, &table, &readelf) && !readelf.n_differ &&
		   readelf.n_checked >= least_rows,
	   "%s: as readelf", name);
	oracle__libdw(file, &table, SAMPLES, &libdw);
	ok(libdw.n_checked && !libdw.n_differ, "%s: as libdw", name);
	tap__diag("%lu rows by readelf (%lu differ), %lu addresses by libdw (%lu differ)",
		  readelf.n_checked, readelf.n_differ, libdw.n_checked, libdw.n_differ);
out:
	unwind_table__done(&table);
	elf_file__free(file);
}

static void test_system_files(const struct fixture *fixture)
{
	static const struct {
		const char *path;
		unsigned int least_rows;
	} files[] = {
		{ "/lib/x86_64-linux-gnu/libc.so.6", 15000 },
		{ "/lib64/ld-linux-x86-64.so.2", 1000 },
		{ "/usr/bin/python3.11", 30000 },
		{ "/usr/lib/x86_64-linux-gnu/libstdc++.so.6", 15000 },
		{ "/usr/lib/x86_64-linux-gnu/libcrypto.so.3", 30000 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		if (access(files[i].path, R_OK) == 0)
			check_file(fixture, files[i].path, files[i].least_rows);
		else
			tap__skip("not installed", "%s", files[i].path);
	}
}

/* --- compiled --- */

static const char exceptions_cc[] =
	"#include <stdexcept>\n#include <string>\n#include <vector>\n"
	"__attribute__((noinline)) int work(int n) {\n"
	"	std::vector<std::string> v;\n"
	"	for (int i = 0; i < n; i++) v.push_back(std::to_string(i));\n"
	"	if (n > 3) throw std::runtime_error(v[0]);\n"
	"	return v.size();\n}\n"
	"int main(int argc, char **) {\n"
	"	try { return work(argc); } catch (const std::exception &e) { return *e.what(); "
	"}\n}\n";

/* A function with an aligned local, a variable frame and arguments on the stack: gcc saves the CFA
 * in the frame. */
static const char realign_c[] =
	"void use(void *);\n"
	"int f(int a, int b, int c, int d, int e, int g, int h, int n)\n{\n"
	"	char v[64] __attribute__((aligned(64))), *p = __builtin_alloca(n);\n"
	"	use(v); use(p);\n	return v[a] + b + c + d + e + g + h;\n}\n";

static const char plain_c[] =
	"void use(void *);\n"
	"int plain(int n) { char v[100]; use(v); for (int i = 0; i < n; i++) use(v + i);\n"
	"	return v[n] + n; }\n"
	"int discarded(int n) { char v[50]; use(v); return v[n]; }\n";

static const char other_c[] = "int plain(int);\nvoid use(void *p) { *(char *)p = 1; }\n"
			      "void _start(void) { plain(3); for (;;); }\n";

static unsigned int count_kind(const struct fixture *fixture, const char *name, int kind, int flags)
{
	struct elf_file *file = fixture__open(fixture, name);
	struct unwind_table table = { 0 };
	unsigned int n = 0;

	if (file && unwind_table__build(file, &table, NULL) == 0) {
		for (uint32_t i = 0; i < table.n_rules; i++) {
			const struct unwind_rule *rule =
				(void *)(table.words + table.rules_at + 4 * i);

			n += rule->kind == kind && (rule->flags & flags) == flags;
		}
	}
	unwind_table__done(&table);
	elf_file__free(file);
	return n;
}

static void test_compiled(const struct fixture *fixture)
{
	fixture__write(fixture, "exceptions.cc", exceptions_cc);
	ok(fixture__run(fixture, "g++ -O2 -o exceptions exceptions.cc -Wl,-z,lazy"), "g++");
	check_file(fixture, "exceptions", 20);
	ok(count_kind(fixture, "exceptions", UNWIND_PLT, 0) > 0, "it has a PLT rule");
	ok(count_kind(fixture, "exceptions", UNWIND_END, 0) == 1, "and an outermost frame");

	fixture__write(fixture, "realign.c", realign_c);
	ok(fixture__run(fixture,
			"gcc -O2 -mavx2 -mstackrealign -shared -fPIC -o realign.so realign.c"),
	   "gcc -mstackrealign");
	check_file(fixture, "realign.so", 10);
	ok(count_kind(fixture, "realign.so", UNWIND_DEREF, UNWIND_FP_AT_FP) > 0,
	   "it has a CFA in the frame and rbp saved at rbp");
}

/* Files without .eh_frame, and files with both sections, for different functions and for the same
 * ones. */
static void test_debug_frame(const struct fixture *fixture)
{
	static const char no_eh[] = "-fno-asynchronous-unwind-tables -fno-unwind-tables";
	struct unwind_table table = { 0 };
	struct elf_file *file;
	char command[512];

	fixture__write(fixture, "plain.c", plain_c);
	fixture__write(fixture, "other.c", other_c);
	snprintf(command, sizeof(command),
		 "gcc -O2 -g %s -c plain.c && gcc -O2 -g %s -c other.c && "
		 "gcc -nostdlib -o debug_only plain.o other.o",
		 no_eh, no_eh);
	ok(fixture__run(fixture, command), "gcc without .eh_frame");
	check_file(fixture, "debug_only", 6);

	ok(fixture__run(fixture, "gcc -O2 -c other.c && gcc -nostdlib -o mixed plain.o other.o"),
	   "gcc with .debug_frame and .eh_frame");
	check_file(fixture, "mixed", 6);

	ok(fixture__run(fixture,
			"gcc -O2 -S plain.c && "
			"(echo '.cfi_sections .eh_frame, .debug_frame'; cat plain.s) >both.s && "
			"gcc -nostdlib -o both both.s other.o"),
	   "gcc with both for the same functions");
	check_file(fixture, "both", 12);

	/* The linker leaves the entry of the discarded function at address 0. */
	snprintf(command, sizeof(command),
		 "gcc -O2 -g %s -fPIE -ffunction-sections -c plain.c other.c && "
		 "gcc -nostdlib -pie -Wl,--gc-sections,-z,noseparate-code -o discarded plain.o "
		 "other.o"
		 " && readelf -wfN discarded | grep -q 'pc=0000000000000000'",
		 no_eh);
	ok(fixture__run(fixture, command), "gcc with a discarded function");
	check_file(fixture, "discarded", 6);
	file = fixture__open(fixture, "discarded");
	ok(file && file->segments[0].exec && !file->segments[0].vaddr, "code starts at 0");
	ok(file && !unwind_table__build(file, &table, NULL) &&
		   unwind_table__find(&table, 0)->kind == UNWIND_NONE,
	   "but no function does");
	unwind_table__done(&table);
	elf_file__free(file);
}

/* --- hand-made entries --- */

static const char entries_s[] =
	".text\n.balign 256\n.globl code\ncode: start: .skip 1024, 0x90\n"
	".section .eh_frame, \"a\", @progbits\n"
	".macro cie name, augmentation, data\n"
	"\\name: .long 1f - 0f\n0: .long 0\n.byte 1\n.string \"\\augmentation\"\n"
	".uleb128 1\n.sleb128 -8\n.byte 16\n\\data\n.byte 0x0c, 7, 8, 0x90, 1\n"
	".balign 8, 0\n1:\n.endm\n"
	".macro fde cie, cfa, address, data\n"
	".long 1f - 0f\n0: .long 0b - \\cie\n\\address\n\\data\n.byte 0x0e, \\cfa\n"
	".balign 8, 0\n1:\n.endm\n"
	".macro rel cie, cfa, at, len\n"
	"fde \\cie, \\cfa, \".long start + \\at - .; .long \\len\", \".uleb128 0\"\n.endm\n"
	"cie rel, zR, \".uleb128 1; .byte 0x1b\"\n"
	"rel rel, 24, 0x40, 0x40\n" /* overlaps the next, which starts first */
	"rel rel, 16, 0x00, 0x60\n"
	"rel rel, 32, 0x10, 0x10\n" /* inside another */
	"rel rel, 40, 0x80, 0x11\n"
	"rel rel, 48, 0xa0, 0x10\n"    /* after 15 bytes of padding */
	"rel rel, 56, 0xc0, 0x10\n"    /* after a gap of 16 */
	"rel rel, 64, 0xc0, 0x10\n"    /* the same again */
	"rel rel, 72, 0xe0, 0\n"       /* empty */
	"rel rel, 80, 0x10000, 0x10\n" /* no code */
	"cie absolute, zR, \".uleb128 1; .byte 0x04\"\n"
	"fde absolute, 88, \".quad 0x1100; .quad 0x10\", \".uleb128 0\"\n"
	"cie plain, \"\", \"\"\n"
	"fde plain, 96, \".quad 0x1110; .quad 0x10\", \"\"\n"
	"cie everything, zPLRS, \".uleb128 7; .byte 0x03; .long 0; .byte 0x1b, 0x1c\"\n"
	"fde everything, 104, \".quad start + 0x120 - .; .quad 0x10\", \".uleb128 4; .long 0\"\n"
	"cie unknown, zRX, \".uleb128 2; .byte 0x1b, 0\"\n"
	"rel unknown, 112, 0x200, 0x10\n"
	"cie datarel, zR, \".uleb128 1; .byte 0x3b\"\n"
	"rel datarel, 120, 0x220, 0x10\n"
	".long 0\n"
	".section .debug_frame, \"\", @progbits\n"
	".long 1f - 0f\n0: .long -1\n.byte 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1\n"
	".balign 8, 0\n1:\n"
	".macro debug cfa, at, len\n"
	".long 1f - 0f\n0: .long 0\n.quad \\at, \\len\n.byte 0x0e, \\cfa\n"
	".balign 8, 0\n1:\n.endm\n"
	"debug 8, 0x1078, 0x8\n"   /* inside the range of .eh_frame */
	"debug 16, 0x10b8, 0x10\n" /* overlaps its start */
	"debug 24, 0x10c8, 0x10\n" /* starts inside it */
	"debug 32, 0x10f8, 0x80\n" /* contains part of it */
	"debug 40, 0x10d0, 0x10\n" /* fills a gap */
	"debug 48, 0x1130, 0x10\n";

struct row_text {
	uint64_t code;
	char text[1024];
};

static int add_row(void *ctx, uint64_t vaddr, const struct unwind_rule *rule)
{
	struct row_text *rows = ctx;
	size_t len = strlen(rows->text);

	snprintf(rows->text + len, sizeof(rows->text) - len, "%" PRIx64 ":%d/%d ",
		 vaddr - rows->code, rule->kind, rule->cfa_off);
	return 0;
}

static void test_entries(const struct fixture *fixture)
{
	struct row_text rows = { 0 };
	struct elf_file *file;

	fixture__write(fixture, "entries.s", entries_s);
	ok(fixture__run(fixture, "gcc -shared -nostdlib -Wl,-Ttext=0x1000 -o entries.so entries.s"),
	   "as");
	file = fixture__open(fixture, "entries.so");
	if (!ok(file && !elf_file__find_symbol(file, "code", &rows.code, NULL), "its symbol"))
		goto out;
	is_int(cfi__read(file, add_row, &rows, NULL), 0, "read");
	is_str(rows.text,
	       "0:1/16 60:1/24 80:1/40 a0:1/48 b0:0/0 c0:1/56 d0:1/40 e0:0/0 100:1/88 110:1/96 "
	       "120:4/0 130:1/48 140:0/0 ",
	       "overlaps, gaps and encodings");
out:
	elf_file__free(file);
}

/* --- gaps --- */

/* A function of 13 bytes without a description precedes one that has descriptions. Functions follow
 * all kinds of padding. */
static const char gaps_s[] = ".text\n.globl code\n.balign 256\ncode:\n"
			     ".macro f\n.cfi_startproc\nret\n.cfi_endproc\n.endm\n"
			     "f\n" /* 0 */
			     "sub $24, %rsp\n1: dec %edi\njnz 1b\nadd $24, %rsp\nret\n"
			     ".skip 2, 0xcc\n"
			     "f\n"					/* 10 */
			     ".balign 16\nf\n"				/* 20: a long nop */
			     ".skip 15, 0x90\nf\n"			/* 30 */
			     ".skip 15, 0xcc\nf\n"			/* 40 */
			     ".skip 15, 0\nf\n"				/* 50 */
			     "nopl 8(%rax)\nnopw %cs:0(%rax,%rax)\nf\n" /* 5b */
			     ".byte 0x66\nf\n"				/* 5d: a prefix alone */
			     ".byte 0x0f, 0x1f\nf\n"			/* 60: part of a nop */
			     ".byte 0x0f, 0x1f, 0xc0\nf\n"; /* 64: a nop with a register operand */

static void test_gaps(const struct fixture *fixture)
{
	struct row_text rows = { 0 };
	struct elf_file *file;

	fixture__write(fixture, "gaps.s", gaps_s);
	ok(fixture__run(fixture, "gcc -shared -nostdlib -Wl,-Ttext=0x1000 -o gaps.so gaps.s"),
	   "gaps: as");
	file = fixture__open(fixture, "gaps.so");
	if (!ok(file && !elf_file__find_symbol(file, "code", &rows.code, NULL), "gaps: symbol"))
		goto out;
	is_int(cfi__read(file, add_row, &rows, NULL), 0, "gaps: read");
	is_str(rows.text,
	       "0:1/8 1:0/0 10:1/8 20:1/8 30:1/8 40:1/8 50:1/8 5b:1/8 5c:0/0 5d:1/8 5e:0/0 60:1/8 "
	       "61:0/0 64:1/8 65:0/0 ",
	       "gaps: only filling has the rule in front of it");
out:
	elf_file__free(file);
}

/* --- malformed --- */

/* An entry refers to a common entry outside the section, and there is no other entry, so the entry
 * is skipped. Only UBSan reported a bug here. */
static void test_no_common_entry(const struct fixture *fixture)
{
	struct row_text rows = { 0 };
	struct elf_file *file;

	fixture__write(fixture, "alone.s",
		       ".section .debug_frame,\"\",@progbits\n.4byte 20, 0\n.8byte 0x1000, 16\n");
	fixture__run(fixture, "as -o alone.o alone.s && ld -shared -o alone.so alone.o");
	file = fixture__open(fixture, "alone.so");
	if (ok(file != NULL, "no common entry"))
		is_int(cfi__read(file, add_row, &rows, NULL), 0, "no common entry: read");
	is_str(rows.text, "", "no common entry: no row");
	elf_file__free(file);
}

struct image {
	uint8_t *bytes, *broken;
	size_t size;
	uint64_t at, len; /* section .eh_frame in the file */
	Elf64_Shdr *shdr; /* address in `broken` */
};

static bool image_open(const struct fixture *fixture, const char *name, struct image *image)
{
	struct elf_file *file = fixture__open(fixture, name);
	const Elf64_Ehdr *ehdr;
	GElf_Shdr shdr;
	Elf64_Shdr *all;

	image->bytes = fixture__read(fixture, name, &image->size);
	image->broken = malloc(image->size);
	if (!file || !image->bytes || !image->broken ||
	    !elf_file__section(file, ".eh_frame", &shdr)) {
		elf_file__free(file);
		return false;
	}
	elf_file__free(file);
	image->at = shdr.sh_offset;
	image->len = shdr.sh_size;
	ehdr = (const Elf64_Ehdr *)image->bytes;
	all = (Elf64_Shdr *)(image->broken + ehdr->e_shoff);
	for (int i = 0; i < ehdr->e_shnum; i++)
		if (((Elf64_Shdr *)(image->bytes + ehdr->e_shoff))[i].sh_offset == image->at)
			image->shdr = &all[i];
	return image->shdr;
}

/* Builds a table from `broken`. Returns true if the result is a valid table of a plausible size, or
 * an error. */
static bool build_broken(const struct image *image)
{
	struct elf_file *file = NULL;
	struct unwind_table table = { 0 };
	bool fine = true;
	int rc;

	rc = elf_file__open_memory(image->broken, image->size, "broken", &file, NULL);
	if (!rc)
		rc = unwind_table__build(file, &table, NULL);
	if (!rc) /* each row requires an instruction, each gap an entry */
		fine = fixture__table_is_valid(&table) && table.n_rows <= image->len &&
		       table.n_pages <= image->size / UNWIND_PAGE_BYTES + 16;
	else
		fine = rc == -EBADMSG && !table.words;
	unwind_table__done(&table);
	elf_file__free(file);
	return fine;
}

static unsigned int random_below(uint64_t *seed, unsigned int n)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (*seed >> 33) % n;
}

static void test_malformed(const struct fixture *fixture, const char *name)
{
	struct image image = { 0 };
	uint64_t seed = 42;
	unsigned int fine = 0, n = 0;

	if (!ok(image_open(fixture, name, &image), "%s: image", name))
		goto out;
	memcpy(image.broken, image.bytes, image.size);
	ok(build_broken(&image), "%s: intact", name);
	for (int i = 0; i < VARIANTS; i++, n++) {
		memcpy(image.broken, image.bytes, image.size);
		for (int flips = 1 + random_below(&seed, 20); flips > 0; flips--)
			image.broken[image.at + random_below(&seed, image.len)] ^=
				1 << random_below(&seed, 8);
		fine += build_broken(&image);
	}
	is_int(fine, n, "%s: %u copies with flipped bits", name, n);
	memcpy(image.broken, image.bytes, image.size);
	for (fine = n = 0; n < VARIANTS; n++) {
		image.shdr->sh_size = random_below(&seed, image.len);
		fine += build_broken(&image);
	}
	is_int(fine, n, "%s: %u copies with .eh_frame truncated", name, n);
	image.shdr->sh_size = image.len;
	memset(image.broken + image.at, 0xaa, 4);
	ok(build_broken(&image), "%s: first length wrong", name);
out:
	free(image.bytes);
	free(image.broken);
}

static void test_malformed_from_start(const struct fixture *fixture)
{
	struct image image = { 0 };
	struct elf_file *file = NULL;
	struct unwind_table table = { .n_rows = 42 };
	struct err err = { "" };

	if (!ok(image_open(fixture, "entries.so", &image), "image"))
		goto out;
	memcpy(image.broken, image.bytes, image.size);
	memset(image.broken + image.at, 0xaa, 4);
	ok(!elf_file__open_memory(image.broken, image.size, "broken", &file, NULL), "opened");
	is_int(unwind_table__build(file, &table, &err), -EBADMSG, "malformed from the start");
	is_int(table.n_rows, 42, "the table is untouched");
	ok(strstr(err.text, ".eh_frame"), "and the message names the section");
out:
	elf_file__free(file);
	free(image.bytes);
	free(image.broken);
}

int main(void)
{
	struct fixture fixture;

	if (!ok(fixture__begin(&fixture), "temporary directory"))
		return tap__done();
	test_system_files(&fixture);
	test_compiled(&fixture);
	test_debug_frame(&fixture);
	test_entries(&fixture);
	test_gaps(&fixture);
	test_no_common_entry(&fixture);
	test_malformed(&fixture, "exceptions");
	test_malformed(&fixture, "realign.so");
	test_malformed_from_start(&fixture);
	fixture__end(&fixture);
	return tap__done();
}
