#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian 12's Python: one exact stack of C and Python frames, qualified names and lines, where C calls
Python and Python calls C."""

import json

import gate

PYTHON = "/usr/bin/python3.11"
SCRIPT = "fixtures/python/marked/marked.py"
HITS = 6

gate.need_root()
gate.need_program(PYTHON)
target = gate.marked(PYTHON, "-B", SCRIPT)
recorder = gate.recorder(HITS, target)
gate.equal(recorder.said[0].rpartition(".")[0], f"source {target.pid} python 3.11",
           "the runtime is told")
gate.equal(recorder.said[0].rpartition(" ")[2], "walk", "and where frames come from")
stacks = json.loads(gate.ask(target, str(HITS)))
recording = gate.finish(recorder, HITS)

# What the interpreter says, with the names in full that it has in __qualname__. A loop of the
# interpreter, _PyEval_EvalFrameDefault, is shown as the frames that it runs.
qualified = {"key": "Item.key", "values": "Item.values"}
frames = [gate.Frame(f"{qualified.get(name, name)} (marked.py:{line})_[py]")
          for name, line in stacks[0]]
names = [frame.partition(" (")[0] for frame in frames]
gate.equal(stacks, [stacks[0]] * HITS, "the interpreter sees the same at each hit")
gate.equal(names, ["<module>", "main", "outer", "Item.key", "Item.values", "leaf"],
           "the interpreter's own stack")


def loop(first, *inner):
    return [gate.Frame(first, natives=1), *inner]


seen = gate.traces()
gate.check_native("python", recording.samples(), gate.Maps(target.pid), seen)
gate.check_merged("python", recording.merged(), [
    *gate.TO_MAIN, "Py_BytesMain_[n]", "Py_RunMain_[n]", "_PyRun_AnyFileObject_[n]",
    "_PyRun_SimpleFileObject_[n]",
    None, None, None,  # pyrun_file, run_mod, run_eval_code_obj
    "PyEval_EvalCode_[n]", *loop(*frames[:3]),
    "PyObject_Vectorcall_[n]",
    None, "builtins.sorted_[n]",  # cfunction_vectorcall of sorted, builtin_sorted
    None, "list.sort_[n]", None,  # ... of list.sort, list_sort, list_sort_impl
    "PyObject_CallOneArg_[n]", "_PyFunction_Vectorcall_[n]", *loop(frames[3]),
    "PyObject_Vectorcall_[n]",
    None, "builtins.sum_[n]", "generator.__next___[n]",  # cfunction_vectorcall, builtin_sum, ...
    *loop(*frames[4:]),
    "PyObject_Vectorcall_[n]", None, "posix.getppid_[n]",  # cfunction_vectorcall_NOARGS, ...
    *gate.hit()], HITS, natives=len(seen[0][1]))
gate.equal(recording.sql("SELECT runtime, source FROM source"), [("python", "walk")],
           "the source is recorded")
gate.check_clean("python", recording)
gate.done()
