// SPDX-License-Identifier: GPL-2.0-or-later
/* Functions without frame descriptions among functions that have them. A compiler describes a whole
 * library. The test removes about every second description and compares the rules that the machine
 * code yields with the compiler's. None may differ. */
#include <fcntl.h>

#include "core/base/util.h"
#include "core/insn/insn_ranges.h"
#include "core/unwind/unwind_table.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

#define SEEDS 6

/* Rarely executed parts that end in a call that does not return, jumps through tables, and
 * functions that only a pointer refers to. No code in the file proves that some calls return. */
static const char source[] =
	"#include <stdlib.h>\n"
	"extern int out(const char *, ...);\n"
	"extern void fill(char *, int);\n"
	"extern void fail(const char *, int) __attribute__((noreturn));\n"
	"#define MANY(n) \\\n"
	"static __attribute__((noinline)) int leaf##n(int a) { return a * n + (a >> 3); } \\\n"
	"static __attribute__((noinline)) int pointed##n(int a) { \\\n"
	"    char t[16 * n + 24]; fill(t, a); \\\n"
	"    if (__builtin_expect(t[1], 0)) fail(\"p\", n); \\\n"
	"    return out(t) + t[2]; } \\\n"
	"int (*const pointer##n)(int) = pointed##n; \\\n"
	"int cases##n(int a, int b) { \\\n"
	"    char t[16 * n + 40]; int s = leaf##n(a); fill(t, s); \\\n"
	"    for (int i = 0; i < b; i++) switch (t[i]) { \\\n"
	"    case 0: s += out(\"0\", i, s); break; \\\n"
	"    case 1: if (__builtin_expect(s == n, 0)) fail(\"1\", s); out(\"1\"); break; \\\n"
	"    case 2: s ^= leaf##n(s); out(\"2\"); break; \\\n"
	"    case 3: if (out(\"3\")) abort(); break; \\\n"
	"    case 4: return out(\"4\"); \\\n"
	"    case 5: s -= pointer##n(s); break; \\\n"
	"    case 6: fail(\"6\", s); \\\n"
	"    case 7: s |= t[b & 15]; } \\\n"
	"    return s; } \\\n"
	"int last##n(int a) { if (a == n) fail(\"l\", a); return cases##n(a, n) ^ leaf##n(a); }\n"
	"MANY(1) MANY(2) MANY(3) MANY(5) MANY(7) MANY(9) MANY(11) MANY(12)\n"
	"MANY(13) MANY(14) MANY(15) MANY(16) MANY(17) MANY(18) MANY(19) MANY(20)\n";

static uint32_t random_bit(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 31;
}

static Elf64_Shdr *find_section(unsigned char *bytes, const char *name)
{
	Elf64_Ehdr *head = (Elf64_Ehdr *)bytes;
	Elf64_Shdr *sections = (Elf64_Shdr *)(bytes + head->e_shoff);
	const char *names = (const char *)bytes + sections[head->e_shstrndx].sh_offset;

	for (int i = 0; i < head->e_shnum; i++)
		if (!strcmp(names + sections[i].sh_name, name))
			return &sections[i];
	return NULL;
}

/* Makes half of the descriptions cover 0 bytes. The section has 32-bit lengths and relative
 * addresses, as gcc and GNU ld write it. Returns the number of changed descriptions. */
static size_t take_away(unsigned char *bytes, uint32_t seed)
{
	Elf64_Shdr *section = find_section(bytes, ".eh_frame");
	size_t n = 0;
	uint32_t size, cie;

	for (size_t at = 0; at + 16 <= section->sh_size; at += 4 + size) {
		unsigned char *entry = bytes + section->sh_offset + at;

		memcpy(&size, entry, sizeof(size));
		memcpy(&cie, entry + 4, sizeof(cie));
		if (!size || !cie || !random_bit(&seed))
			continue;
		memset(entry + 12, 0, 4);
		n++;
	}
	return n;
}

struct result {
	size_t n, right, wrong;
};

/* Compares the CFA at each instruction. */
static void compare(const struct unwind_table *with_tables, const struct elf_file *file,
		    const struct unwind_table *found, struct result *ret)
{
	struct insn_ranges ranges = {};
	struct insn_steps steps = {};

	ok(!insn_ranges__find(file, &ranges) && !insn_ranges__read(file, &ranges, NULL, &steps) &&
		   steps.n,
	   "code without descriptions");
	for (size_t i = 0; i < steps.n; i++) {
		uint64_t at = steps.list[i].vaddr;
		const struct unwind_rule *a = unwind_table__find(with_tables, at);
		const struct unwind_rule *b = unwind_table__find(found, at);

		if (a->kind != UNWIND_REG || steps.list[i].op == INSN_PADDING)
			continue;
		ret->n++;
		if (b->kind == UNWIND_NONE)
			continue;
		if (b->kind == a->kind && b->reg == a->reg && b->cfa_off == a->cfa_off)
			ret->right++;
		else if (ret->wrong++ < 4)
			tap__diag("%#lx: %u%+d, found %u%+d", (long)at, a->reg, a->cfa_off, b->reg,
				  b->cfa_off);
	}
	insn_ranges__done(&ranges);
	insn_steps__done(&steps);
}

static void check(const char *options)
{
	struct unwind_table with_tables = {};
	struct elf_file *with = NULL;
	size_t size;
	unsigned char *bytes;

	if (!ok(workdir__try("gcc %s -shared -fPIC -nostdlib -fno-stack-protector "
			     "-fcf-protection=none -o all.so many.c",
			     options),
		"%s: built", options))
		return;
	bytes = workdir__read("all.so", &size);
	if (ok(!elf_file__open_memory(bytes, size, "all.so", &with, NULL) &&
		       !unwind_table__build(with, &with_tables, NULL),
	       "%s: rules of the compiler", options)) {
		struct result result = {};

		for (uint32_t seed = 1; seed <= SEEDS; seed++) {
			unsigned char *half = malloc(size);
			struct unwind_table found = {};
			struct elf_file *file = NULL;

			memcpy(half, bytes, size);
			if (ok(take_away(half, seed) > 10 &&
				       !elf_file__open_memory(half, size, "half.so", &file, NULL) &&
				       !unwind_table__build(file, &found, NULL),
			       "rules of half of it"))
				compare(&with_tables, file, &found, &result);
			unwind_table__done(&found);
			elf_file__free(file);
			free(half);
		}
		ok(!result.wrong && result.right * 2 > result.n,
		   "%s: of %zu instructions %zu have the compiler's rule, %zu another one", options,
		   result.n, result.right, result.wrong);
	}
	unwind_table__done(&with_tables);
	elf_file__free(with);
	free(bytes);
}

int main(void)
{
	workdir__make();
	workdir__write("many.c", source);
	check("-O2");
	check("-O3");
	check("-Os");
	return tap__done();
}
