// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/lock_sites.h"

#include <string.h>

#include "bpf/lock_calls.h"
#include "core/elf/elf_symbols.h"

const struct lock_function lock_functions_wait[] = {
	{ "pthread_mutex_lock", LOCK_CALL_MUTEX, true },
	{ "pthread_mutex_timedlock", LOCK_CALL_MUTEX, true },
	{ "pthread_mutex_clocklock", LOCK_CALL_MUTEX, true },
	{ "pthread_rwlock_rdlock", LOCK_CALL_READ, true },
	{ "pthread_rwlock_timedrdlock", LOCK_CALL_READ, true },
	{ "pthread_rwlock_clockrdlock", LOCK_CALL_READ, true },
	{ "pthread_rwlock_wrlock", LOCK_CALL_WRITE, true },
	{ "pthread_rwlock_timedwrlock", LOCK_CALL_WRITE, true },
	{ "pthread_rwlock_clockwrlock", LOCK_CALL_WRITE, true },
	{}
};

const struct lock_function lock_functions_order[] = {
	{ "pthread_mutex_lock", LOCK_CALL_MUTEX, false },
	{ "pthread_mutex_trylock", LOCK_CALL_MUTEX_TRY, true },
	{ "pthread_mutex_timedlock", LOCK_CALL_MUTEX_TRY, true },
	{ "pthread_mutex_clocklock", LOCK_CALL_MUTEX_TRY, true },
	{ "pthread_mutex_unlock", LOCK_CALL_UNLOCK, false },
	{ "pthread_mutex_init", LOCK_CALL_FORGET, false },
	{ "pthread_mutex_destroy", LOCK_CALL_FORGET, false },
	{ "pthread_cond_wait", LOCK_CALL_CONDITION, false },
	{ "pthread_cond_timedwait", LOCK_CALL_CONDITION, false },
	{ "pthread_cond_clockwait", LOCK_CALL_CONDITION, false },
	{}
};

struct found {
	const struct lock_function *functions;
	struct lock_site *sites;
	size_t n;
	bool threads; /* creates threads */
	bool glibc;   /* exports a symbol that is private in musl ... */
	bool musl;    /* ... has a function that glibc does not have */
};

static const struct lock_function *find(const struct lock_function *list, const char *name)
{
	while (list->name && strcmp(list->name, name) != 0)
		list++;
	return list->name ? list : NULL;
}

static void add(struct found *found, const struct lock_function *function, uint64_t vaddr)
{
	for (size_t i = 0; i < found->n; i++)
		if (found->sites[i].vaddr == vaddr)
			return;
	if (found->n < LOCK_SITES_MAX)
		found->sites[found->n++] =
			(struct lock_site) { vaddr, function->call, function->at_return,
					     function->name };
}

static void search(struct found *found, const struct elf_file *file, const char *section)
{
	const struct lock_function *function;
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
		found->threads |= !strcmp(name, "pthread_create");
		found->glibc |= !strcmp(name, "__pthread_mutex_lock");
		found->musl |= !strcmp(name, "__pthread_mutex_trylock_owner");
		function = find(found->functions, name);
		if (function)
			add(found, function, symbol.st_value);
	}
}

size_t lock_sites__find(const struct elf_file *file, const struct lock_function *functions,
			struct lock_site ret[LOCK_SITES_MAX])
{
	struct found found = { .functions = functions, .sites = ret };

	search(&found, file, ".dynsym");
	if (!found.n) /* a program without libraries */
		search(&found, file, ".symtab");
	if (!found.threads)
		return 0;
	for (size_t i = 0; i < found.n; i++)
		if (found.musl || !found.glibc)
			ret[i].cookie |= LOCK_CALL_MUSL;
	return found.n;
}
