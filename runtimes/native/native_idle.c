// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/native/native_idle.h"

/* Only where the functions have names: static ones need a symbol table. */
const struct idle_rule native_idle[] = {
	{ .function = "uv__io_poll",
	  .through = "@(" IDLE_LIBC ")",
	  .native = true,
	  .syscalls = IDLE_POLLS,
	  .source = "uv__io_poll of src/unix/linux.c (libuv 1.0 to 1.51)" },
	/* `uv_cond_wait(&cond, &mutex)` */
	{ .function = "worker",
	  .image = "@(node|libuv.so*|loop.*.so)",
	  .through = "@(" IDLE_UV IDLE_LIBC ")",
	  .native = true,
	  .syscalls = IDLE_LOCKS,
	  .source = "worker of src/threadpool.c (libuv 1.0 to 1.51)" },
	{ .function = "g_main_loop_run",
	  .through = "@(g_main_context_*|g_poll|?libglib-2.0.so*|" IDLE_LIBC ")",
	  .native = true,
	  .syscalls = IDLE_POLLS,
	  .source = "g_main_context_iterate of glib/gmain.c (GLib 2.0 to 2.84)" },
	{ .function = "event_base_loop",
	  .through = "@(epoll_dispatch|poll_dispatch|select_dispatch|?libevent*|" IDLE_LIBC ")",
	  .native = true,
	  .syscalls = IDLE_POLLS,
	  .source = "event_base_loop of event.c (libevent 2.0 to 2.1)" },
	{ .function = "ngx_epoll_process_events",
	  .through = "@(" IDLE_LIBC ")",
	  .native = true,
	  .syscalls = IDLE_POLLS,
	  .source = "ngx_epoll_process_events of ngx_epoll_module.c (nginx 1.0 to 1.28)" },
	{ .function = "ngx_master_process_cycle",
	  .through = "@(" IDLE_LIBC ")",
	  .native = true,
	  .syscalls = "rt_sigsuspend",
	  .source = "ngx_master_process_cycle of ngx_process_cycle.c (nginx 1.0 to 1.28)" },
	{ .function = "aeProcessEvents",
	  .through = "@(aeApiPoll|" IDLE_LIBC ")",
	  .native = true,
	  .syscalls = IDLE_POLLS,
	  .source = "aeProcessEvents of src/ae.c (redis 2.0 to 8.0, valkey)" },
	{}
};
