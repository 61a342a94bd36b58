#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Waiting of Python programs, threads and asyncio: one sample as long as each wait, with Python's and
C's frames of it, and not longer than Python's own clock says."""

import gate
import waiting
from waiting import EPOLL_WAIT, FUTEX, NANOSLEEP, READ, RECVFROM

PYTHON = "/usr/bin/python3.11"
N = 5


def check_waits(name, waiter, waits, recording, tail):
    """`waits`: [(what, waits, syscall, innermost function, then native frames)]."""
    for what, found, call, *stack in waits:
        waiting.check_long(f"{name}: {what}", recording, waiter.tid, found, (call,),
                           lambda frames, stack=stack: waiting.runtime_part(frames, "_[py]") ==
                           [*tail, *stack[0]] and waiting.ends(frames, stack[1]))


def check_threads():
    waiter = waiting.Waiter(PYTHON, "-B", "fixtures/python/waits/waits.py")
    braid = waiting.record("off-cpu", waiter.pid, options=["--max-overhead", "none"])
    waits = [
        ("lock", [waiter.wait("lock", FUTEX) for _ in range(N)], FUTEX, ["in_lock"],
         ["PyThread_acquire_lock_timed_[n]", None, None]),
        ("pipe", [waiter.wait("pipe", READ) for _ in range(N)], READ, ["in_pipe"], ["read_[n]"]),
        ("socket", [waiter.wait("socket", RECVFROM) for _ in range(N)], RECVFROM, ["in_socket"],
         [None, "recv_[n]"]),
        ("sleep", [waiter.sleep("sleep 0.02", NANOSLEEP) for _ in range(N)], NANOSLEEP,
         ["in_sleep"], [None, "clock_nanosleep_[n]"])]
    recording = waiting.finish("threads", braid)
    check_waits("threads", waiter, waits, recording, ["<module>", "main", "obey"])


def check_tasks():
    """Whatever a task waits for, the thread waits in the event loop."""
    waiter = waiting.Waiter(PYTHON, "-B", "fixtures/python/waits/tasks.py")
    braid = waiting.record("off-cpu", waiter.pid, options=["--max-overhead", "none"])
    select = ["_run_once", "select"]
    waits = [
        ("sleep", [waiter.sleep("sleep 0.02", EPOLL_WAIT) for _ in range(N)], EPOLL_WAIT, select,
         ["epoll_wait_[n]"]),
        ("pipe", [waiter.wait("pipe", EPOLL_WAIT) for _ in range(N)], EPOLL_WAIT, select,
         ["epoll_wait_[n]"]),
        ("socket", [waiter.wait("socket", EPOLL_WAIT) for _ in range(N)], EPOLL_WAIT, select,
         ["epoll_wait_[n]"])]
    recording = waiting.finish("tasks", braid)
    check_waits("tasks", waiter, waits, recording,
                ["<module>", "run", "run", "run_until_complete", "run_forever"])


gate.need_root()
gate.need_program(PYTHON)
check_threads()
check_tasks()
gate.done()
