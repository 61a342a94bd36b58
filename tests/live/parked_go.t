#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Goroutines that wait, in -e wall: the sums of their samples are the times that the program's own clocks give, within
the error of sampling, and exact if the goroutines only wait; the marks, labels and stacks of the samples. Other events
say that such waits are missing."""

import json
import math
import os
import subprocess
import time

import gate
import waiting
from gate import equal, ok

PROGRAM = os.path.join(gate.OUTPUT, "fixtures/go/waits")
NAPPING = os.path.join(gate.OUTPUT, "fixtures/go/parked")
PARKED = 5
# The function that waits, the number of its goroutines, Go's innermost function, and the reasons by version.
KINDS = [("main.sleeps", 12, "time.Sleep", {"sleep"}),
         ("main.locks", 8, "sync.(*Mutex).Lock", {"semacquire", "sync.Mutex.Lock"}),
         ("main.reads", 4, "net.(*conn).Read", {"IO wait"}),
         ("main.receives", 1, "runtime.chanrecv1", {"chan receive"})]
SIGMAS = 5  # one of the comparisons fails by chance in about a million runs


def sums(target):
    at = time.monotonic_ns()
    return at, json.loads(gate.ask(target, "sums"))


def record(target, event, seconds):
    braid = waiting.record(event, target.pid, options=["--max-overhead", "none"])
    begin, before = sums(target)
    time.sleep(seconds)
    end, after = sums(target)
    recording = waiting.finish(event, braid)
    return recording, {name: (after[name] - before[name]) / (end - begin) for name in after}


def check_sums(name, recording, rates):
    looks = [value for value, in recording.sql(f"SELECT DISTINCT value FROM sample WHERE state = {PARKED}")]
    ok(len(looks) > 5, f"{name}: {len(looks)} looks, {sum(looks) / 1e9:.2f} s")
    stacks = gate.braid("report", "--format", "folded", "--state", "parked", "--idle", "show",
                        recording.file).out.splitlines()
    late = rates["late"] / rates["waits of main.sleeps"]  # of one wait, ns
    for kind, n, inner, _ in KINDS:
        found = sum(int(line.rsplit(" ", 1)[1]) for line in stacks if f";{kind} " in line and f";{inner} " in line)
        want = rates[kind] * sum(looks)
        share = min(rates[kind] / n, 1)
        sigma = want * math.sqrt((1 - share) / share * sum(one * one for one in looks)) / sum(looks)
        # A goroutine that is ready and has no CPU yet waits by its own clock only. A look may find all of a kind so.
        ready = late * rates[f"waits of {kind}"] * sum(looks)
        more = SIGMAS * sigma + 0.02 * want
        less = more + ready + SIGMAS * math.sqrt(n * max(looks) * ready)
        ok(want - less <= found <= want + more, f"{name}: {kind} {found / 1e9:.2f} s, by its own clock "
           f"{want / 1e9:.2f} s (-{less / 1e9:.2f} s, +{more / 1e9:.2f} s)")


def check_exact(n):
    """Goroutines that do nothing but wait: each look finds all of them."""
    braid = waiting.record("wall", start(NAPPING, n, "napping").pid, options=["--max-overhead", "none"])
    time.sleep(1)
    recording = waiting.finish("wall", braid)
    looks = [value for value, in recording.sql(f"SELECT DISTINCT value FROM sample WHERE state = {PARKED}")]
    stacks = gate.braid("report", "--format", "folded", "--state", "parked", recording.file).out.splitlines()
    equal(sum(int(line.rsplit(" ", 1)[1]) for line in stacks if ";main.nap " in line), n * sum(looks),
          f"{n} goroutines: the time of all looks")


def check_marks(name, recording):
    rows = recording.sql("SELECT DISTINCT thread.tid, thread.name, cpu FROM sample "
                         f"JOIN thread ON thread.id = thread WHERE state = {PARKED}")
    equal({row[:2] for row in rows}, {(1 << 30, "goroutines")}, f"{name}: they belong to no thread")
    equal(recording.one(f"SELECT count(*) FROM sample WHERE thread IN (SELECT id FROM thread WHERE tid = {1 << 30}) "
                        f"AND state <> {PARKED}"), 0, f"{name}: nor do others")
    equal(recording.one(f"SELECT count(*) FROM sample WHERE state = {PARKED} AND NOT flags & 1"), 0,
          f"{name}: all stacks are complete")
    equal(recording.one(f"SELECT count(*) FROM sample WHERE state = {PARKED} AND (task IS NULL OR task = 0)"), 0,
          f"{name}: all have a number")
    for kind, n, inner, reasons in KINDS:
        out = gate.braid("report", "--format", "folded", "--state", "parked", "--idle", "show", "--by", "label:wait",
                         recording.file).out.splitlines()
        equal({line.split(";")[0] for line in out if f";{kind} " in line and f";{inner} " in line} - reasons, set(),
              f"{name}: reasons of {kind}")
        out = gate.braid("report", "--format", "folded", "--state", "parked", "--idle", "show", "--by", "goroutine",
                         recording.file).out.splitlines()
        equal(len({line.split(";")[0] for line in out if f";{kind} " in line and f";{inner} " in line}), n,
              f"{name}: goroutines of {kind}")


def check_label(recording, pid):
    out = gate.braid("report", "--by", "thread", recording.file).out
    ok(f"goroutines of waits ({pid})" in out, "--by thread: the goroutines of a process", out)
    ok(str(1 << 30) not in out, "--by thread: no number of a thread that does not exist")


def check_idle(recording):
    shown = gate.braid("report", "--format", "folded", "--state", "parked", recording.file).out
    ok("bgsweep" not in shown and "main.sleeps" in shown, "the runtime's own goroutines are idle")
    ok("bgsweep" in gate.braid("report", "--format", "folded", "--idle", "show", recording.file).out,
       "--idle show shows them")


def check_notes(recording):
    out = gate.braid("report", recording.file).out
    gate.matches(r"(?m)^parked: \S+ \S+ of the waiting is of tasks on no thread, from \d+ samples$", out, "the share")
    ok("are not included" not in out, "nothing is missing")


def start(program, *args):
    target = gate.start(program, *args)
    gate.wait_line(target, "ready")
    return target


gate.need_root()
if not os.path.exists(PROGRAM):
    gate.skip_all("there is no Go")
process = start(PROGRAM)
recorded, told = record(process, "wall", 5)
check_sums("linked", recorded, told)
check_marks("linked", recorded)
check_idle(recorded)
check_label(recorded, process.pid)
check_notes(recorded)
check_exact(100)
stripped = gate.path("stripped")
subprocess.run(["strip", "-o", stripped, PROGRAM], check=True)
recorded, told = record(start(stripped), "wall", 3)
check_sums("stripped", recorded, told)
recorded, _ = record(process, "off-cpu", 0.5)
equal(recorded.one(f"SELECT count(*) FROM sample WHERE state = {PARKED}"), 0, "off-cpu has threads only")
ok("waits of goroutines on no thread are not included" in gate.braid("report", recorded.file).out,
   "a report of off-cpu says that waits of goroutines are missing")
gate.done()
