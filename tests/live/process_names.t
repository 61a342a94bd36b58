#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""A process has the name and the command line that it got last, whether it is told by the kernel's
name, by the command line alone, or just before the process ends. A program with several names has
the one by which it was called."""

import os
import shutil
import signal

import gate
import waiting
from gate import equal

RENAMES = os.path.join(gate.OUTPUT, "fixtures/native/renames")
BUSYBOX = "/bin/busybox"


def begin(name, call, *target):
    braid = gate.start(gate.BRAID, "record", "-e", "syscall:" + call, "-c", 1, "-o",
                       gate.path(name + ".db"), "--max-overhead", "none", "--force", *target,
                       stderr=gate.subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(gate.path(name + ".db")) or braid.poll() is not None,
                    "the first commit")
    gate.wait_until(lambda: braid.poll() is not None or waiting.is_in_loop(braid.pid), "the loop")
    return braid


def finish(name, braid):
    braid.send_signal(signal.SIGINT)
    equal(braid.wait(), 0, f"{name}: status")
    recording = gate.running.Recording(gate.path(name + ".db"))
    return {pid: (name, command) for pid, name, command in
            recording.sql("SELECT pid, name, command FROM process ORDER BY id")}


def has_process(name, pid):
    """A commit has the process's first row, and its sample."""
    def look():
        try:
            recording = gate.running.Recording(gate.path(name + ".db"))
            return recording.sql("SELECT sample.id FROM sample JOIN thread ON thread.id = thread "
                                 "JOIN process ON process.id = process WHERE pid = ?", pid)
        except gate.sqlite3.OperationalError:
            return None
    gate.wait_until(look, "the first commit")


def check_renamed():
    target = gate.start(RENAMES, "a" * 40)
    gate.wait_line(target, "ready")
    braid = begin("renamed", "getppid", "-p", target.pid)
    titled = int(gate.ask(target, "fork"))
    has_process("renamed", titled)
    gate.ask(target, "title poller: reads /etc/poller.conf")
    named = int(gate.ask(target, "fork"))
    gate.ask(target, "name worker-1")
    has_process("renamed", named)
    gate.ask(target, "name #worker-2")
    gate.ask(target, "title worker-2")
    ended = int(gate.ask(target, "fork"))
    gate.ask(target, "name short-lived")
    gate.ask(target, "end")
    names = finish("renamed", braid)
    equal(names.get(titled), ("renames", "poller: reads /etc/poller.conf"), "a title alone")
    equal(names.get(named), ("#worker-2", "worker-2"), "the last of several names")
    equal(names.get(ended, [None])[0], "short-lived", "the name of a process that has ended")
    equal(names.get(target.pid), ("renames", f"{RENAMES} {'a' * 40}"), "the parent keeps its own")
    told = gate.braid("report", "--by", "process", gate.path("renamed.db")).out
    for name in f"#worker-2 ({named})", f"short-lived ({ended})", f"poller: reads /etc/poller.conf ({titled})":
        equal(name in told, True, f"report --by process: {name}")


def check_called():
    if not os.path.exists(BUSYBOX):
        gate.skip("several names", "there is no busybox")
        return
    file, link = gate.path("redis-check-rdb"), gate.path("ash")
    shutil.copy(BUSYBOX, file)
    os.symlink(file, link)
    for number, (name, word, executable, want) in enumerate((
            ("by its first argument", "/usr/bin/sh", file, "sh"),
            ("a login shell", "-ash", file, "ash"),
            ("by a link", link, link, "ash"))):
        target = gate.start(word, executable=executable)
        braid = begin(f"called-{number}", "write", "-p", target.pid)
        equal(gate.ask(target, "echo here"), "here", f"{name}: it runs")
        equal(finish(f"called-{number}", braid), {target.pid: (want, word)}, name)
        target.stdin.close()
        target.wait()


gate.need_root()
check_renamed()
check_called()
gate.done()
