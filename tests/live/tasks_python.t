#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tasks of asyncio and what they wait for: the reasons in a dump, and the tasks that a look of -e wall
offers, which are those that wait, and no others; with uvloop, too. Many tasks are offered with weights."""

import json
import os
import time

import dumps
import gate
import pythons
import waiting
from gate import equal, ok

AWAITS = "fixtures/python/awaits.py"
LOOKS = os.path.join(gate.OUTPUT, "tests/tools/parked_tasks")
MANY = "fixtures/python/many_tasks.py"
PARKED = 5
IDLE = """
import asyncio
async def idle(): await asyncio.Event().wait()
async def main():
    tasks = [asyncio.create_task(idle()) for _ in range(10)]
    await asyncio.sleep(0)
    print("ready", flush=True)
    await tasks[0]
asyncio.run(main())
"""


def look(process, most, looks):
    """[words of a line]"""
    return [line.split("\t") for line in gate.run(LOOKS, process.pid, most,
                                                  looks).out.splitlines()]


def check_reasons(name, *command):
    process = gate.start(*command)
    want = json.loads(gate.line_of(process))
    dumps.stands(process.pid, process.pid)
    parked = {task: reason for task, reason in want.items() if reason != "not parked"}
    dump = dumps.dump("-p", process.pid)
    equal((dump.result.status, dump.result.err), (0, ""), f"{name}: status")
    # A dump has the name of the other task instead.
    equal({task.name: task.said.get("reason", "task") for task in dump.tasks
           if "state" not in task.said and task.name in want},
          parked, f"{name}: dump: what each task waits for")
    equal({task.said["waits_for"][:5] for task in dump.tasks if task.name == "task"}, {"Task-"},
          f"{name}: dump: the other task")
    equal({task.name: task.said["state"] for task in dump.tasks
           if "state" in task.said and task.name in ("ready", "yields")},
          {"ready": "ready", "yields": "ready"}, f"{name}: dump: tasks that are ready to run")
    offered = [words[1:] for words in look(process, 1000, 1) if words[0] == "task"]
    equal({task: reason for task, reason in offered if task in want}, parked,
          f"{name}: a look offers those that wait")
    equal(len(offered), len({tuple(words) for words in offered}), f"{name}: each once")
    process.kill()


def check_many(name, *python):
    """The main task waits for a line, so that it runs."""
    for count in 10, 6000:
        process = gate.start(*python, "-B", MANY, count)
        want = int(gate.line_of(process))
        dumps.stands(process.pid, process.pid)
        looks = [(int(words[1]), float(words[2])) for words in look(process, 8, 60)]
        equal(max(n for n, _ in looks), 8, f"{name}: no look offers more tasks than it is to")
        mean = sum(stands_for for _, stands_for in looks) / len(looks)
        ok(0.5 < mean / want < 2, f"{name}: the offered tasks stand for all {want}", f"mean {mean}")
        if count == 10:
            looks = {tuple(words[1:3]) for words in look(process, 1000, 5)}
            equal(looks, {(str(want), f"{want:.3f}")}, f"{name}: few tasks are offered as they are")
        process.kill()


def check_frames(seconds):
    """All looks of a recording have the same code objects, and therefore the same frames."""
    process = gate.start(pythons.SYSTEM, "-B", "-c", IDLE)
    gate.wait_line(process, "ready")
    braid = waiting.record("wall", process.pid, options=["--max-overhead", "none"])
    time.sleep(seconds)
    recording = waiting.finish("wall", braid)
    looks = recording.one(f"SELECT count(DISTINCT value) FROM sample WHERE state = {PARKED}")
    stacks = recording.one(f"SELECT count(DISTINCT runtime) FROM sample WHERE state = {PARKED}")
    ok(looks > 1 and stacks == 2, f"{looks} looks have two stacks: of idle and of main", stacks)
    process.kill()


gate.need_program(pythons.SYSTEM)
for each in pythons.every():
    version = pythons.version_of(*each)
    if version >= (3, 8):
        check_reasons(".".join(map(str, version)), *each, "-B", AWAITS)
        check_many(".".join(map(str, version)), *each)
if gate.run(pythons.SYSTEM, "-c", "import uvloop").status == 0:
    check_reasons("uvloop", pythons.SYSTEM, "-B", AWAITS, "uvloop")
check_frames(1)
gate.done()
