#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""There is no room for the unwind tables of all that a process maps: what is without is counted and
named, and its stacks are completed from copies."""

import os

import gate

HITS = 3
UNPLACED = "files of code without unwind table: no space left for it"

gate.need_root()
target = gate.marked(gate.MARKS)
recorder = gate.recorder(HITS, target, options=("-t", 16))
gate.ask(target, f"here {HITS}")
told = gate.wait_line(recorder, "tableless")[-1].split()
gate.equal(told[2], os.path.realpath(gate.MARKS), "the first of them is named")
recording = gate.finish(recorder, HITS)
files = {file for _, _, _, file in gate.Maps(target.pid).mappings if file}
gate.ok(1 < int(told[1]) <= len(files) + 1, "no more than files of the process", told, files)
gate.equal(recording.counters(), {UNPLACED: int(told[1])}, "they are counted, and nothing else")
gate.equal(recording.meta("copies_used"), str(HITS), "the stacks come from copies")
gate.check_merged("tables full", recording.merged(), gate.HERE, HITS)
gate.done()
