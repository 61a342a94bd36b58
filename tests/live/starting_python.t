#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""A CPython that braid meets before the memory of its thread key is set up, as the end of a file's
data is while the program is being loaded: it is walked once the key is right."""

import os

import gate

PYTHON = "/usr/bin/python3.11"
TSS = 592  # of 3.11's gilstate.autoTSSkey in _PyRuntime (runtimes/python/python_versions.c)
SCRIPT = """
import ctypes
print(ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime")), flush=True)
input()
def busy():
    for i in range(30_000_000):
        pass
busy()
"""


def write(pid, address, data):
    fd = os.open(f"/proc/{pid}/mem", os.O_RDWR)
    before = os.pread(fd, len(data), address)
    os.pwrite(fd, data, address)
    os.close(fd)
    return before


def told(process, word):
    """The line of its messages that has the word."""
    line = "-"
    while line and word not in line:
        line = process.stderr.readline().decode()
    return line


gate.need_root()
gate.need_program(PYTHON)
target = gate.start(PYTHON, "-c", SCRIPT)
key = int(gate.line_of(target)) + TSS
before = write(target.pid, key, b"\xff\xff\xff\xff")
gate.equal(before, b"\1\0\0\0", "the key is where it is looked for")
file = gate.path("out.db")
braid = gate.start(gate.BRAID, "record", "-F", "199", "-p", target.pid, "-o", file,
                   stderr=gate.subprocess.PIPE)
gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
gate.matches(r": none: .*no thread state at 0x[0-9a-f]+", told(braid, ": none: "),
             "what it waits for is said")
write(target.pid, key, before)
gate.matches(r"python 3\.11\S+: walk$", told(braid, ": walk"), "it is walked")
gate.say(target, "")
target.wait()
braid.wait()
folded = gate.braid("report", file, "--format", "folded", "--frames", "script")
gate.matches(r"(?m)<module> \(<string>\);busy \(<string>\) \d+$", folded.out, "its frames are there")
gate.done()
