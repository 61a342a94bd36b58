# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts of scripts/bench about CRuby: of the builds at hand in /usr/bin, in the test roots
(scripts/test-roots) and below ~/.cache/braid-rubies, one of each version.

ROUNDS=N in the environment: so many rounds instead of 5."""
import contextlib
import glob
import os
import re
import statistics
import subprocess
import sys
import tempfile

import __main__ as bench  # scripts/bench: what all parts share
from bench_python import ROUNDS, ns_per_sample, run, run_times, runtime_frames

# The first argument is CPU time in seconds; then what each part of it needs.
RUN = """
def cpu
  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
end
$stdout.sync = true
puts 'READY'
$stdin.gets
END_S = cpu + ARGV[0].to_f
def spin
  while cpu < END_S
    i = 0
    i += 1 while i < 200_000
  end
end
"""

DEPTHS = {
    "depth 10": ("def f(n)\n  n == 0 ? spin : f(n - 1)\nend\nf(10)\n", 1999),
    "depth 100": ("def f(n)\n  n == 0 ? spin : f(n - 1)\nend\nf(100)\n", 1999),
    "depth 500": ("def f(n)\n  n == 0 ? spin : f(n - 1)\nend\nf(500)\n", 1999),
    # A third each of methods, blocks and C methods, all different methods
    "300, mixed": ("".join(f"def f{i}\n  [1].each do\n    f{i + 1}\n  end\nend\n" for i in range(100))
                   + "def f100\n  spin\nend\nf0\n", 1999),
    "300, mixed, 99 Hz": ("".join(f"def f{i}\n  [1].each do\n    f{i + 1}\n  end\nend\n"
                                  for i in range(100)) + "def f100\n  spin\nend\nf0\n", 99),
}

# A fixed amount of work; prints its own CPU seconds.
WORK = """
def leaf(n)
  s = 0
  n.times { |i| s += i * i }
  s
end
def mid(n)
  (0...40).sort_by { |x| leaf(n) + x }
end
def fib(n)
  n < 2 ? n : fib(n - 1) + fib(n - 2)
end
def cpu
  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
end
$stdout.sync = true
TRACER
puts 'READY'
$stdin.gets
start = cpu
ITERATION
puts cpu - start
"""
TRACERS = {
    "TracePoint, empty block": "TracePoint.new(:call, :return, :c_call, :c_return) {}.enable",
    "TracePoint, counting": "counts = Hash.new(0)\nTracePoint.new(:call, :c_call) { |tp| "
                            "counts[[tp.defined_class, tp.method_id]] += 1 }.enable",
}


class Ruby:
    flags = []

    def __init__(self, program, root=""):
        self.program, self.root = program, root
        self.command = ["chroot", root, program] if root else [program]
        self.label = subprocess.run([*self.command, "-e", "print RUBY_VERSION"],
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                    check=True).stdout
        if root:
            self.label += f" ({os.path.basename(root)})"


def rubies():
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    roots = os.environ.get("BRAID_TEST_ROOTS") or os.path.join(cache, "braid-tests")
    places = [("/usr/bin/ruby", "")]
    places += [("/usr/bin/ruby", root) for root in sorted(glob.glob(os.path.join(roots, "*")))]
    places += [(path, "") for path in sorted(glob.glob(os.path.join(cache, "braid-rubies/*/bin/ruby")))]
    chosen = {}
    for path, root in places:
        with contextlib.suppress(subprocess.CalledProcessError, OSError):
            ruby = Ruby(path, root)
            chosen.setdefault(re.match(r"\d+\.\d+", ruby.label).group(), ruby)
    return [chosen[minor] for minor in sorted(chosen)]


@contextlib.contextmanager
def script(ruby, text):
    """The path of a file with the text, as the interpreter sees it."""
    with tempfile.TemporaryDirectory(prefix="braid-bench-", dir=ruby.root + "/tmp") as directory:
        path = os.path.join(directory, "script.rb")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        yield path[len(ruby.root):]


# --- ruby: what the walk costs ---

def walk_ns(ruby, text, hz):
    times = {}
    for runtimes in ("native", "ruby"):
        with script(ruby, RUN + text) as path:
            result = run(ruby, [path, "2" if hz < 1000 else "0.7"], "record", "-r", runtimes, "-F",
                         str(hz), "-o", bench.DB)
        times[runtimes] = ns_per_sample(result)
    return times["ruby"] - times["native"], runtime_frames(result, "ruby")


def part_ruby():
    print("### One sample's walk of CRuby frames (kernel.bpf_stats_enabled)\n\nns a sample (and a frame):\n")
    rows = []
    with run_times():
        for ruby in rubies():
            print(f"bench: ruby {ruby.label}", file=sys.stderr)
            cells = []
            for text, hz in DEPTHS.values():
                found = [walk_ns(ruby, text, hz) for _ in range(ROUNDS)]
                ns, frames = (statistics.median(values) for values in zip(*found))
                cells.append(f"{ns:.0f} ({ns / max(frames, 1):.1f})")
            rows.append((ruby.label, *cells))
    bench.table(("CRuby", *DEPTHS), rows)


# --- ruby_slowdown, ruby_calls: what the target loses ---

def work(iteration, tracer=""):
    return WORK.replace("TRACER", tracer).replace("ITERATION", iteration)


def ratios_of(ruby, iteration, ways):
    """{way: [ratio to the run under nothing in the same round]}; a way is (tracer, braid's command)."""
    ratios = {way: [] for way in ways}
    for _ in range(ROUNDS):
        with script(ruby, work(iteration)) as path:
            plain = float(run(ruby, [path]).out)
        for way, (tracer, command) in ways.items():
            with script(ruby, work(iteration, tracer)) as path:
                ratios[way].append(float(run(ruby, [path], *command).out) / plain)
    return ratios


def part_ruby_slowdown():
    print("### What a Ruby program loses while it is recorded (sort_by with blocks, one CPU)\n")
    rows = []
    for ruby in rubies():
        ways = {f"record, {hz} Hz": ("", ("record", "-F", str(hz), "-o", bench.DB))
                for hz in (99, 999)}
        for way, ratios in ratios_of(ruby, "4000.times { mid(100) }", ways).items():
            rows.append((ruby.label, way, f"{100 * (statistics.median(ratios) - 1):+.2f} %",
                         f"{100 * (min(ratios) - 1):+.1f} … {100 * (max(ratios) - 1):+.1f} %"))
    bench.table(("CRuby", "profiler", "median slowdown", "spread"), rows)


CALLS = {"fib(24)": "fib(24)", "sort_by with blocks": "20.times { mid(100) }"}
HOOK = "TracePoint.new(:call, :return) {}.enable"  # what wakes the probes of Ruby methods


def part_ruby_calls():
    print("### A Ruby program's CPU time when all its calls are counted, over that with nothing\n")
    rows = []
    for ruby in rubies():
        if tuple(map(int, ruby.label.split(" ")[0].split(".")[:2])) > (3, 2) and ruby.root:
            continue  # built without probes
        for name, iteration in CALLS.items():
            ways = {name: (tracer, ()) for name, tracer in TRACERS.items()}
            ways["the hook alone"] = (HOOK, ())
            ways["braid calls"] = (HOOK, ("calls", "-o", os.devnull))
            with contextlib.suppress(SystemExit):  # refused: braid said why
                ratios = ratios_of(ruby, iteration, ways)
                rows.append((ruby.label, name,
                             *(f"{statistics.median(r):.1f} ×" for r in ratios.values())))
    bench.table(("CRuby", "workload", *TRACERS, "the hook alone", "braid calls"), rows)


PARTS = {"ruby": part_ruby, "ruby_slowdown": part_ruby_slowdown, "ruby_calls": part_ruby_calls}
