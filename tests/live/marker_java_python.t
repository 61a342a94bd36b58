#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Two runtimes in one thread: Java calls Python by JNI, one exact stack. The JVM's frames are told by
the unwinder, Python's by a walker, and both of them are there, each around what it called."""

import json
import os
import subprocess

import gate

JAVA = "/usr/lib/jvm/java-17-openjdk-amd64/bin/java"
PYTHON = "/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0"
JNI = "fixtures/native/jni_python"
HITS = 5

gate.need_root()
gate.need_program(JAVA)
gate.need_program(JAVA + "c")
gate.need_program(PYTHON)
subprocess.run([JAVA + "c", "-d", gate.tmp, "fixtures/mixed/JavaPython.java"], check=True)
target = gate.marked(JAVA, "-cp", gate.tmp, "JavaPython", os.path.join(gate.OUTPUT, JNI),
                     env={"LIBPYTHON": PYTHON, "SCRIPT": "fixtures/mixed/called.py",
                          "SAID": gate.path("said")})
recorder = gate.recorder(HITS, target)
gate.matches(rf"^source {target.pid} python 3\.11\.\d+ walk$", recorder.said[0], "Python is told")
gate.matches(rf"^source {target.pid} jvm 17\.\S+ walk$", recorder.said[1], "and the JVM")
gate.equal(gate.ask(target, str(HITS)), "done", "it has called Python")
recording = gate.finish(recorder, HITS)

with open(gate.path("said"), encoding="ascii") as file:
    stacks = [json.loads(line) for line in file]
gate.equal(stacks, stacks[:1] * HITS, "Python sees the same each time")
gate.equal([name for name, _ in stacks[0]], ["<module>", "outer", "<lambda>", "leaf"],
           "Python's own stack")
qualified = {"<lambda>": "outer.<locals>.<lambda>"}
files = ["<string>", "called.py", "called.py", "called.py"]
frames = [gate.Frame(f"{qualified.get(name, name)} ({file}:{line})_[py]")
          for (name, line), file in zip(stacks[0], files)]


def loop(first, inner):
    """What one loop of Python's runs: _PyEval_EvalFrameDefault."""
    return [gate.Frame(first, natives=1), inner]


def java(method, text):
    place = f"JavaPython.java:{gate.line('fixtures/mixed/JavaPython.java', text)}"
    return gate.Frame(f"JavaPython.{method} ({place})_[j]", natives=1)


seen = gate.traces()
source = JNI + ".c"
gate.check_native("java, python", recording.samples(), gate.Maps(target.pid), seen)
gate.check_merged("java, python", recording.merged(), [
    *gate.TO_THREAD, "ThreadJavaMain_[n]", "JavaMain_[n]", "jni_CallStaticVoidMethod_[n]",
    "jni_invoke_static_[n]", "JavaCalls::call_helper_[n]",
    gate.Frame("call_stub_[j]", natives=1),
    java("main", "outer(Integer"), java("outer", "            call();"),
    gate.Frame("JavaPython.call (JavaPython.java)_[j]", natives=1),
    gate.at("Java_JavaPython_call", source, gate.line(source, '"outer()") + 1')),
    "PyRun_SimpleStringFlags_[n]", "PyRun_StringFlags_[n]",
    None, "PyEval_EvalCode_[n]", None,  # run_mod, _PyEval_Vector
    *loop(*frames[:2]),
    "PyObject_Vectorcall_[n]",
    None, None,  # cfunction_vectorcall of sorted, builtin_sorted
    "PyObject_Vectorcall_[n]",
    None, None, None,  # ... of list.sort, list_sort, list_sort_impl
    "PyObject_CallOneArg_[n]", None,  # _PyFunction_Vectorcall
    *loop(*frames[2:]),
    "PyObject_Vectorcall_[n]", None, None,  # cfunction_vectorcall_NOARGS, os_getppid
    *gate.hit()], HITS, natives=len(seen[0][1]))
gate.equal(recording.sql("SELECT runtime, source FROM source ORDER BY runtime"),
           [("jvm", "walk"), ("python", "walk")], "the sources are recorded")
gate.equal(recording.sql("SELECT pid FROM process"), [(target.pid,)], "its process")
gate.check_clean("java, python", recording)
gate.done()
