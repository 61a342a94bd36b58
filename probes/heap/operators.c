// SPDX-License-Identifier: GPL-2.0-or-later
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "probes/heap/sampler.h"

/* The operators new and delete of C++ and the functions of jemalloc that have more arguments. All
 * of these have up to three integer arguments. The wrappers pass three, as the calling conventions
 * allow more arguments than a function has. A process may load the C++ library late and for one
 * library only: dlsym(RTLD_NEXT) does not find it then, but the process calls the operators here.
 */

typedef void *(*heap_fn)(size_t first, size_t second, size_t third);

static void *find(const char *name, heap_fn fallback)
{
	static const char *const libraries[] = { "libstdc++.so.6", "libc++.so.1",
						 "libc++abi.so.1" };
	void *found = heap__next(name, fallback), *library;

	for (size_t i = 0; found == fallback && i < sizeof(libraries) / sizeof(*libraries); i++) {
		library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
		if (library)
			found = dlsym(library, name) ?: found;
		if (library)
			dlclose(library);
	}
	return found;
}

/* --- for a process without the function --- */

static void *checked(void *address)
{
	static const char text[] = "libbraid-heap.so: out of memory\n";

	if (address)
		return address;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		abort();
	abort(); /* there is no exception without a C++ library */
}

static void *new_quiet(size_t bytes, size_t unused, size_t unused_too)
{
	(void)unused;
	(void)unused_too;
	return malloc(bytes ?: 1);
}

static void *new_throws(size_t bytes, size_t unused, size_t unused_too)
{
	return checked(new_quiet(bytes, unused, unused_too));
}

static void *new_aligned_quiet(size_t bytes, size_t alignment, size_t unused)
{
	void *address = NULL;

	(void)unused;
	return posix_memalign(&address, alignment < sizeof(void *) ? sizeof(void *) : alignment,
			      bytes ?: 1)
		       ? NULL
		       : address;
}

static void *new_aligned_throws(size_t bytes, size_t alignment, size_t unused)
{
	return checked(new_aligned_quiet(bytes, alignment, unused));
}

static void *delete_any(size_t address, size_t unused, size_t unused_too)
{
	(void)unused;
	(void)unused_too;
	free((void *)address);
	return NULL;
}

#define MALLOCX_ALIGNMENT(flags) ((flags)&63 ? (size_t)1 << ((flags)&63) : 16)
#define MALLOCX_ZERO		 0x40

static void *without_mallocx(size_t bytes, size_t flags, size_t unused)
{
	if (flags & MALLOCX_ZERO && MALLOCX_ALIGNMENT(flags) <= 16)
		return calloc(1, bytes);
	if (flags & MALLOCX_ZERO)
		return NULL;
	return new_aligned_quiet(bytes, MALLOCX_ALIGNMENT(flags), unused);
}

static void *without_rallocx(size_t address, size_t bytes, size_t flags)
{
	if (flags & MALLOCX_ZERO || MALLOCX_ALIGNMENT(flags) > 16)
		return NULL;
	return realloc((void *)address, bytes);
}

/* --- the wrappers --- */

/* An exception that leaves operator new ends the call, too. This is the wrappers' personality
 * routine: the unwinder calls it for each of their frames, at last to clean up. */
#define CLEANUP_PHASE	2 /* _UA_CLEANUP_PHASE */
#define CONTINUE_UNWIND 8 /* _URC_CONTINUE_UNWIND */

__attribute__((used, visibility("hidden"))) int heap__unwound(int version, int actions);

int heap__unwound(int version, int actions)
{
	(void)version;
	if (actions & CLEANUP_PHASE)
		heap_thread.busy = false;
	return CONTINUE_UNWIND;
}

#define NEXT(symbol, fallback)                                                  \
	void *symbol(size_t first, size_t second, size_t third);                \
	static void *first_##symbol(size_t first, size_t second, size_t third); \
	static heap_fn next_##symbol = first_##symbol;                          \
                                                                                \
	static void *first_##symbol(size_t first, size_t second, size_t third)  \
	{                                                                       \
		next_##symbol = find(#symbol, fallback);                        \
		return next_##symbol(first, second, third);                     \
	}

#define NEW(symbol, fallback)                                                  \
	NEXT(symbol, fallback)                                                 \
	HEAP_EXPORT void *symbol(size_t first, size_t second, size_t third)    \
	{                                                                      \
		/* a relative address in four bytes */                         \
		asm(".cfi_personality 0x1b, heap__unwound");                   \
		if (!HEAP_LISTENS(alloc))                                      \
			return next_##symbol(first, second, third);            \
		return HEAP_OUTER(next_##symbol(first, second, third), first); \
	}

#define DELETE(symbol)                                                      \
	NEXT(symbol, delete_any)                                            \
	HEAP_EXPORT void *symbol(size_t first, size_t second, size_t third) \
	{                                                                   \
		if (HEAP_LISTENS(free))                                     \
			heap__freed((void *)first);                         \
		return next_##symbol(first, second, third);                 \
	}

NEW(_Znwm, new_throws)
NEW(_Znam, new_throws)
NEW(_ZnwmRKSt9nothrow_t, new_quiet)
NEW(_ZnamRKSt9nothrow_t, new_quiet)
NEW(_ZnwmSt11align_val_t, new_aligned_throws)
NEW(_ZnamSt11align_val_t, new_aligned_throws)
NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, new_aligned_quiet)
NEW(_ZnamSt11align_val_tRKSt9nothrow_t, new_aligned_quiet)

DELETE(_ZdlPv)
DELETE(_ZdaPv)
DELETE(_ZdlPvm)
DELETE(_ZdaPvm)
DELETE(_ZdlPvRKSt9nothrow_t)
DELETE(_ZdaPvRKSt9nothrow_t)
DELETE(_ZdlPvSt11align_val_t)
DELETE(_ZdaPvSt11align_val_t)
DELETE(_ZdlPvmSt11align_val_t)
DELETE(_ZdaPvmSt11align_val_t)
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t)
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t)

NEW(mallocx, without_mallocx)
DELETE(dallocx)
DELETE(sdallocx)

NEXT(rallocx, without_rallocx)

HEAP_EXPORT void *rallocx(size_t first, size_t second, size_t third)
{
	if (HEAP_LISTENS(free))
		heap__freed((void *)first);
	if (!HEAP_LISTENS(alloc))
		return next_rallocx(first, second, third);
	return HEAP_OUTER(next_rallocx(first, second, third), second);
}
