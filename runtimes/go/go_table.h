/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_GO_TABLE_H
#define BRAID_GO_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/elf/elf_file.h"

/* The table by which Go's runtime finds functions, stack frames and lines (.gopclntab), as the
 * linker writes it (src/cmd/link/internal/ld/pcln.go) and src/runtime/symtab.go reads it. A
 * stripped file has it, too: the program itself needs it. All of it is untrusted. */

enum go_layout { GO_116, GO_118, GO_120, GO_LAYOUTS_N }; /* the release that brought it */

struct go_table {
	const uint8_t *bytes; /* from the header on; borrowed from the file */
	size_t size;
	uint64_t vaddr; /* link-time address of the header */
	enum go_layout layout;
	uint64_t text; /* base address of the functions' entries */
	size_t n_functions;
	void *owned;
	struct quota_account *account;				      /* charged for `owned` */
	size_t names_at, units_at, files_at, values_at, functions_at; /* offsets in bytes */
};

/* Reads @n words at @offset of the runtime's description of the program (struct moduledata of
 * src/runtime/symtab.go). Its first words point to the table and to the names. Words that the
 * file lacks are 0. Returns false if the file has no such description. */
bool go_table__module_words(const struct elf_file *file, const struct go_table *table,
			    size_t offset, uint64_t *ret, size_t n);

/* Cheap for files that are not Go's. */
bool go_table__is_likely(const struct elf_file *file);

/* 0; -ENOENT: the file has none that can be used; -ENOMEM. */
int go_table__open(const struct elf_file *file, struct go_table *ret);
void go_table__done(struct go_table *table); /* idempotent */

struct go_function {
	uint64_t start, end;	 /* link-time addresses */
	const char *name;	 /* as in the table; NUL-terminated */
	size_t data_at;		 /* behind the fixed part: offsets of values, then of data */
	uint32_t sp, file, line; /* offsets of their values: go_values__of */
	uint32_t n_values, unit;
	uint8_t n_data;
};

/* The i-th function, in the order of addresses. False: malformed. */
bool go_table__function(const struct go_table *table, size_t i, struct go_function *ret);

/* The one around an address. */
bool go_table__find(const struct go_table *table, uint64_t vaddr, struct go_function *ret);

/* A text of the table at an offset from `from`; NULL: there is none. */
const char *go_table__text(const struct go_table *table, size_t from, int64_t offset);

/* Path of the file with this number in the function's unit; NULL: none. */
const char *go_table__file(const struct go_table *table, const struct go_function *function,
			   int32_t number);

bool go_table__u32(const struct go_table *table, size_t at, uint32_t *ret);

/* A value that depends on the place in a function: bytes on the stack, a line, ... */
struct go_values {
	const uint8_t *at, *end;
	uint64_t start, until; /* [start, until) has the value */
	int32_t value;
	bool begun;
};

/* `offset`: sp, file or line of the function, or a result of go_function__values. */
struct go_values go_values__of(const struct go_table *table, const struct go_function *function,
			       uint32_t offset);
bool go_values__next(struct go_values *values); /* false: there are no more */

/* At an address; -1: none. */
int32_t go_values__at(const struct go_table *table, const struct go_function *function,
		      uint32_t offset, uint64_t vaddr);

/* Read the i-th further value, and the i-th data: an offset from the module's data of functions, or
 * an address up to Go 1.17. Return false if there is none. */
bool go_function__values(const struct go_table *table, const struct go_function *function,
			 unsigned int i, uint32_t *ret);
bool go_function__data(const struct go_table *table, const struct go_function *function,
		       unsigned int i, uint64_t *ret);

#endif
