// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/stop.h"

#include <signal.h>

#include "core/base/util.h"

static bool requested;
static uint64_t deadline_ns;

void stop__request(void)
{
	__atomic_store_n(&requested, true, __ATOMIC_RELEASE);
}

void stop__set_deadline(uint64_t at_ns)
{
	__atomic_store_n(&deadline_ns, at_ns, __ATOMIC_RELEASE);
}

void stop__clear(void)
{
	stop__set_deadline(0);
	__atomic_store_n(&requested, false, __ATOMIC_RELEASE);
}

/* Signals that are not blocked are never pending, so that other commands end by them as usual. */
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
