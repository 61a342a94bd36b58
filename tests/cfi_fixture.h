/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_TESTS_CFI_FIXTURE_H
#define BRAID_TESTS_CFI_FIXTURE_H

/* Small ELF files that the tests of unwind tables compile for themselves. Their important
 * properties depend on flags that no build option may change. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/unwind/unwind_table.h"

struct fixture {
	char dir[64];
};

static inline bool fixture__begin(struct fixture *fixture)
{
	strcpy(fixture->dir, "/tmp/braid-cfi.XXXXXX");
	return mkdtemp(fixture->dir) != NULL;
}

/* Runs a shell command in the fixture's directory. */
static inline bool fixture__run(const struct fixture *fixture, const char *command)
{
	char line[1024];

	snprintf(line, sizeof(line),
		 "cd '%s' && { %s; } >log 2>&1 || { sed 's/^/# /' log; false; }", fixture->dir,
		 command);
	fflush(stdout);
	return system(line) == 0;
}

static inline void fixture__end(const struct fixture *fixture)
{
	char line[128];

	snprintf(line, sizeof(line), "rm -rf '%s'", fixture->dir);
	if (system(line) != 0)
		printf("# %s stays\n", fixture->dir);
}

static inline bool fixture__write(const struct fixture *fixture, const char *name, const char *text)
{
	char path[128];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", fixture->dir, name);
	out = fopen(path, "w");
	if (!out)
		return false;
	fputs(text, out);
	return fclose(out) == 0;
}

/* Opens an absolute path, or a name in the fixture's directory. Returns NULL on failure. */
static inline struct elf_file *fixture__open(const struct fixture *fixture, const char *name)
{
	struct elf_file *file;
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", *name == '/' ? "" : fixture->dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && elf_file__open(fd, path, &file, NULL) == 0 ? file : NULL;
}

/* Returns the whole file, owned by the caller. */
static inline uint8_t *fixture__read(const struct fixture *fixture, const char *name,
				     size_t *ret_size)
{
	struct elf_file *file = fixture__open(fixture, name);
	uint8_t *copy = NULL;
	const char *raw;

	raw = file ? elf_rawfile(file->elf, ret_size) : NULL;
	if (raw)
		copy = malloc(*ret_size);
	if (copy)
		memcpy(copy, raw, *ret_size);
	elf_file__free(file);
	return copy;
}

/* Checks the words against bpf/unwind_rule.h, and that rows are in ascending order. A row repeats
 * the previous rule only where a description begins. */
static inline bool fixture__table_is_valid(const struct unwind_table *t)
{
	const uint32_t *w = t->words;
	uint32_t row = 0;

	if (!t->n_pages)
		return !w && !t->n_rows && !t->n_words;
	if (t->vaddr_start % UNWIND_PAGE_BYTES || t->rules_at % UNWIND_RULE_WORDS ||
	    t->rules_at <= t->n_pages || t->rows_at != t->rules_at + 4 * t->n_rules ||
	    t->n_words != t->rows_at + t->n_rows || t->n_rules < 2 || w[0] ||
	    w[t->n_pages] != t->n_rows)
		return false;
	for (uint32_t page = 0; page < t->n_pages; page++) {
		for (uint32_t first = row; row < w[page + 1]; row++) {
			uint32_t at = w[t->rows_at + row];

			if (row >= t->n_rows || UNWIND_ROW_RULE(at) >= t->n_rules)
				return false;
			if (row > first &&
			    UNWIND_ROW_AT(at) <= UNWIND_ROW_AT(w[t->rows_at + row - 1]))
				return false;
			if (row && UNWIND_ROW_RULE(at) <= 1 &&
			    UNWIND_ROW_RULE(at) == UNWIND_ROW_RULE(w[t->rows_at + row - 1]))
				return false;
		}
		if (row != w[page + 1])
			return false;
	}
	return UNWIND_ROW_RULE(w[t->n_words - 1]) == 0; /* the last row ends the table */
}

#endif
