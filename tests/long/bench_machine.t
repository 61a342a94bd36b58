#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""`braid bench` without a target: what it says of this machine holds together, and however it
ends, nothing is left of it."""

import json
import os
import re
import shutil
import signal
import subprocess

import lib

NOBODY = 65534
TABLES = {"machine", "traps", "pairs", "samples"}


def tables_of(result):
    """{name: table}, with rows as {column: cell}."""
    tables = {table["name"]: table for table in json.loads(result.out)["tables"]}
    for table in tables.values():
        names = [column["name"] for column in table["columns"]]
        table["rows"] = [dict(zip(names, row)) for row in table["rows"]]
    return tables


def median(cell):
    return cell["median"] if isinstance(cell, dict) else cell


def column(table, name):
    return [median(row[name]) for row in table["rows"]]


def check_traps(tables):
    traps, pairs = tables["traps"], tables["pairs"]
    floor = column(traps, "a hit")
    lib.equal(len(floor), 5, "traps: five kinds", traps)
    lib.ok(all(ns > 0 for ns in floor), "traps: each costs something", floor)
    lib.equal(len(pairs["rows"]), 4, "pairs: two floors, the shadow stack, calls", pairs)
    uprobe, usdt, shadow, calls = column(pairs, "a call")
    # One CPU does one thing after the other: a pair is two hits, and work comes on top.
    lib.ok(usdt > floor[0], "pairs: two hits cost more than one", usdt, floor)
    lib.ok(uprobe > floor[2], "pairs: a return on top of an entry", uprobe, floor)
    lib.ok(calls > floor[0] and shadow > floor[0], "pairs: shadow stacks cost more than a hit",
           shadow, calls)
    for row, ns in ((2, shadow), (3, calls)):
        ratio = pairs["rows"][row]["over the floor"]
        lib.ok(ratio["low"] <= ratio["median"] <= ratio["high"], "pairs: a ratio in its interval",
               ratio)
        lib.ok(0.5 < ratio["median"] / (ns / usdt) < 2, "pairs: the ratio is that of the figures",
               ratio, ns, usdt)


def check_samples(tables):
    rows = tables["samples"]["rows"]
    kinds = {(row["calls of"], row["unwinder"], row["depth"]) for row in rows}
    for depth in (10, 100, 500):
        lib.ok({("native", "tables", depth), ("native", "frame pointers", depth)} <= kinds,
               f"samples: native, depth {depth}", kinds)
    lib.ok(("native", "stack copies", 100) in kinds, "samples: native, by stack copies", kinds)
    for runtime in "python", "ruby", "jvm", "perl", "php", "node":
        found = sorted(depth for kind, _, depth in kinds if kind.startswith(runtime + " "))
        lib.ok(found == [10, 500], f"samples: {runtime}", found, tables["samples"]["notes"])
    lib.ok(all(row["samples"] > 100 for row in rows), "samples: enough of them",
           [row["samples"] for row in rows])
    cost = {(row["calls of"], row["unwinder"], row["depth"]): row["in the kernel"] for row in rows}
    for kind, unwinder, depth in cost:
        if depth == 500:
            lib.ok(cost[kind, unwinder, 500] > cost[kind, unwinder, 10],
                   f"samples: {kind} by {unwinder}: depth costs", cost)


def check_machine():
    before = lib.bpf_statistics()
    result = lib.braid("bench", "--format", "json")
    lib.equal(result.status, 0, "status", result.err)
    tables = tables_of(result)
    lib.equal(set(tables), TABLES, "tables")
    machine = tables["machine"]["rows"][0]
    lib.equal((machine["kernel"], machine["cpus"]), (os.uname().release, os.cpu_count()),
              "this machine")
    check_traps(tables)
    check_samples(tables)
    lib.equal(lib.bpf_statistics(), before, "the kernel's statistics are as before")


def check_killed():
    """In the middle of it."""
    before = lib.bpf_statistics()
    process = lib.start_braid("bench")
    lib.wait_for(lambda: lib.bpf_ids(process.pid)["link"], "a probe")
    ids = lib.bpf_ids(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    lib.wait_for(lambda: not any(ids[kind] & lib.all_bpf_ids(kind) for kind in ids), "the kernel's clean-up")
    lib.ok(True, "killed: no program, map or link is left")
    lib.equal(lib.bpf_statistics(), before, "killed: the kernel's statistics are as before")


def check_refusals():
    for words, pattern in ((("--format", "xml"), "--format takes table or json, not 'xml'"),
                           (("-p", "x"), "-p takes process ids"),
                           (("-p", "1,2"), "bench -p takes only one process"),
                           (("-p", "1", "--", "true"), "either -p PID or -- COMMAND"),
                           (("-d", "0"), "-d takes a number"),
                           (("-r", "cobol"), "no runtime 'cobol'")):
        result = lib.braid("bench", *words)
        lib.equal(result.status, 2, f"{' '.join(words)}: misused")
        lib.matches(pattern, result.err, f"{' '.join(words)}: why")
    result = lib.braid("bench", "-o", "/nowhere/at/all", "-r", "go")
    lib.equal(result.status, 1, "no such file: status", result.err)
    os.chmod(lib.tmp, 0o755)
    program = lib.path("braid")
    shutil.copy(lib.BRAID, program)
    run = subprocess.run([program, "bench"], capture_output=True, text=True, user=NOBODY,
                         group=NOBODY, extra_groups=[])
    lib.equal(run.returncode, 1, "no privilege: status")
    lib.ok(re.search("not permitted to load BPF programs: .*\. Run as root", run.stderr),
           "no privilege: why", run.stderr)


lib.need_bpf()
check_refusals()
check_machine()
check_killed()
lib.done()
