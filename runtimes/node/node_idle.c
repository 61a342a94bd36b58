// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/node/node_idle.h"

/* All threads of Node.js are named `node` up to Node 24. The event loop's wait is libuv's:
 * runtimes/native/native_idle.c. */
const struct idle_rule node_idle[] = {
	{ .function = "node::*PlatformWorkerThread*",
	  .through = "@(node::*TaskQueue*|" IDLE_UV IDLE_LIBC ")",
	  .native = true,
	  .syscalls = IDLE_LOCKS,
	  .source = "PlatformWorkerThread of src/node_platform.cc (Node 12 to 22)" },
	{ .function = "node::inspector::*StartIoThreadMain*",
	  .through = "@(" IDLE_UV IDLE_LIBC ")",
	  .native = true,
	  .syscalls = IDLE_LOCKS,
	  .source = "StartIoThreadMain of src/inspector_agent.cc (Node 12 to 22)" },
	{}
};
