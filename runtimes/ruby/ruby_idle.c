// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/ruby/ruby_idle.h"

const struct idle_rule ruby_idle[] = {
	/* the thread's own name */
	{ .thread = "ruby-timer-thr",
	  .source = "thread_timer of thread_pthread.c (CRuby 2.0 to 2.5)" },
	/* A script's first thread, whose other threads work. */
	{ .function = "<main>",
	  .through = "@(Thread#join|Thread#value|Array#each|block*in <main>)",
	  .syscalls = IDLE_LOCKS " " IDLE_POLLS,
	  .source = "thread_join of thread.c (CRuby 2.7 to 4.1)" },
	/* `not_empty.wait @mutex` */
	{ .function = "block*in Puma::ThreadPool#spawn_thread",
	  .through = "@(*ConditionVariable#wait|*Mutex#sleep)",
	  .syscalls = IDLE_LOCKS,
	  .source = "ThreadPool#spawn_thread of lib/puma/thread_pool.rb (puma 3 to 6)" },
	/* `server_thread.join` */
	{ .function = "Puma::Single#run",
	  .through = "Thread#@(join|value)",
	  .syscalls = IDLE_LOCKS " " IDLE_POLLS,
	  .source = "Single#run of lib/puma/single.rb (puma 3 to 6)" },
	/* `sleep @timeout`: the reaper and the trimmer of a pool */
	{ .function = "block*in Puma::ThreadPool::Automaton#start!",
	  .through = "@(Kernel#sleep|Kernel.sleep)",
	  .syscalls = IDLE_LOCKS " " IDLE_POLLS,
	  .source = "Automaton#start! of lib/puma/thread_pool.rb (puma 4 to 6)" },
	/* `@selector.select` */
	{ .function = "Puma::Reactor#select_loop",
	  .through = "NIO::Selector#select",
	  .syscalls = IDLE_POLLS,
	  .source = "Reactor#select_loop of lib/puma/reactor.rb (puma 5 to 6)" },
	/* `ios = IO.select sockets` */
	{ .function = "Puma::Server#handle_servers",
	  .through = "@(IO.select|Kernel#select)",
	  .syscalls = IDLE_POLLS,
	  .source = "Server#handle_servers of lib/puma/server.rb (puma 3 to 6)" },
	/* `if svrs = IO.select([sp, *@listeners])` */
	{ .function = "block*in WEBrick::GenericServer#start",
	  .through = "@(IO.select|Kernel#select)",
	  .syscalls = IDLE_POLLS,
	  .source = "GenericServer#start of lib/webrick/server.rb (webrick 1.4 to 1.9)" },
	{}
};
