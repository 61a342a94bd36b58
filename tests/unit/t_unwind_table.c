// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/unwind/unwind_table.h"

#include <inttypes.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/elf/cfi.h"
#include "core/elf/cfi_entries.h"
#include "tests/cfi_fixture.h"
#include "tests/tap.h"

static const struct unwind_rule none = { .kind = UNWIND_NONE };

static bool is_rule(const struct unwind_rule *a, const struct unwind_rule *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* --- the search, compared with the rows that the table was made from --- */

struct walk {
	const struct unwind_table *table;
	uint64_t vaddr;		 /* address of the previous row; 0: no row */
	struct unwind_rule rule; /* rule from there on */
	unsigned int n_rows, n_wrong;
};

static void expect(struct walk *walk, uint64_t vaddr, const struct unwind_rule *rule)
{
	walk->n_wrong += !is_rule(unwind_table__find(walk->table, vaddr), rule);
}

static int check_row(void *ctx, uint64_t vaddr, const struct unwind_rule *rule)
{
	struct walk *walk = ctx;

	if (walk->vaddr >= vaddr)
		walk->n_wrong++;
	if (walk->vaddr)
		expect(walk, walk->vaddr + (vaddr - walk->vaddr) / 2, &walk->rule);
	expect(walk, vaddr - 1, &walk->rule);
	expect(walk, vaddr, rule);
	walk->vaddr = vaddr;
	walk->rule = *rule;
	walk->n_rows++;
	return 0;
}

/* --- starts of functions --- */

struct begins {
	const struct cfi_fde *next, *end;
	uint64_t covered; /* end of the descriptions before `next` */
	unsigned int n, n_wrong;
};

/* Checks that a description has a row at its start if no earlier description covers the start. */
static int check_begin(void *ctx, uint64_t vaddr, const struct unwind_rule *rule)
{
	struct begins *begins = ctx;

	for (; begins->next < begins->end && begins->next->start <= vaddr; begins->next++) {
		if (begins->next->start >= begins->covered) {
			begins->n++;
			begins->n_wrong += begins->next->start != vaddr || !rule->kind;
		}
		begins->covered = max_of(begins->covered, begins->next->end);
	}
	return 0;
}

static void test_begins(const struct fixture *fixture, const char *path)
{
	struct elf_file *file = fixture__open(fixture, path);
	struct cfi_entries entries = {};
	struct begins begins = {};

	if (!ok(file && !cfi_entries__read(file, &entries, NULL), "%s: descriptions", path))
		goto out;
	begins.next = entries.fdes;
	begins.end = entries.fdes + entries.n_fdes;
	is_int(cfi__read(file, check_begin, &begins, NULL), 0, "rows");
	ok(begins.n > 1000 && begins.next == begins.end, "%u functions begin", begins.n);
	is_int(begins.n_wrong, 0, "each of them begins a row");
out:
	cfi_entries__done(&entries);
	elf_file__free(file);
}

static void test_find(const struct fixture *fixture, const char *path)
{
	struct elf_file *file = fixture__open(fixture, path);
	struct unwind_table table = { 0 }, again = { 0 };
	struct walk walk = { .table = &table };

	if (!ok(file && !unwind_table__build(file, &table, NULL), "%s: built", path))
		goto out;
	ok(fixture__table_is_valid(&table), "it is valid");
	is_int(cfi__read(file, check_row, &walk, NULL), 0, "its rows");
	is_int(walk.n_wrong, 0, "each is found at its start, its middle and its end");
	is_int(walk.n_rows, table.n_rows, "and there are no others");
	ok(walk.n_rows > 1000, "they are many");
	ok(is_rule(unwind_table__find(&table, 0), &none), "no rule at 0");
	ok(is_rule(unwind_table__find(&table, UINT64_MAX), &none), "nor at the highest address");
	ok(is_rule(unwind_table__find(&table, walk.vaddr), &none), "nor at the last row");
	ok(is_rule(unwind_table__find(&table, walk.vaddr + 4096), &none), "nor behind it");
	ok((double)table.n_words * 4 / table.n_rows <= 8, "at most 8 bytes per row");
	ok(!unwind_table__build(file, &again, NULL) && again.n_words == table.n_words &&
		   !memcmp(again.words, table.words, table.n_words * sizeof(*table.words)),
	   "built again, it is the same");
out:
	unwind_table__done(&table);
	unwind_table__done(&again);
	elf_file__free(file);
}

static void test_empty(const struct fixture *fixture)
{
	struct unwind_table table = { .n_pages = 42 };
	struct elf_file *file;

	fixture__write(fixture, "empty.s", ".data\n.globl data\ndata: .quad 1\n");
	ok(fixture__run(fixture, "gcc -shared -nostdlib -o empty.so empty.s"), "as");
	file = fixture__open(fixture, "empty.so");
	is_int(file ? unwind_table__build(file, &table, NULL) : -1, 0,
	       "no frame information, no code");
	ok(!table.n_pages && !table.words && !table.n_rows, "gives an empty table");
	ok(is_rule(unwind_table__find(&table, 0x1000), &none), "that has no rule");
	unwind_table__done(&table);
	unwind_table__done(&table);
	elf_file__free(file);
}

/* Rules come from the code alone then, and end with it. */
static void test_code_alone(const struct fixture *fixture)
{
	static const struct unwind_rule leaf = { .kind = UNWIND_REG,
						 .reg = UNWIND_REG_RSP,
						 .cfa_off = 8 };
	struct unwind_table table = {};
	struct elf_file *file;
	uint64_t code = 0;

	fixture__write(fixture, "code.s",
		       ".globl code\n.type code,@function\ncode: ret\n.size code,.-code\n");
	ok(fixture__run(fixture, "gcc -shared -nostdlib -o code.so code.s"), "as");
	file = fixture__open(fixture, "code.so");
	ok(file && !unwind_table__build(file, &table, NULL) &&
		   !elf_file__find_symbol(file, "code", &code, NULL),
	   "code without frame information");
	ok(is_rule(unwind_table__find(&table, code), &leaf), "its return leaves it");
	ok(is_rule(unwind_table__find(&table, code + 1), &none), "... and nothing is known behind");
	unwind_table__done(&table);
	elf_file__free(file);
}

/* --- many different rules --- */

#define MANY 70000 /* more than 16 bits can hold */

static bool write_many(const struct fixture *fixture)
{
	char path[128];
	FILE *out;

	snprintf(path, sizeof(path), "%s/many.s", fixture->dir);
	out = fopen(path, "w");
	if (!out)
		return false;
	fputs(".globl code\ncode:\n.cfi_startproc\n", out);
	for (int i = 0; i < MANY; i++)
		fprintf(out, ".cfi_def_cfa_offset %d\nnop\n", 16 + 8 * i);
	fputs(".cfi_endproc\n", out);
	return fclose(out) == 0;
}

/* Returns how many of the @n rules, one at each byte from @code on, are found. */
static unsigned int count_right(const struct unwind_table *table, uint64_t code, int n)
{
	unsigned int right = 0;

	for (int i = 0; i < n; i++) {
		const struct unwind_rule *rule = unwind_table__find(table, code + i);

		right += rule->kind == UNWIND_REG && rule->cfa_off == 16 + 8 * i;
	}
	return right;
}

static void test_many_rules(const struct fixture *fixture)
{
	struct unwind_table table = { 0 };
	struct elf_file *file = NULL;
	uint64_t code;

	ok(write_many(fixture) && fixture__run(fixture, "gcc -shared -nostdlib -o many.so many.s"),
	   "%d different rules", MANY);
	file = fixture__open(fixture, "many.so");
	if (!ok(file && !elf_file__find_symbol(file, "code", &code, NULL) &&
			!unwind_table__build(file, &table, NULL),
		"built"))
		goto out;
	ok(fixture__table_is_valid(&table), "it is valid");
	is_int(count_right(&table, code, MANY), MANY, "each place has its own");
	is_int(table.n_unsupported, 0, "none is unsupported");
out:
	unwind_table__done(&table);
	elf_file__free(file);
}

#define TOO_MANY (UNWIND_RULES_MAX + 1000)

static int tell_too_many(const struct elf_file *file, cfi_row_fn row, void *ctx)
{
	struct unwind_rule rule = { .kind = UNWIND_REG, .reg = UNWIND_REG_RSP };
	int rc = 0;

	(void)file;
	for (int i = 0; i < TOO_MANY && !rc; i++) {
		rule.cfa_off = 16 + 8 * i;
		rc = row(ctx, 0x10000000 + i, &rule);
	}
	return rc ? rc : row(ctx, 0x10000000 + TOO_MANY, &none);
}

static void test_too_many_rules(const struct fixture *fixture)
{
	struct elf_file *file = fixture__open(fixture, "many.so");
	struct unwind_table table = { 0 };

	if (!ok(file && !unwind_table__build_with(file, tell_too_many, &table, NULL), "built"))
		goto out;
	ok(fixture__table_is_valid(&table), "it is valid");
	is_int(table.n_rules, UNWIND_RULES_MAX, "as many rules as fit");
	is_int(count_right(&table, 0x10000000, UNWIND_RULES_MAX - 1000), UNWIND_RULES_MAX - 1000,
	       "the places of these are right");
	is_int(count_right(&table, 0x10000000 + TOO_MANY - 10, 10), 0, "later ones have none");
	is_int(unwind_table__find(&table, 0x10000000 + TOO_MANY - 1)->kind, UNWIND_UNSUPPORTED,
	       "they are unsupported");
	ok(table.n_unsupported > 0, "and counted");
out:
	unwind_table__done(&table);
	elf_file__free(file);
}

/* --- the place of the cache --- */

static void set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

static void check_dir(const char *cache, const char *home, const char *want, const char *name)
{
	struct stat st;
	char *got;

	set("XDG_CACHE_HOME", cache);
	set("HOME", home);
	got = unwind_table__default_dir();
	is_str(got, want, "%s", name);
	if (got)
		ok(!stat(got, &st) && S_ISDIR(st.st_mode) && (st.st_mode & 0777) == 0700,
		   "it is there, for us alone");
	free(got);
}

static void test_default_dir(const struct fixture *fixture)
{
	char under_cache[128], under_home[128], cache[96], file[128];

	snprintf(cache, sizeof(cache), "%s/cache", fixture->dir);
	snprintf(under_cache, sizeof(under_cache), "%s/braid", cache);
	snprintf(under_home, sizeof(under_home), "%s/.cache/braid", fixture->dir);
	snprintf(file, sizeof(file), "%s/empty.s", fixture->dir);
	check_dir(cache, fixture->dir, under_cache, "XDG_CACHE_HOME");
	check_dir(cache, NULL, under_cache, "the same, and it exists");
	check_dir(NULL, fixture->dir, under_home, "HOME");
	check_dir("relative", fixture->dir, under_home, "a relative XDG_CACHE_HOME is ignored");
	check_dir("", fixture->dir, under_home, "so is an empty one");
	check_dir(NULL, "relative", NULL, "a relative HOME is no place");
	check_dir(file, fixture->dir, NULL, "nor is a file");
}

int main(void)
{
	struct fixture fixture;

	if (!ok(fixture__begin(&fixture), "temporary directory"))
		return tap__done();
	if (access("/lib/x86_64-linux-gnu/libc.so.6", R_OK) == 0) {
		test_find(&fixture, "/lib/x86_64-linux-gnu/libc.so.6");
		test_begins(&fixture, "/lib/x86_64-linux-gnu/libc.so.6");
	} else
		tap__skip("not there", "libc.so.6");
	test_empty(&fixture);
	test_code_alone(&fixture);
	test_many_rules(&fixture);
	test_too_many_rules(&fixture);
	test_default_dir(&fixture);
	fixture__end(&fixture);
	return tap__done();
}
