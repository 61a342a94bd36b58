#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""braid dump changes no result of any system call. fixtures/native/held_calls.c makes every call that
may wait, in code with and without unwind tables, and compares each result with the only right one."""

import ctypes
import os

import dumps
import gate

HELD_CALLS = os.path.join(gate.OUTPUT, "fixtures/native/held_calls")
# Without these braid neither loads programs into the kernel nor sees more than the thread's tracer.
UNPRIVILEGED = ["setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin"]

# In which a thread of code without tables is stopped where the kernel half cannot be loaded
# (core/target/restart.c).
STOPPED = {"nanosleep_null", "clock_nanosleep_abs", "poll", "ppoll", "select", "pselect6", "read_pipe",
           "msgrcv", "mq_timedreceive", "read_eventfd", "read_timerfd", "wait4", "rt_sigsuspend", "pause"}

# The kernel's own restart of these shows, which is why they are not stopped.
SHOWN = {"nanosleep", "clock_nanosleep", "ppoll_const", "pselect6_const", "epoll_wait", "epoll_pwait",
         "epoll_pwait2", "recv_timeout", "recvmsg_timeout", "read_timeout", "recv_all", "recvmmsg",
         "send_all", "sendmsg_all", "write_pipe", "accept_timeout", "connect_timeout", "semop",
         "semtimedop", "io_getevents", "rt_sigtimedwait"}

PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
WALL = 0x40000000


class Thread:
    def __init__(self, line):
        name, code, *numbers = line.split()
        self.name, self.bare = name, code == "bare"
        self.tid, self.count, self.wrong, self.result, self.left = map(int, numbers)


def report(target):
    target.stdin.write(b"report\n")
    target.stdin.flush()
    return [Thread(line) for line in gate.wait_line(target, "end")
            if len(line.split()) == 7]


def start(mode):
    """Where the machine is slow, its hundred threads use all of it. They leave most to the dump."""
    target = gate.start("nice", "-n", "19", HELD_CALLS, mode)
    gate.wait_line(target, "ready")
    return target


def wrong(threads):
    return [(thread.name, thread.bare, thread.wrong, thread.result) for thread in threads if thread.wrong]


def check_loop():
    """Threads that run and wait by turns, under one dump after the other."""
    target = start("loop")
    begun = {thread.tid: thread.count for thread in report(target)}
    gate.wait_until(lambda: all(thread.count > begun[thread.tid] for thread in report(target)),
                    "each call, without braid")
    gate.equal(wrong(report(target)), [], "loop: without braid all results are right")
    ways = set()
    for _ in range(12):
        begun = {thread.tid: thread.count for thread in report(target)}
        dump = dumps.dump("-p", target.pid, "--no-children")
        ways |= {thread.read for thread in dump.threads.values()}
        gate.wait_until(lambda before=begun: all(thread.count > before[thread.tid]
                                                 for thread in report(target)), "each call")
    threads = report(target)
    gate.equal(wrong(threads), [], "loop: with dumps all results are right")
    gate.ok("stopped" not in ways and "still" in ways, "loop: no thread was stopped", ways)
    target.kill()


def settle(target):
    """Until all threads but the one that has nothing to wait for stand in their calls."""
    for thread in report(target):
        if thread.name != "getrandom":
            dumps.stands(target.pid, thread.tid)


def interrupt(tid):
    """As braid's own stop, whatever the thread waits in. By /proc the thread has gone on if it waits again
    or has returned."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long] * 4
    if libc.ptrace(PTRACE_SEIZE, tid, 0, 0) or libc.ptrace(PTRACE_INTERRUPT, tid, 0, 0):
        raise OSError(ctypes.get_errno(), "ptrace")
    os.waitpid(tid, WALL)
    libc.ptrace(PTRACE_DETACH, tid, 0, 0)


def check_still():
    """Threads that wait for ten minutes: none comes back."""
    target = start("still")
    settle(target)
    for name, before in ("root", []), ("unprivileged", UNPRIVILEGED):
        stopped = set()
        for _ in range(3):
            dump = dumps.Dump(gate.run(*before, gate.BRAID, "dump", "--json", "--no-children", "-p",
                                       target.pid))
            stopped |= {tid for tid, thread in dump.threads.items() if thread.read == "stopped"}
            settle(target)
        threads = report(target)
        gate.equal([thread.name for thread in threads if thread.count or thread.left], [],
                   f"still: {name}: no call has returned")
        gate.equal({thread.name for thread in threads if thread.tid in stopped and thread.bare},
                   set() if name == "root" else STOPPED, f"still: {name}: who was stopped")
        gate.equal({thread.name for thread in threads if thread.tid in stopped and not thread.bare},
                   set(), f"still: {name}: nobody was whose stack can be walked")
    for thread in report(target):
        if thread.bare and thread.name in STOPPED | SHOWN:
            interrupt(thread.tid)
    gate.wait_until(lambda: SHOWN <= returned(target), "the calls that a stop ends")
    gate.equal(returned(target), SHOWN, "what a stop of any of them would have ended")
    target.kill()


def returned(target):
    """Those that have returned, or will return something else than without the stop: what is left of the
    time was written."""
    return {thread.name for thread in report(target) if thread.bare and (thread.count or thread.left)}


gate.need_root()
check_loop()
check_still()
gate.done()
