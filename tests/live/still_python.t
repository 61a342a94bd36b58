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


def is_in(pid, tid, number):
    with open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as file:
        return file.read().split()[0] == str(number)


gate.need_root()
gate.need_program(PYTHON)
target = gate.start(PYTHON, "-c", SCRIPT)
holder, stuck = map(int, gate.line_of(target).split())
gate.wait_until(lambda: is_in(target.pid, holder, PAUSE), "the holder waits")
gate.wait_until(lambda: is_in(target.pid, stuck, FUTEX), "the other one waits")
file = gate.path("still.db")
braid = gate.start(gate.BRAID, "record", "-e", "off-cpu", "-p", target.pid, "-o", file,
                   stderr=gate.subprocess.PIPE)
gate.wait_until(lambda: gate.os.path.exists(file), "the first commit")
braid.send_signal(signal.SIGINT)
err = braid.stderr.read().decode()
gate.equal(braid.wait(), 0, "status", err)
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
gate.done()
