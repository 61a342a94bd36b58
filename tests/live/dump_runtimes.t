#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""braid dump of Ruby, Java and Node programs: each thread's frames are those that the interpreter itself
knows of."""

import glob
import json
import os
import re
import shutil

import dumps
import gate
from gate import equal, ok

RUBY = "fixtures/ruby/stands/stands.rb"
JAVA = "fixtures/java/stands/Stands.java"
LONG = "sleeper of many wörds – λ"
NODE = "fixtures/node/stands/stands.js"


def ruby_places(thread):
    """As Thread#backtrace_locations has them: a method in C is where it was called from."""
    places, file, line = [], None, None
    for function, path, number in reversed(thread.places("ruby")):
        file, line = (path, number) if path else (file, line)
        name = re.sub(r"^(block|rescue|ensure) in ", "", re.sub(r" \(\d+ levels\)", "", function))
        places.insert(0, [re.split(r"[#.]", name)[-1], file, line])
    return places


def check_ruby():
    process = gate.start("ruby", RUBY)
    gate.wait_line(process, "ready")
    want = json.loads(gate.ask(process, "frames"))
    equal(len(want), 3, "ruby: threads")
    for tid in map(int, want):
        dumps.stands(process.pid, tid)
    dump = dumps.dump("-p", process.pid)
    equal((dump.result.status, dump.result.err), (0, ""), "ruby: status")
    for tid, frames in want.items():
        thread = dump.threads[int(tid)]
        dumps.check_stack("ruby: frames as the interpreter knows them", ruby_places(thread), frames)
        equal((thread.read, thread.complete), ("still", True), "ruby: not stopped, and complete")
        equal(thread.stands_to()[:2], ("free", "the GVL"), "ruby: without the GVL")


def jstack(said):
    """{name: (tid, [[Class.method, file, line]])}, innermost first, of threads that jstack knows."""
    threads = {}
    for block in said.split("Found one")[0].split("\n\n"):
        name = re.match(r'"([^"]+)".* nid=(\w+) ', block)
        if name:
            threads[name[1]] = int(name[2], 0), [
                [function, file.rpartition("/")[2], int(line) if line else None] for function, file, line in
                re.findall(r"\tat (?:[\w.]+@[\w.]+/|[\w.]+/)?([^(\s]+)\(([^:)]+)(?::(\d+))?\)", block)]
    return threads


def deadlocked(directory, pid):
    """What jstack knows once it says so, and the others stand, too; None: not yet."""
    said = gate.run(directory + "/jstack", pid).out
    known = jstack(said)
    stand = [known[name][1][0][0] for name in (LONG, "waiter") if known.get(name, ("", ""))[1]]
    return ("Found one Java-level deadlock" in said and
            len(stand) == 2 and stand[0].startswith("java.lang.Thread.sleep") and
            stand[1].startswith("java.lang.Object.wait") and known)


def check_java(directory, *options):
    process = gate.start(directory + "/java", *options, "-cp", gate.tmp, "Stands")
    gate.wait_line(process, "ready")
    known = gate.wait_until(lambda: deadlocked(directory, process.pid), "the deadlock")
    tid_of = {name: tid for name, (tid, _) in known.items()}
    wanted = ["one", "two", LONG, "waiter"]
    for name in wanted:
        dumps.stands(process.pid, tid_of[name])
    dump = dumps.dump("-p", process.pid)
    equal((dump.result.status, dump.result.err), (0, ""), "java: status")
    equal({tid: dump.threads[tid].name for name, tid in tid_of.items() if known[name][1]},
          {tid: name for name, tid in tid_of.items() if known[name][1]},
          "java: the names of Java's threads")
    for name in wanted:
        thread = dump.threads[tid_of[name]]
        got = [[function, file, line] for function, file, line in thread.places("jvm")
               if "." in function and "Lambda" not in function]  # not the VM's own stubs
        want = [[function, file, line] for function, file, line in known[name][1]
                if "Lambda" not in function]
        # Of native methods jstack says no file.
        for one, other in zip(got, want):
            if other[1] == "Native Method":
                other[1:] = one[1:]
        dumps.check_stack(f"java: {name}: frames as jstack has them", got, want)
        ok(thread.complete, f"java: {name}: complete")
    one, two = dump.threads[tid_of["one"]], dump.threads[tid_of["two"]]
    equal((one.stands_to(), two.stands_to()), (("waits", "a monitor", two.tid),
                                               ("waits", "a monitor", one.tid)),
          "java: who waits for which monitor")
    equal((one.said.get("deadlock"), two.said.get("deadlock")), (min(one.tid, two.tid),) * 2,
          "java: the deadlock")


def check_node():
    process = gate.start("node", "--perf-basic-prof", "--interpreted-frames-native-stack",
                         os.path.abspath(NODE), cwd=gate.tmp)
    want = json.loads(gate.wait_line(process, "[")[-1])
    dumps.stands(process.pid, process.pid)
    thread = dumps.dump("-p", process.pid).threads[process.pid]
    got = [place for place in thread.places("node") if place[1] and place[1].endswith("stands.js")]
    equal([function for function, _, _ in got][:len(want)], want, "node: functions of the script")
    equal((thread.state, thread.call()), ("sleeping", "read"), "node: state")
    process.kill()
    os.unlink(f"/tmp/perf-{process.pid}.map")


if shutil.which("ruby"):
    check_ruby()
if shutil.which("javac"):
    gate.run("javac", "--release", "17", "-d", gate.tmp, JAVA)
    for jstack_file in glob.glob("/usr/lib/jvm/*/bin/jstack"):
        if not os.path.islink(os.path.dirname(os.path.dirname(jstack_file))):
            check_java(os.path.dirname(jstack_file))
if shutil.which("node"):
    check_node()
gate.done()
