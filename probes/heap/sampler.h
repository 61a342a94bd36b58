/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_HEAP_SAMPLER_H
#define BRAID_HEAP_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* libbraid-heap.so, a library for LD_PRELOAD that samples allocations by their bytes. It wraps the
 * functions that allocate and free, and passes each call to the next library that has the function.
 * A sampled allocation passes the USDT probe otel_memory:alloc(address, size, weight). The freeing
 * of a sampled allocation passes otel_memory:free(address). The weight is the number of allocated
 * bytes that the sample stands for (bpf/alloc.h has the arithmetic). The library counts only while
 * a tool has raised the probe's semaphore. Otherwise a wrapper loads and tests the semaphore, and
 * jumps.
 *
 * An allocation counts once, with its outermost call: operator new calls malloc. Each thread has
 * its own countdown, so that threads share nothing but the set of sampled addresses. That set is
 * used only while a tool follows the probe free.
 *
 * The library runs in any process: it requires the C library only, uses no lock, preserves errno
 * and never allocates. After a fork the child's countdown starts anew. */

#define HEAP_EXPORT __attribute__((visibility("default")))

/* Sums of all samples of this process, for tests and for tools. */
struct braid_heap_sums {
	uint64_t allocs, frees; /* sampled allocations, and how many of these were freed */
	uint64_t bytes, weight; /* sums over these allocations */
	uint64_t full;		/* allocations without a sample, as the set of addresses was full */
	uint64_t period;	/* bytes per sample; 0: none was sampled yet */
};
extern struct braid_heap_sums braid_heap_sums HEAP_EXPORT;

/* The listeners of each probe, which the kernel counts. */
extern unsigned short otel_memory_alloc_semaphore __attribute__((visibility("hidden")));
extern unsigned short otel_memory_free_semaphore __attribute__((visibility("hidden")));

#define HEAP_LISTENS(probe) \
	__builtin_expect(*(volatile unsigned short *)&otel_memory_##probe##_semaphore, 0)

struct heap_sample {
	void *address;
	size_t bytes;
	uint64_t weight; /* bytes */
};

struct heap_thread {
	uint64_t left;		   /* bytes until the next sampled one */
	uint64_t random;	   /* state of the generator; 0: none yet */
	bool busy;		   /* in a call that counts: inner calls do not */
	bool resolves;		   /* in dlsym(), which may allocate */
	struct heap_sample sample; /* the last one */
};
extern __thread struct heap_thread heap_thread __attribute__((tls_model("initial-exec")));

/* --- sites of the probes, as <sys/sdt.h> of SystemTap makes them --- */

asm(".ifndef _.stapsdt.base\n"
    ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
    ".weak _.stapsdt.base\n"
    ".hidden _.stapsdt.base\n"
    "_.stapsdt.base: .space 1\n"
    ".size _.stapsdt.base, 1\n"
    ".popsection\n"
    ".endif\n");

#define HEAP_SITE(name, arguments, ...)                                                   \
	asm volatile("990: nop\n"                                                         \
		     ".pushsection .note.stapsdt,\"?\",\"note\"\n"                        \
		     ".balign 4\n"                                                        \
		     ".4byte 992f-991f, 994f-993f, 3\n"                                   \
		     "991: .asciz \"stapsdt\"\n"                                          \
		     "992: .balign 4\n"                                                   \
		     "993: .8byte 990b, _.stapsdt.base, otel_memory_" name "_semaphore\n" \
		     ".asciz \"otel_memory\"\n"                                           \
		     ".asciz \"" name "\"\n"                                              \
		     ".asciz \"" arguments "\"\n"                                         \
		     "994: .balign 4\n"                                                   \
		     ".popsection\n" ::__VA_ARGS__                                        \
		     : "memory")

/* --- sampling --- */

/* Samples the allocation that has the thread's next sampled byte. Returns the thread's sample, or
 * NULL if the allocation is not sampled. */
const struct heap_sample *heap__reached(void *address, size_t bytes);

static inline const struct heap_sample *heap__allocated(void *address, size_t bytes)
{
	if (bytes >= heap_thread.left)
		return address ? heap__reached(address, bytes) : NULL;
	heap_thread.left -= bytes;
	return NULL;
}

/* Called before the memory is freed: another thread may get the address afterwards. */
void heap__freed(void *address);

/* Evaluates @call, which allocates @bytes at the address that it returns. The probe's site is in
 * the calling function, so that a sample's leaf is the function that the program called. Its
 * arguments are in memory: in registers they would make the compiler save registers before the test
 * for listeners. */
#define HEAP_OUTER(call, bytes)                                                      \
	({                                                                           \
		bool inner_ = heap_thread.busy;                                      \
		const struct heap_sample *sample_;                                   \
		void *address_;                                                      \
                                                                                     \
		heap_thread.busy = true;                                             \
		address_ = (call);                                                   \
		heap_thread.busy = inner_;                                           \
		sample_ = inner_ ? NULL : heap__allocated(address_, (bytes));        \
		if (sample_)                                                         \
			HEAP_SITE("alloc", "8@(%0) 8@8(%0) 8@16(%0)", "r"(sample_)); \
		address_;                                                            \
	})

/* Returns the function @name of the next library that has it. @fallback (NULL: abort) is for a
 * process without. */
void *heap__next(const char *name, void *fallback);

#endif
