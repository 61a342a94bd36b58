// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/alloc_sites.h"

#include <string.h>

#include "bpf/alloc.h"
#include "core/base/util.h"
#include "core/elf/debugfile.h"
#include "core/elf/elf_symbols.h"
#include "core/elf/minidebug.h"
#include "core/kernel/trap.h"

#define NONE RUNTIME_ONCE
_Static_assert(RUNTIME_ONCE == ALLOC_ARG_NONE, "the kernel half's");

/* `nests` describes glibc. */
static const struct runtime_allocates of_malloc[] = {
	{ "malloc", 0, .times = NONE },
	{ "calloc", 0, .times = 1, .passes = true },
	{ "realloc", 1, NONE, .nests = true, .frees = 1 },
	{ "reallocarray", 1, 2, .nests = true, .frees = 1, .wraps = true },
	{ "aligned_alloc", 1, NONE, .nests = true, .aligns = true },
	{ "memalign", 1, NONE, .nests = true, .aligns = true },
	{ "posix_memalign", 2, NONE, .nests = true, .writes = true },
	{ "valloc", 0, NONE, .nests = true, .pages = true },
	{ "pvalloc", 0, NONE, .nests = true, .pages = true },
	{ "mallocx", 0, NONE, .nests = true }, /* jemalloc */
	{ "rallocx", 1, NONE, .nests = true, .frees = 1 },
	/* C++'s operators new and new[]: plain, with nothrow, with an alignment, and with both.
	 * Those of libstdc++ call malloc; an allocator's library may have its own. */
	{ "_Znwm", 0, NONE, .nests = true },
	{ "_Znam", 0, NONE, .nests = true },
	{ "_ZnwmRKSt9nothrow_t", 0, NONE, .nests = true },
	{ "_ZnamRKSt9nothrow_t", 0, NONE, .nests = true },
	{ "_ZnwmSt11align_val_t", 0, NONE, .nests = true },
	{ "_ZnamSt11align_val_t", 0, NONE, .nests = true },
	{ "_ZnwmSt11align_val_tRKSt9nothrow_t", 0, NONE, .nests = true },
	{ "_ZnamSt11align_val_tRKSt9nothrow_t", 0, NONE, .nests = true },
	{}
};

/* Includes delete and delete[], with any arguments after the address. */
static const struct runtime_frees of_free[] = { { .name = "free" },
						{ .name = "cfree" },
						{ .name = "free_sized" },
						{ .name = "free_aligned_sized" },
						{ .name = "dallocx" },
						{ .name = "sdallocx" },
						{ "_ZdlPv", 0, true },
						{ "_ZdaPv", 0, true },
						{} };

const struct runtime_allocator alloc_malloc = { .functions = of_malloc,
						.frees = of_free,
						.exported = true };

struct found {
	const struct elf_file *file; /* file with the code */
	const struct runtime_allocator *allocator;
	struct alloc_site *sites;
	size_t n;
	bool first; /* the first function of the list exists, so the file has an allocator */
	size_t at_first;
	bool is_glibc; /* the library is glibc, whose internal calls are documented by `nests` */
	bool frees;    /* search for functions that free instead of those that allocate */
	bool prefixed; /* only names with a prefix are those of an allocator */
};

/* Prefixes of the functions of jemalloc or mimalloc in a program that contains them: by
 * configuration and in Redis, in Rust (tikv-jemallocator), by their own names. */
static const char *const prefixes[] = { "je_", "_rjem_", "mi_" };

/* Returns the name without such a prefix; NULL: it has none. */
static const char *without_prefix(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		size_t len = strlen(prefixes[i]);

		if (!strncmp(name, prefixes[i], len))
			return name + len;
	}
	return NULL;
}

static const struct runtime_allocates *find(const struct runtime_allocates *list, const char *name)
{
	for (; list->name; list++)
		if (list->prefix ? !strncmp(name, list->name, strlen(list->name))
				 : !strcmp(name, list->name))
			return list;
	return NULL;
}

/* Returns the index of the site. */
static size_t add(struct found *found, const struct alloc_site *site)
{
	size_t i = 0;

	while (i < found->n && found->sites[i].vaddr != site->vaddr)
		i++;
	if (i == found->n && i < ALLOC_SITES_MAX)
		found->sites[found->n++] = *site;
	return min_of(i, (size_t)ALLOC_SITES_MAX - 1);
}

static size_t add_function(struct found *found, const struct runtime_allocates *function,
			   uint64_t vaddr)
{
	struct alloc_site site = {
		.vaddr = vaddr,
		.cookie = ALLOC_COOKIE(function->size, function->times, function->nests),
		.passes = function->passes,
		.wraps = function->wraps,
		.aligns = function->aligns,
		.pages = function->pages,
		.name = function->name,
	};

	if (function->writes)
		site.cookie |= ALLOC_WRITES_COOKIE;
	if (function->frees)
		site.cookie |= ALLOC_FREES_COOKIE(function->frees - 1U);
	return add(found, &site);
}

/* Returns the address to probe in a function that frees. glibc's free begins with "test %rdi, %rdi;
 * je", which the kernel would have to single-step. That costs ten times as much as the push after
 * it. There, argument and stack pointer are unchanged, and free(NULL) does not reach it. */
static uint64_t skip_null_check(const struct elf_file *file, uint64_t vaddr)
{
	static const uint8_t marker[] = { 0xf3, 0x0f, 0x1e, 0xfa }, test[] = { 0x48, 0x85, 0xff };
	uint8_t code[sizeof(marker) + sizeof(test) + 6 + 2];
	size_t at = 0;

	if (elf_file__read(file, vaddr, code, sizeof(code)))
		return vaddr;
	if (!memcmp(code, marker, sizeof(marker)))
		at = sizeof(marker);
	if (memcmp(code + at, test, sizeof(test)) != 0)
		return vaddr;
	at += sizeof(test);
	if (code[at] == 0x74) /* je, short and long */
		at += 2;
	else if (code[at] == 0x0f && code[at + 1] == 0x84)
		at += 6;
	else
		return vaddr;
	if (trap__kind(code + at, sizeof(code) - at, false) != TRAP_PUSH || code[at] >= 0xe8)
		return vaddr;
	return vaddr + at;
}

static void add_free(struct found *found, const char *name, uint64_t vaddr)
{
	const struct runtime_frees *function = found->allocator->frees;
	struct alloc_site site;
	size_t at;

	while (function->name &&
	       (function->prefix ? strncmp(name, function->name, strlen(function->name)) != 0
				 : strcmp(name, function->name) != 0))
		function++;
	if (!function->name)
		return;
	site = (struct alloc_site) { .vaddr = vaddr,
				     .cookie = ALLOC_FREES_COOKIE(function->address) };
	if (!function->address)
		site.vaddr = skip_null_check(found->file, vaddr);
	at = add(found, &site);
	if (function == found->allocator->frees)
		found->at_first = at;
}

static void swap(struct alloc_site *a, struct alloc_site *b)
{
	struct alloc_site saved = *a;

	*a = *b;
	*b = saved;
}

static void search(struct found *found, const struct elf_file *file, const char *section)
{
	const struct runtime_allocates *function;
	struct elf_symbols symbols;
	const char *name;
	GElf_Sym symbol;
	size_t at = 0;

	if (!elf_symbols__open(file, section, &symbols))
		return;
	for (size_t i = 0; i < symbols.n; i++) {
		name = elf_symbols__get(&symbols, i, &symbol);
		if (!name || symbol.st_shndx == SHN_UNDEF ||
		    GELF_ST_TYPE(symbol.st_info) != STT_FUNC)
			continue;
		found->is_glibc |= !strcmp(name, "gnu_get_libc_version");
		if (found->allocator == &alloc_malloc)
			name = without_prefix(name) ?: found->prefixed ? NULL : name;
		if (!name)
			continue;
		function = find(found->allocator->functions, name);
		if (found->frees)
			add_free(found, name, symbol.st_value);
		else if (function)
			at = add_function(found, function, symbol.st_value);
		if (function != found->allocator->functions)
			continue;
		if (!found->first && !found->frees)
			found->at_first = at;
		found->first = true;
	}
}

bool alloc_sites__is_static(const struct elf_file *file)
{
	Elf_Data *dynamic = elf_file__section(file, ".dynamic", NULL);
	Elf64_Dyn dyn;

	if (elf_file__section(file, ".interp", NULL))
		return false;
	for (size_t i = 0; elf_file__entry(dynamic, i, &dyn, sizeof(dyn)) && dyn.d_tag != DT_NULL;
	     i++)
		if (dyn.d_tag == DT_SONAME || dyn.d_tag == DT_NEEDED)
			return false;
	return true;
}

static void search_other(struct found *found, struct elf_file *other)
{
	if (!found->first)
		search(found, other, ".symtab");
	elf_file__free(other);
}

static void search_all(struct found *found, const struct elf_file *file)
{
	struct elf_file *other;

	if (found->allocator->exported)
		search(found, file, ".dynsym");
	if (found->first)
		return;
	found->prefixed = found->allocator->exported && !alloc_sites__is_static(file);
	if (found->prefixed && !elf_file__section(file, ".interp", NULL))
		return; /* a library */
	search(found, file, ".symtab");
	if (found->prefixed)
		return;
	if (!found->first && !minidebug__open(file, &other))
		search_other(found, other);
	if (!found->first && !debugfile__open(file, "", false, &other))
		search_other(found, other);
}

size_t alloc_sites__find_frees(const struct elf_file *file,
			       const struct runtime_allocator *allocator,
			       struct alloc_site ret[ALLOC_SITES_MAX])
{
	struct found found = { .file = file, .allocator = allocator, .sites = ret, .frees = true };

	search_all(&found, file);
	if (found.n)
		swap(&ret[found.at_first], &ret[found.n - 1]);
	return found.first ? found.n : 0;
}

size_t alloc_sites__find(const struct elf_file *file, const struct runtime_allocator *allocator,
			 struct alloc_site ret[ALLOC_SITES_MAX])
{
	struct found found = { .allocator = allocator, .sites = ret };

	search_all(&found, file);
	/* Move the most frequent function to the end, to get its probe last: attaching takes the
	 * kernel time. */
	if (found.first && found.n)
		swap(&ret[found.at_first], &ret[found.n - 1]);
	for (size_t i = 0; allocator == &alloc_malloc && !found.is_glibc && i < found.n; i++) {
		ret[i].cookie |= ALLOC_COOKIE(0, 0, 1);
		ret[i].aligns = ret[i].pages = false;
	}
	return found.first ? found.n : 0;
}
