// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/heap/sampler.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "bpf/alloc.h"

#define PERIOD_BYTES 524288 /* default mean of the distance of sampled bytes */

__thread struct heap_thread heap_thread;
struct braid_heap_sums braid_heap_sums;

#define ADD(sum, n) __atomic_fetch_add(&braid_heap_sums.sum, (n), __ATOMIC_RELAXED)

/* --- the probes' semaphores --- */

unsigned short otel_memory_alloc_semaphore __attribute__((section(".probes"), used));
unsigned short otel_memory_free_semaphore __attribute__((section(".probes"), used));

/* --- the set of sampled addresses --- */

/* An address hashes to a line of eight slots. If the line was ever full (`passed`), the address may
 * be in the next line, and so on for LINES_TRIED lines. A slot is free or has an address. Threads
 * exchange the two atomically, and nothing is moved. */
#define LINE_SLOTS  8
#define LINES	    8192
#define LINES_TRIED 4

static uintptr_t slots[LINES][LINE_SLOTS] __attribute__((aligned(64)));
static uint8_t passed[LINES];

static uint32_t line_of(uintptr_t address)
{
	return (address >> 4) * 0x9e3779b97f4a7c15ULL >> 51;
}

_Static_assert(LINES == 1 << (64 - 51), "line_of");

/* Replaces @from by @to in a slot for @address. Returns false if there is none. */
static bool exchange(uintptr_t address, uintptr_t from, uintptr_t to)
{
	uint32_t line = line_of(address);

	for (int i = 0; i < LINES_TRIED; i++, line = (line + 1) % LINES) {
		for (int slot = 0; slot < LINE_SLOTS; slot++) {
			uintptr_t expected = from;

			if (__atomic_load_n(&slots[line][slot], __ATOMIC_RELAXED) == from &&
			    __atomic_compare_exchange_n(&slots[line][slot], &expected, to, false,
							__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
				return true;
		}
		if (to)
			__atomic_store_n(&passed[line], 1, __ATOMIC_RELEASE);
		else if (!__atomic_load_n(&passed[line], __ATOMIC_ACQUIRE))
			return false;
	}
	return false;
}

/* --- sampling --- */

static uint64_t random_of(struct heap_thread *thread)
{
	uint64_t z = thread->random += 0x9e3779b97f4a7c15ULL; /* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static uint64_t period_of_environment(void)
{
	const char *text = getenv("BRAID_HEAP_BYTES");
	unsigned long long period = text ? strtoull(text, NULL, 10) : 0;

	return period && period <= ALLOC_PERIOD_MAX ? period : PERIOD_BYTES;
}

/* Allocations before the C library has its environment are sampled by the default. */
static uint64_t period(void)
{
	uint64_t known = __atomic_load_n(&braid_heap_sums.period, __ATOMIC_RELAXED);

	if (known || !environ)
		return known ?: PERIOD_BYTES;
	known = period_of_environment();
	__atomic_store_n(&braid_heap_sums.period, known, __ATOMIC_RELAXED);
	return known;
}

static void draw(struct heap_thread *thread)
{
	thread->left = alloc__draw(random_of(thread) >> 32, period());
}

static void seed(struct heap_thread *thread)
{
	struct timespec now = {};

	clock_gettime(CLOCK_MONOTONIC, &now);
	thread->random = (uintptr_t)thread ^ (uint64_t)now.tv_nsec << 32 ^ now.tv_sec ^
			 (uint64_t)getpid() << 20;
	thread->random |= 1;
	draw(thread);
}

__attribute__((noinline)) const struct heap_sample *heap__reached(void *address, size_t bytes)
{
	struct heap_thread *thread = &heap_thread;
	uint64_t weight;

	if (!thread->random) {
		seed(thread);
		if (bytes < thread->left) {
			thread->left -= bytes;
			return NULL;
		}
	}
	weight = alloc__weight(bytes, period());
	draw(thread);
	if (HEAP_LISTENS(free) && !exchange((uintptr_t)address, 0, (uintptr_t)address)) {
		ADD(full, 1);
		return NULL;
	}
	ADD(allocs, 1);
	ADD(bytes, bytes);
	ADD(weight, weight);
	thread->sample = (struct heap_sample) { address, bytes, weight };
	return &thread->sample;
}

void heap__freed(void *address)
{
	if (!address || !exchange((uintptr_t)address, (uintptr_t)address, 0))
		return;
	ADD(frees, 1);
	HEAP_SITE("free", "8@%0", "r"(address));
}

/* A child would otherwise sample at the same distances as its parent. */
static void begin_child(void)
{
	heap_thread.random = heap_thread.left = 0;
}

static __attribute__((constructor)) void begin(void)
{
	begin_child(); /* the environment is readable from here on */
	pthread_atfork(NULL, NULL, begin_child);
}
