// SPDX-License-Identifier: GPL-2.0-or-later
/* Limits on the memory of a process that is read and cached. */
#include "runtimes/common/allowance.h"

#include "core/base/util.h"
#include "tests/tap.h"

#define MB	   (1ULL << 20)
#define READ(size) (MB * (size)-ALLOWANCE_READ_BYTES)

static struct allowance all = { .rate = MB, .burst = 10 * MB, .charged_max = 100 };
static struct allowance one = { .of_all = &all, .rate = 1, .burst = 4 * MB, .charged_max = 60 };
static struct allowance two = { .of_all = &all, .rate = 1, .burst = 40 * MB, .charged_max = 60 };

static void test_reads(void)
{
	ok(allowance__read(&one, READ(3)), "after a pause much is read at once");
	ok(!allowance__read(&one, READ(2)), "but no more than that");
	ok(allowance__read(&one, READ(1)), "what is left is left");
	ok(!allowance__read(&one, 0), "a read of nothing costs something");
	ok(allowance__read(&two, READ(6)), "another process has its own");
	ok(all.left < MB && !allowance__read(&two, READ(2)) && two.left == 34 * MB,
	   "but both have no more than all may have, and a refusal costs nothing");
	all.filled_ns = now_ns() - 3 * NSEC_PER_SEC;
	ok(allowance__read(&two, READ(2)), "time gives it back");
	all.filled_ns = now_ns() - 10000 * NSEC_PER_SEC;
	ok(!allowance__read(&two, READ(11)) && all.left == 10 * MB, "up to a limit");
}

static void test_charged(void)
{
	ok(allowance__keep(&one, 60) && !allowance__keep(&one, 1), "one keeps what it may");
	ok(!allowance__keep(&two, 41) && allowance__keep(&two, 40), "both keep what all may");
	ok(!allowance__keep(&two, SIZE_MAX) && two.charged == 40, "sums do not wrap");
	allowance__drop(&one, 60);
	ok(allowance__keep(&two, 20) && !allowance__keep(&two, 1), "what is freed may be kept");
	allowance__drop(&two, 60);
	ok(!one.charged && !two.charged && !all.charged, "in the end nothing is kept");
}

int main(void)
{
	test_reads();
	test_charged();
	return tap__done();
}
