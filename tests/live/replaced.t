#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Libraries that take each other's addresses, faster than braid reads what is mapped: each sample is
unwound and named by the library that was there when it was taken."""

import os

import gate

TURNS = 40
LIBRARIES = [os.path.join(gate.OUTPUT, "fixtures/native/replaced_" + name)
             for name in ("small", "large")]

gate.need_root()
target = gate.marked(os.path.join(gate.OUTPUT, "fixtures/native/replaced"), *LIBRARIES,
                     trace=False)
recorder = gate.recorder(2 * TURNS, target)
same = int(gate.ask(target, str(TURNS)).split()[1])
recording = gate.finish(recorder, 2 * TURNS)
gate.ok(same > TURNS, f"{same} times a library was where another one had been")

wrong, cut, whole = [], 0, 0
for frames, count in recording.merged("--frames", "all"):
    names = [frame.split(" (")[0].split("_[")[0] for frame in frames]
    sizes = {size for size in ("small", "large")
             if any(name in (f"use_{size}", f"{size}_inner") for name in names)}
    if len(sizes) > 1:
        wrong.append((names, count))
    elif "main" not in names:
        cut += count
    elif names[-5:] == [*names[-5:-4], "work", f"{next(iter(sizes), '')}_inner", "getppid",
                        "braid_marker"] and names[-5] == "use":
        whole += count
    else:
        wrong.append((names, count))
gate.equal(wrong, [], "no stack has a library that was not there")
counted = sum(value for name, value in recording.counters().items() if "mapping" in name)
gate.equal(recording.sql("SELECT count(*) FROM sample WHERE NOT flags & 1")[0][0], cut,
           "what is cut is incomplete")
gate.ok(cut <= counted, f"and counted: {cut} of {counted}")
gate.ok(whole >= 2, f"{whole} stacks are whole")
gate.done()
