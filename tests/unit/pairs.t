#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Each pair of events, and each pair of options that docs/reference/events.md names: `record` refuses what stands
there, with the reason and the way out, and nothing else."""

import itertools
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import tap  # noqa: E402
from tap import equal, matches  # noqa: E402

BRAID = os.path.join(os.environ.get("OUTPUT", "build"), "braid")
NOBODY = "4194303"  # no PID is as high
EVENTS = ("cpu", "wall", "off-cpu:1ms", "wakeup", "page-fault", "context-switches", "cycles",
          "syscall", "syscall:read", "block-io", "tracepoint:sched:sched_switch", "uprobe:libc.so.6:malloc",
          "uretprobe:libc.so.6:malloc", "kprobe:vfs_read", "alloc", "alloc:mmap", "alloc:python", "outstanding",
          "outstanding:python", "lock", "lock:pthread", "lock-holder", "lock-order",
          "uprobe:libc.so.6:malloc:latency:uretprobe:libc.so.6:malloc")


def record(*words):
    return subprocess.run([BRAID, "record", *words], capture_output=True, text=True, check=False, timeout=60)


def documented():
    """The pairs of the table of events: sets of one or two names."""
    with open(os.path.join(HERE, "../../docs/reference/events.md"), encoding="utf-8") as file:
        section = file.read().split("## Events that exclude each other\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1:3] for line in section.split("\n\n")[1].splitlines()[2:]]
    return [frozenset(cell.split("`")[1] for cell in row) for row in rows]


def check_events():
    refused = documented()
    equal(len(refused), 4, "docs/reference/events.md: rows of pairs")
    wrong = []
    for pair in itertools.combinations(EVENTS, 2):
        said = record("-e", pair[0], "-e", pair[1], "-o", "-").stderr.splitlines()[0]  # -o - ends what goes on
        want = frozenset(name.split(":")[0] for name in pair) in refused
        if ("-e: " in said and ". Leave " in said) != want or (not want and "standard output" not in said):
            wrong.append((pair, said))
    equal(wrong, [], f"{len(EVENTS) * (len(EVENTS) - 1) // 2} pairs of events: those of the table are refused, "
                     "with a way out")


def check_options():
    for words, why in (
            (("-p", "1", "--", "true"), "give either -p PID or -- COMMAND"),
            (("-a", "-p", "1"), "cannot be used with"),
            (("--name", "x", "--", "true"), "cannot be used with"),
            (("-a", "--no-children"), "--no-children requires -p"),
            (("-e", "cycles", "-F", "99", "-c", "1000", "-p", NOBODY), "both set how often to sample"),
            (("-e", "page-fault", "-F", "99", "-p", NOBODY), "add -e cpu, or give -c"),
            (("-c", "10", "-p", NOBODY), "give -F"),
            (("-e", "page-fault", "-c", "64k", "-p", NOBODY), "add -e alloc, or give a number"),
            (("--waker", "-p", NOBODY), "requires -e off-cpu or -e wall"),
            (("--outstanding", "-p", NOBODY), "requires -e alloc"),
            (("-e", "outstanding", "--rotate", "10", "--keep", "2", "-o", "d", "-a"), "cannot be used with --rotate"),
            (("--rotate", "10", "--keep", "2", "-a"), "name it with -o"),
            (("--rotate", "10", "-o", "d", "-a"), "limit the recordings with --keep"),
            (("--keep", "2", "-a"), "require --rotate SECONDS")):
        done = record(*words)
        matches(why, done.stderr, f"{' '.join(words)}: {why}")
        equal(done.returncode, 2, f"{' '.join(words)}: status")


check_events()
check_options()
tap.done()
