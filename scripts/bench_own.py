# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts of scripts/bench about braid's own CPU time: while it records, at its start, and from the
stop of a recording to its flame graph.

ROUNDS=N in the environment: so many rounds instead of 5. OLD=PROGRAM: another build of braid, which
takes its turns with this one and is compared with it. TARGETS="NAME ...": only these."""
import contextlib
import os
import re
import shutil
import signal
import sqlite3
import statistics
import subprocess
import time

import __main__ as bench  # scripts/bench: what all parts share
import bench_java
from bench_python import PATIENCE_S, ROUNDS, wait_attached

OLD = os.environ.get("OLD")
BUILDS = [bench.BRAID] + ([OLD] if OLD else [])
SETTLE_S = 3  # names of the first samples included
SECONDS = 4
RECORD_BYTES = 56 + 8  # struct rec_sample, and the ring's header
PAIR_BYTES = 16        # a native or runtime frame; a kernel frame is one word

RUBY_MIXED = ["ruby", os.path.join(bench.ROOT, "fixtures/ruby/mixed.rb")]
RUBY_DEEP = ["ruby", os.path.join(bench.ROOT, "fixtures/ruby/deep.rb"), "0", "500"]


def fixture(*command):
    return lambda: bench.Target(*command)


@contextlib.contextmanager
def java(*arguments, line=None):
    found = bench_java.first_java()
    with bench_java.classes(found) as directory:
        with bench_java.Program(found, directory, [], *arguments) as program:
            if line:
                program.say(line)
            yield program


def targets():
    python = [bench.PYTHON, "-B"]
    found = {
        "native": fixture(bench.NATIVE + "/shares"),
        "native, 200 deep": fixture(bench.NATIVE + "/recurse", "0", "200"),
        "Python": fixture(*python, os.path.join(bench.ROOT, "fixtures/python/mixed.py")),
        "Python, 500 deep": fixture(*python, os.path.join(bench.ROOT, "fixtures/python/recursion.py"),
                                    "0", "500"),
    }
    if shutil.which("ruby"):
        found.update({"Ruby": fixture(*RUBY_MIXED), "Ruby, 500 deep": fixture(*RUBY_DEEP)})
    if shutil.which("javac"):
        found.update({
            "Java": lambda: java("Work", line="1000000"),
            "Java, 500 deep": lambda: java("Depth", "1", line="recursion 500 3600000"),
            "Java, 300 threads": lambda: java("Crowd", "300", "60")})
    wanted = os.environ.get("TARGETS")
    return {name: start for name, start in found.items() if not wanted or name in wanted.split("; ")}


def memory_kib(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", encoding="utf-8") as status:
        return int((re.search(r"VmHWM:\s*(\d+)", status.read()) or [0, 0])[1])
    return 0


def cpu_ns(pid):
    with open(f"/proc/{pid}/schedstat", encoding="utf-8") as file:
        return int(file.read().split()[0])


class Run:
    """One recording of a process, to its end: what a steady part of it took, and what it says."""

    def __init__(self, program, pid, hz):
        log = os.path.join(bench.TMP, "braid.log")
        started = time.monotonic_ns()
        with open(log, "w", encoding="utf-8") as file:
            run = subprocess.Popen([program, "record", "-p", str(pid), "-F", str(hz), "-o", bench.DB],
                                   stdout=subprocess.DEVNULL, stderr=file)
        wait_attached(run, log, False)
        time.sleep(SETTLE_S)
        self.start_cpu_s = cpu_ns(run.pid) / 1e9
        begin = time.monotonic_ns(), cpu_ns(run.pid)
        time.sleep(SECONDS)
        end = time.monotonic_ns(), cpu_ns(run.pid)
        self.memory_kib = memory_kib(run.pid)
        run.send_signal(signal.SIGINT)
        if run.wait(PATIENCE_S):
            raise SystemExit(f"bench: {program} failed")
        with open(log, encoding="utf-8") as file:
            text = file.read()
        kernel, *pairs = map(int, re.findall(r"(\d+) [a-z]+(?:,|\n)", re.search("frames: .*\n", text)[0]))
        total = int(bench.meta()["samples"])
        self.frames = (kernel + sum(pairs)) / total
        self.bytes = RECORD_BYTES + (8 * kernel + PAIR_BYTES * sum(pairs)) / total
        db = sqlite3.connect(bench.DB)
        samples = db.execute("select count(*) from sample where time_ns between ? and ?",
                             (begin[0], end[0])).fetchone()[0]
        first = db.execute("select min(time_ns) from sample").fetchone()[0] or started
        db.close()
        self.first_s = (first - started) / 1e9
        self.ms_per_1000 = (end[1] - begin[1]) / 1e3 / max(samples, 1)


def runs(pid, hz):
    """Some of each build, in turns."""
    found = {program: [] for program in BUILDS}
    for _ in range(ROUNDS):
        for program in BUILDS:
            found[program].append(Run(program, pid, hz))
    return found


def part_own():
    print("### Own CPU time while recording\n")
    rows = []
    for name, start in targets().items():
        with start() as target:
            for hz in (999, 4999):
                found = runs(target.pid, hz)
                ms = [statistics.median(run.ms_per_1000 for run in found[p]) for p in BUILDS]
                ratios = [a.ms_per_1000 / b.ms_per_1000 for a, b in zip(found[BUILDS[0]],
                                                                        found[BUILDS[-1]])]
                last = found[BUILDS[0]][-1]
                rows.append((name, hz, f"{last.frames:.0f}", f"{last.bytes:.0f}",
                             f"{last.memory_kib / 1024:.0f}", *(f"{m:.2f}" for m in ms),
                             *((f"{statistics.median(ratios):.2f}",) if OLD else ())))
    bench.table(("target", "Hz", "frames a sample", "bytes a sample", "MB",
                 "own CPU ms per 1,000 samples", *(("before", "ratio") if OLD else ())), rows)


def part_start():
    print("### The start of a recording\n")
    rows = []
    for name, start in targets().items():
        with start() as target:
            found = runs(target.pid, 99)
            columns = []
            for program in BUILDS:
                columns += [f"{statistics.median(run.first_s for run in found[program]):.2f}",
                            f"{statistics.median(run.start_cpu_s for run in found[program]):.2f}"]
            rows.append((name, *columns))
    bench.table(("target", "s to the first sample", "own CPU s of the first second",
                 *(("before: s", "CPU s") if OLD else ())), rows)


SIZES = ((30000, 2000, 60), (300000, 5000, 100), (300000, 5000, 400))


def flame_s(program, path):
    started = time.monotonic()
    subprocess.run([program, "flame", "-o", os.path.join(bench.TMP, "big.html"), path],
                   stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - started


def part_stop_big():
    print("### From made-up recordings to a flame graph on disk\n")
    rows = []
    for samples, functions, depth in SIZES:
        path = os.path.join(bench.TMP, "big.db")
        made = subprocess.run([os.path.join(bench.OUT, "tests/tools/mkrecording"), str(samples),
                               str(functions), str(depth), path], stdout=subprocess.PIPE, text=True,
                              check=True).stdout
        found = {program: [] for program in BUILDS}
        for _ in range(ROUNDS):
            for program in BUILDS:
                found[program].append(flame_s(program, path))
        rows.append((samples, functions, depth, f"{os.path.getsize(path) / 1e6:.0f}", made.strip(),
                     *(f"{statistics.median(found[program]):.2f}" for program in BUILDS)))
        os.unlink(path)
    bench.table(("samples", "functions", "depth", "MB", "CPU to record", "s to a flame graph",
                 *(("before",) if OLD else ())), rows)


def part_stop_live():
    """From the signal to the end of `record`, and the flame graph."""
    print("### From the signal that ends a recording to its flame graph\n")
    rows = []
    for name, start in targets().items():
        with start() as target:
            found = {program: [] for program in BUILDS}
            for _ in range(ROUNDS):
                for program in BUILDS:
                    run = subprocess.Popen([program, "record", "-p", str(target.pid), "-F", "999", "-o",
                                            bench.DB], stderr=subprocess.DEVNULL)
                    time.sleep(3)
                    started = time.monotonic()
                    run.send_signal(signal.SIGINT)
                    run.wait()
                    ended = time.monotonic() - started
                    found[program].append((ended, flame_s(program, bench.DB)))
            rows.append((name, *(f"{statistics.median(s for s, _ in found[p]):.3f} + "
                                 f"{statistics.median(s for _, s in found[p]):.3f}" for p in BUILDS)))
    bench.table(("target", "s to stop + s to a flame graph", *(("before",) if OLD else ())), rows)


PARTS = {"own": part_own, "start": part_start, "stop_big": part_stop_big, "stop_live": part_stop_live}
