// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/python/python_idle.h"

/* Files are those of the standard library and of packages, wherever they are installed. */
const struct idle_rule python_idle[] = {
	/* `work_item = work_queue.get(block=True)`; the queue is code in C */
	{ .function = "_worker",
	  .file = "*/concurrent/futures/thread.py",
	  .syscalls = IDLE_LOCKS,
	  .source = "_worker of Lib/concurrent/futures/thread.py (CPython 3.7 to 3.14)" },
	/* `event_list = self._selector.select(timeout)` */
	{ .function = "*select",
	  .file = "*/selectors.py",
	  .outer = "*_run_once",
	  .syscalls = IDLE_POLLS,
	  .source = "BaseEventLoop._run_once of Lib/asyncio/base_events.py (3.4 to 3.14)" },
	/* `ready = selector.select(poll_interval)` */
	{ .function = "*select",
	  .file = "*/selectors.py",
	  .outer = "*serve_forever",
	  .syscalls = IDLE_POLLS,
	  .source = "BaseServer.serve_forever of Lib/socketserver.py (3.4 to 3.14)" },
	/* `task = get()`, from a queue.SimpleQueue, or from a pipe between processes */
	{ .function = "worker",
	  .file = "*/multiprocessing/pool.py",
	  .through = "@(SimpleQueue.get|_ConnectionBase.recv_bytes|Connection._recv|"
		     "Connection._recv_bytes|SemLock.__enter__)",
	  .syscalls = IDLE_LOCKS " read",
	  .source = "worker of Lib/multiprocessing/pool.py (3.7 to 3.14)" },
	{ .function = "*_handle_tasks",
	  .file = "*/multiprocessing/pool.py",
	  .syscalls = IDLE_LOCKS,
	  .source = "Pool._handle_tasks of Lib/multiprocessing/pool.py (3.7 to 3.14)" },
	{ .function = "*_handle_results",
	  .file = "*/multiprocessing/pool.py",
	  .through = "@(SimpleQueue.get|_ConnectionBase.recv|Connection._recv|"
		     "Connection._recv_bytes)",
	  .syscalls = IDLE_LOCKS " read",
	  .source = "Pool._handle_results of Lib/multiprocessing/pool.py (3.7 to 3.14)" },
	{ .function = "*_wait_for_updates",
	  .file = "*/multiprocessing/pool.py",
	  .through = "@(wait|*select)",
	  .syscalls = IDLE_POLLS,
	  .source = "Pool._wait_for_updates of Lib/multiprocessing/pool.py (3.8 to 3.14)" },
	/* `ret = select.select(self.wait_fds, [], [], timeout)` */
	{ .function = "*wait",
	  .file = "*/gunicorn/workers/sync.py",
	  .syscalls = IDLE_POLLS,
	  .source = "SyncWorker.wait of gunicorn/workers/sync.py (gunicorn 20 to 23)" },
	/* `events = self.poller.select(1.0)` */
	{ .function = "*select",
	  .file = "*/selectors.py",
	  .outer = "*ThreadWorker.run",
	  .syscalls = IDLE_POLLS,
	  .source = "ThreadWorker.run of gunicorn/workers/gthread.py (gunicorn 20 to 23)" },
	/* `nwait()`: `notempty.wait` of the queue that a feeder thread empties */
	{ .function = "*Queue._feed",
	  .file = "*/multiprocessing/queues.py",
	  .through = "@(*Condition.wait|wait)",
	  .syscalls = IDLE_LOCKS,
	  .source = "Queue._feed of Lib/multiprocessing/queues.py (3.4 to 3.14)" },
	{ .function = "*sleep",
	  .file = "*/gunicorn/arbiter.py",
	  .syscalls = IDLE_POLLS,
	  .source = "Arbiter.sleep of gunicorn/arbiter.py (gunicorn 20 to 23)" },
	{}
};
