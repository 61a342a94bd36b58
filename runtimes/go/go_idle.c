// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/go/go_idle.h"

#define SLEEPS "mPark|notesleep|notetsleep|notetsleepg|notetsleep_internal|futexsleep|futex"

/* Functions by which a goroutine leaves its thread to wait; and to wait for a file. */
#define PARKS "runtime.gopark|runtime.goparkunlock|runtime.chanrecv*|runtime.selectgo"
#define POLLS                                                                      \
	PARKS "|runtime.netpollblock|internal/poll.*|net.*netFD*|net.*conn*.Read|" \
	      "crypto/tls.*|io.*|bytes.*"

/* Goroutines wait without a thread. The first rules describe threads without a goroutine, and the
 * runtime's own threads. The others describe goroutines: the runtime's own, and those of a pool
 * that wait for work. */
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
	{ .function =
		  "runtime.@(bgsweep|bgscavenge|forcegchelper|runfinq|runFinalizers|runCleanups|"
		  "gcBgMarkWorker|updateMaxProcsGoroutine|unique_runtime_registerUniqueMapCleanup*"
		  ")",
	  .through = "@(" PARKS "|runtime.*scavengerState*.@(park|sleep)|runtime.*cleanupQueue*)",
	  .source = "isSystemGoroutine of src/runtime/traceback.go (Go 1.16 to 1.27)" },
	/* Before the first line of a request; the rest of the header is read by ReadMIMEHeader. */
	{ .function = "net/http.*conn*.serve",
	  .through = "@(" POLLS "|net/http.*connReader*|bufio.*|net/http.*readRequest|"
		     "net/textproto.*.@(ReadLine|readLineSlice))",
	  .source = "`c.bufr.Peek(4)` of src/net/http/server.go, ReadLine of readRequest in "
		    "request.go (Go 1.16 to 1.27)" },
	{ .function = "net/http.*connReader*.backgroundRead",
	  .through = "@(" POLLS ")",
	  .source = "backgroundRead of src/net/http/server.go: runs beside a handler, to see the "
		    "end of the connection (Go 1.16 to 1.27)" },
	{ .function = "net/http.*Server*.Serve",
	  .through = "@(" POLLS "|net.*Listener*|net/http.*Listener*)",
	  .source = "`l.Accept()` of src/net/http/server.go (Go 1.16 to 1.27)" },
	{ .function = "net/http.*persistConn*.readLoop",
	  .through = "@(" POLLS "|net/http.*persistConn*.Read|bufio.*)",
	  .source = "`pc.br.Peek(1)` of src/net/http/transport.go (Go 1.16 to 1.27)" },
	{ .function = "net/http.*persistConn*.writeLoop",
	  .through = "@(" PARKS ")",
	  .source = "writeLoop of src/net/http/transport.go (Go 1.16 to 1.27)" },
	{ .function = "database/sql.*DB*.connectionOpener",
	  .through = "@(" PARKS ")",
	  .source = "connectionOpener of src/database/sql/sql.go (Go 1.16 to 1.27)" },
	{}
};
