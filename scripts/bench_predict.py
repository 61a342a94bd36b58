# SPDX-License-Identifier: GPL-2.0-or-later
"""The part of scripts/bench about predictions: `braid bench -p PID` says what braid would cost three
programs of real work, one of Python up to 3.10, one of Ruby and one of Java, and then it is measured:
each repeats a piece of work and tells its CPU time after each, while braid is attached and detached
in turn.

ROUNDS=N in the environment: so many rounds instead of 5."""
import collections
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import __main__ as bench  # scripts/bench: what all parts share
from bench_java import javas
from bench_python import ROUNDS, pythons, wait_attached
from bench_ruby import rubies

WINDOW_S = 1.5     # of work, with braid attached or without
WARM_UP_S = {"jvm": 20}  # until all that matters is compiled
UNITS_LEAST = 3    # pieces of work in a window, else it is longer

# Each prints READY, then for ever, after each piece of work: seconds of CLOCK_MONOTONIC, and of CPU
# time.

PYTHON = """import ast, io, json, re, time, tokenize, zlib
with open(json.decoder.__file__) as file:
    text = file.read()
data = [dict(id=i, name="item %d" % i, tags=["a", "b", str(i)], nested=dict(x=i / 3, y=[i] * 5))
        for i in range(300)]
print("READY", flush=True)
while True:
    list(tokenize.generate_tokens(io.StringIO(text).readline))
    compile(ast.parse(text), "text", "exec")
    json.loads(zlib.decompress(zlib.compress(json.dumps(data).encode())))
    sorted(re.findall(r"\\w+", text), key=lambda word: (len(word), word.lower()))
    print(time.monotonic(), time.process_time(), flush=True)
"""

RUBY = """require 'csv'
require 'json'
require 'time'
require 'zlib'
LINE = /\\A(\\S+) - (\\w+) \\[(.*?)\\] "(\\w+) (\\S+)" (\\d+) (\\d+)\\z/
Entry = Struct.new(:host, :user, :time, :verb, :path, :status, :bytes)
class Log
  def initialize(lines) = @entries = lines.map { |line| parse(line) }
  def parse(line)
    m = LINE.match(line)
    Entry.new(m[1], m[2], Time.iso8601(m[3]), m[4], m[5], m[6].to_i, m[7].to_i)
  end
  def by_path = @entries.group_by(&:path).transform_values { |list| summary(list) }
  def summary(list)
    bytes = list.map(&:bytes).sort
    { hits: list.size, bytes: bytes.sum, median: bytes[bytes.size / 2], hosts: list.map(&:host).uniq.size }
  end
end
rows = (0...60).map { |i| [i, "item #{i}", 'a "quoted" word', Time.at(i * 86_400).utc.iso8601] }
text = CSV.generate { |csv| rows.each { |row| csv << row } }
lines = (0...300).map do |i|
  "10.0.0.#{i % 50} - user#{i % 7} [#{Time.at(i * 60).utc.iso8601}] \\"GET /page/#{i % 23}\\" 200 #{i * 37 % 5000}"
end
$stdout.sync = true
puts 'READY'
loop do
  Log.new(lines).by_path
  CSV.parse(text)
  JSON.parse(Zlib.inflate(Zlib.deflate(JSON.generate(lines.map { |line| line.split(' ') }))))
  lines.flat_map { |line| line.scan(/\\w+/) }.tally.sort_by { |word, n| [-n, word] }
  puts "#{Process.clock_gettime(Process::CLOCK_MONOTONIC)} " \\
       "#{Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)}"
end
"""

JAVA = """import java.lang.management.ManagementFactory;
import java.util.*;
public class Predict {
    static final class Node {
        final int key; Node left, right;
        Node(int key) { this.key = key; }
        void add(int k) {
            if (k < key) { if (left == null) left = new Node(k); else left.add(k); }
            else { if (right == null) right = new Node(k); else right.add(k); }
        }
        long sum() { return key + (left == null ? 0 : left.sum()) + (right == null ? 0 : right.sum()); }
    }
    static long trees() {
        Node root = new Node(500);
        Random random = new Random(1);
        for (int i = 0; i < 100; i++) root.add(random.nextInt(1000));
        return root.sum();
    }
    static long words(String text) {
        Map<String, Integer> counts = new TreeMap<>();
        for (String word : text.split(" ")) counts.merge(word, 1, Integer::sum);
        return counts.size();
    }
    static long primes() {
        boolean[] composite = new boolean[1500000];
        long n = 0;
        for (int i = 2; i < composite.length; i++) {
            if (composite[i]) continue;
            n++;
            for (int k = 2 * i; k < composite.length; k += i) composite[k] = true;
        }
        return n;
    }
    static long checksum(byte[] bytes) {
        var deflater = new java.util.zip.Deflater();
        deflater.setInput(bytes);
        deflater.finish();
        long n = deflater.deflate(new byte[bytes.length + 100]);
        deflater.end();
        return n;
    }
    public static void main(String[] args) {
        var threads = ManagementFactory.getThreadMXBean();
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 300; i++) text.append("item").append(i % 50).append(' ');
        byte[] bytes = text.toString().repeat(20).getBytes();
        System.out.println("READY");
        for (long n = 0;; ) {
            n += trees() + words(text.toString()) + primes() + checksum(bytes);
            System.out.println(System.nanoTime() / 1e9 + " " + threads.getCurrentThreadCpuTime() / 1e9
                               + (n == 42 ? "!" : ""));
        }
    }
}
"""

Way = collections.namedtuple("Way", "name command probing")  # name: as in the table of braid bench
WAYS = [Way("calls", ("calls", "-o", os.devnull), True),
        Way("record --source probes -F 999", ("record", "--source", "probes", "-F", "999"), True),
        Way("record --source walk -F 999", ("record", "--source", "walk", "-F", "999"), False),
        Way("record --source walk -F 4999", ("record", "--source", "walk", "-F", "4999"), False)]


# --- the programs ---

class Program:
    """One that is at work. `units`: (end, CPU seconds) of each piece of its work."""

    def __init__(self, label, runtime, command, environment=None):
        self.label, self.runtime, self.units = label, runtime, []
        self.process = subprocess.Popen(command, env={**os.environ, **(environment or {})},
                                        stdout=subprocess.PIPE, text=True)
        self.pid = str(self.process.pid)
        if self.process.stdout.readline() != "READY\n":
            sys.exit(f"bench: {label} does not start")
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        before = None
        for line in self.process.stdout:
            end, cpu = map(float, line.split())
            if before is not None:
                self.units.append((end, cpu - before))
            before = cpu

    def next_units(self, seconds=WINDOW_S):
        """The piece that is under way, and those that begin from now on."""
        start, first = time.monotonic(), len(self.units) + 1
        while time.monotonic() < start + seconds or len(self.units) < first + UNITS_LEAST:
            if self.process.poll() is not None:
                sys.exit(f"bench: {self.label} has ended")
            time.sleep(0.02)
        return self.units[first - 1:]

    def cpu_per_unit(self):
        return statistics.median(cpu for _, cpu in self.next_units()[1:])

    def __enter__(self):
        time.sleep(WARM_UP_S.get(self.runtime, 2))
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def script(root, name, text):
    """Its path as it is for the program."""
    with tempfile.TemporaryDirectory(prefix="braid-bench-", dir=root + "/tmp") as directory:
        os.chmod(directory, 0o755)
        path = os.path.join(directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        yield path[len(root):]


@contextlib.contextmanager
def programs():
    """Functions that start one each."""
    with contextlib.ExitStack() as stack:
        found = []
        for python in pythons(lambda python: python.dtrace, range(8, 11), dtrace_first=True):
            path = stack.enter_context(script(python.root, "work.py", PYTHON))
            kind = "USDT" if python.dtrace else "uprobes"
            found.append((f"CPython {python.label}, {kind}", "python",
                          [*python.command, *python.flags, path]))
        hook = {"RUBYOPT": "-r" + os.path.join(bench.OUT, "share/braid/braid_hook.rb")}
        for ruby in [ruby for ruby in rubies() if not ruby.root][:1]:
            path = stack.enter_context(script("", "work.rb", RUBY))
            found.append((f"CRuby {ruby.label}, with the hook", "ruby", [*ruby.command, path], hook))
        for java in [java for java in javas() if not java.root][:1]:
            path = stack.enter_context(script("", "Predict.java", JAVA))
            found.append((f"JDK {java.label}, -XX:+DTraceMethodProbes", "jvm",
                          [*java.command, "-XX:+DTraceMethodProbes", "-XX:+UseSerialGC", path]))
        yield [lambda words=words: Program(*words) for words in found]


# --- what is said, and what is so ---

def predicted(program):
    """{row of the table: {column: value}}"""
    run = subprocess.run([bench.BRAID, "bench", "-p", program.pid, "--format", "json"], check=False,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if run.returncode:
        sys.exit(f"bench: braid bench -p: {run.stderr}")
    tables = {table["name"]: table for table in json.loads(run.stdout)["tables"]}
    names = [column["name"] for column in tables["predictions"]["columns"]]
    return {row[0]: dict(zip(names, row)) for row in tables["predictions"]["rows"]}


def unlimited(command):
    """Braid's own limit would take away what is measured."""
    shown = subprocess.run([bench.BRAID, command, "--help"], stdout=subprocess.PIPE, check=False)
    return ["--max-overhead", "none"] if b"--max-overhead" in shown.stdout else []


def cpu_under(program, way):
    log = os.path.join(bench.TMP, "braid.log")
    output = [] if "-o" in way.command else ["-o", bench.DB]
    with open(log, "w", encoding="utf-8") as file:
        braid = subprocess.Popen([bench.BRAID, *way.command, *unlimited(way.command[0]), *output,
                                  "-p", program.pid], stderr=file, stdout=subprocess.DEVNULL)
    try:
        wait_attached(braid, log, way.probing)
        return program.cpu_per_unit()
    finally:
        braid.send_signal(signal.SIGINT)
        braid.wait()


def rounds_of(program):
    """[what was predicted], {way: [slowdown in percent]}: over the mean of the runs without before and
    after."""
    said, found = [], collections.defaultdict(list)
    for _ in range(ROUNDS):
        said.append(predicted(program))
        before = program.cpu_per_unit()
        for way in (way for way in WAYS if way.name in said[0]):
            under = cpu_under(program, way)
            after = program.cpu_per_unit()
            found[way].append(100 * (2 * under / (before + after) - 1))
            before = after
    return said, found


def median_and_spread(values):
    return (f"{statistics.median(values):.2f} %", f"{min(values):.2f} … {max(values):.2f} %")


def part_predict():
    print("### What braid would cost, predicted by `braid bench -p`, and measured\n")
    rows = []
    with programs() as starts:
        for start in starts:
            with start() as program:
                print(f"bench: {program.label}", file=sys.stderr)  # this takes minutes
                said, found = rounds_of(program)
            for way, measured in found.items():
                table = [tables[way.name] for tables in said]
                slowdowns = [row["slowdown"] for row in table if row["slowdown"] is not None]
                if not slowdowns:  # too many calls to tell
                    rows.append((program.label, way.name, "", "not told", "",
                                 *median_and_spread(measured), ""))
                    continue
                ratio = statistics.median(slowdowns) / max(statistics.median(measured), 1e-9)
                calls = [row["calls"] for row in table if row["calls"] is not None]
                calls = f"{statistics.median(calls):.0f}" if calls else ""
                rows.append((program.label, way.name, calls, *median_and_spread(slowdowns),
                             *median_and_spread(measured), f"{ratio:.2f}" if ratio < 100 else ""))
    bench.table(("program", "braid", "calls/s", "predicted", "spread", "measured", "spread",
                 "predicted / measured"), rows)


PARTS = {"predict": part_predict}
