#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Two copies of CRuby in one process: one is walked, and the other is named. Its threads have native frames only."""

import os
import shutil

import gate

LIBRARY = "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1"
CALLS = 20

gate.need_root()
gate.need_program(LIBRARY)
second = gate.path("libruby-second.so")
shutil.copy(LIBRARY, second)
target = gate.marked(os.path.join(gate.OUTPUT, "fixtures/native/two_rubies"), LIBRARY, second,
                     trace=False)
recorder = gate.recorder(2 * CALLS, target)
gate.equal(gate.ask(target, str(CALLS)), "done", "both have run")
recording = gate.finish(recorder, 2 * CALLS)
stacks = [[frame for frame in frames if frame.endswith("_[rb]")] for frames, _ in recording.merged()
          for frames in [list(map(str, frames))]]
counts = [count for _, count in recording.merged()]
found = {name: sum(count for frames, count in zip(stacks, counts) if any(f"Object#{name} (" in frame for frame in frames))
         for name in ("alpha", "beta")}
gate.equal(sorted(found.values()), [0, CALLS], "the frames of one of them", found)
gate.equal(sum(count for frames, count in zip(stacks, counts) if not frames), CALLS,
           "the other's stacks have no frame of Ruby")
sources = recording.sql("SELECT runtime, source, reason FROM source")
gate.equal(sorted(source[:2] for source in sources), [("ruby", "none"), ("ruby", "walk")], "both are recorded")
gate.ok(any(source[1] == "none" and "a further copy in this process" in (source[2] or "") and "is not walked" in source[2]
            for source in sources), "and the further one is said to be not walked", sources)
gate.done()
