// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/go/go_idle.h"

#define SLEEPS "mPark|notesleep|notetsleep|notetsleepg|notetsleep_internal|futexsleep|futex"

/* Goroutines wait without a thread. The rules describe threads without a goroutine, and the
 * runtime's own threads. */
const struct idle_rule go_idle[] = {
	/* Not for the world to be started again (gcstopm), nor for the goroutine that is locked to
	 * the thread (stoplockedm, which does not come here). */
	{ .function = "runtime.stopm",
	  .through = "runtime.@(" SLEEPS ")",
	  .outer = "runtime.@(find[rR]unnable|startlockedm|exitsyscall0)",
	  .syscalls = IDLE_LOCKS,
	  .source = "stopm of src/runtime/proc.go (Go 1.16 to 1.27)" },
	/* `list := netpoll(delay)` */
	{ .function = "runtime.netpoll",
	  .through = "@(runtime.epollwait|*syscall*.EpollWait|*syscall*.Syscall6)",
	  .outer = "runtime.find[rR]unnable",
	  .syscalls = IDLE_POLLS,
	  .source = "findRunnable of src/runtime/proc.go (Go 1.16 to 1.27)" },
	{ .function = "runtime.sysmon",
	  .through = "runtime.@(usleep|" SLEEPS ")",
	  .syscalls = "nanosleep " IDLE_LOCKS,
	  .source = "sysmon of src/runtime/proc.go (Go 1.16 to 1.27)" },
	{ .function = "runtime.templateThread",
	  .through = "runtime.@(" SLEEPS ")",
	  .syscalls = IDLE_LOCKS,
	  .source = "templateThread of src/runtime/proc.go (Go 1.16 to 1.27)" },
	{ .function = "os/signal.signal_recv",
	  .through = "runtime.@(" SLEEPS ")",
	  .syscalls = IDLE_LOCKS,
	  .source = "signal_recv of src/runtime/sigqueue.go (Go 1.16 to 1.27)" },
	{}
};
