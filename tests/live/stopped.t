#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Threads that a signal has stopped when a recording begins, and until it ends, are stopped, not
blocked. What the processes have used of the CPU is of the recorded time, also where braid itself gets
none at its end."""

import os
import re
import signal

import gate
import waiting
from gate import equal

WAITS = os.path.join(gate.OUTPUT, "fixtures/native/waits")


def stop(pid):
    os.kill(pid, signal.SIGSTOP)
    gate.wait_until(lambda: gate.state_of(pid) == "T", "the stop")


def states(recording, tid, event):
    return {sample.state for sample in recording.waits(tid, event)}


def check_all_the_time():
    waiter = waiting.Waiter(WAITS)
    stop(waiter.pid)
    braid = waiting.record("off-cpu:1ns", waiter.pid, options=["--max-overhead", "none"])
    recording = waiting.finish("all the time", braid)
    equal(states(recording, waiter.tid, "off-cpu"), {waiting.STOPPED}, "stopped all the time")
    os.kill(waiter.pid, signal.SIGCONT)


def check_beginning():
    waiter = waiting.Waiter(WAITS)
    waiter.begin("pipe", waiting.READ)
    stop(waiter.pid)
    braid = waiting.record("off-cpu:1ns", waiter.pid, options=["--max-overhead", "none"])
    os.kill(waiter.pid, signal.SIGCONT)
    waiter.until_in(waiting.READ)
    waiter.end("pipe")
    gate.line_of(waiter.process)
    recording = waiting.finish("beginning", braid)
    samples = recording.waits(waiter.tid)
    equal([sample.state for sample in samples[:1]], [waiting.STOPPED], "stopped at the beginning")
    equal(waiting.BLOCKED in states(recording, waiter.tid, "off-cpu"), True, "then it waits")


def cpu_s(pid):
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0]) / 1e9


def check_late():
    """One thread cannot use more than the recorded second."""
    target = gate.start("sh", "-c", "while :; do :; done")
    braid = gate.start(gate.BRAID, "record", "-e", "syscall:getppid", "-d", 1, "-p", target.pid, "-o",
                       gate.path("late.db"), stderr=gate.subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(gate.path("late.db")) or braid.poll() is not None,
                    "the first commit")
    stop(braid.pid)
    until = cpu_s(target.pid) + 3
    gate.wait_until(lambda: cpu_s(target.pid) > until, "more than that")
    os.kill(braid.pid, signal.SIGCONT)
    said = braid.stderr.read().decode()
    equal(braid.wait(), 0, "late: status", said)
    used = re.search(r"the process has(?: used ([\d.]+) s of CPU in that time with)? 1 thread", said)
    equal(bool(used), True, "late: what the process does", said)
    equal(float(used[1] or 0) <= 1.1, True, "late: not what it has used since", said)
    target.kill()


gate.need_root()
check_all_the_time()
check_beginning()
check_late()
gate.done()
