#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""A perf map that a former process of the same PID left, or that belongs to another user: its names
are not taken, which is told where the process runs code of its own, and nowhere else."""

import os

import gate

PYTHON = "/usr/bin/python3.11"
NOBODY = 65534
# push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret
SCRIPT = """
import ctypes, mmap, os, sys
made = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
made.write(bytes.fromhex("554889e5ffd75dc3"))
address = ctypes.addressof(ctypes.c_char.from_buffer(made))
call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(address)
getppid = ctypes.cast(ctypes.CDLL(None).getppid, ctypes.c_void_p)
print("ready", hex(address), flush=True)
for line in sys.stdin:
    print(os.getppid() if line == "none\\n" else call(getppid), flush=True)
"""


def sources(target, own):
    """What a recording of one sample says, taken below code of its own or not."""
    recorder = gate.recorder(1, target)
    gate.ask(target, "own" if own else "none")
    recording = gate.finish(recorder, 1)
    return recording.sql("SELECT runtime, source, reason FROM source")


def check(name, spoil, reason):
    target = gate.marked(PYTHON, "-c", SCRIPT)
    path = f"/tmp/perf-{target.pid}.map"
    with open(path, "w", encoding="ascii") as file:
        file.write("900000 100 first\n")
    spoil(path)
    walk = ("python", "walk", "")
    gate.equal(sources(target, False), [walk], f"{name}: silent without code of its own")
    gate.equal(sources(target, True), [walk, ("jit", "none", reason.format(path))],
               f"{name}: told where it would name code")
    os.unlink(path)


gate.need_root()
gate.need_program(PYTHON)
check("a former process's", lambda path: os.utime(path, (1e9, 1e9)),
      "cannot use {}: it is older than the process, so another process wrote it. If the clock was set "
      "forward since, touch the file")
check("another user's", lambda path: os.chown(path, NOBODY, NOBODY),
      f"{{}} belongs to user {NOBODY}, the process to 0")
gate.done()
