#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""braid dump of Ruby's fibers and of its threads' names: what the program itself has told of them. The machine's own
Ruby; with BRAID_EVERY_INTERPRETER also those of the test roots."""

import glob
import json
import os
import re
import shutil

import dumps
import gate
import roots
from gate import equal, matches, ok

SCRIPT = "fixtures/ruby/fibers/fibers.rb"


def rubies():
    """[(name, command, path of the script there)]"""
    if shutil.which("ruby"):
        yield "ruby", ["ruby", "--disable-gems"], SCRIPT
    if not roots.EVERY:
        return
    for root in roots.all_of():
        if not os.path.exists(root + "/usr/bin/ruby"):
            continue
        script = f"/tmp/fibers-{os.getpid()}.rb"
        shutil.copy(SCRIPT, root + script)
        yield os.path.basename(root), roots.within(root, "ruby", "--disable-gems"), script
        os.unlink(root + script)
    for file in sorted(glob.glob(os.path.expanduser("~/.cache/braid-rubies/*/bin/ruby"))):
        yield file, [file, "--disable-gems"], SCRIPT


def places(task):
    """As caller_locations has them: a method in C is where it was called from. Innermost is the call that waits."""
    found, file, line = [], None, None
    for function, path, number in reversed(task.places("ruby")):
        file, line = (path, number) if path else (file, line)
        found.insert(0, [plain(function), file, line])
    return found


def plain(label):
    """Without classes, which only newer versions tell, and without levels of blocks."""
    name = re.sub(r"^((block|rescue|ensure) (\(\d+ levels\) )?in )+", "", label)
    return re.split(r"[#.]", name)[-1]


def check(name, command, script):
    process = gate.start(*command, script)
    said = json.loads(gate.line_of(process))
    for tid in os.listdir(f"/proc/{process.pid}/task"):
        dumps.stands(process.pid, tid)
    dump = dumps.dump("-p", process.pid)
    equal((dump.result.status, dump.result.err), (0, ""), f"{name}: status")
    fibers = [task for task in dump.tasks if task.kind == "fiber"]
    equal(sorted(fiber.name for fiber in fibers), sorted(said["fibers"]), f"{name}: the fibers that wait")
    equal({fiber.state for fiber in fibers}, {"suspended"}, f"{name}: their state")
    equal({fiber.name: fiber.thread for fiber in fibers}, said["threads"], f"{name}: their threads")
    for fiber in fibers:
        want = said["stacks"].get(fiber.name)
        if want:
            dumps.check_stack(f"{name}: {fiber.name}: frames as the fiber itself told", places(fiber)[1:],
                              [[plain(label), *rest] for label, *rest in want])
            equal(places(fiber)[0][0], "yield", f"{name}: and the call that waits")
        inner = fiber.frames[0]["kind"]
        ok(inner == "native", f"{name}: {fiber.name}: native frames in the same stack", f"innermost is {inner}")
        check_placed(name, fiber)
    equal({tid: thread.name for tid, thread in dump.threads.items() if str(tid) in said["names"]},
          {int(tid): text for tid, text in said["names"].items()}, f"{name}: names of threads in full")
    text = gate.braid("dump", "-p", process.pid, "--frames", "script").out
    tid = next(iter(said["threads"].values()))
    matches(rf"\nFiber \"[^\n]*fibers[^\n]*\.rb:\d+\" of thread {tid} suspended\n  > ruby    Fiber.yield\n", text,
            f"{name}: the same for people")
    process.kill()


def check_placed(name, fiber):
    """Array#each is next to its function in C, and what it yields to inside of that."""
    functions = fiber.functions("native", "ruby")
    if "Array#each" in functions and "rb_ary_each" in functions:
        ok(abs(functions.index("Array#each") - functions.index("rb_ary_each")) == 1,
           f"{name}: {fiber.name}: a method in C is at its native frame", *functions)


for found in rubies():
    check(*found)
gate.done()
