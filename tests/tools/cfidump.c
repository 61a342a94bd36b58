// SPDX-License-Identifier: GPL-2.0-or-later
/* cfidump FILE prints the unwind table, one line per row.
 * cfidump --time FILE prints size and build time, times of the cache, and the speed of libdw.
 * cfidump --check FILE compares every row with readelf's, and samples with libdw's. */
#include <errno.h>
#include <fcntl.h>
#include <time.h>

#include "core/base/util.h"
#include "core/unwind/unwind_cache.h"
#include "tests/cfi_oracle.h"

#define SAMPLES 20000

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static const char *reg_name(int reg)
{
	static const char *const names[] = {
		"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
		"r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"
	};

	return reg < (int)ARRAY_SIZE(names) ? names[reg] : "?";
}

static void print_saved(const char *name, short words, int at_rbp)
{
	if (words == UNWIND_WORDS_LOST)
		printf(" %s=lost", name);
	else if (at_rbp)
		printf(" %s=rbp%+d", name, words * 8);
	else if (words != UNWIND_WORDS_SAME)
		printf(" %s=c%+d", name, words * 8);
}

static void print_rule(const struct unwind_rule *rule)
{
	static const char *const kinds[] = { "none",   "reg",	"deref",       "plt",
					     "signal", "end",	"link",	       "switch",
					     "resume", "later", "unsupported", "pointer" };

	printf("%s", kinds[rule->kind]);
	if (rule->kind == UNWIND_PLT)
		printf(" rsp%+d from %d", rule->cfa_off, rule->cfa_add);
	else if (rule->kind == UNWIND_DEREF)
		printf(" *(%s%+d)%+d", reg_name(rule->reg), rule->cfa_off, rule->cfa_add);
	else if (rule->kind == UNWIND_REG || rule->kind == UNWIND_END || rule->kind == UNWIND_LINK)
		printf(" %s%+d", reg_name(rule->reg), rule->cfa_off);
	if (rule->kind == UNWIND_LINK)
		printf(" to %s", reg_name(rule->cfa_add));
	print_saved("rbp", rule->fp_words, rule->flags & UNWIND_FP_AT_FP);
	print_saved("rbx", rule->aux_words, rule->flags & UNWIND_AUX_AT_FP);
	putchar('\n');
}

struct row_visitor {
	void (*visit)(void *ctx, uint64_t vaddr, const struct unwind_rule *rule);
	void *ctx;
};

static void for_each_row(const struct unwind_table *table, struct row_visitor visitor)
{
	for (uint32_t page = 0; page < table->n_pages; page++) {
		for (uint32_t row = table->words[page]; row < table->words[page + 1]; row++) {
			uint64_t vaddr = oracle__row_vaddr(table, page, row);

			visitor.visit(visitor.ctx, vaddr, unwind_table__find(table, vaddr));
		}
	}
}

static void dump_row(void *ctx, uint64_t vaddr, const struct unwind_rule *rule)
{
	(void)ctx;
	printf("%016" PRIx64 " ", vaddr);
	print_rule(rule);
}

static void look_up_row(void *cfi, uint64_t vaddr, const struct unwind_rule *rule)
{
	Dwarf_Frame *frame;

	if (rule->kind != UNWIND_NONE && dwarf_cfi_addrframe(cfi, vaddr, &frame) == 0)
		free(frame);
}

/* Measures the time in which libdw finds the same rows. It runs a function's instructions again for
 * each. */
static void time_libdw(const struct elf_file *file, const struct unwind_table *table)
{
	Dwarf_CFI *cfi = dwarf_getcfi_elf(file->elf);
	double start = now_ms(), took;

	if (!cfi)
		return;
	for_each_row(table, (struct row_visitor) { look_up_row, cfi });
	took = now_ms() - start;
	printf("libdw: as many rows in %.1f ms, %.0f rows/s\n", took, table->n_rows / took * 1e3);
	dwarf_cfi_end(cfi);
}

static int time_cache(const struct elf_file *file, const struct unwind_table *table)
{
	char dir[] = "/tmp/cfidump.XXXXXX", command[64];
	struct unwind_table cached = { 0 };
	double start;
	int rc;

	if (!mkdtemp(dir))
		return -errno;
	start = now_ms();
	rc = unwind_cache__store(dir, file, table);
	printf("stored in %.1f ms: %s\n", now_ms() - start, rc ? strerror(-rc) : "ok");
	start = now_ms();
	rc = unwind_cache__load(dir, file, &cached);
	printf("loaded in %.1f ms: %s\n", now_ms() - start, rc ? strerror(-rc) : "ok");
	unwind_table__done(&cached);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) ? -EIO : rc;
}

static int print_times(const struct elf_file *file, const struct unwind_table *table, double took)
{
	int rc = 0;

	printf("built in %.1f ms, %.0f rows/s\n", took, table->n_rows / took * 1e3);
	printf("rows %u, unsupported %u, rules %u, pages %u, words %u, bytes per row %.2f\n",
	       table->n_rows, table->n_unsupported, table->n_rules, table->n_pages, table->n_words,
	       table->n_rows ? 4.0 * table->n_words / table->n_rows : 0);
	if (file->build_id_len && table->n_pages)
		rc = time_cache(file, table);
	time_libdw(file, table);
	return rc;
}

static int check(const struct elf_file *file, const struct unwind_table *table, const char *path)
{
	struct oracle_result readelf = { 0 }, libdw = { 0 };

	if (oracle__readelf(path, file, table, &readelf))
		fprintf(stderr, "cfidump: readelf failed\n");
	oracle__libdw(file, table, SAMPLES, &libdw);
	printf("readelf: %lu rows, %lu differ; libdw: %lu addresses, %lu differ\n",
	       readelf.n_checked, readelf.n_differ, libdw.n_checked, libdw.n_differ);
	return readelf.n_differ || libdw.n_differ ? -EBADMSG : 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc == 3 ? argv[1] : "", *path = argv[argc - 1];
	struct elf_file *file = NULL;
	struct unwind_table table = { 0 };
	struct err err = { "" };
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc;
	double start, took;

	if (argc < 2 || argc > 3 || fd < 0) {
		fprintf(stderr, "usage: cfidump [--time | --check] FILE\n");
		return 2;
	}
	rc = elf_file__open(fd, path, &file, &err);
	start = now_ms();
	if (!rc)
		rc = unwind_table__build(file, &table, &err);
	took = now_ms() - start;
	if (rc)
		fprintf(stderr, "cfidump: %s\n", err.text);
	else if (!strcmp(mode, "--time"))
		rc = print_times(file, &table, took);
	else if (!strcmp(mode, "--check"))
		rc = check(file, &table, path);
	else
		for_each_row(&table, (struct row_visitor) { dump_row, NULL });
	unwind_table__done(&table);
	elf_file__free(file);
	return rc ? 1 : 0;
}
