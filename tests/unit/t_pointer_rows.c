// SPDX-License-Identifier: GPL-2.0-or-later
/* Rows of code that maintains frame pointers and has no call frame information. */
#include <errno.h>
#include <fcntl.h>

#include "core/base/util.h"
#include "core/insn/pointer_rows.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

#define ALL	(KEEPS_POINTERS | KEEPS_CALLERS | KEEPS_LEAVES)
#define CALLERS (KEEPS_POINTERS | KEEPS_CALLERS)

/* Labels whose names state the rule from there on. `many` is a prologue that proves the compiler's
 * habit. */
static const char text[] =
	".text\n.p2align 4,0xcc\n"
	".macro at name\n.globl \\name\n\\name:\n.endm\n"
	".macro many n\n.rept \\n\n.p2align 4,0xcc\npush %%rbp\nmov %%rsp,%%rbp\n.fill 36,1,0x90\n"
	"pop %%rbp\nret\n.endr\n.endm\n"
	"%s.p2align 4,0xcc\n"
	"at framed\npush %%rbp\nmov %%rsp,%%rbp\nat body\ncall 3f\n"
	"nop\npop %%rbp\nret\n.p2align 4,0x90\n"
	"3:\nat frameless\ninc %%rax\nat in_frameless\nret\n.p2align 4,0xcc\n"
	"at late\ntest %%rax,%%rax\njz 1f\npush %%rbp\nmov %%rsp,%%rbp\nat in_late\nnop\npop "
	"%%rbp\n1: ret\n"
	"int3\nint3\n.p2align 4,0xcc\n"
	"at early\ntest %%rax,%%rax\njnz 2f\nret\n.p2align 4,0x90\n2: push %%rbp\nmov %%rsp,%%rbp\n"
	"at rarely\npop %%rbp\ninc %%rax\nret\nint3\nint3\n.p2align 4,0xcc\n"
	"at marked\nendbr64\npush %%rbp\nmov %%rsp,%%rbp\nat in_marked\npop %%rbp\nret\n"
	/* code of another compiler, and a function too near it */
	".fill 65536,1,0xcc\nat other\npush %%rbp\nmov %%rsp,%%rbp\n.byte 0x48,0x8b,0xe5\n"
	"pop %%rbp\nat left\ncmp $3,%%rcx\nret\n.p2align 4,0xcc\nat near_other\npush %%rbp\n"
	"mov %%rsp,%%rbp\nleave\nret\n.fill 65536,1,0xcc\n%s";

static const struct {
	const char *label;
	int flags;
} expected[] = {
	{ "framed", ALL },
	{ "body", ALL },
	{ "frameless", KEEPS_POINTERS },
	{ "in_frameless", KEEPS_POINTERS },
	{ "late", KEEPS_POINTERS },
	{ "in_late", CALLERS },
	{ "early", KEEPS_POINTERS },
	{ "rarely", CALLERS },
	{ "marked", ALL },
	{ "in_marked", ALL },
	{ "other", CALLERS },
	{ "left", CALLERS },
	{ "near_other", CALLERS },
};

static struct elf_file *build(const char *source)
{
	struct elf_file *file = NULL;
	char path[256];
	int fd;

	workdir__write("code.s", source);
	if (!workdir__try("gcc -shared -nostdlib -o code.so code.s"))
		return NULL;
	snprintf(path, sizeof(path), "%s/code.so", workdir);
	fd = open(path, O_RDONLY);
	return fd >= 0 && !elf_file__open(fd, path, &file, NULL) ? file : NULL;
}

static bool find_label(const struct elf_file *file, const char *label, uint64_t *ret_vaddr)
{
	GElf_Shdr shdr;
	Elf_Data *symbols = elf_file__section(file, ".symtab", &shdr);
	GElf_Sym sym;

	for (size_t i = 0; symbols && i < shdr.sh_size / shdr.sh_entsize; i++) {
		if (!elf_file__entry(symbols, i, &sym, sizeof(sym)))
			return false;
		*ret_vaddr = sym.st_value;
		if (!strcmp(elf_strptr(file->elf, shdr.sh_link, sym.st_name) ?: "", label))
			return true;
	}
	return false;
}

/* --- rows --- */

#define ROWS_MAX 64

static struct rows {
	uint64_t vaddr[ROWS_MAX];
	struct unwind_rule rule[ROWS_MAX];
	size_t n;
} rows;

static int on_row(void *ctx, uint64_t vaddr, const struct unwind_rule *rule)
{
	(void)ctx;
	if (rows.n == ROWS_MAX || (rows.n && vaddr < rows.vaddr[rows.n - 1]))
		return -EFBIG; /* too many, or not ascending */
	rows.vaddr[rows.n] = vaddr;
	rows.rule[rows.n++] = *rule;
	return 0;
}

/* Returns the flags at @vaddr; -1: no row of frame pointers applies. */
static int flags_at(uint64_t vaddr)
{
	int flags = -1;

	for (size_t i = 0; i < rows.n && rows.vaddr[i] <= vaddr; i++)
		flags = rows.rule[i].kind == UNWIND_POINTER ? rows.rule[i].flags : -1;
	return flags;
}

/* Reads the code with @functions in front, which show the compiler's habit, and @more behind it.
 * Returns the result, and checks all labels if it is 0. */
static int read_rows(const char *functions, const char *more)
{
	char source[4096];
	struct elf_file *file;
	uint64_t vaddr;
	int ret = -1;

	rows.n = 0;
	snprintf(source, sizeof(source), text, functions, more);
	file = build(source);
	if (file)
		ret = pointer_rows__read(file, on_row, NULL);
	for (size_t i = 0; !ret && i < ARRAY_SIZE(expected); i++)
		is_int(find_label(file, expected[i].label, &vaddr) ? flags_at(vaddr) : -2,
		       expected[i].flags, "%s", expected[i].label);
	if (file && !ret)
		is_int(flags_at(rows.vaddr[rows.n - 1]), -1, "nothing behind the code");
	elf_file__free(file);
	return ret;
}

int main(void)
{
	workdir__make();
	is_int(read_rows("many 2000\n", ""), 0, "a compiler's habit");
	is_int(read_rows("many 20\n.fill 70000\n", ""), -ENOENT, "a habit of hardly any code");
	is_int(read_rows("many 20\n", ""), -ENOENT, "too little code to show a habit");
	is_int(read_rows("many 2000\n", ".rept 100\n.cfi_startproc\nnop\n.cfi_endproc\n.endr\n"),
	       -ENOENT, "a file with call frame information");
	return tap__done();
}
