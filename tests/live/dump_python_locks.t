#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""braid dump of Python programs whose threads wait for locks of the module threading: which lock each
waits for, who holds it, and who waits for whom in a circle, as the program itself knows it."""

import json
import os
import shutil

import dumps
import gate
import pythons
from gate import equal, matches

LOCKS = "fixtures/python/deadlocks.py"


def check(name, dump, ids, waits):
    names = {tid: thread for thread, tid in ids.items()}
    got = {names[tid]: [lock["what"], int(lock.get("address", "0"), 16), names.get(lock.get("holder"))]
           for tid, lock in ((tid, dump.threads[tid].said.get("lock")) for tid in names)
           if lock and lock["relation"] == "waits"}
    for thread in sorted({*got, *waits}):
        equal(got.get(thread), waits.get(thread), f"{name}: {thread}: what it waits for")
    circles = {thread: min(ids[thread], ids[want[2]]) for thread, want in waits.items()
               if want[2] and waits.get(want[2], [None] * 3)[2] == thread}
    equal({names[tid]: thread.deadlock for tid, thread in dump.threads.items() if "deadlock" in
           thread.said}, circles, f"{name}: deadlocks")


def check_locks(*python):
    name = ".".join(map(str, pythons.version_of(*python)))
    process = gate.start(*python, "-B", LOCKS)
    ids, waits = json.loads(gate.line_of(process))

    def all_wait():
        """Each in its lock, and none for the GIL on the way there."""
        dump = dumps.dump("-p", process.pid)
        relations = [dump.threads[ids[thread]].stands_to() for thread in waits]
        return all(told and told[0] == "waits" and told[1] != "the GIL" for told in relations) and dump
    check(name, gate.wait_until(all_wait, "the waits"), ids, waits)
    check(f"{name}, not stopped", dumps.dump("-p", process.pid, "--nonblocking"), ids, waits)
    if python == (pythons.SYSTEM,):
        text = gate.braid("dump", "-p", process.pid).out
        one, two = ids["Lock, Lock: one"], ids["Lock, Lock: two"]
        matches(rf'\nDeadlock: {one} "Lock, Lock: one" waits for a Lock at 0x[0-9a-f]+ \(held by {two} '
                rf'"Lock, Lock: two"\), which waits for a Lock at 0x[0-9a-f]+ \(held by {one} '
                r'"Lock, Lock: one"\)\n', text, "the same for people")
        if shutil.which("gcore"):
            gate.run("gcore", "-o", gate.path("core"), process.pid)
            check("core", dumps.dump("--core", gate.path(f"core.{process.pid}")), ids, waits)
            os.unlink(gate.path(f"core.{process.pid}"))
    process.kill()


gate.need_program(pythons.SYSTEM)
for each in pythons.every():
    check_locks(*each)
gate.done()
