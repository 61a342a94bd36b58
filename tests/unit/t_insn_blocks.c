// SPDX-License-Identifier: GPL-2.0-or-later
/* Rules of large assembly code are made block by block, on demand. The rules of a block equal those
 * of a full read, in any order of the blocks. The cache stores the blocks that were read. It is
 * valid for a file with the same code in these blocks. */
#include <errno.h>

#include "core/base/util.h"
#include "core/insn/insn_rows.h"
#include "core/unwind/unwind_table.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

#define FUNCTIONS 1200 /* functions of 512 bytes or more, in ten blocks */

/* A file with fewer descriptions counts as a file without any. */
static const char described[] = "#define FOUR(n) int a##n(int x) { return x + 1; } \\\n"
				"int b##n(int x) { return x - 1; } \\\n"
				"int c##n(int x) { return x * 5; } \\\n"
				"int d##n(int x) { return x / 3; }\n"
				"FOUR(1) FOUR(2) FOUR(3) FOUR(4) FOUR(5) FOUR(6) FOUR(7)\n"
				"FOUR(8) FOUR(9) FOUR(10) FOUR(11) FOUR(12) FOUR(13)\n";

/* Writes functions that each call the previous one, move the stack pointer and contain a loop. */
static void write_assembly(int changed)
{
	FILE *out;
	char path[256];

	snprintf(path, sizeof(path), "%s/much.s", workdir);
	out = fopen(path, "w");
	if (!out)
		exit(1);
	fprintf(out, ".text\n");
	for (int i = 0; i < FUNCTIONS; i++) {
		fprintf(out, ".p2align 4\n.globl fn_%d\n.type fn_%d,@function\nfn_%d: push %%rbx\n",
			i, i, i);
		fprintf(out, "sub $%d,%%rsp\nmov %%rdi,%%rbx\n", 16 + 16 * (i % 7));
		if (i)
			fprintf(out, "call fn_%d@PLT\n", i - 1);
		fprintf(out, "1: dec %%rbx\n.fill %d,3,0x%s\njnz 1b\n", 150 + i % 50,
			i == changed ? "c1ff48" : "c0ff48");
		fprintf(out, "add $%d,%%rsp\npop %%rbx\nret\n", 16 + 16 * (i % 7));
	}
	fprintf(out, ".section .note.GNU-stack\n");
	fclose(out);
}

static bool open_built(const char *sources, struct elf_file **ret)
{
	char path[256];
	int fd;

	if (!workdir__try(
		    "gcc -O2 -shared -nostdlib -Wl,--build-id=0x12345678abcdef01 -o much.so %s",
		    sources))
		return false;
	snprintf(path, sizeof(path), "%s/much.so", workdir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && !elf_file__open(fd, path, ret, NULL);
}

struct differences {
	size_t same, put_off, others; /* bytes of code */
};

/* Compares the rules at every byte of the code. No rule of block @block may be UNWIND_LATER. */
static struct differences compare(const struct unwind_table *all, const struct unwind_table *some,
				  uint64_t block)
{
	struct differences ret = {};
	uint64_t end = all->vaddr_start + (uint64_t)all->n_pages * UNWIND_PAGE_BYTES;

	for (uint64_t at = all->vaddr_start; at < end; at++) {
		const struct unwind_rule *a = unwind_table__find(all, at);
		const struct unwind_rule *b = unwind_table__find(some, at);

		if (b->kind == UNWIND_LATER && INSN_BLOCK_START(at) != block)
			ret.put_off++;
		else if (memcmp(a, b, sizeof(*a)))
			ret.others++;
		else
			ret.same += a->kind != UNWIND_NONE;
	}
	return ret;
}

/* Makes the rules of a block and replaces @table with the result. */
static bool add_block(struct unwind_table *table, const struct insn_reader *reader, uint64_t vaddr)
{
	struct unwind_table more;

	if (unwind_table__add_block(table, reader, vaddr, &more))
		return false;
	unwind_table__done(table);
	*table = more;
	return true;
}

static void test_blocks(const struct elf_file *file, const struct unwind_table *all,
			struct unwind_table *some)
{
	uint64_t start = all->vaddr_start, third = start + 3 * INSN_BLOCK_BYTES, at, n = 0;
	struct insn_reader *reader = NULL;
	struct differences differences = compare(all, some, 0);
	struct unwind_table more;

	ok(differences.put_off > FUNCTIONS * 450 && !differences.others,
	   "no rule is made at first, but those of functions with descriptions: %zu and %zu bytes",
	   differences.put_off, differences.same);
	if (!ok(!insn_reader__new(file, &reader) && add_block(some, reader, third), "a block"))
		return;
	differences = compare(all, some, INSN_BLOCK_START(third));
	ok(!differences.others && differences.same > INSN_BLOCK_BYTES * 9 / 10,
	   "it has the rules that it has if all is read: %zu bytes, %zu others", differences.same,
	   differences.others);
	ok(differences.put_off > FUNCTIONS * 300, "and no other block has: %zu bytes",
	   differences.put_off);
	is_int(unwind_table__add_block(some, reader, third, &more), -EALREADY, "once");
	is_int(unwind_table__add_block(some, reader, start - 1, &more), -EALREADY, "nor elsewhere");
	if (!workdir__try("mkdir -p cache"))
		exit(1);
	for (at = start + FUNCTIONS * 700; at > start; at -= INSN_BLOCK_BYTES / 2)
		n += unwind_table__find(some, at)->kind == UNWIND_LATER &&
		     add_block(some, reader, at);
	n += unwind_table__find(some, start + 0x1000)->kind == UNWIND_LATER &&
	     add_block(some, reader, start + 0x1000);
	differences = compare(all, some, 0);
	ok(n > 8 && !differences.others && !differences.put_off,
	   "then %d others, from the last one: all rules; %zu others, %zu put off", (int)n,
	   differences.others, differences.put_off);
	insn_reader__free(reader);
}

static void test_cache(const char *sources)
{
	struct unwind_table table = {}, again = {}, other = {};
	struct insn_reader *reader = NULL;
	struct elf_file *file = NULL;
	uint64_t at;
	char dir[256];

	snprintf(dir, sizeof(dir), "%s/cache", workdir);
	if (!ok(open_built(sources, &file) && !unwind_table__get(file, dir, NULL, &table, NULL) &&
			!insn_reader__new(file, &reader),
		"a table to be kept"))
		return;
	at = table.vaddr_start + 5 * INSN_BLOCK_BYTES;
	ok(add_block(&table, reader, at), "one more block");
	unwind_table__store(file, dir, &table);
	ok(!unwind_table__get(file, dir, NULL, &again, NULL) && again.n_words == table.n_words &&
		   !memcmp(again.words, table.words, table.n_words * sizeof(*table.words)) &&
		   unwind_table__find(&again, at)->kind != UNWIND_LATER,
	   "the cache has its rules");
	insn_reader__free(reader);
	elf_file__free(file);
	file = NULL;
	write_assembly(FUNCTIONS - 1);
	ok(open_built(sources, &file) && !unwind_table__get(file, dir, NULL, &other, NULL) &&
		   unwind_table__find(&other, at)->kind != UNWIND_LATER,
	   "also for a file with other code elsewhere");
	unwind_table__done(&other);
	elf_file__free(file);
	file = NULL;
	write_assembly((int)(5 * INSN_BLOCK_BYTES / 560));
	ok(open_built(sources, &file) && !unwind_table__get(file, dir, NULL, &other, NULL) &&
		   unwind_table__find(&other, at)->kind == UNWIND_LATER,
	   "but not with other code there");
	unwind_table__done(&table);
	unwind_table__done(&again);
	unwind_table__done(&other);
	elf_file__free(file);
}

/* A large file without descriptions is read block by block, too. */
static void test_undescribed(void)
{
	struct unwind_table table = {}, all = {};
	struct insn_reader *reader = NULL;
	struct elf_file *file = NULL;

	write_assembly(-1);
	if (!ok(workdir__try("sed -e 's/fn_/gn_/g' much.s > more.s && "
			     "sed -e 's/fn_/hn_/g' much.s > last.s && "
			     "sed -e 's/fn_/in_/g' much.s > end.s") &&
			open_built("much.s more.s last.s end.s", &file) &&
			!unwind_table__get(file, NULL, NULL, &table, NULL) &&
			!unwind_table__build(file, &all, NULL),
		"2.5 MB without a description"))
		return;
	ok(compare(&all, &table, 0).put_off > 2 << 20, "are put off");
	ok(!insn_reader__new(file, &reader) &&
		   add_block(&table, reader, table.vaddr_start + (1 << 20)) &&
		   compare(&all, &table, INSN_BLOCK_START(table.vaddr_start + (1 << 20))).same >
			   INSN_BLOCK_BYTES * 9 / 10,
	   "and a block has its rules");
	insn_reader__free(reader);
	unwind_table__done(&table);
	unwind_table__done(&all);
	elf_file__free(file);
}

int main(void)
{
	static const char sources[] = "first.c much.s last.c";
	struct unwind_table all = {}, some = {};
	struct elf_file *file = NULL;

	workdir__make();
	workdir__write("first.c", described);
	workdir__write("last.c", "int described_last(int x) { return x * 3; }\n");
	write_assembly(-1);
	if (ok(open_built(sources, &file) && !unwind_table__build(file, &all, NULL) &&
		       !unwind_table__get(file, NULL, NULL, &some, NULL),
	       "much assembly among described functions"))
		test_blocks(file, &all, &some);
	unwind_table__done(&all);
	unwind_table__done(&some);
	elf_file__free(file);
	test_cache(sources);
	test_undescribed();
	return tap__done();
}
