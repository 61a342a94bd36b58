#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""--max-overhead: probes that cost too much are detached for good. `record` goes on without them and
`calls` ends, with exact counts up to then; both say when, why, and what the user can do.
(docs/reference/overhead.md)"""

import collections
import os
import re
import signal
import struct

import gate

PAIR = os.path.join(gate.OUTPUT, "fixtures/native/pair")
PYTHON = "/usr/bin/python3.11"
WINDOWS = "fixtures/python/calls/windows.py"
# Calls in one turn of windows.py, in order.
TURN = "turn left leaf leaf leaf right leaf left leaf leaf leaf".split()
WHY = r"probes cost [\d.]+ % of this machine, more than --max-overhead 0\.1"
LIMIT = ("--max-overhead", "0.1")


def pair():
    target = gate.start(PAIR, 1, 1)
    gate.wait_line(target, "ready")
    return target


def end(target):
    target.kill()
    target.wait()


def breakpoints(target):
    """Bytes of the program's code that are not as in its file."""
    changed = 0
    with open(f"/proc/{target.pid}/maps", encoding="utf-8") as maps, \
            open(f"/proc/{target.pid}/mem", "rb", buffering=0) as memory, \
            open(PAIR, "rb") as file:
        for line in maps:
            area, access, offset, *_, path = line.split()[:6]
            if "x" not in access or not path.endswith("/pair"):
                continue
            start, stop = (int(word, 16) for word in area.split("-"))
            file.seek(int(offset, 16))
            want = file.read(stop - start)
            got = os.pread(memory.fileno(), len(want), start)
            changed += sum(a != b for a, b in zip(got, want))
    return changed


def samples_in(file):
    """Of a recording that is being written; nothing is in it before the first second is over."""
    try:
        return gate.Recording(file).count()
    except gate.sqlite3.Error:
        return 0


def check_record():
    """No walker knows this interpreter, so that it goes on with native frames alone."""
    target, file = pair(), gate.path("limit.db")
    braid = gate.start(gate.BRAID, "record", "--source", "probes", *LIMIT, "-F", "499", "-o", file,
                       "-p", target.pid, stderr=gate.subprocess.PIPE)
    said = [braid.stderr.readline().decode() for _ in range(3)]
    said = [line for line in said if not line.startswith("recording pid ")]
    gate.matches(rf"^pid {target.pid}: python 3\.99\.0: usdt\n"
                 rf"pid {target.pid}: python 3\.99\.0: none: {WHY}\n$", "".join(said),
                 "record: says that probes were given up")
    gate.wait_until(lambda: not breakpoints(target), "the end of the breakpoints")
    before = gate.wait_until(lambda: samples_in(file), "samples")
    gate.wait_until(lambda: samples_in(file) > before, "samples without probes")
    gate.equal(breakpoints(target), 0, "record: goes on, and no probe comes back")
    braid.send_signal(signal.SIGINT)
    err = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, "record: status", err)
    gate.equal(gate.state_of(target.pid), "R", "record: the target goes on")
    end(target)
    recording = gate.Recording(file)
    gate.matches(rf"(?m)^probes were detached after [\d.]+ s: {WHY}; to keep them: --max-overhead none$",
                 err, "record: the summary")
    gate.equal(recording.sql("SELECT source FROM source ORDER BY rowid"), [("usdt",), ("none",)],
               "record: both sources are in the recording")
    gate.matches(rf"^{WHY}$", recording.meta("probes_detached_why"), "record: and why")
    gate.equal(recording.meta("max_overhead_percent"), "0.1", "record: and the limit")
    gate.ok(0 <= float(recording.meta("probes_detached_after_s"))
            < float(recording.meta("duration_s")), "record: and when",
            recording.meta("probes_detached_after_s"))
    gate.equal(recording.counters()["times that probes were detached because of --max-overhead"], 1,
               "record: and a counter")


def check_ends(name, err):
    gate.matches(rf"(?m)^probes were detached after [\d.]+ s: {WHY}\. Counts and times end "
                 r"there; to count for longer, give --max-overhead PCT or none$", err,
                 f"{name}: says when, why, and what to do")


def check_calls():
    """What is counted is one stretch of what was called: as many of each function as belong to one
    turn, but for the turns in which it began and ended."""
    counter, file = gate.path("turns"), gate.path("calls.txt")
    target = gate.start(PYTHON, WINDOWS, counter)
    gate.wait_line(target, "READY")
    result = gate.braid("calls", *LIMIT, "--rows", "1000", "-o", file, "-p", target.pid)
    with open(counter, "rb") as numbers:
        turns, = struct.unpack("Q", numbers.read(8))
    gate.equal((result.status, gate.state_of(target.pid) in ("R", "S")), (0, True),
               "calls: ends by itself, and the target goes on", result.err)
    check_ends("calls", result.err)
    end(target)
    counts = collections.Counter()
    with open(file, encoding="utf-8") as table:  # a tree leaves out what is rare
        for calls, name in re.findall(r" (\d+) +python +(\w+) \(windows\.py\)$", table.read(), re.M):
            counts[name] += int(calls)
    gate.ok(0 < counts["turn"] <= turns + 1, "calls: no more turns than there were", counts, turns)
    for name in "left", "right", "leaf":
        per_turn = TURN.count(name)
        gate.ok(abs(counts[name] - per_turn * counts["turn"]) <= per_turn,
                f"calls: {per_turn} calls of {name} to a turn", counts)


def check_command():
    """A command has no limit unless it is asked for; it outlives the counting."""
    log = gate.path("command.err")
    with open(log, "wb") as err:  # no pipe, which the command would hold
        braid = gate.start(gate.BRAID, "calls", *LIMIT, "--", PAIR, "1", "1", stderr=err,
                           stdout=err)
    status = braid.wait()
    with open(log, encoding="utf-8") as text:
        err = text.read()
    pid = int(re.search(r"(?m)^the command continues as PID (\d+)$", err).group(1))
    gate.equal((status, gate.state_of(pid)), (0, "R"), "calls of a command: ends before it", err)
    os.kill(pid, signal.SIGKILL)
    check_ends("calls of a command", err)
    gate.equal(re.findall(r"(?m)^ +\d+  .*", err), [], "calls of a command: entries and returns end at "
               "one moment, none is without the other")


gate.need_root()
check_record()
check_command()
if os.path.exists(PYTHON):
    check_calls()
else:
    gate.skip("CPython 3.11", f"there is no {PYTHON}")
gate.done()
