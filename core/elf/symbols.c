// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf/symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/quota.h"
#include "core/base/range_map.h"
#include "core/base/stop.h"
#include "core/base/util.h"
#include "core/elf/cfi_entries.h"
#include "core/elf/debugfile.h"
#include "core/elf/dwarf.h"
#include "core/elf/function_end.h"
#include "core/elf/minidebug.h"
#include "core/elf/plt.h"
#include "core/elf/symtab.h"

struct function_range {
	uint64_t start, end;
};

struct symbols {
	const struct elf_file *file; /* borrowed */
	char *root;
	bool stays_below; /* no lookups below braid's own root */
	bool opened;
	bool has_full_table;
	const struct debug_server *server; /* source of files that debug files share; NULL: none */
	struct elf_file *debug, *alt, *minidebug; /* NULL: none */
	struct symtab symtab, plt;		  /* borrow their names from the three files */
	struct dwarf *dwarf;			  /* NULL: none; borrows one of the files */
	struct dwarf_files split;
	struct range_map functions;    /* from call frame information */
	struct function_range *ranges; /* the values of @functions are indexes of it */
	size_t n_ranges, cap_ranges;
	bool functions_read;
};

static int open_split(void *ctx, const char *dir, const char *name, struct elf_file **ret)
{
	const struct symbols *symbols = ctx;

	return debugfile__open_split(symbols->file, symbols->root, symbols->stays_below, dir, name,
				     ret);
}

int symbols__new(const struct elf_file *file, const char *root, struct symbols **ret)
{
	struct symbols *symbols = calloc(1, sizeof(*symbols));

	if (!symbols)
		return -ENOMEM;
	symbols->file = file;
	symbols->split = (struct dwarf_files) { open_split, symbols };
	symbols->root = strdup(root);
	if (!symbols->root) {
		free(symbols);
		return -ENOMEM;
	}
	*ret = symbols;
	return 0;
}

void symbols__stay_below_root(struct symbols *symbols)
{
	symbols->stays_below = true;
}

static void close_sources(struct symbols *symbols)
{
	dwarf__free(symbols->dwarf);
	symbols->dwarf = NULL;
	symtab__done(&symbols->plt);
	symtab__done(&symbols->symtab);
	elf_file__free(symbols->minidebug);
	symbols->minidebug = NULL;
	elf_file__free(symbols->alt);
	symbols->alt = NULL;
	elf_file__free(symbols->debug);
	symbols->debug = NULL;
	symbols->opened = false;
}

void symbols__free(struct symbols *symbols)
{
	if (!symbols)
		return;
	close_sources(symbols);
	range_map__done(&symbols->functions);
	free(symbols->ranges);
	free(symbols->root);
	free(symbols);
}

/* Converts -ENOENT to 0, as a missing source is no error. */
static int optional(int rc)
{
	return rc == -ENOENT ? 0 : rc;
}

static int open_debugfile(struct symbols *symbols)
{
	return debugfile__open(symbols->file, symbols->root, symbols->stays_below, &symbols->debug);
}

static int open_alt(struct symbols *symbols, const struct elf_file *file)
{
	int rc = debugfile__open_alt(file, symbols->root, symbols->stays_below, &symbols->alt);
	const void *build_id;
	size_t len;

	build_id = rc == -ENOENT && symbols->server ? debugfile__alt_build_id(file, &len) : NULL;
	if (build_id && symbols->server->open(symbols->server->ctx, build_id, len, &symbols->alt))
		symbols->alt = NULL; /* then there are names without lines */
	return optional(rc);
}

static int open_dwarf_of(struct symbols *symbols, const struct elf_file *file)
{
	int rc = open_alt(symbols, file);

	if (!rc)
		rc = dwarf__new(file, symbols->alt, &symbols->split, &symbols->dwarf);
	if (rc) {
		elf_file__free(symbols->alt);
		symbols->alt = NULL;
	}
	return rc;
}

static int open_dwarf(struct symbols *symbols)
{
	int rc = open_dwarf_of(symbols, symbols->file);

	if (rc == -ENOENT)
		rc = symbols->debug ? 0 : optional(open_debugfile(symbols));
	if (!rc && symbols->debug)
		rc = open_dwarf_of(symbols, symbols->debug);
	return optional(rc);
}

/* Adds the symbols of the first .symtab found. Returns their number, or a negative errno. */
static int add_full_table(struct symbols *symbols)
{
	int n = symtab__add_section(&symbols->symtab, symbols->file, ".symtab");
	int rc = 0;

	if (!n && !symbols->debug)
		rc = optional(open_debugfile(symbols));
	if (!n && !rc && symbols->debug)
		n = symtab__add_section(&symbols->symtab, symbols->debug, ".symtab");
	if (!n && !rc)
		rc = optional(minidebug__open(symbols->file, &symbols->minidebug));
	if (!n && !rc && symbols->minidebug)
		n = symtab__add_section(&symbols->symtab, symbols->minidebug, ".symtab");
	symbols->has_full_table = n > 0;
	return rc ? rc : n;
}

static int read_sources(struct symbols *symbols)
{
	int rc = open_dwarf(symbols);

	if (!rc)
		rc = add_full_table(symbols);
	if (rc >= 0)
		rc = symtab__add_section(&symbols->symtab, symbols->file, ".dynsym");
	if (rc >= 0)
		rc = symtab__seal(&symbols->symtab);
	if (!rc)
		rc = plt__add(&symbols->plt, symbols->file, &symbols->symtab);
	if (!rc)
		rc = symtab__seal(&symbols->plt);
	return rc;
}

/* Opens all sources. An interrupted read is repeated by the next call; a file over the budget has
 * no symbols. */
static int open_sources(struct symbols *symbols)
{
	int rc = read_sources(symbols);

	if (!rc && stop__is_due())
		rc = -EINTR;
	if (rc)
		close_sources(symbols);
	if (rc == -EFBIG)
		rc = quota__refuse(symbols->file->account) == -EFBIG ? 0 : rc;
	symbols->opened = !rc;
	return rc;
}

static int add_function(void *ctx, uint64_t start, uint64_t end)
{
	struct symbols *symbols = ctx;
	int rc = array__reserve(&symbols->ranges, &symbols->cap_ranges, symbols->n_ranges + 1,
				sizeof(*symbols->ranges));

	if (rc)
		return rc;
	symbols->ranges[symbols->n_ranges] = (struct function_range) { start, end };
	return range_map__add(&symbols->functions, start, end, symbols->n_ranges++);
}

static int read_functions(struct symbols *symbols)
{
	int rc = cfi_entries__functions(symbols->file, add_function, symbols, NULL);

	if (rc == -EBADMSG || rc == -EFBIG) /* the functions read so far are used */
		rc = 0;
	if (!rc)
		rc = range_map__seal(&symbols->functions);
	if (!rc && stop__is_due())
		rc = -EINTR;
	if (rc) {
		range_map__done(&symbols->functions);
		symbols->n_ranges = 0;
	}
	symbols->functions_read = !rc;
	return rc;
}

/* Finds the function around @vaddr by the call frame information. Returns 0, -ENOENT or another
 * negative errno. */
static int find_function(struct symbols *symbols, uint64_t vaddr, struct function_range *ret)
{
	uint32_t at;
	int rc = symbols->functions_read ? 0 : read_functions(symbols);

	if (rc)
		return rc;
	if (!range_map__find(&symbols->functions, vaddr, &at))
		return -ENOENT;
	*ret = symbols->ranges[at];
	return 0;
}

/* Sets the end of a symbol without a size. If only exported symbols are available, functions
 * without a name may follow it. Its frame description has its end, or else its code. */
static void bound(struct symbols *symbols, struct symbol *symbol)
{
	struct function_range range;

	if (find_function(symbols, symbol->start, &range) == 0)
		symbol->end = min_of(symbol->end, range.end);
	else
		symbol->end = function_end__find(symbols->file, symbol->start, symbol->end);
	symbol->sized = true;
}

/* Returns the symbol that contains @vaddr, or NULL. */
static struct symbol *find_symbol(struct symbols *symbols, uint64_t vaddr)
{
	struct symbol *symbol = symtab__find(&symbols->symtab, vaddr);

	if (!symbol)
		return symtab__find(&symbols->plt, vaddr);
	if (!symbol->sized && !symbols->has_full_table)
		bound(symbols, symbol);
	return vaddr < symbol->end ? symbol : NULL;
}

static int resolve(struct symbols *symbols, uint64_t vaddr, struct symbol_frame *ret, size_t max)
{
	const char *owner = NULL;
	struct symbol *symbol;
	int rc;

	if (!max)
		return 0;
	rc = symbols->opened ? 0 : open_sources(symbols);
	if (rc)
		return rc;
	symbol = find_symbol(symbols, vaddr);
	if (symbol) {
		owner = symbol__text(symbol);
		if (!owner)
			return -ENOMEM;
	}
	rc = symbols->dwarf ? dwarf__resolve(symbols->dwarf, vaddr, owner, ret, max) : 0;
	if (rc == -EFBIG)
		rc = 0;
	if (rc || !owner)
		return rc;
	*ret = (struct symbol_frame) { .function = owner };
	return 1;
}

int symbols__resolve(struct symbols *symbols, uint64_t vaddr, struct symbol_frame *ret, size_t max)
{
	struct quota_account *previous = quota__enter(symbols->file->account);
	int n = resolve(symbols, vaddr, ret, max);

	quota__leave(previous);
	return n;
}

bool symbols__is_stripped(const struct symbols *symbols)
{
	return symbols->opened && !symbols->has_full_table && !symbols->dwarf;
}

int symbols__fetch(struct symbols *symbols, const struct debug_server *server)
{
	const struct elf_file *file = symbols->file;
	struct elf_file *debug;
	int rc = server->open(server->ctx, file->build_id, file->build_id_len, &debug);

	if (rc)
		return rc;
	if (!elf_file__section(debug, ".symtab", NULL)) { /* truncated, or useless */
		elf_file__free(debug);
		return -ENOENT;
	}
	close_sources(symbols);
	symbols->debug = debug;
	symbols->server = server;
	rc = open_sources(symbols);
	symbols->server = NULL;
	return rc;
}

int symbols__function_start(struct symbols *symbols, uint64_t vaddr, uint64_t *ret_start)
{
	struct quota_account *previous = quota__enter(symbols->file->account);
	struct function_range range;
	int rc = find_function(symbols, vaddr, &range);

	quota__leave(previous);
	if (!rc)
		*ret_start = range.start;
	return rc;
}

int symbols__range(struct symbols *symbols, uint64_t vaddr, uint64_t *ret_start, uint64_t *ret_end)
{
	struct function_range range;
	const struct symbol *symbol;
	int rc = symbols->opened ? 0 : open_sources(symbols);

	if (rc)
		return rc;
	symbol = find_symbol(symbols, vaddr);
	if (symbol)
		range = (struct function_range) { symbol->start, symbol->end };
	else
		rc = find_function(symbols, vaddr, &range);
	if (rc)
		return rc;
	*ret_start = range.start;
	*ret_end = range.end;
	return 0;
}
