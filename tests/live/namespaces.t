#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Targets in namespaces of their own: another PID there than here, and files that nobody else sees,
not even by another name."""

import os
import shutil

import gate

# Its program and library lie in a file system that only it has mounted.
INSIDE = """
mount -t tmpfs none "$1" && cp "$2" "$1/marks" && cp "$3" "$1/marker.so" &&
MARKER_TRACE="$4" LD_PRELOAD="$1/marker.so" exec "$1/marks"
"""


def pid_of(target):
    """Of the one process that the namespace began with, as we see it."""
    with open(f"/proc/{target.pid}/task/{target.pid}/children", encoding="ascii") as file:
        child, = file.read().split()
    return int(child)


gate.need_root()
room = gate.path("room")
os.mkdir(room)
target = gate.start("unshare", "--mount", "--propagation", "private", "--pid", "--fork",
                    "--mount-proc", "--kill-child", "sh", "-c", INSIDE, "sh", room, gate.MARKS,
                    gate.MARKER, gate.path("trace"))
gate.equal(gate.line_of(target), "ready 1", "the target's own PID is 1")
pid = pid_of(target)
gate.ok(not os.path.exists(room + "/marks"), "its program is not to be seen from here")
recorder = gate.recorder(4, pid, symbol="marker.so:braid_marker")
gate.ask(target, "here 3")
child = int(gate.ask(target, "fork 1").split()[1])
recording = gate.finish(recorder, 4)
samples = recording.samples()
gate.equal([sample.pid for sample in samples[:3]], [pid] * 3, "PIDs are those that we see")
gate.ok(samples[3].pid not in (pid, child), "the child's, too", samples[3].pid, child)
inner = [(1, trace) for _, trace in gate.traces()]
gate.equal([tid for tid, _ in gate.traces()], [1, 1, 1, child], "the target sees others")
gate.check_native("namespaces", [sample._replace(tid=1) for sample in samples], gate.Maps(pid),
                  inner)
gate.check_merged("namespaces", recording.merged("--pid", pid), gate.HERE, 3)
gate.check_merged("namespaces, child", recording.merged("--pid", samples[3].pid), [
    *gate.TO_OBEY, gate.marks("obey", "from_child(k);"),
    gate.marks("from_child", "/* from_child */"), *gate.hit()], 1)
gate.check_clean("namespaces", recording)
shutil.rmtree(room)
gate.done()
