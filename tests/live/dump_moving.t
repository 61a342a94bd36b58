#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""braid dump of a thread that waits and works in turn, faster than it can be looked at: whatever a
dump says of it is true of one instant."""

import os

import dumps
import gate

DUMPS = 100

gate.need_root()
target = gate.start(os.path.join(gate.OUTPUT, "fixtures/native/alternates"))
gate.wait_line(target, "ready")
wrong, states = [], set()
for _ in range(DUMPS):
    dump = dumps.dump("-p", str(target.pid))
    thread = dump.threads[target.pid]
    functions = thread.functions("native", "inlined")
    states.add(thread.state)
    if thread.state == "sleeping":
        right = "waits" in functions and thread.call() == "clock_nanosleep"
    else:
        right = "works" not in functions or thread.call() is None
    if not right or not thread.complete or ("works" in functions and "waits" in functions):
        wrong.append(thread.said)
gate.equal(wrong, [], f"{DUMPS} dumps")
gate.ok("running" in states, "it was seen at work", states)
gate.done()
