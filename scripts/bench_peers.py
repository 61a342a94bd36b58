# SPDX-License-Identifier: GPL-2.0-or-later
"""The part of scripts/bench about others: what braid and each of perf, bpftrace, py-spy, austin, rbspy
and async-profiler that is in PATH cost a program of real work (those of bench_predict.py), in turn.
None of them is needed.

ROUNDS=N in the environment: so many rounds instead of 5."""
import collections
import contextlib
import os
import re
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import time

import __main__ as bench  # scripts/bench: what all parts share
from bench_java import javas
from bench_predict import JAVA, PYTHON, RUBY, Program, script
from bench_python import ROUNDS

RATES = (99, 999)
WINDOW_S = 3
SETTLE_S = 2.5  # until the slowest to start has attached
PATIENCE_S = 60
OUT = os.path.join(bench.TMP, "peer.out")

# `runtime`: the only one that it knows; None: any. `command`: for a PID and a rate. It ends by
# SIGINT. `samples`: how many there are in OUT then.
Peer = collections.namedtuple("Peer", "name program runtime command samples")
Seen = collections.namedtuple("Seen", "wall cpu own_s samples wanted")


def read_out():
    with open(OUT, encoding="utf-8", errors="replace") as file:
        return file.read()


def last_columns():
    """Of folded stacks."""
    return sum(int(n) for n in re.findall(r" (\d+)$", read_out(), re.M))


def braid_samples():
    with contextlib.closing(sqlite3.connect(OUT)) as db:
        return db.execute("SELECT count(*) FROM sample").fetchone()[0]


def perf_samples():
    shown = subprocess.run(["perf", "script", "-F", "time", "-i", OUT], stdout=subprocess.PIPE,
                           stderr=subprocess.DEVNULL, text=True, check=False).stdout
    return len(re.findall(r"^ *\d+\.\d+:", shown, re.M))


PEERS = [
    Peer("braid record", bench.BRAID, None, lambda pid, hz: [
        bench.BRAID, "record", "--force", "-F", str(hz), "-o", OUT, "-p", pid], braid_samples),
    Peer("perf record -g", "perf", None, lambda pid, hz: [
        "perf", "record", "-e", "cpu-clock", "-F", str(hz), "-g", "-o", OUT, "-p", pid],
         perf_samples),
    Peer("perf record --call-graph dwarf", "perf", None, lambda pid, hz: [
        "perf", "record", "-e", "cpu-clock", "-F", str(hz), "--call-graph", "dwarf", "-o", OUT, "-p",
        pid], perf_samples),
    Peer("bpftrace ustack, kstack", "bpftrace", None, lambda pid, hz: [
        "bpftrace", "-o", OUT, "-e",
        f"profile:hz:{hz} /pid == {pid}/ {{ @[kstack, ustack] = count(); }}"],
         lambda: sum(int(n) for n in re.findall(r"^\]: (\d+)$", read_out(), re.M))),
    Peer("py-spy record --native", "py-spy", "python", lambda pid, hz: [
        "py-spy", "record", "--native", "--rate", str(hz), "--format", "raw", "--output", OUT,
        "--pid", pid], last_columns),
    Peer("austin", "austin", "python", lambda pid, hz: [
        "austin", "-i", str(1000000 // hz), "-o", OUT, "-p", pid],
         lambda: len(re.findall(r"^P\d+;", read_out(), re.M))),
    Peer("rbspy record", "rbspy", "ruby", lambda pid, hz: [
        "rbspy", "record", "--rate", str(hz), "--format", "collapsed", "--file", OUT, "--raw-file",
        OUT + ".raw", "--pid", pid], last_columns),
    Peer("async-profiler", "asprof", "jvm", lambda pid, hz: [
        "asprof", "-d", "600", "-e", "cpu", "-i", f"{10 ** 9 // hz}ns", "-o", "collapsed", "-f", OUT,
        pid], last_columns),
]


@contextlib.contextmanager
def programs():
    """Functions that start one each."""
    with contextlib.ExitStack() as stack:
        path = stack.enter_context(script("", "work.py", PYTHON))
        found = [(os.path.basename(bench.PYTHON), "python", [bench.PYTHON, path])]
        if shutil.which("ruby"):
            path = stack.enter_context(script("", "work.rb", RUBY))
            found.append(("ruby", "ruby", ["ruby", path]))
        for java in [java for java in javas() if not java.root][:1]:
            path = stack.enter_context(script("", "Predict.java", JAVA))
            found.append((f"JDK {java.label}", "jvm", [*java.command, path]))
        yield [lambda words=words: Program(*words) for words in found]


def per_unit(program):
    """(seconds by the clock, of CPU time) for a piece of work, medians of those from now on."""
    units = program.next_units(WINDOW_S)
    return (statistics.median(b[0] - a[0] for a, b in zip(units, units[1:])),
            statistics.median(cpu for _, cpu in units[1:]))


def cpu_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def look(program, peer, hz):
    """Wall and CPU time of a piece of work meanwhile, and what the peer did; or why it failed."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(OUT)
    used = cpu_of(program.pid)
    running = subprocess.Popen(peer.command(program.pid, hz), stdout=subprocess.DEVNULL,
                               stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(SETTLE_S)
    if running.poll() is not None:
        return f"has ended with status {running.returncode}"
    wall, cpu = per_unit(program)
    used = cpu_of(program.pid) - used
    running.send_signal(signal.SIGINT)
    end = time.monotonic() + PATIENCE_S
    while not (done := os.wait4(running.pid, os.WNOHANG))[0]:
        if time.monotonic() > end:
            running.kill()
        time.sleep(0.02)
    running.returncode = done[1]
    own = done[2].ru_utime + done[2].ru_stime
    try:
        return Seen(wall, cpu, own, peer.samples(), used * hz)
    except (OSError, sqlite3.Error) as error:
        return f"has left nothing to read: {error}"


def row_of(label, way, rounds):
    """`rounds`: [(before, seen or reason, after)]"""
    peer, hz = way
    good = [(before, seen, after) for before, seen, after in rounds if isinstance(seen, Seen)]
    if not good:
        return label, f"{peer.name}, {hz} Hz", rounds[0][1], "", "", "", "", ""
    cells = []
    for i, of in enumerate(("wall", "cpu")):
        values = [100 * (2 * getattr(seen, of) / (before[i] + after[i]) - 1)
                  for before, seen, after in good]
        cells += [f"{statistics.median(values):+.2f} %", f"{min(values):+.1f} … {max(values):+.1f} %"]
    own = statistics.median(1000 * seen.own_s / max(seen.samples, 1) for _, seen, _ in good)
    share = statistics.median(100 * seen.samples / seen.wanted for _, seen, _ in good)
    return label, f"{peer.name}, {hz} Hz", *cells, f"{own:.3f}", f"{share:.0f} %"


def part_peers():
    print("### What braid and others cost the same programs\n")
    rows = []
    with programs() as starts:
        for start in starts:
            found = collections.defaultdict(list)
            with start() as program:
                print(f"bench: {program.label}", file=sys.stderr)  # this takes minutes
                ways = [(peer, hz) for hz in RATES for peer in PEERS if shutil.which(peer.program)
                        and peer.runtime in (None, program.runtime)]
                for _ in range(ROUNDS):
                    before = per_unit(program)
                    for way in ways:
                        seen = look(program, *way)
                        after = per_unit(program)
                        found[way].append((before, seen, after))
                        before = after
            rows += [row_of(program.label, way, found[way]) for way in ways]
    bench.table(("program", "profiler", "slower, by the clock", "spread", "slower, by CPU time",
                 "spread", "own CPU s per 1,000 samples, with its start",
                 "samples, of those due"), rows)


PARTS = {"peers": part_peers}
