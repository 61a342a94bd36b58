// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/php/php_idle.h"

/* Most of PHP's own functions have no name. The functions that run a script are not among them. */
#define BEGIN	       "@(main|__libc_start_main|__libc_start_call_main)"
#define FPM(functions) "@(" functions "|accept|accept4|?php-fpm*|" IDLE_LIBC ")"

const struct idle_rule php_idle[] = {
	/* A worker without a request: `req->fd = accept(listen_socket, ...)` */
	{ .function = BEGIN,
	  .native = true,
	  .image = "php-fpm*",
	  .through = FPM("fcgi_accept_request"),
	  .syscalls = "accept accept4",
	  .source = "fcgi_accept_request of main/fastcgi.c (PHP 8.0 to 8.5)" },
	/* The master, until a child exits or a signal arrives. */
	{ .function = BEGIN,
	  .native = true,
	  .image = "php-fpm*",
	  .through = FPM("fpm_run|fpm_event_loop|fpm_event_epoll_wait"),
	  .syscalls = IDLE_POLLS,
	  .source = "fpm_event_loop of sapi/fpm/fpm/fpm_events.c (PHP 8.0 to 8.5)" },
	{}
};
