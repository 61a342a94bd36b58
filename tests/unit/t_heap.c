// SPDX-License-Identifier: GPL-2.0-or-later
/* libbraid-heap.so, loaded beside this program's own allocator. Its semaphores are raised as the
 * kernel raises them, and its sums are compared with the calls. The first listener fixes the
 * period: each case that has its own runs in a child. */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/util.h"
#include "probes/heap/sampler.h"
#include "probes/usdt.h"
#include "tests/tap.h"

static void *library;
static struct braid_heap_sums *sums;
static volatile unsigned short *alloc_listeners, *free_listeners;

static void *(*heap_malloc)(size_t bytes);
static void *(*heap_calloc)(size_t n, size_t bytes);
static void *(*heap_realloc)(void *old, size_t bytes);
static void *(*heap_aligned)(size_t alignment, size_t bytes);
static int (*heap_posix)(void **ret, size_t alignment, size_t bytes);
static void (*heap_free)(void *address);
static void *(*heap_new)(size_t bytes);
static void *(*heap_new_aligned)(size_t bytes, size_t alignment);
static void (*heap_delete_sized)(void *address, size_t bytes);
static void *(*heap_mallocx)(size_t bytes, int flags);
static void (*heap_sdallocx)(void *address, size_t bytes, int flags);

static void find_functions(void)
{
	heap_malloc = dlsym(library, "malloc");
	heap_calloc = dlsym(library, "calloc");
	heap_realloc = dlsym(library, "realloc");
	heap_aligned = dlsym(library, "aligned_alloc");
	heap_posix = dlsym(library, "posix_memalign");
	heap_free = dlsym(library, "free");
	heap_new = dlsym(library, "_Znwm");
	heap_new_aligned = dlsym(library, "_ZnwmSt11align_val_t");
	heap_delete_sized = dlsym(library, "_ZdlPvm");
	heap_mallocx = dlsym(library, "mallocx");
	heap_sdallocx = dlsym(library, "sdallocx");
}

/* Finds the probes as a tool does: in the file's notes. */
static void find_probes(const char *path)
{
	struct usdt_sites sites = {};
	struct elf_file *file = NULL;
	struct link_map *map = NULL;
	struct err err = {};

	if (elf_file__open(open(path, O_RDONLY | O_CLOEXEC), path, &file, &err) ||
	    usdt__read(file, &sites, &err) || dlinfo(library, RTLD_DI_LINKMAP, &map))
		tap__diag("%s", err.text);
	ok(sites.n > 2, "each function that allocates has a site of its own");
	for (size_t i = 0; i < sites.n; i++) {
		const struct usdt_site *site = &sites.list[i];
		volatile unsigned short *at = (void *)(map->l_addr + site->semaphore_vaddr);

		is_str(site->provider, "otel_memory", "... of the provider otel_memory");
		if (!strcmp(site->name, "alloc"))
			alloc_listeners = at;
		if (!strcmp(site->name, "free"))
			free_listeners = at;
	}
	usdt_sites__done(&sites);
	elf_file__free(file);
}

/* Runs @test in a child, which samples every @period bytes and reports by its status. */
static void in_child(bool (*test)(void), const char *period, const char *what)
{
	pid_t child = fork();
	int status;

	if (!child) {
		setenv("BRAID_HEAP_BYTES", period, 1);
		*alloc_listeners = *free_listeners = 1;
		_exit(test() ? 0 : 1);
	}
	waitpid(child, &status, 0);
	ok(status == 0, "%s", what);
}

static bool family(void)
{
	void *posix = NULL,
	     *list[] = { heap_malloc(100), heap_calloc(3, 70),	       heap_aligned(64, 640),
			 heap_new(33),	   heap_new_aligned(200, 128), heap_mallocx(50, 0) };
	bool right = !heap_posix(&posix, 64, 77);
	uint64_t bytes = 100 + 210 + 640 + 33 + 200 + 50 + 77;

	list[0] = heap_realloc(list[0], 1000); /* frees one, allocates one */
	right = right && sums->allocs == 8 && sums->frees == 1 && sums->bytes == bytes + 1000 &&
		sums->weight == sums->bytes;
	heap_delete_sized(list[3], 33);
	heap_sdallocx(list[5], 50, 0);
	heap_free(list[4]);
	for (int i = 0; i < 3; i++)
		heap_free(list[i]);
	heap_free(posix);
	heap_free(NULL);
	/* neither of these allocates */
	return right && sums->frees == 8 && heap_malloc(0) && !heap_malloc(SIZE_MAX / 2) &&
	       !heap_calloc(SIZE_MAX / 2, 3) && sums->allocs == 8 && !sums->full;
}

#define KEPT 70000 /* more than the set has room for */

static bool fill(void)
{
	static void *kept[KEPT];
	uint64_t placed;

	for (int i = 0; i < KEPT; i++)
		kept[i] = heap_malloc(24);
	placed = sums->allocs;
	if (placed + sums->full != KEPT || placed > 65536 || placed < 60000)
		return false;
	for (int i = 0; i < KEPT; i++)
		heap_free(kept[i]);
	return sums->frees == placed;
}

#define CALLS 200000

static void *allocate(void *period)
{
	for (int i = 0; i < CALLS; i++)
		heap_free(heap_malloc(1 + i % 5000));
	return period;
}

/* Four threads allocate; the estimate has a standard error of 0.8 % here. */
static bool estimate(void)
{
	double bytes = 4.0 * CALLS * 2500.5, expected = 4 * CALLS * (1 - exp(-2500.5 / 65536));
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, allocate, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	tap__diag("%.4f of the bytes by %llu samples", sums->weight / bytes,
		  (unsigned long long)sums->allocs);
	return fabs(sums->weight / bytes - 1) < 0.04 && fabs(sums->allocs / expected - 1) < 0.04 &&
	       sums->frees == sums->allocs && sums->period == 65536;
}

/* A child does not sample where its parent does: the distances to the first samples differ. */
static uint64_t first_sampled(void)
{
	uint64_t n = 0, before = sums->allocs;

	for (; sums->allocs == before; n++)
		heap_free(heap_malloc(16));
	return n;
}

static bool forks(void)
{
	uint64_t here, there = 0;
	int fds[2];

	heap_free(heap_malloc(16));
	if (pipe(fds))
		return false;
	if (!fork()) {
		there = first_sampled();
		_exit(write(fds[1], &there, sizeof(there)) < 0);
	}
	here = first_sampled();
	wait(NULL);
	return read(fds[0], &there, sizeof(there)) == sizeof(there) && here != there;
}

/* 0 listeners: nothing is counted, and nothing is in the set. */
static void test_idle(void)
{
	for (int i = 0; i < 1000; i++)
		heap_free(heap_malloc(1 << 20));
	is_int(sums->allocs + sums->frees + sums->period, 0,
	       "without a listener nothing is sampled");
}

int main(int argc, char **argv)
{
	char path[4096];
	const char *output = getenv("OUTPUT");

	(void)argc;
	(void)argv;
	snprintf(path, sizeof(path), "%s/lib/braid/libbraid-heap.so", output ? output : "build");
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	ok(library, "the library loads");
	if (!library)
		return tap__done();
	sums = dlsym(library, "braid_heap_sums");
	find_functions();
	find_probes(path);
	test_idle();
	in_child(family, "1", "each call of the family is a sample, and each free is seen");
	in_child(fill, "1", "allocations beyond the set's room are counted");
	in_child(estimate, "65536", "the weights sum up to the bytes");
	in_child(forks, "1048576", "a child samples at its own distances");
	return tap__done();
}
