#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""The GIL: whether the thread of a sample has it, runs without it, or waits for it and for whom. With
BRAID_EVERY_INTERPRETER of every CPython at hand."""

import glob
import os
import shutil

import gate
import locks
from locks import FREE, FUTEX, HELD, READ, WAITED

PYTHON = "/usr/bin/python3.11"
SCRIPT = "fixtures/python/locks.py"
CACHE = os.path.expanduser("~/.cache")


def check(name, process, events):
    target = locks.Target(process)
    other = target.other()
    target.record(events)
    target.go_on()
    held = target.until(target.pid, READ, size=2)
    target.go_on()
    target.until(target.pid, READ, size=3)
    begin = target.until(other, FUTEX)
    end = target.until(other, FUTEX)
    target.go_on()
    gate.wait_line(process, "done")
    free = target.until(target.pid, READ)
    moments = target.finish()
    gate.equal(locks.last(moments, target.pid, held), (HELD, READ, 0),
               f"{name}: a read with the lock", *moments)
    gate.equal(locks.last(moments, target.pid, end), (HELD, READ, 0),
               f"{name}: the same while another thread waits")
    gate.equal(locks.last(moments, other, begin), (WAITED, FUTEX, target.pid),
               f"{name}: the other thread waits for the main thread", *moments)
    waits = [one for one in moments
             if one.tid == other and one.syscall == FUTEX and one.time_ns <= end]
    gate.equal({(one.lock, one.peer) for one in waits}, {(WAITED, target.pid)},
               f"{name}: each time, in {len(waits)} samples")
    gate.ok(max(one.object for one in waits) - min(one.object for one in waits) < 208,
            f"{name}: all in one lock", *waits)
    gate.equal(locks.last(moments, target.pid, free), (FREE, READ, 0),
               f"{name}: a read without the lock")
    if locks.UPROBE in events:
        gate.equal([(one.lock, one.syscall) for one in moments if one.event == locks.UPROBE],
                   [(lock, locks.NO_SYSCALL) for lock in (FREE, HELD, HELD)],
                   f"{name}: at calls of C without the lock, and twice with it")
    gate.equal(target.recording.sql("SELECT runtime, source FROM source"), [("python", "walk")],
               f"{name}: its frames are walked")
    process.stdin.close()
    process.wait()


def check_root(root, program):
    """In another Debian, which may lack what the marker needs."""
    script = os.path.join(root, "tmp", f"braid-locks-{os.getpid()}.py")
    shutil.copy(SCRIPT, script)
    try:
        process = gate.start("chroot", root, "/usr/bin/" + program, "-B",
                             "/tmp/" + os.path.basename(script))
        gate.wait_line(process, "ready")
        check(f"{os.path.basename(root)} {program}", process, locks.SWITCH)
    finally:
        os.unlink(script)


gate.need_root()
programs = [PYTHON]
roots = []
if os.environ.get("BRAID_EVERY_INTERPRETER"):
    programs += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")))
    roots = glob.glob(os.environ.get("BRAID_TEST_ROOTS", CACHE + "/braid-tests") + "/*/usr/bin/python3.*")
else:
    gate.need_program(PYTHON)
for path in programs:
    if os.path.exists(path):
        check(path, gate.marked(path, "-B", SCRIPT, trace=False),
              f"{locks.SWITCH},{locks.UPROBE}")
for path in sorted(roots):
    if not path.endswith("-config"):
        check_root(path.partition("/usr/bin/")[0], os.path.basename(path))
gate.done()
