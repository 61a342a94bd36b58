#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""A full disk: the recorder ends and says so in one line, and what was committed until then is there."""

import errno
import os
import re
import sys

import gate

DISK = "DISK_OF_TEST"
HITS = 9


def begin_again():
    """With mounts of its own, of which one is a small file system."""
    room = gate.path("disk")
    os.mkdir(room)
    shell = 'mount -t tmpfs -o size=1000k none "$0" && DISK_OF_TEST="$0" exec "$@"'
    result = gate.subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c",
                                  shell, room, sys.executable, "-B", __file__], check=False)
    sys.exit(result.returncode)


def fill(directory):
    """To the last byte."""
    file = os.open(os.path.join(directory, "filler"), os.O_WRONLY | os.O_CREAT, 0o600)
    size = 1 << 16
    while size:
        try:
            if os.write(file, bytes(size)) < size:
                size //= 2
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            size //= 2
    os.close(file)


def empty(directory):
    os.unlink(os.path.join(directory, "filler"))


def check_recorder(directory):
    """Its samples are committed once a second, all at once."""
    target = gate.marked(gate.MARKS)
    recorder = gate.recorder(1000, target, file=directory + "/hits.db",
                             stderr=gate.subprocess.PIPE)
    recording = gate.Recording(recorder.file)
    gate.ask(target, f"here {HITS}")
    gate.wait_until(lambda: recording.count() == HITS, "a commit")
    fill(directory)
    gate.ask(target, "here 100")
    gate.equal(recorder.wait(), 1, "hits: status")
    gate.equal(recorder.stderr.read().decode(),
               f"record_at: cannot write {recorder.file}: No space left on device\n",
               "hits: one line")
    gate.equal(recording.count(), HITS, "hits: what was committed is there, and no more")
    gate.check_merged("hits", recording.merged(), gate.HERE, HITS)
    gate.equal(recording.sql("PRAGMA integrity_check"), [("ok",)], "hits: the recording is whole")
    gate.equal(gate.ask(target, "here 1"), "done 0", "hits: the target goes on")
    empty(directory)


def check_braid(directory):
    file = directory + "/full.db"
    with open(gate.path("stderr"), "wb") as stderr:
        process = gate.start(gate.BRAID, "record", "-o", file, "--", gate.MARKS, stderr=stderr)
    gate.wait_line(process, "ready")
    fill(directory)
    gate.equal(process.wait(), 1, "braid: status")
    with open(gate.path("stderr"), encoding="utf-8") as stderr:
        lines = stderr.read().splitlines()
    errors = [line for line in lines if line.startswith("braid: ")]
    count = gate.Recording(file).count()
    gate.equal([re.split(" (in|=) ", line)[0] for line in lines if line.startswith(file)],
               [f"{file}: {count} samples"], "braid: the summary counts what is in the file")
    gate.equal(errors, [f"braid: cannot write {file}: No space left on device. The samples recorded "
                        f"until then are in {file}"], "braid: one line says what is wrong, and "
                                                     "where the recording is")
    gate.equal(gate.Recording(file).sql("PRAGMA integrity_check"), [("ok",)],
               "braid: the recording is whole")
    empty(directory)


def check_no_room(directory):
    """From the beginning."""
    fill(directory)
    file = directory + "/none.db"
    result = gate.braid("record", "-o", file, "--", gate.MARKS)
    gate.equal(result.status, 1, "no room at all: status", result)
    gate.matches(r"^braid: cannot (write|create) [^\n]*none\.db[^\n]*\n$", result.err,
                 "no room at all: one line")
    gate.equal(sorted(name for name in os.listdir(directory) if name.startswith(("none", "."))), [],
               "no room at all: no file")


def check_no_room_over(directory):
    """What was there before stays."""
    empty(directory)
    file = directory + "/over.db"
    pages = directory + "/over.html", directory + "/over.txt"
    for _ in range(2):
        gate.equal(gate.braid("record", "-o", file, "--", "true").status, 0, "over.db is made")
    for page in pages:
        with open(page, "w", encoding="utf-8") as out:
            out.write("precious\n")

    def state():
        found = {}
        for name in sorted(os.listdir(directory)):
            with open(os.path.join(directory, name), "rb") as content:
                found[name] = content.read()
        return found
    fill(directory)
    before = state()
    for words in (["record", "-o", file, "--", "true"], ["flame", "-o", pages[0], file],
                  ["report", "-o", pages[1], file]):
        result = gate.braid(*words)
        gate.equal(result.status, 1, f"no room for {words[0]}: status", result)
        gate.matches("No space left on device", result.err, f"no room for {words[0]}: says so")
        gate.equal(state(), before, f"no room for {words[0]}: what was there stays")


gate.need_root()
if DISK not in os.environ:
    begin_again()
found = os.environ[DISK]
check_recorder(found)
check_braid(found)
check_no_room(found)
check_no_room_over(found)
gate.done()
