/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_QUOTA_H
#define BRAID_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The budget for work on data that others wrote: files that targets name, and memory of targets.
 *
 * Sizes and counts in such data are claims. Each reader charges an account before it reads,
 * inflates, hashes or stores a block of at most QUOTA_BLOCK bytes. A charge is checked against the
 * limits of the file, of its owner, of all untrusted owners, and of everything. Uses of the first
 * four kinds decrease at a constant rate, so that a recording of days does not run dry. Charges of
 * QUOTA_RETAINED and QUOTA_INDEXED are released when the memory is freed.
 *
 * CPU time is charged implicitly. Between quota__enter() and quota__leave(), each charge and each
 * quota__look() adds the thread's CPU time to the entered account.
 *
 * A charge also ends long work when the session is stopped (core/base/stop.h). All functions are
 * thread-safe; each thread has its own entered account. */

#define QUOTA_BLOCK (64U << 10)

/* Limit of the memory charged as QUOTA_RETAINED for all files together; documented in
 * docs/reference/continuous.md. */
#define QUOTA_RETAINED_MAX (1024ULL << 20)

enum quota_kind {
	QUOTA_READ,
	QUOTA_INFLATED,
	QUOTA_HASHED,
	QUOTA_CPU_NS,
	QUOTA_RETAINED,
	QUOTA_INDEXED, /* the part of QUOTA_RETAINED that is used by indexes of compiled code */
	QUOTA_KINDS,
};

enum quota_level { QUOTA_FILE, QUOTA_USER, QUOTA_OTHERS, QUOTA_ALL, QUOTA_LEVELS };

/* `used` may reach `burst` and falls by `per_second`, which is 0 for QUOTA_RETAINED and
 * QUOTA_INDEXED. */
struct quota_limit {
	uint64_t burst, per_second;
};

/* The subject of an account: a file or a process. `dev`, `ino`, `size` and `mtime_ns` are its
 * identity. A file that grows by nature (a perf map) has 0 for the last two, so that it has one
 * account however often it changes. A process has 0, its PID, 0 and its start time. */
struct quota_subject {
	uint64_t dev, ino, size;
	int64_t mtime_ns;
	uint32_t uid; /* owner; docs/reference/continuous.md defines trusted owners */
	const char *name;
};

struct quota_account;

/* Returns the account of @subject, shared by all who open it; NULL: out of memory. All other
 * functions accept NULL for an account whose only limit is the stop. */
struct quota_account *quota__open(const struct quota_subject *subject);

/* Returns the account of the regular file @fd. */
struct quota_account *quota__open_fd(int fd, const char *name);

/* Opens @account once more, for another owner. */
struct quota_account *quota__hold(struct quota_account *account);

/* Closes @account, which may be NULL. Memory stays charged until quota__give_back(). */
void quota__close(struct quota_account *account);

/* Charges @bytes. Returns 0 if the caller may do the work. Returns -EFBIG if that exceeds the
 * budget, and records the account's name. Returns -EINTR if a stop was requested. -EFBIG and -EINTR
 * charge nothing. */
int quota__charge(struct quota_account *account, enum quota_kind kind, uint64_t bytes);

/* Records that a claim of the subject exceeds all limits, as a refused charge does. Returns
 * -EFBIG. */
int quota__refuse(struct quota_account *account);

/* Releases memory that was charged as QUOTA_RETAINED or QUOTA_INDEXED. */
void quota__give_back_of(struct quota_account *account, enum quota_kind kind, uint64_t bytes);

static inline void quota__give_back(struct quota_account *account, uint64_t bytes)
{
	quota__give_back_of(account, QUOTA_RETAINED, bytes);
}

/* Charges the CPU time of this thread to @account until quota__leave(), which takes the value that
 * quota__enter() returned. Calls nest. */
struct quota_account *quota__enter(struct quota_account *account);
void quota__leave(struct quota_account *previous);

/* Charges the CPU time since the last call to the entered account. Loops over claimed counts call
 * it at least once in QUOTA_LOOPS rounds. Returns as quota__charge(). */
#define QUOTA_LOOPS 4096
int quota__look(void);

/* Calls quota__look() in one of QUOTA_LOOPS rounds, which @i counts; otherwise returns 0. */
static inline int quota__look_at(uint64_t i)
{
	return i % QUOTA_LOOPS == QUOTA_LOOPS - 1 ? quota__look() : 0;
}

/* Reads by pread() in blocks, each charged as QUOTA_READ. Holes are zeroes that cost nothing.
 * Returns 0, -EFAULT if the range exceeds the file, -EIO, -EFBIG or -EINTR. */
int quota__pread(struct quota_account *account, int fd, uint64_t offset, void *to, size_t n);

/* Returns the number of bytes in [@offset, @offset + @n) that are not in a hole, at most @n.
 * Returns @n if the file system does not report holes. */
uint64_t quota__data_bytes(int fd, uint64_t offset, uint64_t n);

/* Returns the offset of the first data at or after @offset, or @end if there are none before it.
 * Returns @offset if holes are not reported (also for a negative @fd). */
uint64_t quota__skip_hole(int fd, uint64_t offset, uint64_t end);

/* Returns the name of a subject that exceeded the budget, once per account. @i counts from 0; NULL:
 * no more. At most QUOTA_OVER_NAMES names are recorded. */
#define QUOTA_OVER_NAMES 64
const char *quota__over(size_t i, enum quota_level *ret_level);
uint64_t quota__over_count(void);

/* Bytes of QUOTA_RETAINED: the current number, and the maximum so far. */
uint64_t quota__retained(void);
uint64_t quota__retained_max(void);

/* Replaces the limits, for tests; NULL: the usual limits. Clears all uses and exceeded budgets. */
struct quota_limits {
	struct quota_limit limits[QUOTA_LEVELS][QUOTA_KINDS];
};
extern const struct quota_limits quota_usual;
void quota__set_limits(const struct quota_limits *limits);

#endif
