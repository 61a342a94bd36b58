#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Two copies of CPython in one process: both are walked."""

import os
import shutil

import gate

LIBRARY = "/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0"
CALLS = 20

gate.need_root()
gate.need_program(LIBRARY)
second = gate.path("libpython-second.so")
shutil.copy(LIBRARY, second)
target = gate.marked(os.path.join(gate.OUTPUT, "fixtures/native/two_pythons"), LIBRARY, second,
                     trace=False)
recorder = gate.recorder(2 * CALLS, target)
gate.equal(gate.ask(target, str(CALLS)), "done", "both have run")
recording = gate.finish(recorder, 2 * CALLS)
found = {name: sum(count for frames, count in recording.merged()
                   if any(frame.startswith(f"{name} (") for frame in frames))
         for name in ("alpha", "beta")}
gate.equal(found, {"alpha": CALLS, "beta": CALLS}, "the frames of both")
sources = recording.sql("SELECT runtime, source, reason FROM source")
gate.equal([source[:2] for source in sources], [("python", "walk")] * 2, "both are recorded")
gate.ok(any("a further copy in this process" in (source[2] or "") for source in sources),
        "and which one is the further one", sources)
gate.done()
