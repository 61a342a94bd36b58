// SPDX-License-Identifier: GPL-2.0-or-later
/* Sampling by bytes. The arithmetic of the kernel half is compared with libm's, and the values of
 * samples must sum up to the allocated bytes. Also tests which functions of a file allocate. */
#include "bpf/alloc.h"

#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/events/alloc_sites.h"
#include "probes/attach.h"
#include "tests/tap.h"

static uint64_t seed;

/* Returns the next number of splitmix64, a fixed sequence. */
static uint32_t draw(void)
{
	uint64_t x = seed += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (x ^ x >> 31) >> 32;
}

static void test_logarithm(void)
{
	double worst = 0;

	for (uint64_t x = 1; x < 1ULL << 32; x += x / 1000 + 1)
		worst = fmax(worst, fabs(alloc__minus_log2(x) / 0x1p24 - (32 - log2(x))));
	ok(worst < 0x1p-19, "-log2 is right within 2^-19");
	is_int(alloc__minus_log2(1), 32 << 24, "... at its end exactly");
	is_int(alloc__minus_log2(1U << 31), 1 << 24, "... and in the middle");
}

static void test_draw(void)
{
	static const uint64_t periods[] = { 2, 1000, 512 << 10, 1ULL << 40 };
	double worst = 0;

	for (size_t i = 0; i < ARRAY_SIZE(periods); i++)
		for (uint64_t x = 1; x < 1ULL << 32; x += x / 100 + 1) {
			double want = -log(x / 0x1p32) * periods[i];

			worst = fmax(worst,
				     (fabs(alloc__draw(x, periods[i]) - want) - 3) / periods[i]);
		}
	ok(worst < 1e-5, "the way to the next byte is exponentially distributed");
	ok(alloc__draw(UINT32_MAX, 1000) >= 1, "... and at least one byte");
	ok(alloc__draw(0, 1000) > 22 * 1000, "... also for the random number 0");
}

static void test_weight(void)
{
	static const uint64_t periods[] = { 2, 100, 65537, 512 << 10, 1ULL << 30, 1ULL << 40 };
	double worst = 0;

	for (size_t i = 0; i < ARRAY_SIZE(periods); i++)
		for (uint64_t s = 1; s <= ALLOC_BYTES_MAX / 2; s += s / 50 + 1) {
			double want = s / -expm1(-(double)s / periods[i]);

			worst = fmax(worst, (fabs(alloc__weight(s, periods[i]) - want) - 2) / want);
		}
	ok(worst < 1e-4, "what a sample stands for is right within 0.01 percent");
	tap__diag("%g", worst);
	is_int(alloc__weight(12345, 1), 12345, "where each is sampled: its size");
	is_int(alloc__weight(1 << 30, 4096), 1 << 30, "that of a large one: its size");
}

/* Returns the estimate that the kernel half makes of a thread's allocations. */
static double estimate(uint64_t period, const uint64_t *sizes, size_t n_sizes, size_t n,
		       double *ret_variance)
{
	uint64_t left = alloc__draw(draw(), period), size;
	double sum = 0;

	*ret_variance = 0;
	for (size_t i = 0; i < n; i++) {
		size = sizes[i % n_sizes];
		if (size < left) {
			left -= size;
			continue;
		}
		left = alloc__draw(draw(), period);
		sum += alloc__weight(size, period);
	}
	/* Variance of one allocation: s^2 (1 - p) / p. */
	for (size_t i = 0; i < n_sizes; i++) {
		double p = -expm1(-(double)sizes[i] / period);

		*ret_variance += (double)sizes[i] * sizes[i] * (1 - p) / p * n / n_sizes;
	}
	return sum;
}

static void test_unbiased(void)
{
	static const struct {
		const char *name;
		uint64_t sizes[6];
		size_t n;
	} cases[] = { { "small ones", { 16, 24, 32, 48, 64, 100 }, 6 },
		      { "sizes around the period", { 100, 60000, 65536, 70000, 300000, 16 }, 6 },
		      { "large ones", { 1 << 20, 3 << 20 }, 2 },
		      { "one size", { 4096 }, 1 } };

	seed = 15;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		double truth = 0, variance, sum;
		size_t n = 6000000;

		for (size_t k = 0; k < cases[i].n; k++)
			truth += (double)cases[i].sizes[k] * n / cases[i].n;
		sum = estimate(65536, cases[i].sizes, cases[i].n, n, &variance);
		ok(fabs(sum - truth) < 3 * sqrt(variance) + 1e-4 * truth,
		   "%s: the estimate is within three standard deviations", cases[i].name);
		tap__diag("%.5f of the truth, deviation %.5f", sum / truth, sqrt(variance) / truth);
	}
}

/* Compares the live bytes at the end with the sum of the samples that were not freed. Sizes are
 * freed at different rates. */
static void test_outstanding(void)
{
	const uint64_t sizes[] = { 16, 100, 5000, 70000, 1 << 20 }, period = 65536;
	uint64_t left = alloc__draw(draw(), period);
	double truth = 0, sum = 0, variance = 0;

	seed = 6;
	for (size_t i = 0; i < 5000000; i++) {
		uint64_t size = sizes[i % ARRAY_SIZE(sizes)];
		bool freed = draw() % 1000 >= 30 * (i % ARRAY_SIZE(sizes) + 1);
		double p = -expm1(-(double)size / period);
		uint64_t value = 0;

		if (size < left) {
			left -= size;
		} else {
			left = alloc__draw(draw(), period);
			value = alloc__weight(size, period);
		}
		if (freed)
			continue;
		truth += size;
		sum += value;
		variance += (double)size * size * (1 - p) / p;
	}
	ok(fabs(sum - truth) < 3 * sqrt(variance) + 1e-4 * truth,
	   "outstanding: the estimate is within three standard deviations");
	tap__diag("%.5f of the truth, deviation %.5f", sum / truth, sqrt(variance) / truth);
}

static struct elf_file *open_file(const char *path)
{
	struct elf_file *file = NULL;
	struct err err = {};

	elf_file__open(open(path, O_RDONLY | O_CLOEXEC), path, &file, &err);
	return file;
}

static const struct alloc_site *site_of(const struct alloc_site *sites, size_t n,
					const struct elf_file *file, const char *name)
{
	uint64_t vaddr;

	for (size_t i = 0; !elf_file__find_symbol(file, name, &vaddr, NULL) && i < n; i++)
		if (sites[i].vaddr == vaddr)
			return &sites[i];
	return NULL;
}

static void test_sites(void)
{
	struct elf_file *libc = open_file("/lib/x86_64-linux-gnu/libc.so.6");
	struct elf_file *program = open_file("/bin/sh");
	struct alloc_site sites[ALLOC_SITES_MAX];
	const struct alloc_site *site;
	uint64_t vaddr = 0;
	size_t n;

	if (!libc) {
		tap__skip("no libc.so.6 where Debian has it", "the functions of glibc");
	} else {
		n = alloc_sites__find(libc, &alloc_malloc, sites);
		site = site_of(sites, n, libc, "malloc");
		ok(site && site->cookie == ALLOC_COOKIE(0, ALLOC_ARG_NONE, 0),
		   "glibc's malloc: the size is its argument, and it calls none of the others");
		site = site_of(sites, n, libc, "calloc");
		ok(site && site->cookie == ALLOC_COOKIE(0, 1, 0), "calloc's is a product");
		site = site_of(sites, n, libc, "posix_memalign");
		ok(site && site->cookie ==
				   (ALLOC_COOKIE(2, ALLOC_ARG_NONE, 1) | ALLOC_WRITES_COOKIE),
		   "posix_memalign's is the third, and it may call malloc");
		for (size_t i = 0; i < n; i++)
			for (size_t k = 0; k < i; k++)
				if (sites[i].vaddr == sites[k].vaddr)
					n = 0;
		ok(n >= 7, "each address is there once");
		site = site_of(sites, n, libc, "realloc");
		ok(site && ALLOC_FREES(site->cookie) && ALLOC_FREED(site->cookie) == 0,
		   "realloc frees its first argument");
		n = alloc_sites__find_frees(libc, &alloc_malloc, sites);
		site = &sites[n - 1];
		ok(n && ALLOC_FREES(site->cookie) && ALLOC_FREED(site->cookie) == 0 &&
			   !elf_file__find_symbol(libc, "free", &vaddr, NULL) &&
			   site->vaddr - vaddr < 16,
		   "free does, too, and comes last, at its beginning or behind its look for NULL");
		ok(probe_point__trap(&(struct probe_point) {
			   .file = libc, .pc_vaddr = site->vaddr }) == TRAP_PUSH,
		   "... at an instruction that is emulated");
		ok(!site_of(sites, n, libc, "malloc"), "malloc does not");
		ok(!alloc_sites__is_static(libc), "a library is no static program");
	}
	is_int(alloc_sites__find(program, &alloc_malloc, sites), 0,
	       "a program that calls the library's malloc has none itself");
	ok(!alloc_sites__is_static(program), "nor static");
	elf_file__free(libc);
	elf_file__free(program);
}

int main(void)
{
	test_logarithm();
	test_draw();
	test_weight();
	test_unbiased();
	test_outstanding();
	test_sites();
	return tap__done();
}
