#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""braid dump of Python programs: each thread's frames are those that the interpreter itself knows of
(sys._current_frames), live, without stopping and from a core file; who waits for the GIL, and whose it
is; tasks of asyncio."""

import json
import os
import re
import shutil

import dumps
import gate
import pythons
from gate import equal, matches

STANDS = "fixtures/python/stands/stands.py"
TASKS = "fixtures/python/tasks.py"


def short(places, version):
    """Before 3.11 the interpreter itself knows functions' names, and not whose they are."""
    if version >= (3, 11):
        return places
    return [[function.rpartition(".")[2], *rest] for function, *rest in places]


def check_threads(*python):
    version = pythons.version_of(*python)
    if version < (3, 8):
        return  # no thread knows its native id
    name = ".".join(map(str, version))
    has_gil = pythons.has_gil(*python)
    process = gate.start(*python, "-B", STANDS)
    gate.wait_line(process, "ready")
    for tid in os.listdir(f"/proc/{process.pid}/task"):
        dumps.stands(process.pid, tid)
    want = {int(tid): frames for tid, frames in json.loads(gate.ask(process, "frames")).items()}
    equal(len(want), 3, f"{name}: threads")
    dumps.stands(process.pid, process.pid)
    for options in [], ["--nonblocking"]:
        dump = dumps.dump("-p", process.pid, *options)
        equal((dump.result.status, dump.result.err), (0, ""), f"{name} {options}: status")
        equal([source["name"] for process in dump.processes for source in process["runtimes"]],
              ["python"], f"{name}: the runtime")
        for tid, frames in want.items():
            dumps.check_stack(f"{name} {options}: frames as the interpreter knows them",
                              short(dump.threads[tid].places("python"), version), frames)
            equal((dump.threads[tid].read, dump.threads[tid].complete), ("still", True),
                  f"{name} {options}: not stopped, and complete")
            equal(dump.threads[tid].stands_to(),
                  ("waits", "a Lock", None) if any(frame[0].endswith("in_lock") for frame in frames)
                  else ("free", "the GIL", None) if has_gil else None, f"{name}: without the GIL")
        equal(short(dump.threads[process.pid].places("python"), version)[-1][0], "<module>",
              f"{name}: the main thread")
    if python == (pythons.SYSTEM,) and shutil.which("gcore"):
        check_core(process.pid, want)
    if has_gil:
        check_hog(name, process)
    process.kill()


def check_tasks(*python):
    """What asyncio's tasks await: as their coroutines know it."""
    version = pythons.version_of(*python)
    if version < (3, 8):
        return
    name = ".".join(map(str, version))
    process = gate.start(*python, "-B", TASKS)
    want = json.loads(gate.line_of(process))
    dumps.stands(process.pid, process.pid)
    dump = dumps.dump("-p", process.pid)
    equal((dump.result.status, dump.result.err), (0, ""), f"{name}: tasks: status")
    equal({task.name: short(task.places("python"), version) for task in dump.tasks},
          want, f"{name}: tasks and what they await")
    equal({task.name: task.said["waits_for"] for task in dump.tasks if "waits_for" in task.said},
          {"the other's \N{HOURGLASS}": "a chain", "OwnTask: other": "OwnTask: chain",
           "other of OwnTask": "OwnTask: chain", "PythonTask: other": "PythonTask: chain",
           "other of PythonTask": "PythonTask: chain"}, f"{name}: tasks that wait for another one")
    matches(r'\nTask "the other\'s \N{HOURGLASS}" waits for task "a chain"\n  > python  other \(',
            gate.braid("dump", "-p", process.pid).out, f"{name}: the same for people")
    if python == (pythons.SYSTEM,) and shutil.which("gcore"):
        gate.run("gcore", "-o", gate.path("core"), process.pid)
        core = dumps.dump("--core", gate.path(f"core.{process.pid}"))
        equal({task.name: task.places("python") for task in core.tasks}, want, "core: tasks")
        os.unlink(gate.path(f"core.{process.pid}"))
    process.kill()


def check_core(pid, want):
    gate.run("gcore", "-o", gate.path("core"), pid)
    core = gate.path(f"core.{pid}")
    dump = dumps.dump("--core", core)
    equal((dump.result.status, dump.result.err), (0, ""), "core: status")
    for tid, frames in want.items():
        dumps.check_stack("core: frames as the interpreter knows them",
                          dump.threads[tid].places("python"), frames)
    os.unlink(core)


def check_hog(name, process):
    """A thread never gives the GIL back; main waits for it."""
    hog = int(gate.ask(process, "hog"))

    def waits():
        # Main may read a line before the thread has the GIL for good: then it waits for the next.
        if dumps.dump("-p", process.pid).threads[process.pid].call() == "read":
            gate.say(process, "and main wakes up")
        dump = dumps.dump("-p", process.pid)
        relation = dump.threads[process.pid].stands_to()
        return relation and relation[0] == "waits" and dump
    dump = gate.wait_until(waits, "main to wait for the GIL")
    equal(dump.threads[process.pid].stands_to(), ("waits", "the GIL", hog),
          f"{name}: who waits for the GIL, and whose it is")
    holder = dump.threads[hog]
    equal((holder.stands_to(), holder.read), (("holds", "the GIL", None), "sampled"),
          f"{name}: who has it")
    equal(holder.places("python")[0][0], "hog", f"{name}: what that does")
    text = gate.braid("dump", "-p", process.pid).out
    matches(rf'\nThread {process.pid} "MainThread" sleeping in futex \([^)]+\), waits for the GIL '
            rf'\(held by {hog} "[^"]+"\)\n', text, f"{name}: the same for people")


def runs(frames):
    """[(kind, the frames of it that follow each other)]; inlined ones are native."""
    found = []
    for frame in frames:
        kind = "native" if frame["kind"] == "inlined" else frame["kind"]
        if not found or found[-1][0] != kind or kind == "python":
            found.append((kind, []))
        found[-1][1].append(frame["function"])
    return found


def check_frames():
    """--frames, of a program whose C functions have no names that would tell more."""
    process = gate.start("/usr/bin/python3.11", "-c", "def nap():\n import time\n time.sleep(1000)\nnap()")
    call = gate.wait_until(lambda: dumps.dump("-p", process.pid).threads[process.pid].call(), "the wait")
    gate.wait_until(lambda: dumps.dump("-p", process.pid).threads[process.pid].call() ==
                    "clock_nanosleep", f"another wait than {call}")
    want = runs(dumps.dump("-p", process.pid).threads[process.pid].frames)

    def shown(*options):
        text = gate.braid("dump", "-p", process.pid, *options).out
        return [re.sub(r" \([^()]*:\d+\)$", "", " ".join(line[4:].split()))
                for line in text.splitlines() if line.startswith(("    ", "  > "))]
    script = [f"python {names[0]}" for kind, names in want if kind == "python"]
    equal(script, ["python nap", "python <module>"], "--frames: what the script is in")
    equal(shown("--frames", "script"), script, "--frames script")
    equal(shown(), [line for kind, names in want for line in (
        [f"{kind} {names[0]} ... {names[-1]} ({len(names)} frames)"] if len(names) > 2 else
        [f"{kind} {name}" for name in names])], "--frames collapsed, which is the default")
    equal([line.split(" ", 1)[1] for line in shown("--frames", "all")],
          [name for _, names in want for name in names], "--frames all")


gate.need_program("/usr/bin/python3.11")
check_frames()
for each in pythons.every():
    check_threads(*each)
    check_tasks(*each)
gate.done()
