// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "core/base/quota.h"
#include "core/base/stop.h"
#include "core/base/util.h"
#include "tests/tap.h"

#define STRANGER 4711
#define ANOTHER	 4712

static struct quota_account *open_file(uint64_t ino, uint32_t uid, const char *name)
{
	return quota__open(&(struct quota_subject) {
		.dev = 1, .ino = ino, .size = 5, .uid = uid, .name = name });
}

/* Sets the same limit for each kind at @level. All other levels have no limit. */
static void limit(struct quota_limits *limits, enum quota_level level, uint64_t burst,
		  uint64_t per_second)
{
	for (int i = 0; i < QUOTA_LEVELS; i++)
		for (int kind = 0; kind < QUOTA_KINDS; kind++)
			limits->limits[i][kind] = (struct quota_limit) { UINT64_MAX / 2, 0 };
	for (int kind = 0; kind < QUOTA_KINDS; kind++)
		limits->limits[level][kind] = (struct quota_limit) { burst, per_second };
	limits->limits[level][QUOTA_CPU_NS].burst = UINT64_MAX / 2;
	quota__set_limits(limits);
}

static void test_levels(void)
{
	struct quota_limits limits;
	struct quota_account *a = open_file(1, STRANGER, "/a"), *b = open_file(2, STRANGER, "/b");
	struct quota_account *c = open_file(3, ANOTHER, "/c"), *root = open_file(4, 0, "/r");
	struct quota_account *again = open_file(1, STRANGER, "/other name");
	enum quota_level level = QUOTA_ALL;

	ok(a && a == again, "a file has one account, whoever opens it");
	limit(&limits, QUOTA_FILE, 100, 0);
	is_int(quota__charge(a, QUOTA_READ, 60), 0, "a file's budget takes a charge");
	is_int(quota__charge(again, QUOTA_READ, 41), -EFBIG, "not more than there is, by any path");
	is_int(quota__charge(a, QUOTA_READ, 40), 0, "a refused charge takes nothing");
	is_int(quota__charge(a, QUOTA_HASHED, 100), 0, "kinds are apart");
	is_int(quota__charge(b, QUOTA_READ, 100), 0, "files are apart");
	is_int(quota__charge(b, QUOTA_READ, UINT64_MAX), -EFBIG, "no sum wraps");
	quota__charge(a, QUOTA_READ, 1);
	is_int(quota__over_count(), 2, "each file that was over counts once");
	is_str(quota__over(0, &level), "/a", "by name");
	is_int(level, QUOTA_FILE, "with the level");
	ok(!quota__over(2, &level), "and no more");

	limit(&limits, QUOTA_USER, 100, 0);
	is_int(quota__charge(a, QUOTA_READ, 60), 0, "a user's budget takes a charge");
	is_int(quota__charge(b, QUOTA_READ, 60), -EFBIG, "it is for all files of the user");
	is_int(quota__charge(c, QUOTA_READ, 60), 0, "others have their own");
	is_int(quota__charge(root, QUOTA_READ, 1000), 0, "root has none");
	quota__over(0, &level);
	is_int(level, QUOTA_USER, "the level says that it is the user's");

	limit(&limits, QUOTA_OTHERS, 100, 0);
	quota__charge(a, QUOTA_READ, 60);
	is_int(quota__charge(c, QUOTA_READ, 60), -EFBIG, "many users have one budget together");
	is_int(quota__charge(root, QUOTA_READ, 1000), 0, "which leaves root alone");

	limit(&limits, QUOTA_ALL, 100, 0);
	quota__charge(a, QUOTA_READ, 60);
	is_int(quota__charge(root, QUOTA_READ, 60), -EFBIG, "there is one for everything");
	quota__close(a);
	quota__close(again);
	quota__close(b);
	quota__close(c);
	quota__close(root);
}

static void test_retained(void)
{
	struct quota_limits limits;
	struct quota_account *a = open_file(1, STRANGER, "/a"), *b;

	limit(&limits, QUOTA_ALL, 100, 0);
	is_int(quota__charge(a, QUOTA_RETAINED, 80), 0, "memory is kept");
	is_int(quota__charge(a, QUOTA_RETAINED, 30), -EFBIG, "within bounds");
	is_int(quota__retained(), 80, "as much as was charged");
	quota__close(a);
	b = open_file(1, STRANGER, "/a");
	is_int(quota__charge(b, QUOTA_RETAINED, 30), -EFBIG, "an account that is closed keeps it");
	quota__give_back(b, 80);
	is_int(quota__retained(), 0, "until it is given back");
	is_int(quota__charge(b, QUOTA_RETAINED, 100), 0, "then there is room again");
	is_int(quota__retained_max(), 100, "the most is known");
	quota__give_back(b, 100);
	quota__close(b);
}

static void test_forgiving(void)
{
	struct quota_limits limits;
	struct quota_account *a = open_file(1, STRANGER, "/a");
	uint64_t began;

	limit(&limits, QUOTA_FILE, 1000, 100000);
	quota__charge(a, QUOTA_READ, 1000);
	for (began = now_ns(); now_ns() < began + 20000000;)
		;
	is_int(quota__charge(a, QUOTA_READ, 1000), 0, "what was read is forgiven with time");
	quota__close(a);
}

static void spend_cpu(uint64_t ns)
{
	for (uint64_t began = thread_cpu_ns(); thread_cpu_ns() < began + ns;)
		;
}

static void test_cpu(void)
{
	struct quota_limits limits;
	struct quota_account *a = open_file(1, STRANGER, "/a"), *b = open_file(2, STRANGER, "/b");
	struct quota_account *none, *outer;
	uint64_t i;

	limit(&limits, QUOTA_USER, UINT64_MAX / 2, 0);
	limits.limits[QUOTA_FILE][QUOTA_CPU_NS] = (struct quota_limit) { 20000000, 0 };
	none = quota__enter(a);
	ok(!none, "no account is entered at first");
	is_int(quota__look(), 0, "there is time at the start");
	outer = quota__enter(b);
	spend_cpu(30000000);
	quota__leave(outer);
	is_int(quota__look(), 0, "time of an inner account is not the outer one's");
	spend_cpu(30000000);
	is_int(quota__look(), -EFBIG, "time is over");
	is_int(quota__charge(b, QUOTA_READ, 1), -EFBIG, "also for what the work reads");
	quota__leave(none);
	is_int(quota__look(), 0, "nobody's time has no limit");
	none = quota__enter(a);
	for (i = 0; i < QUOTA_LOOPS - 1 && !quota__look_at(i); i++)
		;
	is_int(i, QUOTA_LOOPS - 1, "a loop looks now and then");
	is_int(quota__look_at(i), -EFBIG, "and ends");
	quota__leave(none);
	quota__close(a);
	quota__close(b);
}

static void on_alarm(int number)
{
	(void)number;
	stop__request();
}

static void spend_cpu_ns(uint64_t requested)
{
	clock_t end = clock() + requested * CLOCKS_PER_SEC / 1000000000;

	while (clock() < end)
		;
}

static void test_grace(void)
{
	stop__set_grace(30000000);
	ok(!stop__is_due(), "nothing is due without a request");
	stop__request();
	is_int(quota__look(), 0, "a request leaves its grace to what was begun");
	ok(stop__is_requested(), "though waits see it at once");
	spend_cpu_ns(60000000);
	is_int(quota__look(), -EINTR, "until the grace is used up");
	stop__clear();
	is_int(quota__look(), 0, "and no longer than the request");
	stop__request();
	is_int(quota__look(), 0, "the next request has its own");
	stop__clear();
	stop__set_grace(0);
}

static void test_stop(void)
{
	struct quota_account *a = open_file(1, STRANGER, "/a");
	sigset_t set, old;
	int number;

	quota__set_limits(NULL);
	signal(SIGALRM, on_alarm);
	ualarm(20000, 0);
	while (!quota__charge(a, QUOTA_READ, 0))
		;
	is_int(quota__charge(a, QUOTA_READ, 1), -EINTR, "a request stops charges");
	is_int(quota__over_count(), 0, "which is not the file's fault");
	stop__clear();
	is_int(quota__charge(NULL, QUOTA_READ, 1), 0, "until it is withdrawn");
	stop__set_deadline(now_ns() + 20000000);
	is_int(quota__look(), 0, "a deadline is in the future");
	while (!quota__look())
		;
	ok(stop__is_requested(), "and comes");
	stop__clear();
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, &old);
	kill(getpid(), SIGINT);
	is_int(quota__look(), -EINTR, "a signal that is kept back stops, too");
	sigwait(&set, &number);
	is_int(quota__look(), 0, "until somebody takes it");
	sigprocmask(SIG_SETMASK, &old, NULL);
	quota__close(a);
}

static void test_read(void)
{
	enum { SIZE = 1 << 20 };
	char *bytes = malloc(SIZE);
	struct quota_limits limits;
	struct quota_account *account;
	int fd = memfd_create("sparse", MFD_CLOEXEC);
	bool zero = true;

	ok(ftruncate(fd, 64ULL << 30) == 0 && pwrite(fd, "x", 1, 4096) == 1 &&
		   pwrite(fd, "y", 1, SIZE - 1) == 1,
	   "a sparse file of 64 GB");
	account = quota__open_fd(fd, "/sparse");
	limit(&limits, QUOTA_FILE, 3 * 4096, 0);
	is_int(quota__pread(account, fd, 0, bytes, SIZE), 0, "is read for what it has");
	for (int i = 4097; i < SIZE - 1; i++)
		zero &= !bytes[i];
	ok(bytes[0] == 0 && bytes[4096] == 'x' && bytes[SIZE - 1] == 'y' && zero,
	   "and holes are zeroes");
	ok(quota__data_bytes(fd, 0, 64ULL << 30) <= 3 * 4096, "holes are no data");
	is_int(quota__data_bytes(fd, 1ULL << 30, 1ULL << 30), 0, "at all");
	is_int(quota__pread(account, fd, 64ULL << 30, bytes, 1), -EFAULT, "nothing is at its end");
	is_int(quota__pread(account, fd, UINT64_MAX, bytes, 2), -EFAULT, "or beyond all");
	is_int(quota__pread(account, fd, 0, bytes, SIZE), -EFBIG, "a second time is too much");
	quota__close(account);
	close(fd);
	free(bytes);
}

/* --- the table of docs/reference/continuous.md --- */

/* Formats an amount as the table does: "4 GiB, and 64 MiB/s", or "50 ms". */
static void format_amount(char *to, size_t size, enum quota_kind kind, uint64_t value)
{
	bool cpu = kind == QUOTA_CPU_NS;
	uint64_t big = cpu ? NSEC_PER_SEC : 1ULL << 30, small = cpu ? 1000000 : 1ULL << 20;
	bool even = !(value % big);

	snprintf(to, size, "%" PRIu64 " %s", value / (even ? big : small),
		 cpu ? (even ? "s" : "ms") : (even ? "GiB" : "MiB"));
}

static void format_row(char *to, size_t size, const char *name, enum quota_kind kind)
{
	char burst[40], rate[40];
	int n = snprintf(to, size, "| %s |", name);

	for (int i = 0; i < QUOTA_LEVELS; i++) {
		const struct quota_limit *limit = &quota_usual.limits[i][kind];

		format_amount(burst, sizeof(burst), kind, limit->burst);
		format_amount(rate, sizeof(rate), kind, limit->per_second);
		n += snprintf(to + n, size - n, limit->per_second ? " %s, and %s/s |" : " %s |",
			      burst, rate);
	}
}

static void test_documented(void)
{
	static const struct {
		enum quota_kind kind;
		const char *name;
	} rows[] = {
		{ QUOTA_RETAINED, "kept in memory" },
		{ QUOTA_INDEXED, "of that, in indexes of compiled code" },
		{ QUOTA_READ, "read" },
		{ QUOTA_INFLATED, "inflated; hashed, each" },
		{ QUOTA_HASHED, "inflated; hashed, each" },
		{ QUOTA_CPU_NS, "CPU time for tables and names" },
	};
	char text[64 << 10] = "", row[512];
	int fd = open("docs/reference/continuous.md", O_RDONLY | O_CLOEXEC);

	if (!ok(read(fd, text, sizeof(text) - 1) > 0, "docs/reference/continuous.md is there"))
		return;
	close(fd);
	is_int(ARRAY_SIZE(rows), QUOTA_KINDS, "each kind has its row");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		format_row(row, sizeof(row), rows[i].name, rows[i].kind);
		ok(strstr(text, row), "docs/reference/continuous.md has %s", row);
	}
}

int main(void)
{
	test_levels();
	test_retained();
	test_forgiving();
	test_cpu();
	test_stop();
	test_grace();
	test_read();
	test_documented();
	quota__set_limits(NULL);
	return tap__done();
}
