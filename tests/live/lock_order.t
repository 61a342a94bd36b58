#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""The event lock-order, and report --lock-order: mutexes that threads take in different orders are potential
deadlocks, with where each is taken; whatever cannot deadlock is none."""

import os
import re
import shutil
import signal

import gate

PROGRAM = os.path.join(gate.OUTPUT, "fixtures/native/lock_order")
SOURCE = "fixtures/native/lock_order.c"

CASES = {
    "two threads": ("AB BA", [["a", "b"]]),
    "three threads": ("AB BC CA", [["a", "b", "c"]]),
    "four threads": ("AB BC CD DA", [["a", "b", "c", "d"]]),
    "not only neighbours": ("ABC CA", [["a", "c"]]),
    "two cycles": ("AB BA CD DC", [["a", "b"], ["c", "d"]]),
    "one order": ("ABC ABC AC BC AB", []),
    "one thread alone": ("AB-A-BBA", []),
    "one thread and another": ("AB-A-BBA AB", [["a", "b"]]),
    "two threads for three steps": ("ABC CA", [["a", "c"]]),
    "not at once": ("AB B-BA", []),
    "trylock waits for nobody": ("A?B B?A", []),
    "what trylock has is held": ("?AB ?BA", [["a", "b"]]),
    "trylock that fails has nothing": ("A?A-AB BA", []),
    "timedlock": ("A@B B@A", []),
    "what timedlock has is held": ("@AB @BA", [["a", "b"]]),
    "recursive": ("RRB RRB", []),
    "recursive, still held": ("RR-RB BR", [["recursive", "b"]]),
    "recursive, not held any more": ("RR-R-RB BR", []),
    "taken in the order, let go in another": ("ABC-A-CD BA", [["a", "b"]]),
    "another mutex at the same place": ("AB-A-B!ABA", []),
    "another mutex, in other threads": ("AB !A BA", []),
    "another mutex, both orders": ("AB !A BA AB", [["a", "b"]]),
    "of a struct": ("AI IA", [["a", "inner+0x8"]]),
    "on the heap": ("AH HA", [["a", None]]),
    "a condition is taken again": ("AB~A AB", [["a", "b"]]),
}


def record(program):
    target = gate.start(program)
    gate.wait_line(target, "ready")
    return target


def finish(name, braid):
    braid.send_signal(signal.SIGINT)
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, f"{name}: status", said)
    return gate.Recording(braid.file)


def cycles_of(recording, *options):
    """[[name of a mutex]] and the whole text."""
    shown = gate.braid("report", "--lock-order", *options, recording.file)
    if shown.status:
        raise RuntimeError(shown.err)
    lines = re.findall(r"^potential deadlock: (.*)$", shown.out, re.M)
    found = [[re.match(r"mutex (?:(\S+) \(\S+\) )?0x[0-9a-f]+(?: #\d+)? of pid \d+$", mutex)[1]
              for mutex in line.split(" -> ")] for line in lines]
    return found, shown.out


def turned(cycle):
    """The same from its first name on, without the end, which is the beginning again."""
    at = cycle.index(min(cycle[:-1], key=lambda name: name or "~"))
    return cycle[at:-1] + cycle[:at]


def check_cases(program, libc):
    """Each in a process of its own, all in one recording."""
    targets = {name: record(program) for name in CASES}
    file = gate.path(f"{libc}.db")
    braid = gate.start(gate.BRAID, "record", "-e", "lock-order", "--max-overhead", "none", "-p",
                       ",".join(str(target.pid) for target in targets.values()), "-o", file,
                       stderr=gate.subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
    braid.file = file
    for name, (line, _) in CASES.items():
        gate.ask(targets[name], line)
    recording = finish(libc, braid)
    gate.equal(recording.counters(), {},
               f"{libc}: nothing is lost")
    for name, (_, wanted) in CASES.items():
        found, text = cycles_of(recording, "--pid", targets[name].pid)
        gate.equal(sorted(map(turned, found), key=str), sorted(
            [turned(cycle + cycle[:1]) for cycle in wanted], key=str), f"{libc}: {name}", text)
    found, text = cycles_of(recording)
    gate.equal(len(found), sum(len(wanted) for _, wanted in CASES.values()),
               f"{libc}: of all processes as many as of each", text)
    return recording, targets["two threads"].pid


def check_text(recording, pid):
    """Each step with its thread and its stack, innermost first."""
    _, text = cycles_of(recording, "--pid", pid, "--lines")
    steps = re.findall(r"^  thread lock_order \((\d+)\) has mutex (\w) .* and takes mutex (\w) .* at\n"
                       r"((?:      .*\n)+)", text, re.M)
    gate.equal([(has, takes) for _, has, takes, _ in steps], [("a", "b"), ("b", "a")]
               if steps and steps[0][1] == "a" else [("b", "a"), ("a", "b")],
               "text: each step", text)
    gate.equal(len({tid for tid, _, _, _ in steps}), 2, "text: each in a thread of its own")
    where = gate.line(SOURCE, "pthread_mutex_lock(mutex);")
    for _, _, _, stack in steps:
        frames = [line.strip() for line in stack.splitlines()]
        gate.ok(f"take (lock_order.c:{where})" in frames and
                frames.index(f"take (lock_order.c:{where})") < 3, "text: with its stack", *frames)


def of_musl():
    """The same program with musl; None: it cannot be made here."""
    program = gate.path("lock_order-musl")
    compiler = shutil.which("musl-gcc")
    made = compiler and gate.run(compiler, "-O1", "-g", "-pthread", "-D_GNU_SOURCE", "-o", program, SOURCE)
    return program if made and not made.status else None


def check_refused():
    file = gate.path("cpu.db")
    gate.braid("record", "-o", file, "--", "true")
    shown = gate.braid("report", "--lock-order", file)
    gate.equal(shown.status, 1, "no such event: status")
    gate.ok("lock-order" in shown.err, "no such event: says so", shown.err)
    shown = gate.braid("report", "--lock-order", "--format", "tree", file)
    gate.equal(shown.status, 2, "a format: status", shown.err)


gate.need_root()
RECORDING, PID = check_cases(PROGRAM, "glibc")
check_text(RECORDING, PID)
MUSL = of_musl()
if MUSL:
    check_cases(MUSL, "musl")
else:
    gate.skip("musl", "there is no musl-gcc")
check_refused()
gate.done()
