#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""`braid bench -- COMMAND`: what it says of commands whose CPU time, calls and noise are known."""

import json
import os
import re
import signal
import sys

import lib
import pythons

BURN = """
import time
def burn(seconds):
    while time.process_time() < seconds:
        pass
"""

# What the run of this number is for is known beforehand: the first one, then round by round, forth
# and back.
NUMBERED = BURN + """
import sys
with open(sys.argv[1], "r+") as file:
    number = int(file.read())
    file.seek(0)
    file.write(str(number + 1))
turn, way = divmod(number - 1, 3)
way = 2 - way if turn % 2 else way
"""


def bench(*args, **options):
    return lib.braid("bench", *args, **options)


def python(code, *args):
    return ["/usr/bin/python3", "-S", "-c", code, *args]


def tables(result, name):
    """{table: {row: {column: cell}}}, as the JSON has it."""
    try:
        found = json.loads(result.out)
    except ValueError:
        lib.ok(False, f"{name}: JSON", result.out, result.err)
        return {}
    return {table["name"]: {row[0]: dict(zip((column["name"] for column in table["columns"]), row))
                            for row in table["rows"]} for table in found["tables"]}


# --- what cannot be measured ---

def check_refusals():
    missing = lib.path("no-such-program")
    for name, command, pattern in (
            ("a missing program", [missing], f"cannot run {re.escape(missing)}: No such file"),
            ("a failing command", ["sh", "-c", "sleep 0.1; exit 3"], "sh failed with status 3"),
            ("a command that is killed", ["sh", "-c", "kill -9 $$"], "sh was killed by signal 9"),
            ("a short command", ["true"], r"cannot measure true: it ran for \d+ ms")):
        result = bench("--", *command)
        lib.equal(result.status, 1, f"{name}: exits with 1", result.err)
        lib.matches(pattern, result.err, f"{name}: says so")
        lib.equal(result.out, "", f"{name}: no table")
    both = bench("-p", "1", "--", "true")
    lib.equal(both.status, 2, "a process and a command at once", both.err)


def check_failing_later():
    """It works by itself, but not when it is observed."""
    counter = lib.path("failing")
    with open(counter, "w", encoding="utf-8") as file:
        file.write("0")
    result = bench("-r", "native", "--", *python(
        NUMBERED + "burn(0.06)\nsys.exit(4 if number > 1 else 0)", counter))
    lib.equal(result.status, 1, "a command that fails under braid: exits with 1", result.err)
    lib.matches("failed with status 4, under: record, 99 Hz", result.err, "and says under what")


# --- what is known ---

def check_known():
    """So much CPU time; what it reads and writes is nobody's."""
    seconds = 0.2
    result = bench("--format", "json", "-d", "4", "-r", "native", "--", *python(
        BURN + f"import sys\nprint('noise' * 1000)\nassert not sys.stdin.read()\n"
        f"sys.stderr.write('its error\\n')\nburn({seconds})\n"))
    lib.equal(result.status, 0, "a command is measured", result.err)
    lib.matches("its error", result.err, "its errors are shown")
    found = tables(result, "a known command")
    times, work = found.get("command", {}), found.get("command-braid", {})
    lib.equal(list(times), ["nothing", "record, 99 Hz", "record, 999 Hz"], "ways of a native command")
    for way, row in times.items():
        cpu, wall = row["CPU"], row["wall"]
        lib.ok(cpu["low"] >= seconds, f"{way}: at least the CPU time that it burns", cpu)
        # which two clocks tell; exec and the dynamic linker come before that on the wall
        lib.ok(wall["high"] >= cpu["low"] - 0.05,
               f"{way}: one thread takes no less time than CPU time", row)
        lib.equal(set(cpu), {"median", "low", "high", "n", "unsure"}, f"{way}: a figure's fields")
        lib.ok(cpu["low"] <= cpu["median"] <= cpu["high"], f"{way}: the median lies inside", cpu)
    lib.equal(times["nothing"]["CPU, to nothing"], None, "nothing is not compared with itself")
    few, many = work["record, 99 Hz"]["samples"], work["record, 999 Hz"]["samples"]
    lib.ok(0 < few < many, "more samples at the higher rate", work)
    lib.equal([row["lost"] for row in work.values()], [0, 0], "nothing lost")


def numbered(name, rule, seconds):
    counter = lib.path(name)
    with open(counter, "w", encoding="utf-8") as file:
        file.write("0")
    result = bench("--format", "json", "-d", str(seconds), "-r", "native", "--",
                   *python(NUMBERED + f"burn({rule})", counter))
    lib.equal(result.status, 0, f"{name}: measured", result.err)
    return tables(result, name).get("command", {})


def check_noise():
    """Five times as long in one round, a fifth in the next: no difference that could be told."""
    times = numbered("noise", "0.3 if (turn % 2 == 0) == (way > 0) else 0.06", 25)
    for way in ("record, 99 Hz", "record, 999 Hz"):
        for what in ("CPU", "wall"):
            cell = times[way][f"{what}, to nothing"]
            lib.ok(isinstance(cell, str) and re.match("within the noise|unknown, after|unsure", cell),
                   f"noise, {way}, {what}: no number", cell)


def check_difference():
    """Five times as long whenever it is observed."""
    times = numbered("difference", "0.3 if way > 0 and number else 0.06", 15)
    for way in ("record, 99 Hz", "record, 999 Hz"):
        cell = times[way]["CPU, to nothing"]
        if times[way]["CPU"]["n"] < 3:
            lib.matches("unknown, after", cell, f"difference, {way}: not after one run or two")
            continue
        lib.ok(isinstance(cell, dict) and cell["low"] > 1.5, f"difference, {way}: told", cell)


# --- calls ---

CALLS = 100000
CALLING = BURN + f"""
def callee(): pass
for i in range({CALLS}): callee()
burn(0.06)
"""


def check_calls():
    probed = [one for one in pythons.pythons()[0] if not one.root and (3, 8) <= one.version[:2] < (3, 11)]
    if not probed:
        lib.skip("calls of a command", "no CPython 3.8 to 3.10 here")
        return
    program = probed[0].program
    result = bench("--format", "json", "-d", "10", "-r", "python", "--", program, "-I", "-S", "-c",
                   CALLING)
    lib.equal(result.status, 0, "a command with probes is measured", result.err)
    found = tables(result, "calls")
    lib.ok("calls" in found["command"], "and its calls are counted", found["command"])
    # What the interpreter calls to start itself and to import is counted as well.
    calls = found["command-braid"]["calls"]["calls"]
    lib.ok(CALLS <= calls <= CALLS + 20000, "all its calls, and few others, were counted", calls)


def check_refused_calls():
    refused = [one for one in pythons.pythons()[0] if not one.root and one.version[:2] in ((3, 12), (3, 13))]
    if not refused:
        lib.skip("a command without probes", "no CPython 3.12 or 3.13 here")
        return
    result = bench("-d", "3", "-r", "python", "--", refused[0].program, "-S", "-c",
                   BURN + "burn(0.1)")
    lib.equal(result.status, 0, "a command without probes is measured", result.err)
    lib.matches(r"no calls: python 3\.1[23]", result.out, "and why no calls are counted is told")
    lib.ok("\n  calls " not in result.out, "and there is no row of them", result.out)


# --- ends ---

def until(process, pattern):
    """Reads its stderr up to there."""
    text = b""
    while not re.search(pattern.encode(), text):
        line = process.stderr.readline()
        if not line:
            raise RuntimeError(f"it ended: {text!r}")
        text += line


def check_interrupt():
    out = lib.path("interrupted.json")
    process = lib.start_braid("bench", "--format", "json", "-o", out, "-r", "native", "--",
                              *python(BURN + "burn(0.1)"))
    until(process, "round 2")
    process.send_signal(signal.SIGINT)
    lib.equal(process.wait(lib.PATIENCE_S), 0, "Ctrl-C ends it well")
    with open(out, encoding="utf-8") as file:
        found = json.load(file)
    lib.equal([table["name"] for table in found["tables"]], ["command", "command-braid"],
              "with what there is")
    lib.stop(process)


def check_killed():
    """braid is killed: the command, and what it has started, must not be left."""
    pids = lib.path("pids")
    process = lib.start_braid("bench", "-r", "native", "--", "sh", "-c",
                              f"sleep 1000 & echo $$ $! > {pids}.new; mv {pids}.new {pids}; wait")
    lib.wait_for(lambda: os.path.exists(pids), "the command to run")
    with open(pids, encoding="utf-8") as file:
        started = [int(pid) for pid in file.read().split()]
    process.kill()
    process.wait()
    lib.wait_for(lambda: all(lib.state_of(pid) in (None, "Z") for pid in started),
                 "the end of what was started")
    lib.ok(True, "nothing is left when braid is killed")
    lib.stop(process)


lib.need_bpf()
check_refusals()
check_failing_later()
check_known()
check_noise()
check_difference()
check_calls()
check_refused_calls()
check_interrupt()
check_killed()
lib.done()
