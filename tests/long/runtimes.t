#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""-r and --source: what is not wanted is not loaded."""

import os
import re
import signal
import subprocess

import lib

PYTHON = "/usr/bin/python3.11"
SCRIPT = lib.script("nest_sorted.py")


def program_names(ids):
    names = set()
    for number in ids["prog"]:
        text = subprocess.run([lib.bpftool(), "prog", "show", "id", str(number)],
                              capture_output=True).stdout.decode()
        names.update(re.findall(r" name (\S+)", text))
    return names


def record(*options):
    """(names of the BPF programs, recording)"""
    target = lib.start_ready(PYTHON, "-B", SCRIPT)
    file = lib.path("".join(options) + ".db")
    process = lib.start_braid("record", "-p", target.pid, "-F", 999, "-o", file, *options)
    names = program_names(lib.wait_attached(process))
    used = lib.cpu_ticks(target.pid)
    lib.wait_for(lambda: lib.cpu_ticks(target.pid) >= used + 50, "CPU time of the target")
    process.send_signal(signal.SIGINT)
    error = process.communicate(timeout=lib.PATIENCE_S)[1].decode()
    lib.stop(target)
    lib.equal(process.returncode, 0, f"{' '.join(options)}: status", error)
    return names, lib.Recording(file, lib.Result(process.returncode, "", error))


def check_native_only(*options):
    name = " ".join(options)
    names, recording = record(*options)
    lib.ok("on_sample" in names, f"{name}: the sampler is loaded", names)
    lib.ok("walk_python" not in names, f"{name}: the walker is not", names)
    lib.equal(recording.one("SELECT count(*) FROM sample WHERE runtime IS NOT NULL"), 0,
              f"{name}: no runtime frame")
    lib.equal(recording.sql("SELECT * FROM source WHERE runtime = 'python'"), [],
              f"{name}: no word of python")
    lib.check_share(recording.folded(), "_PyEval_EvalFrameDefault", 0.9, name)
    lib.check_complete(recording, 99, name)


def check_python(*options):
    name = " ".join(options) or "default"
    names, recording = record(*options)
    lib.ok({"on_sample", "walk_python"} <= names, f"{name}: sampler and walker are loaded", names)
    lib.check_share(recording.folded(), r"inner_key \(nest_sorted.py\)", 0.9, name)
    lib.matches(r"python 3\.11\.\d+: walk", recording.result.err, f"{name}: source is told")
    source = recording.sql("SELECT runtime, version, source, pid FROM source "
                           "JOIN process ON process = process.id")
    lib.ok(len(source) == 1 and source[0][0] == "python" and source[0][2] == "walk",
           f"{name}: source is recorded", source)


lib.need_bpf()
if os.path.exists(PYTHON):
    check_native_only("-r", "native")
    check_native_only("--source", "none")
    check_python("-r", "python")
    check_python("--source", "walk")
    check_python()
else:
    lib.skip("-r", "no " + PYTHON)
lib.done()
