#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Targets whose files lie on a file system that may stop answering. While it answers, their stacks
are as any; when it does not, braid waits for it no longer than it must, the stacks of other targets
are whole, and a signal ends the recording as ever. What waits is a process of its own, which nothing
but the file system can end, and which holds nothing of braid's."""

import os
import signal

import gate

DEADFS = os.path.join(gate.OUTPUT, "tests/tools/deadfs")


def mounted(name):
    """A file system of one program, and that program, run from it."""
    directory = gate.path(name)
    os.mkdir(directory)
    server = gate.start(DEADFS, directory, "marks", gate.MARKS)
    gate.wait_line(server, "ready")
    return server, gate.marked(os.path.join(directory, "marks"))


def end(server, target):
    target.kill()
    target.wait()
    server.stdin.close()
    gate.equal(server.wait(), 0, "unmounted")



gate.need_root()
if not os.path.exists("/dev/fuse"):
    gate.skip_all("there is no /dev/fuse")

server, target = mounted("answers")
recorder = gate.recorder(3, target)
gate.ask(target, "here 3")
recording = gate.finish(recorder, 3)
gate.check_merged("it answers", recording.merged(), gate.HERE, 3)
gate.check_clean("it answers", recording)
end(server, target)

for word in "hang", "read":
    server, dead = mounted(word)
    alive = gate.marked(gate.MARKS)
    gate.equal(gate.ask(server, word), word, f"{word}: it answers no more")
    recorder = gate.recorder(1000, dead, alive)
    ids = gate.ids_of(recorder.pid)
    gate.ask(alive, "here 5")
    gate.wait_line(recorder, "recorded 5")
    recorder.send_signal(signal.SIGTERM)
    recording = gate.finish(recorder, 5)
    gate.check_gone(word, ids)
    gate.check_merged(word, recording.merged("--pid", alive.pid), gate.HERE, 5)
    gate.equal((recording.counters(), recording.meta("copies_used")), ({}, "0"),
               f"{word}: nothing is lost or repaired")
    alive.kill()
    end(server, dead)


def has_copy(pid):
    """Of the file that may hang: braid reads it from a copy in memory."""
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            if os.readlink(f"/proc/{pid}/fd/{fd}").startswith("/memfd:braid-copy"):
                return True
        except OSError:
            pass
    return False


server, target = mounted("late")
gate.equal(gate.ask(server, "hang"), "hang", "late: it answers no more")
recorder = gate.recorder(5, target)
gate.ok(not has_copy(recorder.pid), "late: the program was not read")
gate.say(server, "answer")
gate.wait_line(server, "answer")
gate.wait_until(lambda: has_copy(recorder.pid), "the program to be tried again")
gate.ask(target, "here 5")
recording = gate.finish(recorder, 5)
gate.check_merged("late", recording.merged(), gate.HERE, 5)
gate.check_clean("late", recording)
end(server, target)

gate.done()
