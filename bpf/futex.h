/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_FUTEX_H
#define BRAID_FUTEX_H

#include <linux/types.h>

/* Constants and rules of futex(2) and of locks that use it, for the kernel half and user space. */

#define FUTEX_COMMANDS	      127 /* without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME */
#define FUTEX_WAIT	      0
#define FUTEX_WAKE	      1
#define FUTEX_REQUEUE	      3
#define FUTEX_CMP_REQUEUE     4
#define FUTEX_WAKE_OP	      5
#define FUTEX_LOCK_PI	      6
#define FUTEX_UNLOCK_PI	      7
#define FUTEX_WAIT_BITSET     9
#define FUTEX_WAKE_BITSET     10
#define FUTEX_WAIT_REQUEUE_PI 11
#define FUTEX_CMP_REQUEUE_PI  12
#define FUTEX_LOCK_PI2	      13
#define FUTEX_TIDS	      0x3fffffff /* FUTEX_TID_MASK */

#define COMMAND(number) (1U << FUTEX_##number)
#define COMMANDS_WAIT                                                                  \
	(COMMAND(WAIT) | COMMAND(WAIT_BITSET) | COMMAND(LOCK_PI) | COMMAND(LOCK_PI2) | \
	 COMMAND(WAIT_REQUEUE_PI))
#define COMMANDS_WAKE                                                                   \
	(COMMAND(WAKE) | COMMAND(WAKE_BITSET) | COMMAND(WAKE_OP) | COMMAND(UNLOCK_PI) | \
	 COMMAND(REQUEUE) | COMMAND(CMP_REQUEUE) | COMMAND(CMP_REQUEUE_PI))

#define TIDS_MAX (1U << 22) /* PID_MAX_LIMIT, include/linux/threads.h */

/* struct __pthread_mutex_s of glibc, which begins with the futex
 * (sysdeps/x86/nptl/bits/struct_mutex.h; these fields are unchanged since 2.0). */
struct glibc_mutex {
	__u32 lock, count;
	__s32 owner;
	__u32 users;
	__s32 kind;
};

#define MUTEX_KINDS_MAX 1024 /* types and flags are bits below this */
#define MUTEX_WAITED	2    /* value of `lock`: taken, with waiters */

/* Returns the id of the thread that holds @mutex; 0: unknown. A thread waits for the mutex by the
 * futex command @command, while the mutex's word is @value. The id is only meaningful in the
 * process's own PID namespace. */
static inline __u32 futex__owner(const struct glibc_mutex *mutex, __u32 command, __u32 value)
{
	if (COMMAND(LOCK_PI) & 1U << command || COMMAND(LOCK_PI2) & 1U << command)
		return mutex->lock & FUTEX_TIDS;
	if (command != FUTEX_WAIT || value != MUTEX_WAITED || mutex->lock != MUTEX_WAITED)
		return 0;
	return mutex->owner > 0 && (__u32)mutex->owner < TIDS_MAX && mutex->users &&
			       mutex->users < TIDS_MAX && (__u32)mutex->kind < MUTEX_KINDS_MAX
		       ? mutex->owner
		       : 0;
}

#endif
