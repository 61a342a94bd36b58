#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples of interpreters that run already when braid begins to look for them: each sample that has
the interpreter's loop and no frame of Python's is counted, and none of these counts as complete."""

import os

import gate

PROGRAM = "import time\nprint('ready', flush=True)\nwhile True:\n    sum(i * i for i in range(9999))\n"
EARLY = """WITH RECURSIVE up(sample, node) AS (
    SELECT id, native FROM sample WHERE NOT coalesce(runtime, 0)
    UNION ALL SELECT up.sample, parent FROM up JOIN node ON node.id = up.node)
  SELECT count(DISTINCT up.sample), count(DISTINCT CASE WHEN flags & 1 THEN up.sample END)
    FROM up JOIN node ON node.id = up.node JOIN frame ON frame.id = node.frame
    JOIN sample ON sample.id = up.sample WHERE frame.loop"""

gate.need_root()
gate.need_program("/usr/bin/python3.11")
name = f"early{os.getpid()}"
program = gate.path(name)
os.symlink("/usr/bin/python3.11", program)
for _ in range(3):
    gate.wait_line(gate.start(program, "-c", PROGRAM), "ready")
file = gate.path("early.db")
result = gate.braid("record", "--name", name, "-F", "999", "-d", "1", "-o", file)
gate.equal(result.status, 0, f"recorded: {result.err}")
recording = gate.Recording(file)
early, complete = recording.sql(EARLY)[0]
gate.ok(recording.count() > early, f"{early} of {recording.count()} samples have no frame of Python")
counters = recording.counters()
counted = counters.get("runtime stacks missing: taken before the interpreter was known", 0)
unread = counters.get("stacks cut: mappings of the process not read yet", 0)
gate.ok(early <= counted <= early + unread,
        f"all are counted: {counted}, with some of {unread} that end before the loop")
gate.equal(complete, 0, "none counts as complete")

# A machine that is out of CPU is the moment when all processes are recorded.
recorder = gate.start(gate.BRAID, "record", "--name", name, "-o", gate.path("nice.db"))
gate.wait_until(lambda: os.getpriority(os.PRIO_PROCESS, recorder.pid) <
                os.getpriority(os.PRIO_PROCESS, 0), "the priority")
gate.ok(True, "braid itself comes before others")
gate.done()
