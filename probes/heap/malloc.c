// SPDX-License-Identifier: GPL-2.0-or-later
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/heap/sampler.h"

/* The functions of the C library. A pointer in `next` starts with a function that resolves all of
 * them, so that the wrappers need no test. dlsym() may allocate: its memory comes from an arena,
 * and is never reused. */

#define ARENA_BYTES 65536
#define ALIGNMENT   16

static char arena[ARENA_BYTES] __attribute__((aligned(ALIGNMENT)));
static size_t arena_used;

static void *first_malloc(size_t bytes);
static void *first_calloc(size_t n, size_t bytes);
static void *first_realloc(void *old, size_t bytes);
static void *first_aligned(size_t alignment, size_t bytes);
static void first_free(void *address);

static struct {
	void *(*malloc)(size_t bytes);
	void *(*calloc)(size_t n, size_t bytes);
	void *(*realloc)(void *old, size_t bytes);
	void *(*memalign)(size_t alignment, size_t bytes);
	void *(*aligned_alloc)(size_t alignment, size_t bytes);
	int (*posix_memalign)(void **ret, size_t alignment, size_t bytes);
	void (*free)(void *address);
	void (*free_sized)(void *address, size_t bytes);
	void (*free_aligned_sized)(void *address, size_t alignment, size_t bytes);
} next = {
	.malloc = first_malloc,
	.calloc = first_calloc,
	.realloc = first_realloc,
	.memalign = first_aligned,
	.aligned_alloc = first_aligned,
	.free = first_free,
};

/* --- the arena --- */

static bool is_in_arena(const void *address)
{
	return (uintptr_t)address - (uintptr_t)arena < ARENA_BYTES;
}

/* Each block follows a word with its size. The arena is initially zero. */
static void *arena_new(size_t alignment, size_t bytes)
{
	size_t extra = ALIGNMENT + (alignment > ALIGNMENT ? alignment : ALIGNMENT), at;
	uintptr_t address;

	if (bytes > ARENA_BYTES || extra > ARENA_BYTES)
		return NULL;
	at = __atomic_fetch_add(&arena_used, bytes + extra, __ATOMIC_RELAXED);
	if (at + bytes + extra > ARENA_BYTES)
		return NULL;
	alignment = extra - ALIGNMENT;
	address = ((uintptr_t)arena + at + ALIGNMENT + alignment - 1) & -alignment;
	((size_t *)address)[-1] = bytes;
	return (void *)address;
}

/* These stand before the C library's functions in a process that used the arena. */
static void (*real_free)(void *address);
static void *(*real_realloc)(void *old, size_t bytes);

static void free_outside(void *address)
{
	if (!is_in_arena(address))
		real_free(address);
}

static void *realloc_outside(void *old, size_t bytes)
{
	void *moved;
	size_t had;

	if (!old || !is_in_arena(old))
		return real_realloc(old, bytes);
	had = ((size_t *)old)[-1];
	moved = next.malloc(bytes);
	return moved ? memcpy(moved, old, had < bytes ? had : bytes) : NULL;
}

/* --- resolving --- */

static void fail(const char *name)
{
	static const char text[] = "libbraid-heap.so: there is no function ";

	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0 ||
	    write(STDERR_FILENO, name, strlen(name)) < 0 || write(STDERR_FILENO, "\n", 1) < 0)
		abort();
	abort();
}

void *heap__next(const char *name, void *fallback)
{
	bool resolves = heap_thread.resolves;
	int error = errno;
	void *found;

	heap_thread.resolves = true;
	found = dlsym(RTLD_NEXT, name);
	heap_thread.resolves = resolves;
	errno = error;
	if (!found && !fallback)
		fail(name);
	return found ?: fallback;
}

static void *memalign_of_posix(size_t alignment, size_t bytes)
{
	void *address = NULL;
	int error = next.posix_memalign(
		&address, alignment < sizeof(void *) ? sizeof(void *) : alignment, bytes);

	if (error)
		errno = error;
	return error ? NULL : address;
}

static void free_sized_as_free(void *address, size_t bytes)
{
	(void)bytes;
	next.free(address);
}

static void free_aligned_as_free(void *address, size_t alignment, size_t bytes)
{
	(void)alignment;
	(void)bytes;
	next.free(address);
}

/* Several threads may resolve at once: they find the same. */
static void resolve(void)
{
	real_free = heap__next("free", NULL);
	real_realloc = heap__next("realloc", NULL);
	next.posix_memalign = heap__next("posix_memalign", NULL);
	next.memalign = heap__next("memalign", memalign_of_posix);
	next.aligned_alloc = heap__next("aligned_alloc", memalign_of_posix);
	next.calloc = heap__next("calloc", NULL);
	next.free_sized = heap__next("free_sized", free_sized_as_free);
	next.free_aligned_sized = heap__next("free_aligned_sized", free_aligned_as_free);
	next.free = arena_used ? free_outside : real_free;
	next.realloc = arena_used ? realloc_outside : real_realloc;
	next.malloc = heap__next("malloc", NULL);
}

static void *first_malloc(size_t bytes)
{
	if (heap_thread.resolves)
		return arena_new(ALIGNMENT, bytes);
	resolve();
	return next.malloc(bytes);
}

static void *first_calloc(size_t n, size_t bytes)
{
	if (heap_thread.resolves)
		return n && bytes > ARENA_BYTES / n ? NULL : arena_new(ALIGNMENT, n * bytes);
	resolve();
	return next.calloc(n, bytes);
}

static void *first_realloc(void *old, size_t bytes)
{
	void *moved;

	if (!heap_thread.resolves) {
		resolve();
		return next.realloc(old, bytes);
	}
	moved = arena_new(ALIGNMENT, bytes);
	if (moved && old)
		memcpy(moved, old, ((size_t *)old)[-1] < bytes ? ((size_t *)old)[-1] : bytes);
	return moved;
}

static void *first_aligned(size_t alignment, size_t bytes)
{
	if (heap_thread.resolves)
		return arena_new(alignment, bytes);
	resolve();
	return next.memalign(alignment, bytes);
}

static void first_free(void *address)
{
	if (is_in_arena(address) || heap_thread.resolves)
		return;
	resolve();
	next.free(address);
}

static __attribute__((constructor)) void resolve_now(void)
{
	if (next.malloc == first_malloc)
		resolve();
}

/* --- the wrappers --- */

void free_sized(void *address, size_t bytes); /* C23: not in the headers yet */
void free_aligned_sized(void *address, size_t alignment, size_t bytes);

/* Returns from a wrapper with the result of @call. These are macros, as the debug information would
 * have an inlined function as another leaf. */
#define RETURN(call, bytes)                       \
	do {                                      \
		if (!HEAP_LISTENS(alloc))         \
			return call;              \
		return HEAP_OUTER(call, (bytes)); \
	} while (0)

/* The old allocation ends before the call, because another thread may get its address before the
 * return. If the call fails, the probes have reported a free that did not happen. */
#define RETURN_REALLOCATED(old, bytes)                         \
	do {                                                   \
		if (HEAP_LISTENS(free))                        \
			heap__freed(old);                      \
		RETURN(next.realloc((old), (bytes)), (bytes)); \
	} while (0)

HEAP_EXPORT void *malloc(size_t bytes)
{
	RETURN(next.malloc(bytes), bytes);
}

HEAP_EXPORT void *calloc(size_t n, size_t bytes)
{
	RETURN(next.calloc(n, bytes), n * bytes);
}

HEAP_EXPORT void *realloc(void *old, size_t bytes)
{
	RETURN_REALLOCATED(old, bytes);
}

HEAP_EXPORT void *reallocarray(void *old, size_t n, size_t bytes)
{
	size_t product;

	if (__builtin_mul_overflow(n, bytes, &product)) {
		errno = ENOMEM;
		return NULL;
	}
	RETURN_REALLOCATED(old, product);
}

HEAP_EXPORT void *memalign(size_t alignment, size_t bytes)
{
	RETURN(next.memalign(alignment, bytes), bytes);
}

HEAP_EXPORT void *aligned_alloc(size_t alignment, size_t bytes)
{
	RETURN(next.aligned_alloc(alignment, bytes), bytes);
}

HEAP_EXPORT int posix_memalign(void **ret, size_t alignment, size_t bytes)
{
	int error = 0;

	if (!next.posix_memalign) {
		if (heap_thread.resolves)
			return ENOMEM;
		resolve();
	}
	if (!HEAP_LISTENS(alloc))
		return next.posix_memalign(ret, alignment, bytes);
	(void)HEAP_OUTER((error = next.posix_memalign(ret, alignment, bytes)) ? NULL : *ret, bytes);
	return error;
}

HEAP_EXPORT void *valloc(size_t bytes)
{
	size_t page = sysconf(_SC_PAGESIZE);

	RETURN(next.memalign(page, bytes), bytes);
}

HEAP_EXPORT void *pvalloc(size_t bytes)
{
	size_t page = sysconf(_SC_PAGESIZE);

	if (bytes > SIZE_MAX - page) {
		errno = ENOMEM;
		return NULL;
	}
	bytes = (bytes + page - 1) & -page;
	RETURN(next.memalign(page, bytes), bytes);
}

HEAP_EXPORT void free(void *address)
{
	if (HEAP_LISTENS(free))
		heap__freed(address);
	next.free(address);
}

HEAP_EXPORT void free_sized(void *address, size_t bytes)
{
	if (HEAP_LISTENS(free))
		heap__freed(address);
	if (next.free_sized && !is_in_arena(address))
		next.free_sized(address, bytes);
	else
		next.free(address);
}

HEAP_EXPORT void free_aligned_sized(void *address, size_t alignment, size_t bytes)
{
	if (HEAP_LISTENS(free))
		heap__freed(address);
	if (next.free_aligned_sized && !is_in_arena(address))
		next.free_aligned_sized(address, alignment, bytes);
	else
		next.free(address);
}
