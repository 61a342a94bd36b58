#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""braid dump of virtual threads that run on no thread: their frames are those that the JVM's own Thread.dump_to_file
has. The newest JDK of the machine; with BRAID_EVERY_INTERPRETER all from 21 on, those of the test roots included, as
they are, interpreted, compiled, with several collectors, and without tracking."""

import json
import os
import re

import dumps
import gate
import roots
from gate import equal

SOURCE = "fixtures/java/virtuals/Virtuals.java"
# Compiled without all that a start of the JVM runs, which takes long.
FEW = ["-XX:CompileCommand=quiet", "-XX:CompileCommand=compileonly,Virtuals::*",
       "-XX:CompileCommand=compileonly,java.lang.VirtualThread::*",
       "-XX:CompileCommand=compileonly,jdk.internal.vm.Continuation::*"]
# What the JVM hides, and names that it makes up.
HIDDEN = re.compile(r"jdk\.internal\.vm\.|Continuation|Lambda|Thread\.runWith")


def dumped(file):
    """{name or #id: [[Class.method, file, line]]} of virtual threads, as the JVM has them."""
    threads = {}
    with open(file, encoding="utf-8") as text:
        containers = json.load(text)["threadDump"]["threadContainers"]
    for thread in [thread for container in containers for thread in container["threads"]]:
        frames = [re.match(r"(?:[\w.]+(?:@[\w.]+)?/)?([^(]+)\(([^:)]+)(?::(\d+))?\)", line).groups()
                  for line in thread["stack"]]
        if frames and frames[-1][0] == "java.lang.VirtualThread.run":
            threads[thread["name"] or f"#{thread['tid']}"] = [
                [name, path, int(line) if line else None] for name, path, line in frames if not HIDDEN.search(name)]
    return threads


def check(root, home, *options):
    with roots.Classes(root) as classes:
        return check_in(root, home, classes, *options)


def check_in(root, home, classes, *options):
    what = " ".join([os.path.basename(root), os.path.basename(home), *options]).strip()
    process = gate.start(*roots.within(root, home + "/bin/java", *options, "-cp", classes, "Virtuals"))
    gate.wait_line(process, "ready")
    file = f"{classes}/dump-{process.pid}.json"
    gate.run(jcmd, process.pid, "Thread.dump_to_file", "-overwrite", "-format=json", file)
    want = dumped(root + file)
    dump = dumps.dump("-p", process.pid)
    equal((dump.result.status, dump.result.err), (0, ""), f"{what}: status")
    got = {task.name: task for task in dump.tasks if task.kind == "virtual thread"}
    equal(sorted(got), sorted(want), f"{what}: the virtual threads")
    for name in sorted(set(got) & set(want)):
        frames = [frame for frame in got[name].places("jvm") if not HIDDEN.search(frame[0])]
        dumps.check_stack(f"{what}: {name}: frames as the JVM has them", frames, want[name])
    equal({name: task.state for name, task in got.items()},
          {name: "timed parked" if name == "sleeper" else "parked" for name in want}, f"{what}: states")
    process.kill()
    return dump


found = [(root, home) for _, root, home in roots.jdks(21)]
local = [home for root, home in found if not root and os.path.exists(home + "/bin/javac")]
if not local:
    gate.skip_all("no JDK from 21 on")
jcmd = local[-1] + "/bin/jcmd"
gate.run(local[-1] + "/bin/javac", "--release", "21", "-d", gate.tmp, SOURCE)
if not roots.EVERY:
    check("", local[-1], "-Xcomp", *FEW)  # both interpreted frames and compiled ones
for place, jdk in found if roots.EVERY else ():
    for option in ("", "-Xcomp", "-Xint -XX:-UseCompressedOops", "-XX:+UseSerialGC", "-XX:+UseParallelGC"):
        check(place, jdk, *option.split())
if roots.EVERY:
    untracked = check("", local[-1], "-Djdk.trackAllThreads=false")
    equal([process["note"] for process in untracked.processes],
          ["virtual threads that no executor or scope has started are not listed, as the JVM does not track them "
           "(jdk.trackAllThreads)"], "what is not listed is said")
gate.done()
