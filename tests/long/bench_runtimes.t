#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""`braid bench -r`: the runtimes that are here are measured, in all ways that each has; braid counts
the very calls that the workload says it has made; what is not here is told."""

import json
import os
import re
import shutil
import subprocess

import lib

PLAIN = ["nothing", "record, 99 Hz", "record, 999 Hz"]
PERF = "perf record -g, 999 Hz"
PROGRAMS = {"python": "python3", "ruby": "ruby", "jvm": "java"}


def bench(runtimes, *args, path=None):
    env = {**os.environ, **({"PATH": path, "HOME": lib.tmp} if path else {})}
    return lib.braid("bench", "-r", runtimes, "--format", "json", *args, env=env)


def rows(table):
    """{first cell: {column: cell}}"""
    return {row[0]: dict(zip((column["name"] for column in table["columns"]), row))
            for row in table["rows"]}


def check_figure(figure, name):
    lib.ok(isinstance(figure, dict) and 0 < figure["low"] <= figure["median"] <= figure["high"]
           and figure["n"] >= 1, f"{name}: a time", figure)


def check_costs(table, ways, name):
    found = rows(table)
    lib.equal(list(found), ways, f"{name}: the ways")
    for way, row in found.items():
        check_figure(row["nothing but calls"], f"{name}, {way}: calls")
        check_figure(row["ordinary work"], f"{name}, {way}: ordinary work")
        for what in ("slower", "ordinary work, slower"):
            if way == "nothing":
                lib.equal(row[what], None, f"{name}: nothing is not compared with itself")
                continue
            lib.ok(isinstance(row[what], dict) and row[what]["low"] * row[what]["high"] > 0
                   or isinstance(row[what], str)
                   and re.match("within the noise|unknown, after|unsure", row[what]),
                   f"{name}, {way}, {what}: a difference that does not include none, or noise",
                   row[what])


def check_work(table, ways, name):
    found = rows(table)
    lib.equal(list(found), [way for way in ways if way not in (PLAIN[0], PERF)],
              f"{name}: what braid does, for each that it does")
    for way, row in found.items():
        lib.ok(row["memory"] > 1 and row["braid's CPU"] >= 0, f"{name}, {way}: its own costs", row)
        if way != "calls":
            lib.ok(row["samples"] > 0, f"{name}, {way}: samples", row)
    if "calls" in found:
        lib.equal(found["calls"]["calls seen"], 100.0,
                  f"{name}: braid counts as many calls as the workload makes", found["calls"])


def has_perf():
    return not subprocess.run(["perf", "record", "-q", "-o", os.devnull, "true"], check=False,
                              stderr=subprocess.DEVNULL).returncode if shutil.which("perf") else False


def check_runtime(runtime):
    """The first in PATH."""
    result = bench(runtime, "-d", "1")
    if not shutil.which(PROGRAMS[runtime]):
        lib.skip(f"bench -r {runtime}", f"no {PROGRAMS[runtime]} in PATH")
        return
    if not lib.equal(result.status, 0, f"{runtime}: measured", result.err):
        return
    found = json.loads(result.out)
    if not lib.equal(len(found["tables"]), 2, f"{runtime}: its time, and braid's", result.out[:300]):
        return
    costs, work = found["tables"]
    name = costs["name"]
    lib.equal(work["name"], name + "-braid", f"{name}: its second table")
    probed = any(row[0] == "calls" for row in costs["rows"])
    ways = PLAIN + [PERF] * has_perf() + ["calls"] * probed
    check_costs(costs, ways, name)
    check_work(work, ways, name)
    version = name.partition("-")[2]
    program = re.search(r"\((/.*)\):", costs["title"]).group(1)
    told = subprocess.run([program, "-version" if runtime == "jvm" else "--version"],
                          capture_output=True, check=True)
    lib.ok(version in (told.stdout + told.stderr).decode(), f"{name}: is {program}", told)
    lib.matches("calls by (usdt|uprobe)" if probed else "no calls: .", "\n".join(costs["notes"]),
                f"{name}: how, or why not")


# --- what is not here ---

def fake(directory, name, text):
    directory = lib.path(directory)
    os.makedirs(directory, exist_ok=True)
    program = os.path.join(directory, name)
    with open(program, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(program, 0o755)
    return directory


def check_missing():
    empty = lib.path("empty")
    os.makedirs(empty)
    babbler = fake("babbler", "python3", "#!/bin/sh\necho hello\n")
    broken = fake("broken", "ruby", "#!/no/such/program\n")
    jre = fake("jre", "java", "#!/bin/sh\nexit 1\n")
    for name, runtimes, path, pattern in (
            ("nothing at all", "python", empty, "python: cannot find python3 in PATH"),
            ("no Ruby, and no Java", "ruby,jvm", empty, "cannot find java in PATH"),
            ("a program that is no Python", "python", babbler, "cannot run the workload"),
            ("a program that does not run", "ruby", broken, "cannot run the workload"),
            ("a Java without a compiler", "jvm", jre, "is a JRE. Running the bundled source file requires a JDK"),
            ("a runtime without a workload", "go", empty, "no workload is bundled for go")):
        result = bench(runtimes, path=path)
        lib.equal(result.status, 1, f"{name}: exits with 1", result.out)
        lib.matches(pattern, result.err, f"{name}: says so")
    lib.equal(bench("cobol").status, 2, "no such runtime")


def check_one_of_two():
    """What is there is measured, what is not is a note."""
    directory = fake("one", "python3", "#!/bin/sh\nexec /usr/bin/python3 \"$@\"\n")
    result = bench("python,jvm", "-d", "1", path=directory)
    lib.equal(result.status, 0, "one of two runtimes: measured", result.err)
    found = json.loads(result.out)
    lib.matches(r"^python-3\.", found["tables"][0]["name"], "the one that is there")
    lib.matches(r"\(/usr/bin/python3", found["tables"][0]["title"], "not the script that starts it")
    lib.ok(any("jvm: cannot find java in PATH" in note for table in found["tables"]
               for note in table["notes"]), "and a note of the other", found)


# --- ends ---

def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


def check_killed():
    """braid is killed while it measures: its workload and what observes that must not be left."""
    directory = fake("killed", "python3", "#!/bin/sh\nexec /usr/bin/python3 \"$@\"\n")
    process = lib.start_braid("bench", "-r", "python",
                              env={**os.environ, "PATH": directory, "HOME": lib.tmp})
    line = b"begin"
    while line and b"round 1" not in line:
        line = process.stderr.readline()
    started = lib.wait_for(lambda: len(children(process.pid)) >= 2 and children(process.pid),
                           "a workload that is observed")
    process.kill()
    process.wait()
    lib.wait_for(lambda: all(lib.state_of(pid) in (None, "Z") for pid in started),
                 "the end of what was started")
    lib.ok(True, "nothing is left when braid is killed")
    lib.stop(process)


lib.need_bpf()
check_killed()
check_missing()
check_one_of_two()
for _runtime in PROGRAMS:
    check_runtime(_runtime)
lib.done()
