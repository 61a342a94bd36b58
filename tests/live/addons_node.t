#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""V8 takes no other code for its own: code that an addon has made, with and without frame pointers,
has the addon as its caller, or the stack is cut there. WebAssembly's code is V8's. In a file that is
stripped V8's checksums tell where its code is."""

import os

import gate

NODE = "/usr/bin/node"
SCRIPT = "fixtures/node/addon.js"
ADDON = os.path.join(gate.OUTPUT, "fixtures/native/addon")
KEEPS, LEAVES, HIDES = range(3)
UNPROVEN = "stacks cut: no unwind rule and no proof of a frame pointer"
HITS = 2

gate.need_root()
gate.need_program(NODE)


def names(frames):
    """Those of the fixtures, and code in no file, from the outermost one on."""
    known = ["main", "outer", "inner", "run_addon", "call_made", "from_made", "called"]
    short = [frame.split(" (")[0].split("_[")[0] for frame in frames]
    return [name if name in known else "code" for frame, name in zip(frames, short)
            if name in known or name.startswith("[")]


def record(target, title, request):
    """The names of the only stack, the counters of cut stacks, whether samples are complete."""
    recorder = gate.recorder(HITS, target)
    gate.equal(gate.ask(target, f"{request} {HITS}"), "done", f"{title}: the fixture obeys")
    recording = gate.finish(recorder, HITS)
    stacks = {tuple(names(frames)) for frames, _ in recording.merged()}
    gate.equal(len(stacks), 1, f"{title}: one stack", *stacks)
    counters = {name for name, value in recording.counters().items()
                if value and name.startswith("stacks cut")}
    return (list(stacks.pop()), counters, {flags & 1 for flags, in recording.sql(
        "SELECT flags FROM sample")}), recording


def check(target, request, *want):
    title = request
    seen, _ = record(target, title, request)
    gate.equal(seen[0][-len(want[0]):] if want[2] == {1} else seen[0], want[0],
               f"{title}: the frames")
    gate.equal(seen[1:], want[1:], f"{title}: why it is cut, and whether it is complete")


node = gate.marked(NODE, SCRIPT, ADDON, trace=False)
MAIN = ["main", "outer"]
MADE = [*MAIN, "inner", "run_addon", "call_made", "code", "from_made"]
check(node, f"direct {KEEPS}", MADE, set(), {1})
check(node, f"direct {LEAVES}", MADE, set(), {1})
check(node, f"direct {HIDES}", ["code", "from_made"], {UNPROVEN}, {0})
check(node, f"back {KEEPS}", [*MADE, "called"], set(), {1})
check(node, f"back {LEAVES}", [*MADE, "called"], set(), {1})
check(node, f"back {HIDES}", ["code", "from_made", "called"], {UNPROVEN}, {0})
check(node, "wasm 0", [*MAIN, "code", "code", "code", "called"], set(), {1})

STRIPPED = gate.path("node")
gate.run("strip", "-o", STRIPPED, NODE)
node = gate.marked(STRIPPED, SCRIPT, ADDON, trace=False)
seen, recording = record(node, "stripped", f"back {LEAVES}")
gate.equal([name for name in seen[0] if name != "code"][-6:],
           ["outer", "inner", "run_addon", "call_made", "from_made", "called"],
           "stripped: the frames")
gate.equal(seen[1:], (set(), {1}), "stripped: nothing is cut, all is complete")
INFERRED = 3
gate.equal(recording.sql("SELECT count(*) FROM node WHERE evidence = ?", INFERRED), [(0,)],
           "stripped: no frame is inferred")
gate.done()
