#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""`braid calls` counts every call: as arithmetic and sys.setprofile have it, for each CPython build
that has probes at its calls. Times lie between those that the program measures itself, on the same
clock. Builds without such probes are refused."""

import collections
import os
import re
import struct
import subprocess

import lib
import pythons
from calls_run import (DEEPER, EXACT, FIB, FILE, OUTER, SCRIPT, THREADED, Calls, Workload, called,
                       changed_code, check_losses, difference, read_table, read_tree, total)


# --- counts ---

def count(python, commands, name, *args):
    workload = Workload(python)
    calls = Calls(workload.pid, *args)
    workload.run(commands)
    text = calls.end(name).decode()
    workload.stop()
    if python.version < (3, 12):
        check_losses(calls.err, name)
    return read_table(text), calls.err


def check_plain(python):
    """From 3.15 on the probes fire when a generator is made, too, and at some returns that are no
    function's."""
    commands = {command: EXACT[command] for command in (
        "fib 20", "mutual 300", "methods 70", "exceptions 70", "deep 900")}
    name = f"{python.label}: plain functions"
    rows, err = count(python, commands, name)
    lib.equal(difference(called(rows, FILE), total(commands)), [], name, err)


def check_counts(python):
    """All of the thread's functions, also those of libraries, against both oracles."""
    name = f"{python.label}: counts"
    rows, err = count(python, EXACT, name)
    got, want = called(rows), total(EXACT)
    lib.equal(difference(called(rows, FILE), want), [], f"{name}: as arithmetic has them", err)
    profiled = Workload(python)
    oracle = collections.Counter()
    for command in EXACT:
        for function, file, calls in profiled.ask("profile " + command):
            oracle[function, file] += calls
    profiled.stop()
    lib.equal(difference({key: oracle[key] for key in oracle if key[1] == FILE}, want), [],
              f"{name}: sys.setprofile agrees with arithmetic")
    lib.ok(len(oracle) > len(want), f"{name}: functions of libraries, too", len(oracle))
    lib.equal(difference(got, oracle), [], f"{name}: as sys.setprofile has them")


def check_deeper(python):
    name = f"{python.label}: deeper than a shadow stack"
    rows, err = count(python, DEEPER, name)
    lib.equal(difference(called(rows, FILE), total(DEEPER)), [], name, err)


def check_threads(python):
    name = f"{python.label}: threads and coroutines"
    rows, err = count(python, THREADED, name)
    lib.equal(difference(called(rows, FILE), total(THREADED)), [], name, err)


def check_children(python):
    name = f"{python.label}: fork"
    workload = Workload(python)
    calls = Calls(workload.pid)
    source = calls.wait_source(workload.pid)
    for child in workload.ask("fork 3"):
        lib.equal(calls.wait_source(child), source, f"{name}: a child's source")
    workload.run(["release 0", "fib 10"])
    # Then the parent no longer shares an address space with them.
    lib.wait_for(lambda: calls.processes() == 1, "braid's notice of the children's end")
    calls.wait_source(workload.ask("fork 1")[-1])
    workload.run(["exceptions 70", "deep 100", "release 0"])
    rows = read_table(calls.end(name).decode())
    workload.stop()
    want = {("fork", FILE): 2, ("child_work", FILE): 4, ("grow", FILE): 4 * FIB[10],
            ("release", FILE): 2, ("fib", FILE): FIB[10], ("exceptions", FILE): 1,
            ("fall", FILE): 700, ("rise", FILE): 70, ("deep", FILE): 1, ("descend", FILE): 100}
    lib.equal(difference(called(rows, FILE), want), [], name, calls.err)


def check_exec(python):
    """Another program in the same process, of which the beginning is missed."""
    name = f"{python.label}: exec"
    workload = Workload(python)
    calls = Calls(workload.pid)
    workload.ask("fib 10")
    workload.send("execute 0")
    calls.wait_source(workload.pid, times=2)
    lib.equal(workload.process.stdout.readline(), b"READY\n", f"{name}: executed")
    workload.ask("fib 20")
    rows = read_table(calls.end(name).decode())
    workload.stop()
    lib.equal(called(rows).get(("fib", FILE)), FIB[10] + FIB[20], name, rows, calls.err)


def check_command(python):
    """From the first instruction on; the report comes with the end."""
    name = f"{python.label}: a command"
    file = lib.path("command.out")
    run = subprocess.run([lib.BRAID, "calls", "-o", file, "--", *python.arguments(SCRIPT)],
                         input=b"fib 20\nexceptions 70\n", capture_output=True,
                         env=python.environment(), timeout=lib.PATIENCE_S, check=False)
    lib.equal(run.returncode, 0, f"{name}: status", run.stderr)
    lib.equal(run.stdout, b"READY\n6765\nNone\n",
              f"{name}: its output is its own")
    with open(file, encoding="utf-8") as text:
        rows = read_table(text.read())
    got = called(rows, FILE)
    want = total({"": {"fib": 21891, "exceptions": 1, "fall": 700, "rise": 70, "<module>": 1,
                       "outer": 1, "middle": 1, "serve": 1}})
    lib.equal(difference({key: got.get(key, 0) for key in want}, want), [], f"{name}: counts",
              run.stderr)
    check_losses(run.stderr.decode(), name)


# --- trees and times ---

def stacks(folded):
    """[(frames, ns)]"""
    lines = (line.rpartition(" ") for line in folded.splitlines())
    return [(frames.split(";"), int(value)) for frames, _, value in lines]


def inclusive(found, function):
    return sum(ns for frames, ns in found if f"{function} ({FILE})" in frames)


def check_times(found, outer_s, name, slack=0.0):
    """Against (within busy, around it, around busy_down), in seconds."""
    within, around, around_down = (1e9 * seconds for seconds in outer_s)
    low, high = 1 - slack, 1 + slack
    lib.ok(low * within <= found["busy"] - found["busy below"] <= high * around,
           f"{name}: a function's time", found, outer_s)
    lib.ok(low * 20e6 <= found["busy_down"] <= high * around_down,
           f"{name}: a recursion's time, once", found, outer_s)


def check_folded(python):
    name = f"{python.label}: folded"
    workload = Workload(python)
    start_s = lib.time.monotonic()
    calls = Calls(workload.pid, "--format", "folded")
    seconds = workload.ask("timed 200")
    workload.run(["fib 15", "exceptions 3"])
    found = stacks(calls.end(name).decode())
    wall_ns = 1e9 * (lib.time.monotonic() - start_s)
    workload.stop()
    below = sum(ns for frames, ns in found if f"busy ({FILE})" in frames
                and f"busy_down ({FILE})" in frames)
    check_times({"busy": inclusive(found, "busy"), "busy below": below,
                 "busy_down": inclusive(found, "busy_down")}, seconds, name)
    whole = sum(ns for _, ns in found)
    lib.ok(1e9 * (seconds[1] + seconds[2]) <= whole <= wall_ns,
           f"{name}: all time, once, and no more than there was", whole, wall_ns, seconds)
    fib = [frames for frames, _ in found if f"fib ({FILE})" in frames]
    lib.equal(max(frames.count(f"fib ({FILE})") for frames in fib), 15, f"{name}: depth of fib")
    if python.version < (3, 11):
        lib.equal([frames for frames, _ in found if frames[:4] != OUTER[:len(frames)]], [],
                  f"{name}: below what was called before")
        lib.equal(inclusive(found, "<module>"), whole, f"{name}: nothing beside it")


def check_tree(python):
    name = f"{python.label}: tree"
    workload = Workload(python)
    calls = Calls(workload.pid, "--format", "tree", "--rows", "100000")
    seconds = workload.ask("timed 100")
    workload.run(["fib 18"])
    text = calls.end(name).decode()
    rows = read_tree(text)
    workload.stop()
    path, sums, wrong = [], collections.Counter(), []
    for i, (depth, label, whole, own, _) in enumerate(rows):
        path[depth:] = [i]
        if depth:
            sums[path[depth - 1]] += whole
        sums[i] += own
    wrong = [rows[i] for i in range(len(rows)) if sums[i] > 1.02 * rows[i][2]]
    lib.ok(len(rows) > 10 and not wrong,
           f"{name}: a function takes the time of its callees and its own", wrong, text)
    timed = next(depth for depth, label, *_ in rows if label == f"timed ({FILE})")
    spent = [whole for depth, label, whole, *_ in rows
             if label == f"busy ({FILE})" and depth == timed + 1]
    lib.ok(len(spent) == 1 and 0.99e9 * seconds[0] <= spent[0] <= 1.01e9 * seconds[1],
           f"{name}: time", text)
    levels = [calls for _, label, *_, calls in rows if label == f"fib ({FILE})"]
    lib.equal(levels[:4], [1, 2, 4, 8], f"{name}: calls per level", text)
    if python.version < (3, 11):
        trunk = f"{len(OUTER) - 1} frames common to all samples"
        lib.equal([(row[0], row[1], row[4]) for row in rows[:2]],
                  [(0, trunk, 0), (0, OUTER[-1], 0)],
                  f"{name}: what was called before, without a call", text)


def check_pprof(python):
    name = f"{python.label}: pprof"
    workload = Workload(python)
    calls = Calls(workload.pid, "--format", "pprof")
    seconds = workload.ask("timed 100")
    workload.run(["fib 15"])
    calls.end(name)
    workload.stop()
    text = subprocess.run(["python3", "-B", "tests/tools/read_pprof.py", calls.file], check=True,
                          stdout=subprocess.PIPE).stdout.decode()
    lib.matches("^types calls/count time/nanoseconds\n", text, f"{name}: types")
    found = [(stack.split(";"), int(n), int(ns))
             for n, ns, stack in re.findall(r"^stack (\d+) (\d+) (.*)$", text, re.M)]
    lib.equal(sum(n for frames, n, _ in found if frames[-1] == f"fib ({FILE})"), FIB[15],
              f"{name}: calls")
    lib.ok(sum(ns for frames, _, ns in found if f"timed ({FILE})" in frames)
           >= 1e9 * (seconds[1] + seconds[2]), f"{name}: time", seconds)


def check_table_times(python):
    name = f"{python.label}: table"
    workload = Workload(python)
    calls = Calls(workload.pid)
    seconds = workload.ask("timed 200")
    workload.run(["fib 15"])
    rows = {row.name: row for row in read_table(calls.end(name).decode())}
    workload.stop()
    check_times({"busy": rows["busy"].total_ns, "busy below": rows["busy_down"].total_ns
                 - rows["busy_down"].self_ns, "busy_down": rows["busy_down"].total_ns},
                seconds, name, slack=0.02)
    lib.ok(all(row.self_ns <= 1.01 * row.total_ns for row in rows.values()),
           f"{name}: no function is longer in itself than in all", rows)
    lib.ok(rows["fib"].total_ns <= 1.01 * rows["fib"].self_ns,
           f"{name}: recursion is not counted twice", rows["fib"])


# --- ends ---

def semaphores(python):
    """Virtual addresses, by probe."""
    notes = pythons.output("readelf", "-nW", python.binary)
    return {name: int(address, 16) for name, address in re.findall(
        r"Provider: python\s+Name: (function__\w+|line)\s+Location: \S+ Base: \S+ "
        r"Semaphore: 0x([0-9a-f]+)", notes) if int(address, 16)}


def raised(python, pid):
    """What is not 0, in the memory of a program that is not position independent."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        found = {name: struct.unpack("H", os.pread(memory.fileno(), 2, address))[0]
                 for name, address in semaphores(python).items()}
    return {name: value for name, value in found.items() if value}


def check_killed(python):
    name = f"{python.label}: SIGKILL"
    workload = Workload(python)
    calls = Calls(workload.pid)
    workload.ask("threads 3")
    lib.ok(changed_code(python, workload.pid), f"{name}: there were breakpoints")
    if python.dtrace:
        lib.ok(raised(python, workload.pid), f"{name}: there were semaphores raised")
    workload.send("fib 22")
    calls.process.kill()
    calls.process.wait()
    workload.answer()
    try:
        lib.wait_for(lambda: not changed_code(python, workload.pid), "the kernel's clean-up")
    except TimeoutError:
        pass
    lib.equal(changed_code(python, workload.pid), 0, f"{name}: no breakpoint is left")
    lib.equal(raised(python, workload.pid), {}, f"{name}: no semaphore is raised")
    workload.ask("threads 3")
    lib.ok(lib.state_of(workload.pid) in "RS", f"{name}: the target goes on")
    workload.stop()


# --- refusals ---

def check_refused(python):
    workload = Workload(python)
    name = f"{python.label}: refused"
    result = lib.braid("calls", "-p", workload.pid)
    workload.stop()
    lib.equal(result.status, 1, f"{name}: status", result)
    lib.matches(rf"pid {workload.pid}: python {python.version[0]}\.{python.version[1]}\S*: none: "
                r".*no probes.*\nbraid: .*`braid record`", result.err, f"{name}: why, and what can")
    lib.equal(result.out, "", f"{name}: no table")


def check_native():
    target = lib.start_ready(lib.fixture("shares"))
    result = lib.braid("calls", "-p", target.pid)
    lib.stop(target)
    lib.equal(result.status, 1, "native program: status", result)
    lib.matches("^braid: .*cannot count calls.*braid record", result.err,
                "native program: what can")


def check_wrong():
    for args, pattern in (
            ([], "either -p PID or -- COMMAND"), (["-p", "x"], "-p takes"),
            (["-p", "1", "--", "true"], "either -p PID or -- COMMAND"),
            (["-p", "1", "-d", "0"], "-d takes"), (["-p", "1", "--rows", "0"], "--rows takes"),
            (["-p", "1", "--format", "svg"], "--format takes"), (["-p", "1", "-r", "x"], "'x'"),
            (["-p", "1", "--nonsense"], "nonsense")):
        result = lib.braid("calls", *args)
        name = f"calls {' '.join(args)}"
        lib.equal(result.status, 2, f"{name}: status", result)
        lib.matches(pattern, result.err, f"{name}: what is wrong")
    for args, pattern in ((["-p", "4194304"], "no process with PID 4194304"),
                          (["--", "/no/such/program"], "cannot run /no/such/program")):
        result = lib.braid("calls", *args)
        lib.equal(result.status, 1, f"calls {' '.join(args)}: status", result)
        lib.matches(f"^braid: .*{pattern}", result.err, f"calls {' '.join(args)}: why")


def has_probes(python):
    return python.version < (3, 11) or (python.dtrace and not (3, 12) <= python.version < (3, 15))


lib.need_bpf()
found_pythons, skipped = pythons.pythons()
with_probes = [python for python in found_pythons if has_probes(python)]
if not with_probes:
    lib.skip_all("no CPython with probes at its calls")
for one in with_probes:
    if one.version >= (3, 12):
        check_plain(one)
        continue
    for check in (check_counts, check_deeper, check_threads, check_children, check_exec,
                  check_folded, check_tree, check_pprof, check_table_times, check_killed):
        check(one)
    if not one.root:  # chroot executes a second program, whose beginning is missed
        check_command(one)
for one in found_pythons:
    if not has_probes(one):
        check_refused(one)
check_native()
check_wrong()
for skip in skipped:
    lib.skip(skip.what, skip.why) if not skip.ours else lib.ok(
        not os.environ.get("BRAID_NO_SKIP"), f"{skip.what} is there", skip.why)
lib.done()
