// SPDX-License-Identifier: GPL-2.0-or-later
/* Finds the function at an address by the symbols of a file: never the nearest wrong one.
 *
 * A table of symbols has several names for one address (aliases, versions, a local and a global
 * one). It has symbols without a size (assembly, and labels of a compiler), and sizes that extend
 * into other functions. So:
 *
 * - An address has the name that a person would use: one with a size, global before weak before
 *   local, fewer leading underscores, the shorter one. The alphabet decides between equal ones, so
 *   that the result does not depend on the order in the file.
 * - A symbol without a size ends where the next one begins. Inside a symbol with a size it is a
 *   label, and ignored.
 * - Addresses after a symbol's end have no name.
 * - Where sized symbols overlap, the innermost one has the address (core/base/range_map.h).
 *
 * Names are demangled at the first use: a C++ library has a million, of which a profile shows a few
 * hundred. */
#include "core/elf/symtab.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/arch/arch.h"
#include "core/base/quota.h"
#include "core/base/sort.h"
#include "core/base/util.h"
#include "core/elf/demangle.h"
#include "core/elf/elf_symbols.h"

/* Limit of symbols, 56 bytes each. Seen: 2,000,000 in a browser with all its symbols. */
#define SYMBOLS_MAX (8U << 20)

/* The charge includes the entry in the map, and the memory for sorting. */
#define CHARGED_AT_ONCE 4096
#define CHARGED_BYTES	(CHARGED_AT_ONCE * 2 * sizeof(struct symbol))

/* Limit of the work per comparison. */
#define NAME_BYTES_MAX 16384

static bool is_code(const struct arch *arch, const GElf_Sym *sym, const char *name)
{
	if (name[0] == '\0' || strnlen(name, NAME_BYTES_MAX + 1) > NAME_BYTES_MAX)
		return false;
	switch (GELF_ST_TYPE(sym->st_info)) {
	case STT_FUNC:
	case STT_GNU_IFUNC:
		return true;
	case STT_NOTYPE: /* assembly; names that begin with a dot are an assembler's own labels */
		return name[0] != '.' && !(arch->marks_code && name[0] == '$');
	default:
		return false;
	}
}

static uint8_t rank_of(const GElf_Sym *sym)
{
	switch (GELF_ST_BIND(sym->st_info)) {
	case STB_LOCAL:
		return 2;
	case STB_WEAK:
		return 1;
	default:
		return 0;
	}
}

/* Finds the executable section of a symbol. If section headers were removed, the symbol's section
 * number is meaningless, and the address decides. */
static bool section_of(const struct elf_file *file, const GElf_Sym *sym, GElf_Shdr *ret)
{
	Elf_Scn *scn = file->generated ? NULL : elf_getscn(file->elf, sym->st_shndx);

	if (!file->generated)
		return scn && gelf_getshdr(scn, ret) && ret->sh_flags & SHF_EXECINSTR;
	while ((scn = elf_nextscn(file->elf, scn)))
		if (gelf_getshdr(scn, ret) && ret->sh_flags & SHF_EXECINSTR &&
		    sym->st_value - ret->sh_addr < ret->sh_size)
			return true;
	return false;
}

/* Converts a symbol. The section's end bounds the symbol. Returns false if it is not a symbol of
 * code. */
static bool to_symbol(const struct elf_file *file, const GElf_Sym *sym, const char *name,
		      struct symbol *ret)
{
	GElf_Shdr shdr;
	uint64_t left;

	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx >= SHN_LORESERVE ||
	    !is_code(file->arch, sym, name))
		return false;
	if (!section_of(file, sym, &shdr))
		return false;
	if (sym->st_value < shdr.sh_addr || sym->st_value - shdr.sh_addr >= shdr.sh_size)
		return false;
	left = shdr.sh_size - (sym->st_value - shdr.sh_addr);
	if (sym->st_size)
		left = min_of(left, sym->st_size);
	if (sym->st_value + left < left)
		return false;
	*ret = (struct symbol) {
		.start = sym->st_value,
		.end = sym->st_value + left,
		.name = name,
		.rank = rank_of(sym),
		.sized = sym->st_size > 0,
	};
	return true;
}

int symtab__add(struct symtab *symtab, const struct symbol *symbol)
{
	if (symtab->n >= SYMBOLS_MAX)
		return -EFBIG;
	if (symtab->n % CHARGED_AT_ONCE == 0) {
		int rc = quota__charge(symtab->account, QUOTA_RETAINED, CHARGED_BYTES);

		if (rc)
			return rc;
		symtab->charged += CHARGED_BYTES;
	}
	if (array__reserve(&symtab->symbols, &symtab->cap, symtab->n + 1,
			   sizeof(*symtab->symbols)) != 0)
		return -ENOMEM;
	symtab->symbols[symtab->n++] = *symbol;
	return 0;
}

int symtab__add_section(struct symtab *symtab, const struct elf_file *file, const char *section)
{
	struct elf_symbols symbols;
	int n = 0;

	if (!elf_symbols__open(file, section, &symbols))
		return 0;
	if (!symtab->account)
		symtab->account = file->account;
	for (size_t i = 0; i < symbols.n; i++) {
		struct symbol symbol;
		GElf_Sym sym;
		const char *name = elf_symbols__get(&symbols, i, &sym);
		int rc = quota__look_at(i);

		if (rc)
			return rc;
		if (!name || !to_symbol(file, &sym, name, &symbol))
			continue;
		rc = symtab__add(symtab, &symbol);
		if (rc)
			return rc;
		n++;
	}
	return n;
}

static int compare_names(const char *a, const char *b)
{
	size_t bars_a = strspn(a, "_"), bars_b = strspn(b, "_");
	size_t length_a = strlen(a), length_b = strlen(b);

	if (bars_a != bars_b)
		return bars_a < bars_b ? -1 : 1;
	if (length_a != length_b)
		return length_a < length_b ? -1 : 1;
	return strcmp(a, b);
}

/* Sorts by address. The best name of an address is first. */
static int by_address(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->sized != y->sized)
		return x->sized ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return compare_names(x->name, y->name);
}

static void drop_aliases(struct symtab *symtab)
{
	size_t retained = 0;

	for (size_t i = 0; i < symtab->n; i++) {
		if (retained && symtab->symbols[retained - 1].start == symtab->symbols[i].start)
			continue;
		symtab->symbols[retained++] = symtab->symbols[i];
	}
	symtab->n = retained;
}

int symtab__seal(struct symtab *symtab)
{
	uint64_t sized_until = 0;
	int rc = sort__array(symtab->symbols, symtab->n, sizeof(*symtab->symbols), by_address);

	if (rc)
		return rc;
	drop_aliases(symtab);
	for (size_t i = 0; i < symtab->n; i++) {
		struct symbol *symbol = &symtab->symbols[i];

		if (symbol->sized)
			sized_until = max_of(sized_until, symbol->end);
		else if (symbol->start < sized_until)
			continue; /* a label inside a function */
		else if (i + 1 < symtab->n)
			symbol->end = min_of(symbol->end, symbol[1].start);
		if (range_map__add(&symtab->map, symbol->start, symbol->end, i) != 0)
			return -ENOMEM;
	}
	return range_map__seal(&symtab->map);
}

struct symbol *symtab__find(const struct symtab *symtab, uint64_t vaddr)
{
	uint32_t i;

	return range_map__find(&symtab->map, vaddr, &i) ? &symtab->symbols[i] : NULL;
}

const char *symbol__text(struct symbol *symbol)
{
	char *bare, *text = NULL;

	if (symbol->text)
		return symbol->text;
	/* The version follows an @: memcpy@@GLIBC_2.14. */
	bare = strndup(symbol->name, 1 + strcspn(symbol->name + 1, "@"));
	if (bare)
		text = demangle(bare);
	free(bare);
	if (text && symbol->is_plt) {
		if (asprintf(&symbol->text, "%s@plt", text) < 0)
			symbol->text = NULL;
		free(text);
	} else {
		symbol->text = text;
	}
	return symbol->text;
}

void symtab__done(struct symtab *symtab)
{
	for (size_t i = 0; i < symtab->n; i++)
		free(symtab->symbols[i].text);
	quota__give_back(symtab->account, symtab->charged);
	free(symtab->symbols);
	range_map__done(&symtab->map);
	*symtab = (struct symtab) { 0 };
}
