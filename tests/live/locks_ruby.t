#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""The GVL: whether the thread of a sample has it, runs without it, or waits for it and for whom. With
BRAID_EVERY_INTERPRETER of every CRuby at hand."""

import glob
import os
import shutil

import gate
import locks
from locks import FREE, FUTEX, HELD, OPENAT, WAITED

RUBY = "/usr/bin/ruby3.1"
SCRIPT = "fixtures/ruby/locks.rb"
CACHE = os.path.expanduser("~/.cache")


def check(name, start, fifo, path, events):
    """`start` makes a process of an inherited pipe's end and what the fixture calls the FIFO."""
    os.mkfifo(fifo)
    end, pipe = os.pipe()
    process = start(end, path)
    os.close(end)
    target = locks.Target(process)
    other = int(gate.wait_line(process, "other")[-1].split()[1])
    target.until(other, *locks.READS)
    target.until(target.pid, *locks.READS)
    target.record(events)
    target.go_on()
    held = target.until(target.pid, OPENAT)
    os.write(pipe, b"x")
    begin = target.until(other, FUTEX)
    end = target.until(other, FUTEX)
    with open(fifo, "wb"):
        pass
    gate.wait_line(process, "done")
    free = target.until(target.pid, *locks.READS)
    target.until(other, *locks.READS)
    os.write(pipe, b"x")
    asleep = target.until(other, FUTEX, locks.PPOLL)
    os.close(pipe)
    moments = target.finish()
    gate.equal(locks.last(moments, target.pid, held), (HELD, OPENAT, 0),
               f"{name}: a library is opened with the lock", *moments)
    gate.equal(locks.last(moments, target.pid, end), (HELD, OPENAT, 0),
               f"{name}: the same while another thread waits")
    gate.equal(locks.last(moments, other, begin), (WAITED, FUTEX, target.pid),
               f"{name}: the other thread waits for the main thread", *moments)
    waits = [one for one in moments
             if one.tid == other and one.syscall == FUTEX and one.time_ns <= end]
    gate.equal({(one.lock, one.peer) for one in waits}, {(WAITED, target.pid)},
               f"{name}: each time, in {len(waits)} samples")
    gate.equal(locks.last(moments, target.pid, free)[::2], (FREE, 0),
               f"{name}: a read without the lock")
    # By the same condition variable, or it looks after signals for all.
    gate.equal(locks.last(moments, other, asleep)[::2], (FREE, 0), f"{name}: a sleep", *moments)
    if locks.UPROBE in events:
        gate.equal([(one.lock, one.syscall) for one in moments if one.event == locks.UPROBE],
                   [(lock, locks.NO_SYSCALL) for lock in (HELD, FREE)],
                   f"{name}: at calls of C with the lock, and without it")
    gate.equal(target.recording.sql("SELECT runtime, source FROM source"), [("ruby", "walk")],
               f"{name}: its frames are walked")
    process.stdin.close()
    process.kill()
    process.wait()


def check_here(program):
    fifo = gate.path("fifo" + program.replace("/", "-"))
    check(program, lambda fd, path: gate.marked(program, SCRIPT, fd, path, trace=False,
                                                pass_fds=[fd]),
          fifo, fifo, f"{locks.SWITCH},{locks.UPROBE}")


def check_root(root, program):
    """In another Debian, which may lack what the marker needs."""
    name = f"/tmp/braid-locks-{os.getpid()}"

    def start(fd, path):
        process = gate.start("chroot", root, program, name + ".rb", fd, path, pass_fds=[fd])
        gate.wait_line(process, "ready")
        return process

    shutil.copy(SCRIPT, root + name + ".rb")
    try:
        check(f"{os.path.basename(root)}{program}", start, root + name, name, locks.SWITCH)
    finally:
        os.unlink(root + name + ".rb")
        os.unlink(root + name)


gate.need_root()
programs, roots = [RUBY], []
if os.environ.get("BRAID_EVERY_INTERPRETER"):
    programs += sorted(glob.glob(CACHE + "/braid-rubies/*/bin/ruby"))
    roots = glob.glob(os.environ.get("BRAID_TEST_ROOTS", CACHE + "/braid-tests") + "/*/usr/bin/ruby?.?")
else:
    gate.need_program(RUBY)
for one in programs:
    if os.path.exists(one):
        check_here(one)
for one in sorted(roots):
    check_root(one.partition("/usr/bin/")[0], "/usr/bin/" + os.path.basename(one))
gate.done()
