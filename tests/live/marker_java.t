#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian 12's Java, of a JVM without any flag: one exact stack of the JVM's C++, Java, and native
methods, with lines; where reflection calls Java out of C++, and Java calls C."""

import os
import re
import subprocess

import gate

JAVA = "/usr/lib/jvm/java-17-openjdk-amd64/bin/java"
HITS = 5

gate.need_root()
gate.need_program(JAVA)
gate.need_program(JAVA + "c")
subprocess.run([JAVA + "c", "-d", gate.tmp, "fixtures/java/marked/Marked.java"], check=True)
target = gate.marked(JAVA, "-cp", gate.tmp, "Marked", gate.MARKER)
threads = set(map(int, os.listdir(f"/proc/{target.pid}/task"))) - {target.pid}
recorder = gate.recorder(HITS, max(threads))  # any thread's id will do
gate.matches(rf"^source {target.pid} jvm 17\.\S+ walk$", recorder.said[0], "the runtime is told")
stacks = gate.ask(target, str(HITS)).split()
recording = gate.finish(recorder, HITS)

# What the JVM says: CLASS.METHOD:LINE, or a negative number for a native method.
gate.equal(stacks, stacks[:1] * HITS, "the JVM sees the same at each hit")
calls = [re.fullmatch(r"((?:.*\.)?([\w$]+)\.\w+):(-?\d+)", call).groups()
         for call in stacks[0].split(",")]


def label(method, class_name, number):
    place = class_name.partition("$")[0] + ".java" + ("" if int(number) < 0 else f":{number}")
    return gate.Frame(f"{method} ({place})_[j]", natives=1)


java = [label(*call) for call in calls]
gate.equal([method.rpartition(".")[2] for method, _, _ in calls],
           ["main", "outer", "invoke", "invoke", "invoke", "invoke0", "reflected", "run", "leaf"],
           "the JVM's own stack")
call_stub = gate.Frame("call_stub_[j]", natives=1)
source = gate.MARKER_SOURCE
thread = recording.samples()[0].tid
seen = gate.traces()
gate.check_native("java", recording.samples(), gate.Maps(target.pid), seen)
gate.check_merged("java", recording.merged(), [
    *gate.TO_THREAD, "ThreadJavaMain_[n]", "JavaMain_[n]", "jni_CallStaticVoidMethod_[n]",
    "jni_invoke_static_[n]", "JavaCalls::call_helper_[n]", call_stub, *java[:6],
    "JVM_InvokeMethod_[n]", "Reflection::invoke_method_[n]", "invoke_[n]",
    "JavaCalls::call_helper_[n]", call_stub, *java[6:],
    gate.Frame("Marked.mark (Marked.java)_[j]", natives=1),
    gate.at("Java_Marked_mark", source, gate.line(source, "return getppid() + 1;")),
    *gate.hit()], HITS, natives=len(seen[0][1]))
gate.equal(recording.sql("SELECT pid FROM process"), [(target.pid,)], "its process")
gate.ok(thread != target.pid, "it is not in the process's first thread, where java starts")
gate.equal(recording.sql("SELECT runtime, source FROM source"), [("jvm", "walk")],
           "the source is recorded")
gate.check_clean("java", recording)
gate.done()
