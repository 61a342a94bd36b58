#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""-r and --source: what is not wanted is not loaded, and none of its frames are recorded; the native
ones are."""

import os
import re

import gate

PYTHON = "/usr/bin/python3.11"
SCRIPT = "fixtures/python/marked/marked.py"


def programs(*options):
    """The names of the BPF programs that braid has loaded."""
    file = gate.path("programs.db")
    braid = gate.start(gate.BRAID, "record", *options, "-o", file, "--", gate.MARKS,
                       stderr=gate.subprocess.DEVNULL)
    gate.wait_line(braid, "ready")
    env = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin")
    names = set()
    for number in gate.ids_of(braid.pid)["prog"]:
        shown = gate.run("bpftool", "prog", "show", "id", number, env=env).out
        names.update(re.findall(r" name (\S+)", shown))
    gate.say(braid, "end")
    gate.equal(braid.wait(), 0, f"{' '.join(options) or 'default'}: status")
    return names


def check_programs():
    always = {"on_sample", "on_fork", "on_exec", "on_end"}
    walkers = {"walk_python", "walk_ruby", "walk_jvm"}
    for options, wanted in (["-r", "native"], set()), (["--source", "none"], set()), (
            ["-r", "python"], {"walk_python"}), (["--source", "walk"], walkers):
        names = programs(*options)
        gate.ok(always <= names, f"{' '.join(options)}: the sampler is loaded", names)
        gate.equal(names & walkers, wanted, f"{' '.join(options)}: and these walkers", names)


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
