# SPDX-License-Identifier: GPL-2.0-or-later
"""What calls.t counts, and with what: fixtures/python/calls/workload.py, and `braid calls`."""

import ast
import collections
import json
import os
import re
import signal
import subprocess

import lib

SCRIPT = "calls/workload.py"
FILE = "workload.py"
OUTER = [f"{name} ({FILE})" for name in ("<module>", "outer", "middle", "serve")]
UPROBE_LINKS, PROCESS_LINKS = 2, 6  # at least a pair; fork, exec, exit

# What is called how often, by arithmetic. FIB[n]: calls of a Fibonacci function of n.
FIB = [1, 1]
for _ in range(20):
    FIB.append(FIB[-1] + FIB[-2] + 1)
LOCALS = "comprehensions.<locals>."

# Every call of these is known, also those in the library: compared with sys.setprofile.
EXACT = {
    "fib 20": {"fib": 21891},
    "mutual 300": {"mutual": 1, "is_even": 151, "is_odd": 150},
    "generators 50": {"generators": 1, "count_up": 51 + 2, "delegate": 51, "receive": 1 + 50 + 1,
                      "catch_thrown": 3},
    "comprehensions 70": {"comprehensions": 1, LOCALS + "<listcomp>": 1, LOCALS + "<setcomp>": 1,
                          LOCALS + "<dictcomp>": 1, LOCALS + "<genexpr>": 71,
                          LOCALS + "<lambda>": 70},
    "methods 70": {"methods": 1, **{f"Shape.{name}": 70 for name in (
        "Part.join", "__init__", "__lt__", "__call__", "__del__", "area", "unit", "make")}},
    "exceptions 70": {"exceptions": 1, "fall": 700, "rise": 70},
    "callers 70": {"callers": 1, "negate": 70, "add": 69, "swap": 70, "keep": 70},
    "deep 100": {"deep": 1, "descend": 100},
    "deep 900": {"deep": 1, "descend": 900},
    "burrow 900": {"burrow": 900, "bush": FIB[10] + 9 * FIB[5], "count_down": 11, "collapse": 1,
                   "plunge": 5, "rise": 1},
}
# Deeper than a shadow stack.
DEEPER = {
    "deep 3000": {"deep": 1, "descend": 3000},
    "burrow 3000": {"burrow": 3000, "bush": FIB[10] + 30 * FIB[5], "count_down": 11, "collapse": 1,
                    "plunge": 5, "rise": 1},
    "fib 10": {"fib": FIB[10]},
}
# What the library calls meanwhile depends on what happens first; a handler may run in the hook of
# sys.setprofile, which does not see that.
THREADED = {
    "coroutines 20": {"coroutines": 1, "gather": 2, "branch": 3 * 20, "leaf": 2 * 2 * 20},
    "threads 200": {"threads": 1, "threads.<locals>.<listcomp>": 1, "threads.<locals>.worker": 200,
                    "tick": 200 * 100},
    "exits 50": {"exits": 1, "leave": 3 * 50},
    "signals 70": {"signals": 1, "on_signal": 70},
}


class Workload:
    """A process that calls what it is asked to."""

    def __init__(self, python):
        self.process = lib.start_ready("nice", "-n", "5", *python.arguments(SCRIPT),
                                       env=python.environment(), stdin=subprocess.PIPE)
        self.pid = self.process.pid

    def send(self, *commands):
        self.process.stdin.write("".join(f"{command}\n" for command in commands).encode())
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"PID {self.pid} has ended: {self.process.wait()}")
        return ast.literal_eval(line.decode())

    def ask(self, command):
        self.send(command)
        return self.answer()

    def run(self, commands):
        for command in commands:
            self.ask(command)

    def stop(self):
        lib.stop(self.process)


class Calls:
    """`braid calls -p PID`, running."""

    def __init__(self, pid, *args, limit=("--max-overhead", "none")):
        self.file, self.log = lib.path("calls.out"), lib.path("calls.err")
        with open(self.log, "wb") as log:
            self.process = lib.start_braid("calls", *limit, "-p", pid, "-o", self.file, *args,
                                           stderr=log)
        self.wait_source(pid)
        self.ids = lib.wait_for(self.attached, "probes")

    @property
    def err(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return log.read()

    def attached(self):
        ids = lib.bpf_ids(self.process.pid)
        return ids if len(ids["link"]) >= UPROBE_LINKS + PROCESS_LINKS else None

    def wait_source(self, pid, times=1):
        """Until it has attached probes to this process, or refused to, so often."""
        def told():
            if self.process.poll() is not None:
                raise RuntimeError(f"braid has ended: {self.err}")
            return re.findall(rf"^pid {pid}: \w+ \S+ (\w+)", self.err, re.M)[times - 1:]
        return lib.wait_for(told, f"the source of PID {pid}")[0]

    def processes(self):
        """How many it follows: what is in its map of them."""
        def ask(*words):
            shown = subprocess.run([lib.bpftool(), "-j", "map", *words], capture_output=True,
                                   check=True)
            return json.loads(shown.stdout)

        number, = (str(number) for number in self.ids["map"]
                   if ask("show", "id", str(number)).get("name") == "targets")
        return len(ask("dump", "id", number))

    def end(self, name):
        """What it writes after SIGINT."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=lib.PATIENCE_S)
        lib.equal(self.process.returncode, 0, f"{name}: SIGINT: status", self.err)
        with open(self.file, "rb") as file:
            return file.read()


Row = collections.namedtuple("Row", "name file calls self_ns total_ns")


def nanoseconds(text):
    number, unit = text.split()
    return float(number) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]


def read_table(text):
    """[Row]; times are rounded to three digits."""
    rows = re.findall(r"^ *[\d.]+% +([\d.]+ \w+) +[\d.]+% +([\d.]+ \w+) +(\d+)  \w+ +(.*?)"
                      r"(?: \(([^()]*)\))?$", text, re.M)
    return [Row(name, file, int(calls), nanoseconds(own), nanoseconds(total))
            for own, total, calls, name, file in rows]


def read_tree(text):
    """[(depth, label, total_ns, self_ns, calls)]"""
    rows = re.findall(r"^ *[\d.]+% +([\d.]+ \w+) +([\d.]+ \w+) +(\d+)  ( *)(\S.*)$", text, re.M)
    return [(len(indent) // 2, label, nanoseconds(whole), nanoseconds(own), int(calls))
            for whole, own, calls, indent, label in rows]


def called(rows, file=None):
    """{(function, file): calls}. Rows of functions with the same names in other directories, or
    that two programs in one process have, are taken together."""
    counts = collections.Counter()
    for row in rows:
        if row.calls and file in (None, row.file):
            counts[row.name, row.file] += row.calls
    return counts



def total(commands):
    """What these commands call."""
    counts = collections.Counter()
    for expected in commands.values():
        counts.update(expected)
    return {(name, FILE): calls for name, calls in counts.items()}


def difference(got, want):
    return [f"{name}: {got.get(name, 0)}, not {want.get(name, 0)}"
            for name in sorted(got.keys() | want.keys()) if got.get(name, 0) != want.get(name, 0)]


def check_losses(err, name):
    """A program that does nothing strange loses nothing, but returns more than 64 deep."""
    lost = re.findall(r"^ +\d+  .*", err, re.M)
    expected = "calls that ended without their return" if ": uprobe" in err else "nothing"
    lib.equal([line for line in lost if expected not in line], [], f"{name}: no losses")


def changed_code(python, pid):
    """Bytes of the build's code that are not as in its file: breakpoints."""
    changed = 0
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, \
            open(f"/proc/{pid}/mem", "rb", buffering=0) as memory, \
            open(python.binary, "rb") as file:
        for line in maps:
            area, access, offset, *_, path = line.split()[:6] + [""] * (6 - len(line.split()))
            if "x" not in access or path != os.path.realpath(python.binary):
                continue
            start, end = (int(word, 16) for word in area.split("-"))
            file.seek(int(offset, 16))
            want = file.read(end - start)
            got = os.pread(memory.fileno(), len(want), start)
            changed += sum(a != b for a, b in zip(got, want))
    return changed
