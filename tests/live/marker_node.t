#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Node.js, started with no flag: one exact stack of C++ and JavaScript, with files and lines; where
V8's C++ calls JavaScript and JavaScript calls C++. Then the same of one that writes a perf map as
well: nothing is there twice."""

import glob
import json
import os
import subprocess

import gate

NODE = "/usr/bin/node"
SCRIPT = "fixtures/node/marked.js"
HITS = 4

gate.need_root()
gate.need_program(NODE)
MAP = ["--perf-basic-prof", "--interpreted-frames-native-stack", "--no-logfile-per-isolate",
       "--logfile=" + gate.path("v8.log")]


def check(title, options):
    target = gate.marked(NODE, *options, SCRIPT)
    recorder = gate.recorder(HITS, target)
    gate.matches(rf"^source {target.pid} node \S+ walk$", recorder.said[0],
                 f"{title}: the runtime is told")
    stacks = json.loads(gate.ask(target, str(HITS)))
    recording = gate.finish(recorder, HITS)

    # What V8 says: functions of the file, and of Node's own modules.
    gate.equal(stacks, [stacks[0]] * HITS, f"{title}: V8 sees the same at each hit")
    modules = [(name or "(anonymous)", file, line) for name, file, line in stacks[0] if file]
    gate.equal([name for name, file, _ in modules if file.endswith("marked.js")],
               ["(anonymous)", "main", "outer", "toJSON", "leaf"], f"{title}: V8's own stack")

    # The frames of JavaScript are those of V8's interpreter or outside of files; the others are
    # V8's and Node's.
    javascript = iter([gate.Frame(f"{name} ({os.path.basename(file)}:{line})_[j]", natives=1)
                       for name, file, line in modules])
    seen = [trace for trace in gate.traces() if trace[0] == target.pid]
    maps = gate.Maps(target.pid)
    places = [maps.place(address) for address in reversed(seen[0][1])]
    binary = next(file for file, _ in places if file and "node" in os.path.basename(file))
    names = gate.symbols(binary, [address for file, address in places if file == binary])
    inside = []
    for file, address in places[len(gate.TO_MAIN):-2]:
        native = names[address] if file == binary else ""
        of_script = not native or native == "Builtins_InterpreterEntryTrampoline"
        inside.append(next(javascript) if of_script else native)
    of_javascript = [i for i, frame in enumerate(inside) if isinstance(frame, gate.Frame)]
    outer, to_json = of_javascript[-3:-1]
    gate.equal(inside[outer].partition(" ")[0], "outer", f"{title}: JavaScript calls C++ ...")
    gate.ok(any("JsonStringify" in name for name in inside[outer:to_json]),
            f"{title}: ... which calls JavaScript", *inside)
    gate.check_native(title, recording.samples(), maps, seen)
    gate.check_merged(title, recording.merged(), [*gate.TO_MAIN, *inside, *gate.hit()], HITS,
                      natives=len(places))
    gate.equal(list(javascript), [], f"{title}: every function that V8 sees is there")
    gate.equal(recording.sql("SELECT runtime, source FROM source"), [("node", "walk")],
               f"{title}: the source is recorded")
    gate.check_clean(title, recording)
    for file in glob.glob(f"/tmp/perf-{target.pid}.map"):
        os.unlink(file)


def check_without_map():
    """Names were to come from a map, which V8 does not write: that is said."""
    target = gate.marked(NODE, SCRIPT)
    file = gate.path("map.db")
    result = gate.braid("record", "--source", "map", "-d", "0.1", "-o", file, "-p", target.pid)
    gate.matches(rf"(?m)^pid {target.pid}: node \S+: none: V8 writes no map of its code", result.err,
                 "no map: it is told")
    gate.equal(gate.Recording(file).sql("SELECT runtime, source FROM source"), [("node", "none")],
               "no map: and recorded")


def javascript_of(node):
    """The frames of JavaScript at the marker, and how many stacks or frames are not proven."""
    target = gate.marked(node, SCRIPT)
    recorder = gate.recorder(HITS, target)
    gate.ask(target, str(HITS))
    recording = gate.finish(recorder, HITS)
    incomplete = recording.sql("SELECT count(*) FROM sample WHERE NOT flags & 1")
    inferred = recording.sql("SELECT count(*) FROM node WHERE evidence = 3")
    return ([[frame for frame in frames if frame.endswith("_[j]")] for frames, _ in recording.merged()],
            incomplete[0][0], inferred[0][0])


def check_stripped():
    """Without symbols V8's builtin functions are found all the same."""
    bare = gate.path("node")
    subprocess.run(["strip", "-o", bare, NODE], check=True)
    gate.equal(javascript_of(bare), javascript_of(NODE), "stripped: the same frames, as proven")


check("no flag", [])
check_stripped()
check_without_map()
check("with a map as well", MAP)
gate.done()
