// SPDX-License-Identifier: GPL-2.0-or-later
/* Compiles call frame information into the words that the kernel half searches.
 *
 * A program in the kernel cannot interpret call frame information: it is a program itself, with a
 * stack, expressions and no bound. So every function's program is run here, once per file
 * (core/elf/cfi.h). The result is a list of rows: an address, and the rule that applies from it on.
 * Two observations make the table small and the search short (docs/decisions/0002):
 *
 * - Rules repeat. An image has a few hundred different rules, whatever its size. So a row contains
 *   a rule's number, and the rules are stored separately. A growing open hash table assigns the
 *   numbers.
 * - Addresses are dense. A first level has the first row of each 256 bytes of code. It saves the
 *   upper part of each row's address: a row is 4 bytes, 8 bits of address and 24 of rule number. It
 *   also saves 12 of the 17 steps of a search over libpython's rows.
 *
 * Rows are added in ascending order, so the table is built in one pass and never sorted. A row of
 * an earlier page may extend into a page without a row. A search that finds no row in its page uses
 * the row before the page. For that reason words[page] is a number of rows and not a pointer to
 * rows of this page.
 *
 * UNWIND_UNSUPPORTED is the rule of code whose rule cannot be expressed. The walk then stops with a
 * counter instead of a wrong frame, and user space completes the stack from a copy. */
#include "core/unwind/unwind_table.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/stop.h"
#include "core/base/util.h"
#include "core/elf/cfi.h"
#include "core/insn/insn_ranges.h"
#include "core/insn/insn_rows.h"
#include "core/insn/pointer_rows.h"
#include "core/unwind/unwind_cache.h"
#include "core/unwind/unwind_merge.h"

#define RULE_NONE	 0
#define RULE_UNSUPPORTED 1

/* Limits of code and of rows. They bound the allocations that a malformed file can cause. */
#define SPAN_BYTES_MAX (1ULL << 31)
#define ROWS_MAX       (1U << 26)

/* An open hash table, at most half full, numbers the rules. A rule without a free slot within
 * PROBES_MAX is unsupported. */
#define SLOTS_MIN  4096
#define PROBES_MAX 64

struct builder {
	uint64_t vaddr_start, own_start, own_end;
	uint32_t *pages, *rows;
	struct unwind_rule *rules;
	size_t n_pages, n_rows, n_rules;
	size_t cap_pages, cap_rows, cap_rules;
	uint32_t n_unsupported;
	uint32_t *slots; /* rule numbers; RULE_NONE: free */
	size_t n_slots;
};

static uint32_t hash_rule(const struct unwind_rule *rule)
{
	uint64_t halves[2];

	memcpy(halves, rule, sizeof(halves));
	halves[0] = (halves[0] ^ halves[1] >> 32 ^ halves[1] << 32) * 0x9e3779b97f4a7c15ULL;
	return halves[0] >> 40;
}

static int add_rule(struct builder *b, const struct unwind_rule *rule)
{
	if (array__reserve(&b->rules, &b->cap_rules, b->n_rules + 1, sizeof(*b->rules)))
		return -ENOMEM;
	b->rules[b->n_rules] = *rule;
	return b->n_rules++;
}

/* Doubles the hash table. Returns 0 or -ENOMEM. */
static int grow_slots(struct builder *b)
{
	size_t n = b->n_slots ? 2 * b->n_slots : SLOTS_MIN;
	uint32_t *slots = calloc(n, sizeof(*slots)), at;

	if (!slots)
		return -ENOMEM;
	for (size_t i = RULE_UNSUPPORTED + 1; i < b->n_rules; i++) {
		at = hash_rule(&b->rules[i]);
		for (unsigned int k = 0; k < PROBES_MAX && slots[at % n]; k++)
			at++;
		if (!slots[at % n])
			slots[at % n] = i;
	}
	free(b->slots);
	b->slots = slots;
	b->n_slots = n;
	return 0;
}

/* Returns the number of @rule, a new one if no earlier rule is equal, or -ENOMEM. Rules beyond
 * UNWIND_RULES_MAX are unsupported. */
static int number_rule(struct builder *b, const struct unwind_rule *rule)
{
	uint32_t at = hash_rule(rule);
	int number;

	if (rule->kind == UNWIND_NONE)
		return RULE_NONE;
	if (rule->kind == UNWIND_UNSUPPORTED)
		return RULE_UNSUPPORTED;
	if (2 * b->n_rules >= b->n_slots && grow_slots(b))
		return -ENOMEM;
	for (unsigned int i = 0; i < PROBES_MAX; i++, at++) {
		uint32_t *slot = &b->slots[at % b->n_slots];

		if (!*slot) {
			if (b->n_rules == UNWIND_RULES_MAX)
				return RULE_UNSUPPORTED;
			number = add_rule(b, rule);
			if (number > 0)
				*slot = number;
			return number;
		}
		if (memcmp(&b->rules[*slot], rule, sizeof(*rule)) == 0)
			return *slot;
	}
	return RULE_UNSUPPORTED;
}

/* Adds the page index entries up to and including that of @page. Returns 0 or -ENOMEM. */
static int add_pages(struct builder *b, size_t page)
{
	if (array__reserve(&b->pages, &b->cap_pages, page + 1, sizeof(*b->pages)))
		return -ENOMEM;
	while (b->n_pages <= page)
		b->pages[b->n_pages++] = b->n_rows;
	return 0;
}

static int add_row(void *ctx, uint64_t vaddr, const struct unwind_rule *rule)
{
	struct builder *b = ctx;
	uint64_t at;
	int number;

	if (!b->n_rows)
		b->vaddr_start = vaddr & ~(uint64_t)(UNWIND_PAGE_BYTES - 1);
	assert(vaddr >= b->vaddr_start); /* rows ascend */
	at = vaddr - b->vaddr_start;
	if (at >= SPAN_BYTES_MAX || b->n_rows == ROWS_MAX)
		return 0;
	number = number_rule(b, rule);
	if (number == RULE_UNSUPPORTED && b->n_rows &&
	    UNWIND_ROW_RULE(b->rows[b->n_rows - 1]) == RULE_UNSUPPORTED)
		return 0;
	if (number < 0 || add_pages(b, at >> UNWIND_PAGE_BITS) ||
	    array__reserve(&b->rows, &b->cap_rows, b->n_rows + 1, sizeof(*b->rows)))
		return -ENOMEM;
	b->rows[b->n_rows++] = UNWIND_ROW(at & (UNWIND_PAGE_BYTES - 1), number);
	b->n_unsupported += number == RULE_UNSUPPORTED;
	return 0;
}

static int assemble(const struct builder *b, struct unwind_table *ret)
{
	struct unwind_table table = {
		.vaddr_start = b->vaddr_start,
		.n_pages = b->n_pages,
		.n_rules = b->n_rules,
		.n_rows = b->n_rows,
		.n_unsupported = b->n_unsupported,
	};

	if (!b->n_rows) {
		memset(ret, 0, sizeof(*ret));
		return 0;
	}
	table.rules_at = (table.n_pages + UNWIND_RULE_WORDS) & ~(UNWIND_RULE_WORDS - 1);
	table.rows_at = table.rules_at + table.n_rules * UNWIND_RULE_WORDS;
	table.n_words = table.rows_at + table.n_rows;
	assert(table.rules_at > table.n_pages && table.rules_at % UNWIND_RULE_WORDS == 0);
	table.words = calloc(table.n_words, sizeof(*table.words));
	if (!table.words)
		return -ENOMEM;
	memcpy(table.words, b->pages, b->n_pages * sizeof(*b->pages));
	table.words[table.n_pages] = table.n_rows;
	memcpy(table.words + table.rules_at, b->rules, b->n_rules * sizeof(*b->rules));
	memcpy(table.words + table.rows_at, b->rows, b->n_rows * sizeof(*b->rows));
	*ret = table;
	return 0;
}

/* Emits all rows except those of frame pointers, in order. Returns 0 or a negative errno. */
static int read_described(const struct elf_file *file, unwind_rows_fn rows, bool all,
			  struct builder *b, cfi_row_fn row, void *ctx, struct err *err)
{
	struct unwind_merge merge;
	int rc;

	unwind_merge__init(&merge, row, ctx);
	rc = rows ? rows(file, unwind_merge__first, &merge)
		  : insn_rows__read(file, all, unwind_merge__first, &merge);
	if (rows && merge.n) {
		b->own_start = merge.first[0].vaddr;
		b->own_end = merge.first[merge.n - 1].vaddr;
	}
	if (!rows && rc == -ENOENT)
		return cfi__read(file, row, ctx, err);
	if (rc != -ENOMEM && rc != -EINTR)
		rc = cfi__read(file, unwind_merge__other, &merge, err);
	if (rc == -EBADMSG) /* the rows before the malformed entry are present */
		rc = 0;
	if (!rc)
		rc = unwind_merge__end(&merge);
	unwind_merge__done(&merge);
	return rc;
}

/* Reads all rows, in order. Frame pointer rows apply only where no other source has a rule.
 * @pointers: code that is proven to maintain frame pointers; NULL or empty: none. */
static int read_rows(const struct elf_file *file, unwind_rows_fn rows, bool all,
		     const struct insn_range *pointers, struct builder *b, struct err *err)
{
	bool known = pointers && pointers->start < pointers->end;
	struct unwind_merge merge;
	int ret = 0;

	if (rows || !(known || insn_ranges__lacks_frames(file)))
		return read_described(file, rows, all, b, add_row, b, err);
	unwind_merge__init(&merge, add_row, b);
	if (known)
		ret = pointer_rows__range(file, pointers, unwind_merge__first, &merge);
	if (!ret || ret == -ENOENT)
		ret = read_described(file, rows, all, b,
				     known ? unwind_merge__other : unwind_merge__first, &merge,
				     err);
	if (!ret && !known)
		ret = pointer_rows__read(file, unwind_merge__other, &merge);
	ret = ret == -ENOENT ? 0 : ret;
	ret = ret ?: unwind_merge__end(&merge);
	unwind_merge__done(&merge);
	return ret;
}

/* Returns 0 or -ENOMEM. */
static int builder__init(struct builder *b)
{
	static const struct unwind_rule none = { .kind = UNWIND_NONE };
	static const struct unwind_rule unsupported = { .kind = UNWIND_UNSUPPORTED };

	*b = (struct builder) {};
	return !grow_slots(b) && add_rule(b, &none) == RULE_NONE &&
			       add_rule(b, &unsupported) == RULE_UNSUPPORTED
		       ? 0
		       : -ENOMEM;
}

static void builder__done(struct builder *b)
{
	free(b->slots);
	free(b->pages);
	free(b->rows);
	free(b->rules);
}

static int build(const struct elf_file *file, unwind_rows_fn rows, bool all,
		 const struct insn_range *pointers, struct unwind_table *ret, struct err *err)
{
	struct builder b;
	int rc = builder__init(&b);

	if (!rc)
		rc = read_rows(file, rows, all, pointers, &b, err);
	/* A read that the stop ended early returns the same as missing entries. */
	if (!rc && stop__is_due())
		rc = err__set(err, -EINTR, "%s: interrupted", file->path);
	if (!rc)
		rc = assemble(&b, ret);
	if (rc == -ENOMEM)
		err__set(err, rc, "%s: out of memory for the unwind table", file->path);
	builder__done(&b);
	return rc;
}

int unwind_table__build(const struct elf_file *file, struct unwind_table *ret, struct err *err)
{
	return build(file, NULL, true, NULL, ret, err);
}

int unwind_table__build_with(const struct elf_file *file, unwind_rows_fn rows,
			     struct unwind_table *ret, struct err *err)
{
	return build(file, rows, true, NULL, ret, err);
}

/* --- rules that are built on demand --- */

/* Forwards a row that applies up to @end. Within the block at @block, replaces UNWIND_LATER by no
 * rule. */
static int copy_row(struct unwind_merge *merge, uint64_t block, uint64_t start, uint64_t end,
		    const struct unwind_rule *rule)
{
	static const struct unwind_rule none = { .kind = UNWIND_NONE };
	uint64_t block_end = block + INSN_BLOCK_BYTES;
	int rc = 0;

	if (rule->kind != UNWIND_LATER || end <= block || start >= block_end)
		return unwind_merge__other(merge, start, rule);
	if (start < block)
		rc = unwind_merge__other(merge, start, rule);
	if (!rc)
		rc = unwind_merge__other(merge, max_of(start, block), &none);
	if (!rc && end > block_end)
		rc = unwind_merge__other(merge, block_end, rule);
	return rc;
}

static int copy_rows(const struct unwind_table *table, uint64_t block, struct unwind_merge *merge)
{
	const uint32_t *rows = table->words + table->rows_at;
	const struct unwind_rule *rules =
		(const struct unwind_rule *)(table->words + table->rules_at);
	uint64_t start = 0, end;
	uint32_t page = 0;
	int rc = 0;

	for (uint32_t i = 0; i <= table->n_rows && !rc; i++, start = end) {
		while (page + 1 < table->n_pages && table->words[page + 1] <= i)
			page++;
		end = i < table->n_rows ? table->vaddr_start + (uint64_t)page * UNWIND_PAGE_BYTES +
						  UNWIND_ROW_AT(rows[i])
					: start;
		if (i)
			rc = copy_row(merge, block, start, end,
				      &rules[UNWIND_ROW_RULE(rows[i - 1])]);
	}
	return rc;
}

int unwind_table__add_block(const struct unwind_table *table, const struct insn_reader *reader,
			    uint64_t vaddr, struct unwind_table *ret)
{
	struct unwind_merge merge;
	struct builder b;
	int rc;

	if (unwind_table__find(table, vaddr)->kind != UNWIND_LATER)
		return -EALREADY;
	rc = builder__init(&b);
	unwind_merge__init(&merge, add_row, &b);
	if (!rc)
		rc = insn_reader__block(reader, vaddr, unwind_merge__first, &merge);
	if (!rc)
		rc = copy_rows(table, INSN_BLOCK_START(vaddr), &merge);
	if (!rc)
		rc = unwind_merge__end(&merge);
	if (!rc)
		rc = assemble(&b, ret);
	unwind_merge__done(&merge);
	builder__done(&b);
	return rc;
}

int unwind_table__get(const struct elf_file *file, const char *dir,
		      const struct insn_range *pointers, struct unwind_table *ret, struct err *err)
{
	bool cached = dir && file->fd >= 0 && file->build_id_len;
	int rc;

	if (cached && unwind_cache__load(dir, file, ret) == 0)
		return 0;
	if (stop__is_due())
		return err__set(err, -EINTR, "%s: interrupted", file->path);
	rc = build(file, NULL, false, pointers, ret, err);
	if (!rc)
		unwind_table__store(file, dir, ret);
	return rc;
}

void unwind_table__store(const struct elf_file *file, const char *dir,
			 const struct unwind_table *table)
{
	if (dir && file->fd >= 0 && file->build_id_len && table->n_pages)
		unwind_cache__store(dir, file, table);
}

void unwind_table__done(struct unwind_table *table)
{
	free(table->words);
	memset(table, 0, sizeof(*table));
}

const struct unwind_rule *unwind_table__find(const struct unwind_table *table, uint64_t vaddr)
{
	static const struct unwind_rule none = { .kind = UNWIND_NONE };
	uint64_t at = vaddr - table->vaddr_start;
	uint64_t page = at >> UNWIND_PAGE_BITS;
	uint32_t lo, hi, mid, number;

	if (vaddr < table->vaddr_start || page >= table->n_pages)
		return &none;
	lo = table->words[page];
	hi = table->words[page + 1];
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (UNWIND_ROW_AT(table->words[table->rows_at + mid]) <=
		    (at & (UNWIND_PAGE_BYTES - 1)))
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return &none;
	/* The row may belong to an earlier page. */
	number = UNWIND_ROW_RULE(table->words[table->rows_at + lo - 1]);
	return (const struct unwind_rule *)&table
		->words[table->rules_at + number * UNWIND_RULE_WORDS];
}

/* Returns $HOME, or the home directory of the password file if $HOME is unset. Borrowed; NULL if
 * not absolute. */
static const char *home_dir(void)
{
	const char *home = secure_getenv("HOME");
	struct passwd *user;

	if (!home || !*home) {
		user = getpwuid(geteuid());
		home = user ? user->pw_dir : NULL;
	}
	return home && *home == '/' ? home : NULL;
}

static bool make_dir(const char *path)
{
	return mkdir(path, 0700) == 0 || errno == EEXIST;
}

char *unwind_table__default_dir(void)
{
	const char *cache = secure_getenv("XDG_CACHE_HOME"), *home;
	char parent[PATH_MAX], *dir = NULL;
	int n;

	if (cache && *cache == '/') {
		n = snprintf(parent, sizeof(parent), "%s", cache);
	} else {
		home = home_dir();
		if (!home)
			return NULL;
		n = snprintf(parent, sizeof(parent), "%s/.cache", home);
	}
	if (n < 0 || (size_t)n >= sizeof(parent) || asprintf(&dir, "%s/braid", parent) < 0)
		return NULL;
	if (!make_dir(parent) || !make_dir(dir)) {
		free(dir);
		return NULL;
	}
	return dir;
}
