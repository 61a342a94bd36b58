# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts of scripts/bench about CPython: of the builds at hand in /usr/bin, of pyenv, and in the
test roots (scripts/test-roots), one of each version.

ROUNDS=N in the environment: so many rounds instead of 5; 1 shows whether all of it runs."""
import collections
import contextlib
import ctypes
import glob
import json
import os
import re
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

import __main__ as bench  # scripts/bench: what all parts share

ROUNDS = int(os.environ.get("ROUNDS", "5"))
PATIENCE_S = 120  # for braid to be attached
TICK_NS = 60      # of the sampler at a tick of another task, as in scripts/bench
SYS_BPF, BPF_PROG_GET_FD_BY_ID = 321, 13  # x86-64


# --- the builds ---

class Python:
    flags = ["-B"]

    def __init__(self, program, root=""):
        self.program, self.root = program, root
        self.command = ["chroot", root, program] if root else [program]
        text = subprocess.run([*self.command, "-c", "import json, platform, zlib\n"
                               "print(platform.python_version())"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=True).stdout.strip()
        self.minor = int(text.split(".")[1])
        self.label = f"{text} ({os.path.basename(root)})" if root else text
        notes = subprocess.run(["readelf", "-n", root + program], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True, check=False).stdout
        self.dtrace = "Provider: python" in notes


def pythons(key, minors=range(6, 100), dtrace_first=False):
    """One build for each value of key(build), in the order of their versions."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    roots = os.environ.get("BRAID_TEST_ROOTS") or os.path.join(cache, "braid-tests")
    found = []
    for pattern, root in [("/usr/bin", ""), (os.path.expanduser("~/.pyenv/versions/3.*/bin"), ""),
                          *(("/usr/bin", r) for r in sorted(glob.glob(os.path.join(roots, "*"))))]:
        for path in sorted(glob.glob(root + pattern + "/python3.*")):
            if re.search(r"/python3\.\d+$", path):
                with contextlib.suppress(subprocess.CalledProcessError):
                    found.append(Python(path[len(root):], root))
    if dtrace_first:
        found.sort(key=lambda python: not python.dtrace)
    chosen = {}
    for python in found:
        if python.minor in minors:
            chosen.setdefault(key(python), python)
    return sorted(chosen.values(), key=lambda python: python.minor)


# --- one run ---

# out: what the program printed. log: what braid wrote on stderr. ns, runs: the sampler's run time.
Result = collections.namedtuple("Result", "out log ns runs")


def bpf_ids(pid, kind):
    ids = set()
    for info in glob.glob(f"/proc/{pid}/fdinfo/*"):
        with contextlib.suppress(OSError), open(info, encoding="utf-8") as file:
            ids.update(re.findall(rf"^{kind}_id:\s*(\d+)", file.read(), re.M))
    return ids


def hold_sampler(pid):
    """A file descriptor of braid's program, so that its statistics can be read when braid has
    ended; None: there is no sampler."""
    for number in bpf_ids(pid, "prog"):
        shown = subprocess.run(["bpftool", "-j", "prog", "show", "id", number], check=True,
                               stdout=subprocess.PIPE).stdout
        if json.loads(shown).get("name") == "on_sample":
            attr = (ctypes.c_uint32 * 4)(int(number))
            fd = ctypes.CDLL(None).syscall(SYS_BPF, BPF_PROG_GET_FD_BY_ID, attr, 16)
            if fd < 0:
                sys.exit("bench: cannot open the sampler")
            return fd
    return None


def statistics_of(fd):
    with open(f"/proc/self/fdinfo/{fd}", encoding="utf-8") as file:
        values = dict(line.split(":") for line in file)
    return int(values["run_time_ns"]), int(values["run_cnt"])


def wait_attached(braid, log, is_probing):
    """The sampler is attached last; of probes braid tells which it attached."""
    end = time.monotonic() + PATIENCE_S
    links = 1 if is_probing else 2 + os.cpu_count()  # each CPU's, and those of fork and exec
    while time.monotonic() < end and braid.poll() is None:
        with open(log, encoding="utf-8") as file:
            told = re.search(r"^pid \d+: \w+ \S+: ", file.read(), re.M)
        if len(bpf_ids(braid.pid, "link")) >= links and (told or not is_probing):
            time.sleep(0.2)
            return
        time.sleep(0.05)
    with open(log, encoding="utf-8") as file:
        sys.exit(f"bench: {braid.args} does not attach: {file.read()}")


def run(python, arguments, *way):
    """Runs an interpreter's program that prints READY, then reads a line or burns CPU time. `way` is a
    command of braid, which is attached between."""
    target = subprocess.Popen([*python.command, *python.flags, *arguments], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    log = os.path.join(bench.TMP, "braid.log")
    braid, sampler, ns, runs = None, None, 0, 0
    try:
        if target.stdout.readline() != "READY\n":
            sys.exit(f"bench: {python.label} does not run {arguments}")
        if way:
            target.send_signal(signal.SIGSTOP)
            with open(log, "w", encoding="utf-8") as file:
                braid = subprocess.Popen([bench.BRAID, *way, "-p", str(target.pid)], stderr=file,
                                         stdout=subprocess.DEVNULL)
            wait_attached(braid, log, "calls" in way or "probes" in way)
            sampler = hold_sampler(braid.pid)
            target.send_signal(signal.SIGCONT)
        out, _ = target.communicate("\n")
        if target.returncode or braid and braid.wait():
            sys.exit(f"bench: {python.label}: failed: {arguments}, {way}")
        if sampler is not None:
            ns, runs = statistics_of(sampler)
    finally:
        target.kill()
        target.wait()
        if braid:
            braid.wait()
        if sampler is not None:
            os.close(sampler)
    with open(log if way else os.devnull, encoding="utf-8") as file:
        return Result(out, file.read(), ns, runs)


@contextlib.contextmanager
def run_times():
    """The kernel keeps BPF programs' run times meanwhile."""
    def sysctl(*arguments):
        return subprocess.run(["sysctl", *arguments], stdout=subprocess.PIPE, text=True,
                              check=True).stdout.strip()

    before = sysctl("-n", "kernel.bpf_stats_enabled")
    sysctl("-q", "kernel.bpf_stats_enabled=1")
    try:
        yield
    finally:
        sysctl("-q", "kernel.bpf_stats_enabled=" + before)


def ns_per_sample(result):
    samples = int(bench.meta()["samples"])
    return (result.ns - (result.runs - samples) * TICK_NS) / max(samples, 1)


def runtime_frames(result, runtime="python"):
    """Per sample."""
    found = re.search(rf"(\d+) {runtime}", result.log)
    return int(found.group(1)) / max(int(bench.meta()["samples"]), 1) if found else 0


# --- python: what the walk costs ---

WALKS = {  # script, arguments, Hz, CPU seconds
    "depth 10": ("recursion.py", "10", 1999, 0.5),
    "depth 100": ("recursion.py", "100", 1999, 0.5),
    "depth 500": ("recursion.py", "500", 1999, 0.5),
    "depth 500, 99 Hz": ("recursion.py", "500", 99, 2),
    "500 functions": ("distinct.py", "0", 1999, 0.5),
    "500 functions, 99 Hz": ("distinct.py", "0", 99, 2),
}


def write_scripts(directory):
    scripts = os.path.join(directory, "python")
    shutil.copytree(os.path.join(bench.ROOT, "fixtures/python"), scripts)
    with open(os.path.join(scripts, "distinct.py"), "w", encoding="utf-8") as file:
        file.write("import fixture\n")
        for i in range(500):
            file.write(f"def f{i}():\n    return f{i + 1}() + 1\n")
        file.write("def f500():\n    n = 0\n    while n < 400000: n += 1\n    return n\n"
                   "fixture.start()\nwhile fixture.running(): f0()\n")
    return scripts


def walk_ns(python, scripts, walk):
    """(ns a sample, frames) of the walk: the sampler's time with it less that without."""
    name, argument, hz, seconds = WALKS[walk]
    times = {}
    for runtimes in ("native", "python"):
        result = run(python, [os.path.join(scripts, name), str(seconds), argument], "record", "-r",
                     runtimes, "--source", "walk", "-F", str(hz), "-o", bench.DB)
        times[runtimes] = ns_per_sample(result)
    return times["python"] - times["native"], runtime_frames(result)


def walks_of(python):
    """{walk: (ns a sample, ns a frame, frames)}"""
    print(f"bench: {python.label}", file=sys.stderr)  # this takes minutes
    found = {walk: [] for walk in WALKS}
    with tempfile.TemporaryDirectory(prefix="braid-bench-", dir=python.root + "/tmp") as directory:
        scripts = write_scripts(directory)[len(python.root):]
        for _ in range(ROUNDS):
            for walk, results in found.items():
                results.append(walk_ns(python, scripts, walk))
    medians = {}
    for walk, results in found.items():
        ns, frames = (statistics.median(values) for values in zip(*results))
        medians[walk] = (ns, ns / max(frames, 1), frames)
    return medians


def part_python():
    print("### One sample's walk of CPython frames (kernel.bpf_stats_enabled)\n")
    by_depth, by_kind = [], []
    with run_times():
        for python in pythons(lambda python: python.minor):
            walks = walks_of(python)
            cells = {walk: f"{ns:.0f} ({each:.1f})" for walk, (ns, each, _) in walks.items()}
            shallow, deep = walks["depth 10"], walks["depth 500"]
            slope = (deep[0] - shallow[0]) / max(deep[2] - shallow[2], 1)
            by_depth.append((python.label, *list(cells.values())[:3], f"{slope:.1f}",
                             f"{deep[2]:.1f}"))
            by_kind.append((python.label, *list(cells.values())[2:]))
    print("ns a sample (and a frame):\n")
    bench.table(("CPython", *list(WALKS)[:3], "ns per further frame", "frames of the deepest"),
                by_depth)
    print("Code objects met less than 10 ms ago, or, at 99 Hz, looked up again:\n")
    bench.table(("CPython", *list(WALKS)[2:]), by_kind)


# --- probes: what the shadow stack adds to a probe ---

def part_probes():
    print("### Push and pop, over an empty program on the same pair of probes\n")
    tool = os.path.join(bench.OUT, "tests/tools/shadow_bench")
    rows = []
    for python in pythons(lambda python: (python.minor, python.dtrace), range(6, 12)):
        if python.minor == 11 and not python.dtrace:
            continue  # nothing there sees calls from Python to Python
        rounds = ["-r", str(ROUNDS)] if "ROUNDS" in os.environ else []
        shown = subprocess.run([tool, *rounds, python.program, *filter(None, [python.root])],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               check=False).stdout
        rows.append((python.label, "USDT" if python.dtrace else "uprobe, uretprobe",
                     *shadow_cells(shown)))
    bench.table(("CPython", "probes", "ns a call without", "with empty programs",
                 "with the shadow stack", "ratio", "ratio of the best rounds"), rows)


def shadow_cells(shown):
    found = {what: re.search(rf"^{what} +ns a call: (\d+) .*?, (\d+) .*?, (\d+) .*? ratio ([\d.]+)",
                             shown, re.M) for what in ("median", "best")}
    lost = re.search(r"^counter .*", shown, re.M)  # pushes and pops were not the same in number
    if lost or not all(found.values()):
        return ["–"] * 3 + [lost.group() if lost else shown.strip()[-100:], ""]
    return [*found["median"].groups(), found["best"].group(4)]


# --- calls: what counting every call costs ---

FIB = """import time
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
c = time.process_time()
for i in range(N): fib(23)
print(time.process_time() - c)
"""

PARSING = """import json, re, time, zlib
text = json.dumps([dict(id=i, name="item %d" % i, tags=["a", "b", str(i)]) for i in range(2000)])
c = time.process_time()
for i in range(N):
    parsed = json.loads(zlib.decompress(zlib.compress(text.encode())).decode())
    found = re.findall(r'"name": "([a-z]+) ([0-9]+)"', text)
    text = json.dumps(parsed)
print(time.process_time() - c)
"""

WORKLOADS = {"fib(23)": (FIB, 5), "sort and sum": (bench.WORK, 5000),
             "JSON, zlib, regex": (PARSING, 100)}

PROFILERS = {"sys.setprofile": "sys.setprofile(lambda frame, event, arg: None)",
             "cProfile": "import cProfile; profile = cProfile.Profile(); profile.enable()"}

COUNTING = """n_calls = [0]
def count(frame, event, arg): n_calls[0] += event == 'call'
sys.setprofile(count)"""


def program(text, n, profiler=""):
    """Of a workload: prints its CPU seconds. What it imports is no part of it."""
    return ["-c", "import json, re, sys, time, zlib\nprint('READY', flush=True)\n"
            f"sys.stdin.readline()\nN = {n}\n{profiler}\n{text}sys.setprofile(None)\n"
            "if 'n_calls' in globals(): print(n_calls[0])\n"]


def calls_of(python, text, n):
    """(calls of Python functions, CPU seconds by way, share of the calls that braid counted)"""
    calls = int(run(python, program(text, n, COUNTING)).out.split()[1])
    times = collections.defaultdict(list)
    counts = os.path.join(bench.TMP, "calls.txt")
    shares = []
    for _ in range(ROUNDS):
        times["nothing"].append(float(run(python, program(text, n)).out))
        result = run(python, program(text, n), "calls", "-r", "python", "-o", counts)
        times["braid calls"].append(float(result.out))
        with open(counts, encoding="utf-8") as file:
            shares.append(100 * int(re.search(r" in (\d+) calls", file.read()).group(1)) / calls)
        for name, profiler in PROFILERS.items():
            times[name].append(float(run(python, program(text, n, profiler)).out))
    medians = {name: statistics.median(values) for name, values in times.items()}
    return calls, medians, statistics.median(shares), result.log


def part_calls():
    print("### Counting every call: CPU time over that with nothing (and ns a call)\n")
    rows = []
    for python in pythons(lambda python: python.minor, range(8, 12), dtrace_first=True):
        for name, (text, n) in WORKLOADS.items():
            calls, times, share, log = calls_of(python, text, n)
            nothing = times.pop("nothing")
            cells = []
            for seconds in times.values():
                each = f" ({(seconds - nothing) / calls * 1e9:.0f})" if calls >= 10000 else ""
                cells.append(f"{seconds / nothing:.2f}{each}")
            probes = re.search(r"^pid \d+: python [^:]*: ([a-z]+)", log, re.M).group(1)
            rows.append((python.label, probes, name, calls, f"{nothing:.3f}", *cells,
                         f"{share:.1f} %"))
    bench.table(("CPython", "probes", "workload", "calls", "CPU s with nothing", "braid calls",
                 *PROFILERS, "counted by braid"), rows)


# --- source: frames from probes, or from a walk ---

SOURCE_N = 10000


def source_way(source, hz):
    return ("record", "-r", "python", "--source", source, "-F", str(hz), "-o", bench.DB)


def sample_costs(python, source, hz):
    """(ns a sample, Python frames a sample), medians of rounds of their own: the kernel's
    statistics cost time at every probe. And what the frames did come from."""
    results = []
    with run_times():
        for _ in range(ROUNDS):
            result = run(python, program(bench.WORK, SOURCE_N), *source_way(source, hz))
            results.append((ns_per_sample(result), runtime_frames(result)))
    with sqlite3.connect(bench.DB) as db:
        actual = db.execute("SELECT source FROM source").fetchone()
    return [*(statistics.median(values) for values in zip(*results)), actual[0] if actual else ""]


def part_source():
    print("### Sampling with frames from a walk, and from probes: the sort-and-sum workload\n")
    rows = []
    ways = [(source, hz) for hz in (99, 999) for source in ("walk", "probes")]
    for python in pythons(lambda python: python.minor, range(8, 12), dtrace_first=True):
        times = collections.defaultdict(list)
        for _ in range(ROUNDS):
            nothing = float(run(python, program(bench.WORK, SOURCE_N)).out)
            for way in ways:
                result = run(python, program(bench.WORK, SOURCE_N), *source_way(*way))
                times[way].append(float(result.out) / nothing)
        for source, hz in ways:
            ns, frames, actual = sample_costs(python, source, hz)
            ratios = times[source, hz]
            rows.append((python.label, f"{source} ({actual})", hz,
                         f"{100 * (statistics.median(ratios) - 1):+.1f} %",
                         f"{100 * (min(ratios) - 1):+.1f} … {100 * (max(ratios) - 1):+.1f} %",
                         f"{ns:.0f}", f"{frames:.2f}"))
    bench.table(("CPython", "source", "Hz", "median slowdown", "spread", "ns per sample",
                 "Python frames per sample"), rows)


PARTS = {"python": part_python, "probes": part_probes, "calls": part_calls, "source": part_source}
