/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_QUOTA_H
#define BRAID_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The budget for work on what others wrote: files that targets name, and memory of targets.
 *
 * Sizes and counts in such data are claims, so each reader charges an account before it reads,
 * inflates, hashes or keeps a block of at most QUOTA_BLOCK bytes. A charge is checked against the
 * limits of the file, of the file's owner, of all owners that are not trusted, and of everything.
 * Uses of the first four kinds are forgiven at a constant rate, so that a recording of days does
 * not run dry; QUOTA_KEPT and QUOTA_INDEXED are given back by whoever frees the memory.
 *
 * CPU time is charged without being named: between quota__enter() and quota__leave() the time of
 * the thread goes to the entered account at each charge and each quota__look().
 *
 * The charge is also where long work ends when somebody stops the session (core/base/stop.h).
 * All functions are thread-safe; the entered account is the thread's. */

#define QUOTA_BLOCK (64U << 10)

/* Memory that is kept of all files together is never more: named in docs/reference/continuous.md.
 */
#define QUOTA_KEPT_MAX (1024ULL << 20)

enum quota_kind {
	QUOTA_READ,
	QUOTA_INFLATED,
	QUOTA_HASHED,
	QUOTA_CPU_NS,
	QUOTA_KEPT,
	QUOTA_INDEXED, /* the part of QUOTA_KEPT that indexes of compiled code take */
	QUOTA_KINDS,
};

enum quota_level { QUOTA_FILE, QUOTA_USER, QUOTA_OTHERS, QUOTA_ALL, QUOTA_LEVELS };

/* `used` may reach `burst` and falls by `per_second`; of QUOTA_KEPT `per_second` is 0. */
struct quota_limit {
	uint64_t burst, per_second;
};

/* The owner of an account: a file or a process. `dev`, `ino`, `size` and `mtime_ns` are its
 * identity: a file that grows by nature (a perf map) has 0 for the last two, so that it has one
 * account however often it changes. A process has 0, its PID, 0 and the time of its start. */
struct quota_subject {
	uint64_t dev, ino, size;
	int64_t mtime_ns;
	uint32_t uid; /* owner; see docs/reference/continuous.md for who is trusted */
	const char *name;
};

struct quota_account;

/* Returns the account of the subject, which is shared by all who open it, or NULL without memory.
 * All other functions take NULL for an account that has no limits but the stop. */
struct quota_account *quota__open(const struct quota_subject *subject);

/* The account of the regular file that @fd is. */
struct quota_account *quota__open_fd(int fd, const char *name);

/* Opens it once more, for another owner. */
struct quota_account *quota__hold(struct quota_account *account);

/* Memory that is kept stays charged until quota__give_back(). NULL is fine. */
void quota__close(struct quota_account *account);

/* Returns 0, and the caller may do that; -EFBIG if it is over the budget, which is noted with the
 * account's name; -EINTR if a stop was requested. -EFBIG and -EINTR charge nothing. */
int quota__charge(struct quota_account *account, enum quota_kind kind, uint64_t bytes);

/* Notes that a claim of the subject is beyond all limits, as a charge does that is refused. Returns
 * -EFBIG. */
int quota__refuse(struct quota_account *account);

/* When memory of QUOTA_KEPT or QUOTA_INDEXED is freed. */
void quota__give_back_of(struct quota_account *account, enum quota_kind kind, uint64_t bytes);

static inline void quota__give_back(struct quota_account *account, uint64_t bytes)
{
	quota__give_back_of(account, QUOTA_KEPT, bytes);
}

/* CPU time of this thread is the account's until quota__leave, which takes what enter returned.
 * Calls nest. */
struct quota_account *quota__enter(struct quota_account *account);
void quota__leave(struct quota_account *previous);

/* For loops over claimed counts, once in QUOTA_LOOPS rounds or more often: charges the CPU time
 * since the last look to the entered account. As quota__charge. */
#define QUOTA_LOOPS 4096
int quota__look(void);

/* As quota__look in one round of QUOTA_LOOPS, where @i counts the rounds; else 0. */
static inline int quota__look_at(uint64_t i)
{
	return i % QUOTA_LOOPS == QUOTA_LOOPS - 1 ? quota__look() : 0;
}

/* Reads by pread() in blocks, each charged as QUOTA_READ; holes are zeroes that cost nothing.
 * Returns 0, -EFAULT if the file does not hold all of it, -EIO, -EFBIG or -EINTR. */
int quota__pread(struct quota_account *account, int fd, uint64_t offset, void *to, size_t n);

/* Bytes of [@offset, @offset + @n) of the file that are no hole, at most @n; all of them where the
 * file system does not tell. */
uint64_t quota__data_bytes(int fd, uint64_t offset, uint64_t n);

/* Returns where data begin at or after @offset; @end if there are none before it, and @offset where
 * nobody knows (a negative @fd). */
uint64_t quota__skip_hole(int fd, uint64_t offset, uint64_t end);

/* Returns the name of a subject that was over the budget, once per account. @i counts from 0; NULL:
 * there are no more. At most QUOTA_OVER_NAMES names are kept. */
#define QUOTA_OVER_NAMES 64
const char *quota__over(size_t i, enum quota_level *ret_level);
uint64_t quota__over_count(void);

/* Bytes of QUOTA_KEPT now, and the most there have been. */
uint64_t quota__kept(void);
uint64_t quota__kept_max(void);

/* For tests: other limits; NULL: the usual ones. Forgets all uses and what was over. */
struct quota_limits {
	struct quota_limit limits[QUOTA_LEVELS][QUOTA_KINDS];
};
extern const struct quota_limits quota_usual;
void quota__set_limits(const struct quota_limits *limits);

#endif
