// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/alloc_sites.h"

#include <string.h>

#include "bpf/alloc.h"
#include "core/base/util.h"
#include "core/elf/debugfile.h"
#include "core/elf/elf_symbols.h"
#include "core/elf/minidebug.h"

#define NONE RUNTIME_ONCE
_Static_assert(RUNTIME_ONCE == ALLOC_ARG_NONE, "the kernel half's");

/* `nests` is what is true of glibc. */
static const struct runtime_allocates of_malloc[] = {
	{ "malloc", 0, NONE, false, false },
	{ "calloc", 0, 1, false, false },
	{ "realloc", 1, NONE, true, false },
	{ "reallocarray", 1, 2, true, false },
	{ "aligned_alloc", 1, NONE, true, false },
	{ "memalign", 1, NONE, true, false },
	{ "posix_memalign", 2, NONE, true, false },
	{ "valloc", 0, NONE, true, false },
	{ "pvalloc", 0, NONE, true, false },
	{ "mallocx", 0, NONE, true, false }, /* jemalloc */
	{ "rallocx", 1, NONE, true, false },
	/* C++'s operators new and new[], plain, with nothrow, with an alignment, with both. Those
	 * of libstdc++ call malloc; an allocator's library may have its own. */
	{ "_Znwm", 0, NONE, true, false },
	{ "_Znam", 0, NONE, true, false },
	{ "_ZnwmRKSt9nothrow_t", 0, NONE, true, false },
	{ "_ZnamRKSt9nothrow_t", 0, NONE, true, false },
	{ "_ZnwmSt11align_val_t", 0, NONE, true, false },
	{ "_ZnamSt11align_val_t", 0, NONE, true, false },
	{ "_ZnwmSt11align_val_tRKSt9nothrow_t", 0, NONE, true, false },
	{ "_ZnamSt11align_val_tRKSt9nothrow_t", 0, NONE, true, false },
	{}
};

const struct runtime_allocator alloc_malloc = { .functions = of_malloc, .exported = true };

struct found {
	const struct runtime_allocator *allocator;
	struct alloc_site *sites;
	size_t n;
	bool first;    /* the first function of the list is there, which makes it an allocator */
	bool is_glibc; /* of which it is known what calls what */
};

static const struct runtime_allocates *find(const struct runtime_allocates *list, const char *name)
{
	for (; list->name; list++)
		if (list->prefix ? !strncmp(name, list->name, strlen(list->name))
				 : !strcmp(name, list->name))
			return list;
	return NULL;
}

static void add(struct found *found, const struct runtime_allocates *function, uint64_t vaddr)
{
	uint64_t cookie = ALLOC_COOKIE(function->size, function->times, function->nests);

	for (size_t i = 0; i < found->n; i++)
		if (found->sites[i].vaddr == vaddr)
			return;
	if (found->n < ALLOC_SITES_MAX)
		found->sites[found->n++] = (struct alloc_site) { vaddr, cookie };
}

static void search(struct found *found, const struct elf_file *file, const char *section)
{
	const struct runtime_allocates *function;
	struct elf_symbols symbols;
	const char *name;
	GElf_Sym symbol;

	if (!elf_symbols__open(file, section, &symbols))
		return;
	for (size_t i = 0; i < symbols.n; i++) {
		name = elf_symbols__get(&symbols, i, &symbol);
		if (!name || symbol.st_shndx == SHN_UNDEF ||
		    GELF_ST_TYPE(symbol.st_info) != STT_FUNC)
			continue;
		found->is_glibc |= !strcmp(name, "gnu_get_libc_version");
		function = find(found->allocator->functions, name);
		if (!function)
			continue;
		found->first |= function == found->allocator->functions;
		add(found, function, symbol.st_value);
	}
}

bool alloc_sites__is_static(const struct elf_file *file)
{
	Elf_Data *dynamic = elf_file__section(file, ".dynamic", NULL);
	GElf_Dyn dyn;

	if (elf_file__section(file, ".interp", NULL))
		return false;
	for (int i = 0; dynamic && gelf_getdyn(dynamic, i, &dyn) && dyn.d_tag != DT_NULL; i++)
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

size_t alloc_sites__find(const struct elf_file *file, const struct runtime_allocator *allocator,
			 struct alloc_site ret[ALLOC_SITES_MAX])
{
	struct found found = { .allocator = allocator, .sites = ret };
	struct elf_file *other;

	if (allocator->exported)
		search(&found, file, ".dynsym");
	if (!found.first && (!allocator->exported || alloc_sites__is_static(file))) {
		search(&found, file, ".symtab");
		if (!found.first && !minidebug__open(file, &other))
			search_other(&found, other);
		if (!found.first && !debugfile__open(file, "", false, &other))
			search_other(&found, other);
	}
	for (size_t i = 0; allocator == &alloc_malloc && !found.is_glibc && i < found.n; i++)
		ret[i].cookie |= ALLOC_COOKIE(0, 0, 1);
	return found.first ? found.n : 0;
}
