#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Threads of CPython that wait from before a recording to its end: one sample for each, with the
interpreter's frames, and how it stands to the GIL. (core/kernel/host_half.h)"""

import signal

import gate

PYTHON = "/usr/bin/python3.11"
PAUSE, FUTEX = 34, 202  # arch/x86/entry/syscalls/syscall_64.tbl
BLOCKED, HELD, FREE = 3, 1, 2  # bpf/shared.h
SCRIPT = """
import ctypes, threading
lock = threading.Lock()
def stuck():
    lock.acquire()
def holds():
    print(threading.get_native_id(), thread.native_id, flush=True)
    ctypes.PyDLL(None).pause()
lock.acquire()
thread = threading.Thread(target=stuck, daemon=True)
thread.start()
holds()
"""
# The same, but the process's first thread runs all the time, and so does its process, by its state.
BUSY = """
import threading
def stuck():
    lock.acquire()
lock = threading.Lock()
lock.acquire()
thread = threading.Thread(target=stuck, daemon=True)
thread.start()
print(thread.native_id, flush=True)
while True:
    pass
"""


def is_in(pid, tid, number):
    with open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as file:
        return file.read().split()[0] == str(number)


def record(process):
    """Up to the first commit, and no longer."""
    if gate.os.path.exists(file):
        gate.os.unlink(file)
    braid = gate.start(gate.BRAID, "record", "-e", "off-cpu", "-p", process.pid, "-o", file,
                       stderr=gate.subprocess.PIPE)
    gate.wait_until(lambda: gate.os.path.exists(file), "the first commit")
    braid.send_signal(signal.SIGINT)
    messages = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, "status", messages)
    return messages


gate.need_root()
gate.need_program(PYTHON)
target = gate.start(PYTHON, "-c", SCRIPT)
holder, stuck = map(int, gate.line_of(target).split())
gate.wait_until(lambda: is_in(target.pid, holder, PAUSE), "the holder waits")
gate.wait_until(lambda: is_in(target.pid, stuck, FUTEX), "the other one waits")
file = gate.path("still.db")
err = record(target)
recording = gate.Recording(file)
rows = {tid: rest for tid, *rest in recording.sql(
    "SELECT tid, count(*), state, lock, syscall - 1 FROM sample JOIN thread ON thread.id = thread "
    "GROUP BY tid")}
gate.equal(rows.get(holder), [1, BLOCKED, HELD, PAUSE], "the holder: one sample, with the GIL", rows)
gate.equal(rows.get(stuck), [1, BLOCKED, FREE, FUTEX], "the other one: one sample, without it", rows)
folded = gate.braid("report", "--idle", "show", "--format", "folded", file).out
gate.matches(r"(?m)^.*;<module> \(<string>\);holds \(<string>\);.*pause;.* \d+$", folded,
             "the holder: its frames")
gate.matches(r"(?m)^.*;Thread\.run \(threading\.py\);.*stuck \(<string>\);.*futex.* \d+$", folded,
             "the other one: its frames")
target.kill()

target = gate.start(PYTHON, "-c", BUSY)
stuck = int(gate.line_of(target))
gate.wait_until(lambda: is_in(target.pid, stuck, FUTEX), "the thread of a busy process waits")
err = record(target)
rows = dict(gate.Recording(file).sql(
    f"SELECT tid, count(*) FROM sample JOIN thread ON thread.id = thread WHERE tid = {stuck} "
    "GROUP BY tid"))
gate.equal(rows, {stuck: 1}, "a thread that waits beside one that runs: one sample", err)
target.kill()
gate.done()
