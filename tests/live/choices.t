#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""-r and --source: what is not wanted is not loaded, and none of its frames are recorded; the native
ones are."""

import os
import re

import gate

PYTHON = "/usr/bin/python3.11"
SCRIPT = "fixtures/python/marked/marked.py"


WALKERS = {f"walk_{name}" for name in ("python", "ruby", "jvm", "perl", "php", "node", "go")}


def loaded(braid):
    """The names of the BPF programs that it has loaded by now."""
    env = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
    names = set()
    for number in gate.ids_of(braid.pid)["prog"]:
        shown = gate.run("bpftool", "prog", "show", "id", number, env=env).out
        names.update(re.findall(r" name (\S+)", shown))
    return names


def programs(command, *options, until=frozenset()):
    """What braid has loaded for a command that runs: as soon as `until` is among it."""
    file = gate.path("programs.db")
    braid = gate.start(gate.BRAID, "record", *options, "-o", file, "--", *command,
                       stderr=gate.subprocess.DEVNULL)
    gate.wait_line(braid, "ready")
    names = loaded(braid)
    while not until <= names:
        names = loaded(braid)
    braid.stdin.close()
    gate.equal(braid.wait(), 0, f"{' '.join(options) or 'default'}: status")
    return names


def check_programs():
    """Walkers are loaded with the first process that has their runtime; or, where that may come (a
    program of no runtime may execute or fork one), as soon as there is time."""
    always = {"on_sample", "unwind_stack", "on_fork", "on_exec", "on_end"}
    python = [PYTHON, "-B", SCRIPT]
    for command, options, wanted in (
            ([gate.MARKS], [], WALKERS), ([gate.MARKS], ["-r", "ruby"], {"walk_ruby"}),
            ([gate.MARKS], ["--source", "none"], set()), (python, [], {"walk_python"}),
            (python, ["-r", "native"], set()), (python, ["-r", "ruby"], set()),
            (python, ["--source", "none"], set()), (python, ["--source", "map"], set()),
            (python, ["-r", "python"], {"walk_python"}),
            (python, ["--source", "walk"], {"walk_python"})):
        name = " ".join([*options, os.path.basename(command[0])])
        names = programs(command, *options, until=wanted)
        gate.ok(always <= names, f"{name}: the sampler is loaded", names)
        gate.equal({program for program in names if program.startswith("walk_")}, wanted,
                   f"{name}: and these walkers", names)


def check_native_only():
    """The loops of the interpreter are shown as what they are."""
    target = gate.marked(PYTHON, "-B", SCRIPT)
    recorder = gate.recorder(3, target, options=("-r", "native"))
    gate.equal(recorder.said, ["ready"], "native only: no word of a runtime")
    gate.ask(target, "3")
    recording = gate.finish(recorder, 3)
    seen = gate.traces()
    gate.check_native("native only", recording.samples(), gate.Maps(target.pid), seen)
    (frames, count), = recording.merged()
    gate.equal((len(frames), count), (len(seen[0][1]), 3), "native only: one stack, all of it")
    gate.equal([frame for frame in frames if not frame.endswith("_[n]")], [],
               "native only: native frames only")
    gate.equal([frame.partition("_[n]")[0] for frame in frames].count("_PyEval_EvalFrameDefault"), 3,
               "native only: three loops of the interpreter", *frames)
    gate.equal(recording.sql("SELECT * FROM source"), [], "native only: no source")


gate.need_root()
check_programs()
if os.path.exists(PYTHON):
    check_native_only()
else:
    gate.skip("native only", f"there is no {PYTHON}")
gate.done()
