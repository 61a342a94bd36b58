# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts of scripts/bench about HotSpot: of the JVMs in PATH, in /usr/lib/jvm and in the test
roots (scripts/test-roots), one of each version. What they run is in fixtures/java/bench.

ROUNDS=N in the environment: so many rounds instead of 5."""
import contextlib
import glob
import os
import re
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

import __main__ as bench  # scripts/bench: what all parts share
from bench_python import (PATIENCE_S, ROUNDS, TICK_NS, hold_sampler, run_times, statistics_of,
                          wait_attached)

FIRST = 17  # the oldest version that braid knows
JVMS = "/usr/lib/jvm"
# Java, and what loads it, looks for itself in /proc.
CHROOT = ["unshare", "--mount", "sh", "-c", 'mount --bind /proc "$0/proc" && exec chroot "$0" "$@"']
FRAME_POINTERS = "-XX:+PreserveFramePointer"


# --- the JVMs, and what they run ---

class Java:
    def __init__(self, home, root=""):
        self.home, self.root = home, root
        self.command = [*([*CHROOT, root] if root else []), os.path.join(home, "bin/java")]
        text = subprocess.run([*self.command, "-XshowSettings:properties", "-version"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              check=True).stderr
        self.label = re.search(r"java\.version = (\S+)", text).group(1)
        self.major = int(self.label.split(".")[0])
        if root:
            self.label += f" ({os.path.basename(root)})"


def javas():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    roots = os.environ.get("BRAID_TEST_ROOTS") or os.path.join(cache, "braid-tests")
    program = shutil.which("java")
    places = [(os.path.dirname(os.path.dirname(os.path.realpath(program))), "")] if program else []
    for root in ["", *sorted(glob.glob(os.path.join(roots, "*")))]:
        places += [(home[len(root):], root) for home in sorted(glob.glob(root + JVMS + "/*"))]
    chosen = {}
    for home, root in places:
        with contextlib.suppress(subprocess.CalledProcessError, OSError, AttributeError):
            java = Java(home, root)
            chosen.setdefault(java.major, java)
    return [chosen[major] for major in sorted(chosen) if major >= FIRST]


def first_java():
    found = [java for java in javas() if not java.root]
    if not found or not shutil.which("javac"):
        sys.exit("bench: no JDK in PATH or in " + JVMS)
    return found[0]


@contextlib.contextmanager
def classes(java):
    """The directory of the compiled programs, as it is for us."""
    with tempfile.TemporaryDirectory(prefix="braid-bench-", dir=java.root + "/tmp") as directory:
        os.chmod(directory, 0o755)
        subprocess.run(["javac", "--release", str(FIRST), "-d", directory,
                        *glob.glob(os.path.join(bench.ROOT, "fixtures/java/bench/*.java"))],
                       check=True)
        yield directory


class Program:
    """One of them, that has said READY. It answers each line with one."""

    def __init__(self, java, directory, options, *arguments):
        self.process = subprocess.Popen([*java.command, *options, "-cp", directory[len(java.root):],
                                         *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.pid = self.process.pid
        if self.process.stdout.readline() != "READY\n":
            sys.exit(f"bench: {java.label} does not run {arguments}")

    def ask(self, line):
        self.say(line)
        return self.process.stdout.readline().strip()

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


# --- the profilers ---

@contextlib.contextmanager
def recording(pid, *options):
    """Braid, attached. Yields (its sampler, a list that gets what it says at its end)."""
    log, said, sampler = os.path.join(bench.TMP, "braid.log"), [], None
    with open(log, "w", encoding="utf-8") as file:
        braid = subprocess.Popen([bench.BRAID, "record", "-p", str(pid), "-o", bench.DB, *options],
                                 stderr=file, stdout=subprocess.DEVNULL)
    try:
        wait_attached(braid, log, False)
        sampler = hold_sampler(braid.pid)
        yield sampler, said
    finally:
        braid.send_signal(signal.SIGINT)
        braid.wait()
        if sampler is not None:
            os.close(sampler)
    with open(log, encoding="utf-8") as file:
        said.append(file.read())
    if braid.returncode:
        sys.exit(f"bench: braid: {said[0]}")


@contextlib.contextmanager
def perf_record(pid, hz):
    data = os.path.join(bench.TMP, "perf.data")
    perf = subprocess.Popen(["perf", "record", "-e", "cpu-clock", "-F", str(hz), "-g", "-p", str(pid),
                             "-o", data], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + PATIENCE_S
        while not any(link == "anon_inode:[perf_event]" for link in links(perf.pid)):
            if perf.poll() is not None or time.monotonic() > end:
                sys.exit("bench: perf does not record")
            time.sleep(0.05)
        time.sleep(0.5)  # it opens one after the other
        yield data
    finally:
        perf.send_signal(signal.SIGINT)
        perf.wait()


def links(pid):
    for path in glob.glob(f"/proc/{pid}/fd/*"):
        with contextlib.suppress(OSError):
            yield os.readlink(path)


def median_and_spread(ratios):
    return (f"{100 * (statistics.median(ratios) - 1):+.2f} %",
            f"{100 * (min(ratios) - 1):+.1f} … {100 * (max(ratios) - 1):+.1f} %")


# --- java: what a sample costs ---

# A method's frames are as they were written: nothing is inlined.
COMPILED = ["-XX:-TieredCompilation", "-XX:CompileThreshold=1000", "-XX:-Inline", "-Xbatch"]
MODES = {"compiled (C2)": COMPILED, "compiled, frame pointers": [*COMPILED, FRAME_POINTERS],
         "interpreted (-Xint)": ["-Xint"]}
WINDOW_MS, SLOW_WINDOW_MS = 250, 2000  # at 1999 and at 99 Hz
N_METHODS = 500
DEPTHS = {
    "depth 10": ("recursion 10", 1999), "depth 100": ("recursion 100", 1999),
    "depth 500": ("recursion 500", 1999), "depth 1000": ("recursion 1000", 1999),
    f"{N_METHODS} methods": (f"methods {N_METHODS}", 1999),
    f"{N_METHODS} methods, 99 Hz": (f"methods {N_METHODS}", 99),
}


def frames_of(db):
    """{node: frames from it to the root, without the kernel's}"""
    depths = {None: 0}
    for node, parent, frames in db.execute("SELECT node.id, parent, kind > 0 FROM node "
                                           "JOIN frame ON frame.id = node.frame ORDER BY node.id"):
        depths[node] = depths[parent] + frames
    return depths


def window(program, sampler, line):
    """(begin, end, run time, runs) of the sampler while the program does a line"""
    (ns, runs), begin = statistics_of(sampler), time.monotonic_ns()
    program.ask(line)
    end, (ns_after, runs_after) = time.monotonic_ns(), statistics_of(sampler)
    return begin, end, ns_after - ns, runs_after - runs


def costs_at(program, hz):
    """{depth: [(ns a sample, Java frames a sample)]}: all in one recording, round after round."""
    windows = []
    with recording(program.pid, "-F", str(hz)) as (sampler, _):
        for _ in range(ROUNDS if hz > 1000 else 1):
            for depth, (line, depth_hz) in DEPTHS.items():
                if depth_hz == hz:
                    ms = WINDOW_MS if hz > 1000 else SLOW_WINDOW_MS
                    windows.append((depth, *window(program, sampler, f"{line} {ms}")))
    costs = {}
    with contextlib.closing(sqlite3.connect(bench.DB)) as db:
        depths = frames_of(db)
        for depth, begin, end, ns, runs in windows:
            frames = [depths[node] for node, in db.execute(
                "SELECT runtime FROM sample WHERE time_ns BETWEEN ? AND ?", (begin, end))]
            if frames:
                each = (ns - max(runs - len(frames), 0) * TICK_NS) / len(frames)
                costs.setdefault(depth, []).append((each, statistics.median(frames)))
    return costs


def costs_of(java, options):
    """{depth: (ns a sample, Java frames a sample)}"""
    with classes(java) as directory, Program(java, directory, ["-Xss16m", *options], "Depth",
                                             str(N_METHODS)) as program:
        costs = {**costs_at(program, 1999), **costs_at(program, 99)}
    return {depth: [statistics.median(column) for column in zip(*values)]
            for depth, values in costs.items()}


def part_java():
    print("### One sample of a Java stack (kernel.bpf_stats_enabled)\n\n"
          "ns a sample, native frames included:\n")
    rows, each = [], []
    with run_times():
        for i, java in enumerate(javas()):
            for mode, options in MODES.items():
                if i and options is not COMPILED:
                    continue
                print(f"bench: java {java.label} {mode}", file=sys.stderr)
                costs = costs_of(java, options)
                rows.append((java.label, mode, *(f"{ns:.0f}" for ns, _ in costs.values())))
                (base, least), *deeper = costs.values()
                each.append((java.label, mode, *(f"{(ns - base) / max(frames - least, 1):.0f}"
                                                 for ns, frames in deeper)))
    bench.table(("JDK", "frames", *DEPTHS), rows)
    print("ns per frame more than those of depth 10:\n")
    bench.table(("JDK", "frames", *list(DEPTHS)[1:]), each)


# --- java_slowdown: what the target loses, and what the profiler spends ---

CHUNK_S = 0.5
WAYS = {f"{name}, {hz} Hz": (way, hz) for hz in (99, 999)
        for name, way in (("braid record", lambda pid, hz: recording(pid, "-F", str(hz))),
                          ("perf record -g", perf_record))}


def part_java_slowdown():
    print("### What a Java program loses while it is recorded, and what the profiler spends\n")
    java = first_java()
    ways = {name: way for name, way in WAYS.items() if "perf" not in name or shutil.which("perf")}
    rows = []
    with classes(java) as directory:
        for flags in ([], [FRAME_POINTERS]):
            with Program(java, directory, flags, "Work") as program:
                for name, ratios in ratios_of(program, ways).items():
                    rows.append((" ".join(flags) or "no flag", name, *median_and_spread(ratios)))
        bench.table((f"JDK {java.label}", "profiler", "median slowdown", "spread"), rows)
        with Program(java, directory, [], "Work") as program:
            program.say(str(10**9))
            sampler_time(program)
            own_cpu(program)


def sampler_time(program):
    """What of a CPU's time the sampler takes while the program runs: the noise of other processes
    is not in it, and neither is what the interrupt itself and cold caches cost."""
    rows = []
    with run_times():
        for hz in (99, 999):
            with recording(program.pid, "-F", str(hz)) as (sampler, _):
                (ns, runs), begin = statistics_of(sampler), time.monotonic_ns()
                time.sleep(3)
                end, (ns_after, runs_after) = time.monotonic_ns(), statistics_of(sampler)
            with contextlib.closing(sqlite3.connect(bench.DB)) as db:
                samples = db.execute("SELECT count(*) FROM sample WHERE time_ns BETWEEN ? AND ?",
                                     (begin, end)).fetchone()[0]
            others = max(runs_after - runs - samples, 0)
            each = (ns_after - ns - others * TICK_NS) / max(samples, 1)
            rows.append((hz, samples, f"{each:.0f}", f"{each * hz / 1e7:.2f} %"))
    bench.table(("Hz", "samples", "ns a sample", "of a CPU"), rows)


def ratios_of(program, ways):
    """{way: [CPU time over the mean of what it is without before and after]}, all in one process."""
    def cpu_ns():
        return int(program.ask(str(rounds)))

    rounds = 100
    rounds = max(int(rounds * CHUNK_S * 1e9 / cpu_ns()), 1)
    ratios = {name: [] for name in ways}
    before = cpu_ns()
    for _ in range(ROUNDS):
        for name, (way, hz) in ways.items():
            with way(program.pid, hz):
                during = cpu_ns()
            after = cpu_ns()
            ratios[name].append(2 * during / (before + after))
            before = after
    return ratios


def own_cpu(program):
    """Of the profilers at 999 Hz; braid's start is told apart by two durations."""
    rows, costs = [], []
    for seconds in ("1", "6"):
        cpu = bench.braid("record", "-p", str(program.pid), "-d", seconds, "-F", "999", "-o", bench.DB)
        costs.append((cpu, int(bench.meta()["samples"])))
    (first, few), (cpu, samples) = costs
    rows.append(("braid record", f"{(cpu - first) / max(samples - few, 1) * 1000:.4f}",
                 f"{first:.2f} s for the first second, names included"))
    if shutil.which("perf"):
        start = bench.children_cpu()
        with perf_record(program.pid, 999) as data:
            time.sleep(5)
        recorded = bench.children_cpu() - start
        samples = max(len(perf_stacks(data)), 1)
        rows.append(("perf record -g + perf script",
                     f"{(bench.children_cpu() - start) / samples * 1000:.4f}",
                     f"{recorded:.2f} s of it recording; Java frames have no names"))
    bench.table(("profiler", "own CPU s per 1,000 samples", ""), rows)


# --- java_complete: how many stacks reach the root ---

SOURCES = "/usr/src/bsh-src/bsh.tar.gz"  # Debian's bsh-src
# Where threads begin: libc's start, or what libjvm gives to it, if only that has a name.
ROOTS = r" (clone3?|start_thread|_start|__libc_start_\w+|thread_native_entry.*|ThreadJavaMain) \("


def perf_stacks(data):
    """Of user space, as texts; those of samples without one are empty."""
    text = subprocess.run(["perf", "script", "--no-inline", "-i", data, "-F", "comm,ip,sym,dso"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          errors="replace", check=True).stdout
    return ["\n".join(line for line in stack.split("\n")[1:] if "([kernel" not in line)
            for stack in text.split("\n\n") if stack.strip()]


def complete_cell(samples, complete, frames):
    samples = max(samples, 1)
    return f"{100 * complete / samples:.2f} % of {samples}, {frames / samples:.1f} frames each"


def perf_complete(data):
    stacks = [stack for stack in perf_stacks(data) if stack]
    return complete_cell(len(stacks), sum(bool(re.search(ROOTS, stack)) for stack in stacks),
                         sum(stack.count("\n") + 1 for stack in stacks))


def braid_complete():
    found = bench.meta()
    with contextlib.closing(sqlite3.connect(bench.DB)) as db:
        depths = frames_of(db)
        frames = sum(depths[node] for node, in db.execute("SELECT native FROM sample"))
    return complete_cell(int(found["samples"]), int(found["samples_complete"]), frames)


def of_work(java, directory, flags):
    """Yields a cell for braid, then one for perf."""
    with Program(java, directory, flags, "Work") as program:
        program.say(str(10**9))
        with recording(program.pid, "-F", "999"):
            time.sleep(3)
        yield braid_complete()
        with perf_record(program.pid, 999) as data:
            time.sleep(3)
        yield perf_complete(data)


def of_javac(java, directory, flags):
    """The same, from its start."""
    with tarfile.open(SOURCES) as archive:
        archive.extractall(directory)
    files = sorted(file for file in set(glob.glob(directory + "/**/src/**/*.java", recursive=True))
                   if not re.search("/tests/|/bsf/|servlet|/Test|junit", file))
    javac = [os.path.join(java.home, "bin/javac"), *("-J" + flag for flag in flags), "-nowarn",
             "-proc:none", "-d", directory + "/out", *files]
    bench.braid("record", "-F", "999", "-o", bench.DB, "--", *javac)
    yield braid_complete()
    data = os.path.join(bench.TMP, "perf.data")
    subprocess.run(["perf", "record", "-e", "cpu-clock", "-F", "999", "-g", "-o", data, "--", *javac],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    yield perf_complete(data)


def part_java_complete():
    print("### Java stacks that are complete to the thread's start, 999 Hz\n")
    if not shutil.which("perf"):
        sys.exit("bench: no perf to compare with")
    java = first_java()
    programs = {"fixtures/java/bench/Work": of_work}
    if os.path.exists(SOURCES):
        programs["javac, from its start"] = of_javac
    rows = []
    for name, of_program in programs.items():
        for flags in ([], [FRAME_POINTERS]):
            with classes(java) as directory:
                rows.append((name, " ".join(flags) or "no flag",
                             *of_program(java, directory, flags)))
    bench.table((f"JDK {java.label}", "flag", "braid record", "perf record -g"), rows)


# --- java_map: what asking for the map costs ---

COPIES = {"some hundred": 10, "ten thousand": 1000}  # of ten methods
ASKS = 5


def safepoints(log):
    """How many, less those that JDK 17 has once a second by itself."""
    with open(log, encoding="utf-8") as file:
        return len(re.findall(r'Safepoint "(?!Cleanup")', file.read()))


def asked(program):
    """Milliseconds."""
    begin = time.monotonic()
    subprocess.run([os.path.join(bench.OUT, "tests/tools/jvm_attach"), str(program.pid),
                    "Compiler.perfmap", "5000"], stdout=subprocess.DEVNULL, check=True)
    return (time.monotonic() - begin) * 1e3


def watched(program, work):
    """What it returns, and the longest time in ms in which a thread of the program stood still."""
    program.ask("")
    result = work()
    return result, int(program.ask("")) / 1e6


def asks_of(program, log, found):
    map_file = f"/tmp/perf-{program.pid}.map"
    try:
        before = safepoints(log)
        found["first"].append(asked(program))
        for _ in range(ASKS):
            ms, still = watched(program, lambda: asked(program))
            found["later"].append(ms)
            found["still"].append(still)
            found["still without"].append(watched(program, lambda ms=ms: time.sleep(ms / 1e3))[1])
        found["safepoints"].append(safepoints(log) - before)
        with open(map_file, encoding="utf-8") as file:
            text = file.read()
        found["lines"].append(text.count("\n"))
        found["KiB"].append(len(text) / 1024)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(map_file)


def part_java_map():
    print("### Asking a JVM for its perf map\n")
    rows = []
    for java in javas():
        if java.root:
            continue
        for name, copies in COPIES.items():
            found = {what: [] for what in ("lines", "KiB", "first", "later", "still",
                                           "still without", "safepoints")}
            for _ in range(min(ROUNDS, 3)):
                with classes(java) as directory:
                    log = os.path.join(directory, "safepoints")
                    options = ["-Xbatch", "-XX:TieredStopAtLevel=1", f"-Xlog:safepoint:file={log}"]
                    with Program(java, directory, options, "Methods", str(copies)) as program:
                        asks_of(program, log, found)
            rows.append((java.label, name, *(f"{statistics.median(found[what]):.{digits}f}"
                                             for what, digits in (("lines", 0), ("KiB", 0),
                                                                  ("first", 1), ("later", 1),
                                                                  ("still", 1), ("still without", 1))),
                         sum(found["safepoints"])))
    bench.table(("JDK", "methods", "lines", "KiB", "first ask, ms", "later asks, ms",
                 "a thread stood still, ms", "in as long without, ms", "safepoints"), rows)


PARTS = {"java": part_java, "java_slowdown": part_java_slowdown, "java_complete": part_java_complete,
         "java_map": part_java_map}
