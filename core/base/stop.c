// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/stop.h"

#include <signal.h>
#include <time.h>

#include "core/base/util.h"

#define GRACE_WALL_NS (2 * NSEC_PER_SEC)

static bool requested;
static uint64_t deadline_ns, grace_ns;
static uint64_t seen_ns, seen_cpu_ns; /* at the first stop__is_due() after a request; 0: none yet */

void stop__request(void)
{
	__atomic_store_n(&requested, true, __ATOMIC_RELEASE);
}

void stop__set_deadline(uint64_t at_ns)
{
	__atomic_store_n(&deadline_ns, at_ns, __ATOMIC_RELEASE);
}

void stop__set_grace(uint64_t cpu_ns)
{
	__atomic_store_n(&grace_ns, cpu_ns, __ATOMIC_RELEASE);
}

void stop__clear(void)
{
	stop__set_deadline(0);
	__atomic_store_n(&seen_ns, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&requested, false, __ATOMIC_RELEASE);
}

/* Returns true if a signal that stops the session is blocked and pending. Signals that are not
 * blocked are never pending: they end other commands as usual. */
static bool has_pending_signal(void)
{
	sigset_t pending;

	return !sigpending(&pending) &&
	       (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
		sigismember(&pending, SIGHUP) == 1);
}

bool stop__is_requested(void)
{
	uint64_t at_ns = __atomic_load_n(&deadline_ns, __ATOMIC_ACQUIRE);

	return __atomic_load_n(&requested, __ATOMIC_ACQUIRE) || (at_ns && now_ns() >= at_ns) ||
	       has_pending_signal();
}

static uint64_t process_cpu_ns(void)
{
	struct timespec spent = {};

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
	return spent.tv_sec * NSEC_PER_SEC + spent.tv_nsec;
}

bool stop__is_due(void)
{
	uint64_t grace = __atomic_load_n(&grace_ns, __ATOMIC_ACQUIRE);
	uint64_t cpu_ns, seen, now;

	if (!stop__is_requested())
		return false;
	if (!grace)
		return true;
	now = now_ns();
	cpu_ns = process_cpu_ns();
	seen = __atomic_load_n(&seen_ns, __ATOMIC_ACQUIRE);
	if (!seen) {
		__atomic_store_n(&seen_cpu_ns, cpu_ns, __ATOMIC_RELEASE);
		__atomic_store_n(&seen_ns, now, __ATOMIC_RELEASE);
		return false;
	}
	return now - seen >= GRACE_WALL_NS ||
	       cpu_ns - __atomic_load_n(&seen_cpu_ns, __ATOMIC_ACQUIRE) >= grace;
}
