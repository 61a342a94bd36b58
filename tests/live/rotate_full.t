#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""record --rotate on a full disk: the oldest recording goes, braid says so and goes on, and nothing that
came meanwhile is lost; with nothing to remove it ends and says so. And where it may not write."""

import os
import re
import signal
import sys

import gate

DISK = "DISK_OF_TEST"
EVENT = f"uprobe:{gate.MARKER}:braid_marker"
NAME = r"\d{8}T\d{6}Z-\d{6}"


def begin_again():
    """With mounts of its own, of which one is a small file system."""
    room = gate.path("disk")
    os.mkdir(room)
    shell = 'mount -t tmpfs -o size=1200k,mode=700 none "$0" && DISK_OF_TEST="$0" exec "$@"'
    result = gate.subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c",
                                  shell, room, sys.executable, "-B", __file__], check=False)
    sys.exit(result.returncode)


def fill(disk):
    """To the last byte, whatever was there before."""
    with open(os.path.join(disk, "filler"), "ab", 0) as file:
        size = 1 << 16
        while size:
            try:
                if file.write(bytes(size)) < size:
                    size //= 2
            except OSError:
                size //= 2


def files(directory, suffix=".db"):
    return sorted(name for name in (os.listdir(directory) if os.path.isdir(directory) else [])
                  if re.fullmatch(NAME + re.escape(suffix), name))


def count(directory, names):
    """Samples in recordings; 0 in one that is finished or removed just now."""
    total = 0
    for name in names:
        try:
            total += gate.Recording(os.path.join(directory, name)).count()
        except gate.sqlite3.OperationalError:
            pass
    return total


def start(directory, target):
    braid = gate.start(gate.BRAID, "record", "-e", EVENT, "--max-overhead", "none", "--rotate", "1",
                       "--keep", "100", "-o", directory, "-p", target.pid,
                       stderr=gate.subprocess.PIPE)
    gate.wait_until(lambda: files(directory, ".part") or braid.poll() is not None, "the first commit")
    return braid


def check_goes_on(disk):
    directory = os.path.join(disk, "d")
    target = gate.marked(gate.MARKS)
    braid = start(directory, target)
    gate.equal(gate.ask(target, "here 3"), "done 0", "full: before")
    # To begin the next recording and to finish the last one, two or three of them have to go.
    gate.wait_until(lambda: count(directory, files(directory)) == 3 and len(files(directory)) > 4,
                    "five recordings")
    before = set(files(directory))
    hits = 0

    def new_ones():
        return [name for name in files(directory) + files(directory, ".part") if name not in before]

    def removed():
        return not before <= set(files(directory)) or braid.poll() is not None

    # One at a time, until something had to go for it. The disk is filled while braid stands: what it
    # frees is its own.
    while not removed():
        braid.send_signal(signal.SIGSTOP)
        gate.wait_until(lambda: gate.state_of(braid.pid) in "TZ", "braid stands")
        if not removed():
            fill(disk)
        braid.send_signal(signal.SIGCONT)
        gate.equal(gate.ask(target, f"deep {100 + hits} 1"), "done 0", "full: one more")
        hits += 1
        gate.wait_until(lambda: removed() or count(directory, new_ones()) >= hits, "its commit")
    os.unlink(os.path.join(disk, "filler"))
    now = [name for name in files(directory) if name not in before]
    gate.wait_until(lambda: braid.poll() is not None or
                    [name for name in files(directory) if name not in (*before, *now)], "the next one")
    braid.send_signal(signal.SIGINT)
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, "full: it goes on", said)
    gone = sorted(before - set(files(directory)))
    gate.ok(gone and gone == sorted(before)[:len(gone)], "full: the oldest ones are gone", gone)
    gate.equal(re.findall(f"(?m)^no disk space is left for {directory}: its oldest recording, ({NAME}\\.db),"
                          " was removed$", said)[:len(gone)], gone, "full: it says so")
    gate.equal(count(directory, [name for name in files(directory) if name not in before]), hits,
               "full: nothing that came meanwhile is lost")
    for name in files(directory):
        gate.equal(gate.Recording(os.path.join(directory, name)).sql("PRAGMA integrity_check"),
                   [("ok",)], f"full: {name} is whole")


def check_ends(disk):
    """Nothing is there that could be removed."""
    directory = os.path.join(disk, "none")
    target = gate.marked(gate.MARKS)
    fill(disk)
    braid = start(directory, target)
    gate.equal(braid.wait(), 1, "no room at all: status")
    gate.matches(r"^braid: [^\n]*No space left on device[^\n]*\n$", braid.stderr.read().decode(),
                 "no room at all: one line")
    os.unlink(os.path.join(disk, "filler"))


def check_read_only(disk):
    directory = os.path.join(disk, "fixed")
    os.mkdir(directory, 0o700)
    gate.equal(gate.run("mount", "--bind", directory, directory).status, 0, "read-only: a mount")
    gate.equal(gate.run("mount", "-o", "remount,bind,ro", directory).status, 0, "read-only: is it")
    result = gate.braid("record", "--rotate", "1", "--keep", "1", "-o", directory, "--", "true")
    gate.equal((result.status, result.err),
               (1, f"braid: cannot write into {directory}: Read-only file system\n"),
               "read-only: says so")


gate.need_root()
if DISK not in os.environ:
    begin_again()
found = os.environ[DISK]
check_goes_on(found)
check_ends(found)
check_read_only(found)
gate.done()
