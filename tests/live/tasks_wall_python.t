#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Tasks of asyncio in -e wall: each look at tasks that stand has all of them, with their await chains and their
reasons, and the sentences of the summary name the waits."""

import collections
import os
import signal
import subprocess

import dumps
import gate
import pythons
from gate import equal, ok

PARKED = 5
KINDS = "SELECT label.value, count(*) FROM sample LEFT JOIN label ON label.context = sample.context AND " \
        f"label.key = 'wait' WHERE state = {PARKED} GROUP BY 1"


def check(name, *python):
    target = gate.start(*python, "-B", "fixtures/python/parked.py")
    gate.wait_line(target, "ready")
    dumps.stands(target.pid, target.pid)
    file = gate.path(f"{target.pid}.db")
    braid = gate.start(gate.BRAID, "record", "-e", "wall", "--max-overhead", "none", "-p", target.pid, "-o", file,
                       "--force", stderr=subprocess.PIPE)
    recording = gate.Recording(file)
    gate.wait_until(lambda: os.path.exists(file) and recording.one(f"SELECT count(*) FROM sample WHERE state = {PARKED}"), "the first look")
    braid.send_signal(signal.SIGINT)
    said = braid.stderr.read().decode()
    equal(braid.wait(), 0, f"{name}: recorded", said)
    kinds = dict(recording.sql(KINDS))
    looks = kinds.get("sleep", 0)
    equal(kinds, {"sleep": looks, "Lock": 4 * looks, "gather": looks}, f"{name}: each look has all tasks", said)
    equal(recording.one(f"SELECT sum(total) = sum(value) AND count(*) FROM sample WHERE state = {PARKED}"), 1,
          f"{name}: each task stands for itself")
    chains = collections.Counter()
    for line in gate.braid("report", "--format", "folded", "--state", "parked", "--by", "label:wait", file).out.splitlines():
        frames = [frame.split(" ")[0] for frame in line.rsplit(" ", 1)[0].split(";")]
        chains[" ".join(frame.split(".")[-1] for frame in frames)] += 1
    equal(set(chains), {"sleep order reserve sleep", "Lock order reserve __aenter__ acquire", "gather main"},
          f"{name}: await chains", chains)
    ok("complete to the root" not in said, f"{name}: the stacks of tasks are complete", said)
    gate.matches(r"of the time of threads and parked tasks is waiting: ", said, f"{name}: the summary")
    for wait in "a lock in reserve (", "a timer (sleep) in reserve (":
        ok(f" % for {wait}" in said, f"{name}: it names {wait[:-2]}", said)
    target.kill()


gate.need_root()
gate.need_program(pythons.SYSTEM)
for each in pythons.every():
    version = pythons.version_of(*each)
    if version >= (3, 8):
        check(".".join(map(str, version)), *each)
gate.done()
