#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""A program whose segments libhugetlbfs copied to files on hugetlbfs (HUGETLB_ELFMAP), so that no
mapping of the program remains near its code, and whose own file is deleted: native frames are those
of the program without that."""

import fcntl
import os
import shutil
import subprocess

import gate

N = 20
PAGES = 32  # of 2 MB
RESERVED = "/proc/sys/vm/nr_hugepages"
FIXTURE = os.path.join(gate.OUTPUT, "fixtures/native/huge_text")
PROGRAM = gate.path("program")


def reserve(pages):
    with open(RESERVED, "w", encoding="ascii") as file:
        file.write(str(pages))


def reserved():
    with open(RESERVED, encoding="ascii") as file:
        return int(file.read())


def locked():
    """The file of the number of pages, locked: a second run of this test waits until the first has restored it."""
    file = open(RESERVED, encoding="ascii")  # pylint: disable=consider-using-with
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def facts_of(title, env):
    """The native frames of each call, and what the maps file says of the code."""
    shutil.copy(FIXTURE, PROGRAM)
    target = gate.start("unshare", "-m", "sh", "-c", "mount -t hugetlbfs none $HUGETLB_PATH && "
                        "LD_PRELOAD=$LIBRARY exec $0", PROGRAM, stderr=subprocess.PIPE,
                        env=dict(os.environ, HUGETLB_PATH=gate.path("pages"), **env))
    gate.wait_line(target, "ready")
    with open(f"/proc/{target.pid}/maps", encoding="ascii") as maps:
        code = [line for line in maps if " r-xp " in line]
    os.unlink(PROGRAM)
    file = gate.path(f"{title.replace(' ', '-')}.db")
    braid = gate.start(gate.BRAID, "record", "-e", "syscall:getppid", "-p", target.pid, "-o", file,
                       "--max-overhead", "none", stderr=subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
    gate.say(target, f"here {N}")
    gate.say(target, "end")
    warned = target.stderr.read().decode()
    gate.equal(target.wait(), 0, f"{title}: the target ends as it should", warned)
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, f"{title}: status", said)
    samples = gate.Recording(file).samples()
    gate.equal(len(samples), N, f"{title}: a sample for each call", said)
    gate.equal({sample.flags & 1 for sample in samples}, {1}, f"{title}: stacks are complete", said)
    return [sample.native for sample in samples], code


def check():
    usual, _ = facts_of("usual", {"LIBRARY": ""})
    names = {file for sample in usual for file, _ in sample}
    gate.ok(PROGRAM in names, "frames of the program", names)
    for share in "0", "1":
        title = f"HUGETLB_SHARE={share}"
        got, code = facts_of(title, {"LIBRARY": "libhugetlbfs.so.0", "HUGETLB_ELFMAP": "R",
                                     "HUGETLB_SHARE": share})
        gate.ok(any(gate.path("pages") in line for line in code), f"{title}: the code is there", code)
        gate.equal(got, usual, f"{title}: native frames are the same")


gate.need_root()
gate.need_program("/usr/lib/x86_64-linux-gnu/libhugetlbfs.so.0")
if not os.path.exists(RESERVED):
    gate.skip_all("the kernel has no huge pages")
lock = locked()
before = reserved()
try:
    reserve(before + PAGES)
except OSError as error:
    gate.skip_all(f"no huge pages: {error}")
if reserved() < before + PAGES:
    reserve(before)
    gate.skip_all("no huge pages are free")
os.mkdir(gate.path("pages"))
try:
    check()
finally:
    reserve(before)
gate.done()
