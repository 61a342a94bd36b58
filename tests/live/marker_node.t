#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's Node.js, which writes a perf map: one exact stack of C++ and JavaScript, with files and the
lines of definitions; where V8's C++ calls JavaScript and JavaScript calls C++."""

import json
import os

import gate

NODE = "/usr/bin/node"
SCRIPT = "fixtures/node/marked.js"
HITS = 4

gate.need_root()
gate.need_program(NODE)
target = gate.marked(NODE, "--perf-basic-prof", "--interpreted-frames-native-stack",
                     "--no-logfile-per-isolate", "--logfile=" + gate.path("v8.log"), SCRIPT)
recorder = gate.recorder(HITS, target)
gate.matches(rf"^source {target.pid} node \S+ map$", recorder.said[0], "the runtime is told")
stacks = json.loads(gate.ask(target, str(HITS)))
recording = gate.finish(recorder, HITS)
os.unlink(f"/tmp/perf-{target.pid}.map")

# What V8 says: functions of the file, and of Node's own modules. The lines in a perf map are those
# of definitions.
gate.equal(stacks, [stacks[0]] * HITS, "V8 sees the same at each hit")
modules = [(name or "(anonymous)", file) for name, file, _ in stacks[0] if file]
definitions = {"(anonymous)": 1}
for name, text in (("main", "function main()"), ("outer", "function outer(n)"),
                   ("toJSON", "toJSON() {"), ("leaf", "function leaf()")):
    definitions[name] = gate.line(SCRIPT, text)
gate.equal([name for name, file in modules if file.endswith("marked.js")],
           ["(anonymous)", "main", "outer", "toJSON", "leaf"], "V8's own stack")


class OfNode(gate.Frame):
    """Of a module of Node's own, whose source is not at hand: any line."""

    def __eq__(self, other):
        return other.partition(":")[0] == self.partition(":")[0] and other.endswith(")_[j]")

    __hash__ = str.__hash__


def label(name, file):
    if file.startswith("node:"):
        return OfNode(f"{name} ({os.path.basename(file)}:?)_[j]", natives=1)
    return gate.Frame(f"{name} (marked.js:{definitions[name]})_[j]", natives=1)


# The frames of JavaScript are outside of files, each of its own; the others are V8's and Node's.
javascript = iter([label(*module) for module in modules])
seen, maps = gate.traces(), gate.Maps(target.pid)
places = [maps.place(address) for address in reversed(seen[0][1])]
binary = next(file for file, _ in places if file and "node" in os.path.basename(file))
names = gate.symbols(binary, [address for file, address in places if file == binary])
inside = [names[address] if file == binary else next(javascript)
          for file, address in places[len(gate.TO_MAIN):-2]]
of_javascript = [i for i, frame in enumerate(inside) if isinstance(frame, gate.Frame)]
outer, to_json = of_javascript[-3:-1]
gate.equal(inside[outer].partition(" ")[0], "outer", "JavaScript calls C++ ...")
gate.ok(any("JsonStringify" in name for name in inside[outer:to_json]), "... which calls JavaScript",
        *inside)
gate.check_native("node", recording.samples(), maps, seen)
gate.check_merged("node", recording.merged(), [*gate.TO_MAIN, *inside, *gate.hit()], HITS,
                  natives=len(places))
gate.equal(list(javascript), [], "every function that V8 sees is there")
gate.equal(recording.sql("SELECT runtime, source FROM source"), [("node", "map")],
           "the source is recorded")
gate.check_clean("node", recording)
gate.done()
