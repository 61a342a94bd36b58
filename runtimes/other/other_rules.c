// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/other/other_rules.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/elf/elf_section.h"
#include "core/elf/elf_symbols.h"

/* A file is recognized by a symbol that it defines for others, by a section, or by a text. Symbols
 * and sections are read from tables of the file, in one pass. Texts are searched for in files only
 * whose symbols make the runtime likely, because a search reads all data of the file. */

/* Symbols that the file defines in .dynsym. Sorted by name (strcmp). */
static const struct symbol_rule {
	const char *name;
	enum other_kind kind;
} symbol_rules[] = {
	{ "Dart_Initialize", OTHER_DART },
	{ "DotNetRuntimeInfo", OTHER_DOTNET },
	{ "PyPy_AddPendingCall", OTHER_PYPY },
	{ "Rf_initEmbeddedR", OTHER_R },
	{ "Sscheme_init", OTHER_RACKET },
	{ "_ZN2v87Isolate10GetCurrentEv", OTHER_NODE_API },
	{ "_kDartIsolateSnapshotInstructions", OTHER_DART },
	{ "_kDartSnapshotText", OTHER_DART },
	{ "caml_main", OTHER_OCAML_BYTECODE },
	{ "caml_program", OTHER_OCAML },
	{ "coreclr_initialize", OTHER_DOTNET },
	{ "erl_drv_busy_msgq_limits", OTHER_BEAM },
	{ "graal_create_isolate", OTHER_GRAAL },
	{ "hs_main", OTHER_GHC },
	{ "jl_init", OTHER_JULIA },
	{ "lisp_startup_options", OTHER_SBCL },
	{ "luaJIT_setmode", OTHER_LUAJIT },
	{ "lua_newstate", OTHER_LUA },
	{ "mono_jit_init", OTHER_MONO },
	{ "napi_create_function", OTHER_NODE_API },
	{ "scm_init_guile", OTHER_GUILE },
};

static const struct section_rule {
	const char *name;
	enum other_kind kind;
} section_rules[] = {
	{ ".svm_heap", OTHER_GRAAL },
	{ ".bun", OTHER_BUN },
};

/* Constants for debuggers, which Node.js has: that V8 is runtimes/node's. */
#define NODE_SYMBOL "v8dbg_APIObjectType"

/* A version of Bun's symbols for addons; the number is the version that introduced it. */
#define BUN_TEXT "BUN_1."

/* An option of V8 that other engines with Node-API lack. */
#define V8_TEXT	      "interpreted-frames-native-stack"
#define ELECTRON_TEXT "ELECTRON_RUN_AS_NODE"
#define DENO_TEXT     "DENO_DIR"

/* GHC_IMPORT is a function that GHC's runtime and few other programs call. GHC_TEXT and
 * GHC_TEXT_REST are two parts of the runtime's message for crashes, which are adjacent in programs
 * of GHC. A program that contains these rules has both texts, but GHC did not compile the program.
 */
#define GHC_IMPORT    "clock_getcpuclockid"
#define GHC_TEXT      "(GHC version "
#define GHC_TEXT_REST "%s for %s)"

/* --- tables of the file --- */

static int compare_names(const void *name, const void *rule)
{
	return strcmp(name, ((const struct symbol_rule *)rule)->name);
}

/* Returns the first kind in the order of enum other_kind that a symbol of the file stands for. */
static enum other_kind find_by_symbols(const struct elf_symbols *symbols, bool *ret_has_ghc_import)
{
	enum other_kind found = OTHER_NONE;
	GElf_Sym sym;

	for (size_t i = 0; i < symbols->n; i++) {
		const char *name = elf_symbols__get(symbols, i, &sym);
		const struct symbol_rule *rule;

		if (name && sym.st_shndx == SHN_UNDEF)
			*ret_has_ghc_import |= !strcmp(name, GHC_IMPORT);
		if (!name || sym.st_shndx == SHN_UNDEF)
			continue;
		if (!strcmp(name, NODE_SYMBOL))
			return OTHER_NONE;
		rule = bsearch(name, symbol_rules, ARRAY_SIZE(symbol_rules), sizeof(*rule),
			       compare_names);
		if (rule && rule->kind < found)
			found = rule->kind;
	}
	return found;
}

static enum other_kind find_by_sections(const struct elf_file *file)
{
	struct elf_section section;

	for (size_t i = 0; i < ARRAY_SIZE(section_rules); i++)
		if (!elf_section__find(file, section_rules[i].name, &section))
			return section_rules[i].kind;
	return OTHER_NONE;
}

static bool has_name(const struct elf_symbols *symbols, const char *text, size_t len)
{
	return memmem(symbols->strings->d_buf, symbols->strings->d_size, text, len) != NULL;
}

/* --- texts --- */

#define BUFFER_BYTES (256 * 1024) /* bytes; a data segment may have a hundred megabytes */

struct text {
	const char *begin, *rest; /* the one follows the other; NULL: no rest */
};

static bool has_text(const char *buffer, size_t len, const struct text *text)
{
	size_t n = strlen(text->begin), n_rest = text->rest ? strlen(text->rest) : 0;
	const char *end = buffer + len;

	for (const char *at = buffer; (at = memmem(at, end - at, text->begin, n)); at++)
		if (fits_in(n, n_rest, end - at) && !memcmp(at + n, text->rest ?: "", n_rest))
			return true;
	return false;
}

/* Returns true if the file has a segment for constant data. Linkers before 2018 put constant data
 * into the segment with the code. */
static bool has_data_of_its_own(const struct elf_file *file)
{
	size_t n = 0;

	for (size_t i = 0; i < file->n_segments; i++)
		n += !file->segments[i].exec;
	return n > 1; /* that of variables, and one of constants */
}

/* Sets bit n of the result for texts[n] found in the data of the file. */
static uint32_t find_texts(const struct elf_file *file, const struct text *texts, size_t n)
{
	bool skips_code = has_data_of_its_own(file);
	char *buffer = malloc(BUFFER_BYTES);
	size_t overlap = 0;
	uint32_t found = 0;

	for (size_t t = 0; t < n; t++)
		overlap = max_of(overlap, strlen(texts[t].begin) + strlen(texts[t].rest ?: ""));
	for (size_t i = 0; buffer && i < file->n_segments; i++) {
		const struct elf_segment *segment = &file->segments[i];

		if (segment->exec && skips_code)
			continue;
		for (uint64_t at = 0; at < segment->filesz; at += BUFFER_BYTES - overlap) {
			size_t left = min_of(segment->filesz - at, (uint64_t)BUFFER_BYTES);

			if (elf_file__read(file, segment->vaddr + at, buffer, left))
				break;
			for (size_t t = 0; t < n; t++)
				if (has_text(buffer, left, &texts[t]))
					found |= 1U << t;
		}
	}
	free(buffer);
	return found;
}

/* Returns which engine that runs addons for Node.js the program contains. */
static enum other_kind find_engine(const struct elf_file *file)
{
	static const struct text texts[] = { { ELECTRON_TEXT, NULL },
					     { DENO_TEXT, NULL },
					     { V8_TEXT, NULL } };
	static const enum other_kind kinds[] = { OTHER_ELECTRON, OTHER_DENO };
	uint32_t found = find_texts(file, texts, ARRAY_SIZE(texts));

	if (!(found & 1U << ARRAY_SIZE(kinds)))
		return OTHER_NONE;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (found & 1U << i)
			return kinds[i];
	return OTHER_V8;
}

/* Returns true if a file that imports GHC_IMPORT has the message of GHC's runtime. */
static bool is_ghc(const struct elf_file *file)
{
	static const struct text texts[] = { { GHC_TEXT, GHC_TEXT_REST } };

	return find_texts(file, texts, 1);
}

enum other_kind other_rules__find(const struct elf_file *file)
{
	struct elf_symbols symbols;
	enum other_kind kind = find_by_sections(file);
	bool has_ghc_import = false;

	if (kind != OTHER_NONE || !elf_symbols__open(file, ".dynsym", &symbols))
		return kind;
	kind = find_by_symbols(&symbols, &has_ghc_import);
	if (kind == OTHER_NODE_API)
		return has_name(&symbols, BUN_TEXT, strlen(BUN_TEXT)) ? OTHER_BUN
								      : find_engine(file);
	return kind == OTHER_NONE && has_ghc_import && is_ghc(file) ? OTHER_GHC : kind;
}
