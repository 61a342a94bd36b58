#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Two runtimes in one thread: Debian 12's Python calls Ruby by ctypes, and Ruby calls Python again.
One exact stack of each, with the frames of both where they were called, and the loops of each
interpreter shown as its own frames."""

import json

import gate

PYTHON = "/usr/bin/python3.11"
RUBY = "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1"
HITS = 5

gate.need_root()
gate.need_program(PYTHON)
gate.need_program(RUBY)
target = gate.marked(PYTHON, "-B", "fixtures/mixed/python_ruby.py", RUBY, "fixtures/mixed/called.rb")


def python(stack):
    """The frames that one loop of Python's runs: _PyEval_EvalFrameDefault."""
    return [gate.Frame(f"{name} (python_ruby.py:{line})_[py]", natives=not i)
            for i, (name, line) in enumerate(stack)]


def ruby(name, line):
    """A frame and its loop: rb_vm_exec, vm_exec_core."""
    return gate.Frame(f"{name} (called.rb:{line})_[rb]", natives=2)


def method(name):
    """A method in C: vm_sendish, the method and vm_call_cfunc_with_frame, which runs it."""
    return [None, gate.Frame(f"{name}_[rb]", natives=1)]


def record(command):
    """The stacks that the interpreters see, and the recording."""
    recorder = gate.recorder(HITS, target)
    said = [line.rpartition(".") for line in recorder.said[:2]]
    gate.equal([(first, last.rpartition(" ")[2]) for first, _, last in said],
               [(f"source {target.pid} python 3.11", "walk"), (f"source {target.pid} ruby 3.1", "walk")],
               f"{command}: both runtimes are walked")
    stacks = json.loads(gate.ask(target, command))
    for name in stacks:
        gate.equal(stacks[name], stacks[name][:1] * HITS, f"{command}: {name} sees the same each time")
    return stacks["python"][0], stacks["ruby"][0], gate.finish(recorder, HITS)


def check(name, recording, seen, want):
    gate.check_native(name, recording.samples(), gate.Maps(target.pid), seen)
    gate.check_merged(name, recording.merged(), want, HITS, natives=len(seen[0][1]))
    gate.equal(recording.sql("SELECT runtime, source FROM source"),
               [("python", "walk"), ("ruby", "walk")], f"{name}: the sources are recorded")
    gate.check_clean(name, recording)


def to_block(stack, labels):
    """From main to Ruby's block, which Python's `stack` leads to."""
    return [
        *gate.TO_MAIN, "Py_BytesMain_[n]", "Py_RunMain_[n]", "_PyRun_AnyFileObject_[n]",
        "_PyRun_SimpleFileObject_[n]",
        None, None, None,  # pyrun_file, run_mod, run_eval_code_obj
        "PyEval_EvalCode_[n]", *python(stack),
        "_PyObject_MakeTpCall_[n]", None, None,  # PyCFuncPtr_call, _ctypes_callproc
        "ffi_call_[n]", None, None,  # ffi_call_int, ffi_call_unix64
        "rb_funcallv_[n]",
        ruby("Object#" + labels[0][0], labels[0][1]),
        *method("Array#each"), "rb_ary_each_[n]", "rb_yield_[n]",
        ruby("block in Object#" + labels[0][0], labels[2][1])]


outside = ["<module>", "main", "outer", "call_ruby"]
stack, labels, recording = record(f"{HITS}")
gate.equal([name for name, _ in stack], outside, "Python's own stack")
gate.equal([name for name, _ in labels], ["to_kernel", "each", "block in to_kernel"], "Ruby's")
seen = gate.traces()
check("python, ruby", recording, seen, [
    *to_block(stack, labels),
    *method("Process.ppid"), None,  # proc_get_ppid
    *gate.hit()])

stack, labels, recording = record(f"{HITS} back")
gate.equal([name for name, _ in stack], [*outside, "call_python", "leaf"], "Python's own stack")
gate.equal([name for name, _ in labels], ["to_python", "each", "block in to_python"], "Ruby's")
check("python, ruby, python", recording, gate.traces()[len(seen):], [
    *to_block(stack[:4], labels),
    # The method's function is code that libffi has made: it has no frame by which to place it.
    gate.Frame("Kernel#call_python_[rb]"),
    None, None,  # vm_sendish, vm_call_cfunc_with_frame
    None, None,  # ffi_closure_unix64, ffi_closure_unix64_inner
    None, None,  # closure_fcn, _CallPythonObject
    "PyObject_Vectorcall_[n]", "_PyFunction_Vectorcall_[n]", *python(stack[4:]),
    "PyObject_Vectorcall_[n]", None, None,  # cfunction_vectorcall_NOARGS, os_getppid
    *gate.hit()])
gate.done()
