# SPDX-License-Identifier: GPL-2.0-or-later
"""What the files of the live gate share. A sample comes where a fixture calls its marker, and nowhere
else, so that every check is exact: how many samples there are, and each frame of each stack. Tests
and fixtures wait for one another's lines, never for a time to pass. Each file has a directory and a
cache of its own; they can run at the same time, as root, from the top directory, with OUTPUT in the
environment."""

import collections
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import running
from running import BRAID, OUTPUT, Result, all_ids, ids_of, path, state_of, tmp
from tap import done, equal, matches, ok, skip, skip_all  # for all that import this

RECORD_AT = os.path.join(OUTPUT, "tests/tools/record_at")
MARKER = os.path.join(OUTPUT, "fixtures/native/marker")
MARKS = os.path.join(OUTPUT, "fixtures/native/marks")
PLUGIN = os.path.join(OUTPUT, "fixtures/native/plugin")
HANGS_S = int(os.environ.get("HANGS_S", 240))  # something that does not come, ever


def _hangs(*_):
    raise TimeoutError(f"nothing has happened for {HANGS_S} s")


signal.signal(signal.SIGALRM, _hangs)
signal.alarm(HANGS_S)


def need_root():
    if os.geteuid() != 0:
        skip_all("not root")
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        skip_all("the kernel has no BTF")


def need_program(path):
    """The program that Debian 12 has there."""
    if not os.path.exists(path):
        skip_all(f"there is no {path}")


# --- processes ---

def start(*command, **options):
    """A process that does not outlive the test; it is spoken to by pipes."""
    options.setdefault("stdin", subprocess.PIPE)
    options.setdefault("stdout", subprocess.PIPE)
    return running.start(*command, **options)


def line_of(process):
    """Its next line, without the newline; "" at the end."""
    return process.stdout.readline().decode().rstrip("\n")


def wait_line(process, wanted):
    """Reads on until the line begins so; the lines until then, and this one."""
    lines = []
    while not lines or not lines[-1].startswith(wanted):
        lines.append(line_of(process))
        if not lines[-1]:
            raise RuntimeError(f"{process.args} ends instead of saying {wanted!r}: {lines}")
    return lines


def say(process, text):
    process.stdin.write(text.encode() + b"\n")
    process.stdin.flush()


def ask(process, text):
    """Says it, and returns the answer."""
    say(process, text)
    return line_of(process)


def marked(*command, trace=True, **options):
    """A process that has the marker, and has said that it is ready. (Its first line, process.)"""
    env = dict(os.environ, **options.pop("env", {}), LD_PRELOAD=MARKER)
    if trace:
        env["MARKER_TRACE"] = path("trace")
    process = start(*command, env=env, **options)
    wait_line(process, "ready")
    return process


def wait_until(condition, what):
    """Where the kernel, or a file, tells nobody of what is waited for: looks again and again."""
    while True:
        value = condition()
        if value:
            return value
        time.sleep(0.01)


def check_gone(name, ids):
    """The kernel frees them a little later, and tells nobody; an id is not used again so soon."""
    ok(all(ids.values()), f"{name}: there were programs, maps and links", ids)
    wait_until(lambda: not any(ids[kind] & all_ids(kind) for kind in ids), "the clean-up")
    ok(True, f"{name}: no program, map or link is left")


# --- recordings ---

def run(*command, **options):
    """To its end. A crash shows as a negative status."""
    options.setdefault("stdin", subprocess.DEVNULL)
    done_run = subprocess.run([str(word) for word in command], capture_output=True, **options)
    return Result(done_run.returncode, done_run.stdout.decode(errors="replace"),
                  done_run.stderr.decode(errors="replace"))


def braid(*args, **options):
    return run(BRAID, *args, **options)


Sample = collections.namedtuple("Sample", "pid tid thread native value flags")


class Recording(running.Recording):
    def samples(self):
        """In order of time; `native`: [(file or None, address)], innermost first."""
        nodes = {node: (parent, (image, address & (1 << 64) - 1)) for node, parent, image, address
                 in self.sql("SELECT node.id, parent, path, address FROM node "
                             "JOIN frame ON frame.id = frame LEFT JOIN image ON image.id = image")}

        def chain(node):
            while node:
                node, place = nodes[node]
                yield place

        return [Sample(pid, tid, name, list(chain(native)), value, flags)
                for pid, tid, name, native, value, flags in self.sql(
                    "SELECT pid, tid, thread.name, native, value, flags FROM sample "
                    "JOIN thread ON thread.id = thread JOIN process ON process.id = process "
                    "ORDER BY time_ns, sample.id")]

    def count(self):
        return self.one("SELECT count(*) FROM sample")

    def counters(self):
        return dict(self.sql("SELECT name, value FROM counter"))

    def merged(self, *args):
        """[(frames, count)]: braid's merged stacks, outermost frame first, as
        "function (file:line)_[kind]"."""
        result = braid("report", "--format", "folded", "--annotate", "--lines", *args, self.file)
        if result.status:
            raise RuntimeError(result.err)
        return running.stacks_of(result.out)


def recorder(n, *target, file=None, options=(), symbol=MARKER + ":braid_marker", **more):
    """record_at, once its breakpoint is set; recorder.file is the recording. The target is
    processes, or PIDs, or else a command, whose lines come between those of the recorder."""
    file = file or path(f"{len(running.processes)}.db")
    pids = [str(getattr(one, "pid", one)) for one in target if not isinstance(one, str)]
    words = ["-p", ",".join(pids)] if pids else []
    command = [] if words else ["--", *target]
    process = start(RECORD_AT, *words, "-n", n, "-o", file, *options, symbol, *command, **more)
    process.said = wait_line(process, "ready") if words else []
    process.file = file
    return process


def finish(process, taken, recorded=None):
    """Waits for the recorder's end, after so many samples; the recording."""
    said = wait_line(process, "taken")
    equal(said[-1], f"taken {taken}, recorded {taken if recorded is None else recorded}",
          f"{os.path.basename(process.file)}: as many samples as hits")
    equal(process.wait(), 0, f"{os.path.basename(process.file)}: the recorder's status")
    return Recording(process.file)


# --- what is expected ---

def line(file, text):
    """The number of the line that holds the text; there is one."""
    with open(file, encoding="utf-8") as source:
        found = [number for number, content in enumerate(source, 1) if text in content]
    if len(found) != 1:
        raise ValueError(f"{file} has {text!r} in lines {found}")
    return found[0]


class Maps:
    """Where a process has mapped which file, while it lives."""

    def __init__(self, pid):
        self.mappings = []
        with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
            for row in maps:
                bounds, _, offset, _, inode, *file = row.split(maxsplit=5)
                begin, end = (int(bound, 16) for bound in bounds.split("-"))
                self.mappings.append((begin, end, int(offset, 16),
                                      file[0].rstrip("\n") if inode != "0" else None))
        self.root = f"/proc/{pid}/root"
        self.bases = {}

    def base(self, file):
        """What a link-time address of the file is relative to: nothing where it is fixed."""
        if file not in self.bases:
            with open(self.root + file, "rb") as elf:
                fixed = elf.read(17)[16] == 2  # ET_EXEC
            self.bases[file] = 0 if fixed else min(
                begin for begin, _, offset, name in self.mappings if name == file and not offset)
        return self.bases[file]

    def place(self, address):
        """(file, link-time address), or (None, address) outside of files."""
        for begin, end, _, file in self.mappings:
            if begin <= address < end and file:
                return file, address - self.base(file)
        return None, address


def traces():
    """What libunwind saw at each hit: [(tid, [address as in a recording])], innermost first: a
    return address less one, as it is the call that is shown."""
    with open(path("trace"), encoding="ascii") as file:
        rows = [row.split() for row in file]
    return [(int(row[0]), [int(row[1], 16)] + [int(word, 16) - 1 for word in row[2:]])
            for row in rows]


def check_native(name, samples, maps, seen):
    """Each sample's native frames are those of libunwind's trace of that hit. `seen`: a list of
    traces, each thread's in its order."""
    got, want = collections.defaultdict(list), collections.defaultdict(list)
    for sample in samples:
        got[sample.tid].append(sample.native)
    for tid, addresses in seen:
        want[tid].append([maps.place(address) for address in addresses])
    if ok(got.keys() == want.keys(), f"{name}: samples of the threads that hit", set(got), set(want)):
        for tid, stacks in want.items():
            equal(got[tid], stacks, f"{name}: native frames as libunwind sees them")


def check_clean(name, recording):
    """Nothing is lost, and nothing had to be repaired from a copy of the stack either: that would
    hide what the tables lack."""
    equal((recording.counters(), recording.meta("copies_used")), ({}, "0"),
          f"{name}: nothing is lost or repaired")


class Frame(str):
    """A runtime's frame as report shows it; it stands for so many native frames."""

    def __new__(cls, label, natives=0):
        frame = super().__new__(cls, label)
        frame.natives = natives
        return frame


class Symbol(str):
    """A native function as addr2line names it, with parameters and perhaps a return type."""


def symbols(file, addresses):
    """{address: Symbol}; {address: None} where the file has no table of all symbols."""
    if ".symtab" not in run("readelf", "-SW", file).out:
        return dict.fromkeys(addresses)
    names = run("addr2line", "-f", "-C", "-e", file, *map(hex, addresses)).out.splitlines()[::2]
    return dict(zip(addresses, map(Symbol, names)))


def is_frame(got, want):
    """`want`: None is a native function whose file exports no symbol for it (with its debug file
    it may have one); a name without a place is that of a native function, whatever the line, and
    whichever number gcc gave to its clone."""
    if isinstance(want, Frame) or (want and want.endswith(")_[n]")):
        return got == want
    match = re.match(r"(.*?)(\.[a-z]+\.\d+)?( \([^()]*\))?_\[n\]$", got)
    if not match or want is None:
        return bool(match)
    name = match.group(1)
    if isinstance(want, Symbol):
        return want == name or want.startswith(name + "(") or f" {name}(" in want
    return name + "_[n]" == want


def check_merged(name, stacks, want, count, natives=None):
    """All samples have this one merged stack, frame by frame, outermost first. `natives`: how many
    native frames libunwind saw."""
    if not ok(len(stacks) == 1 and stacks[0][1] == count, f"{name}: one stack, {count} times",
              *(f"{number} {';'.join(frames)}" for frames, number in stacks)):
        return
    got = stacks[0][0]
    wrong = [f"{i}: got {a!r}, want {b!r}" for i, (a, b) in enumerate(zip(got, want))
             if not is_frame(a, b)]
    ok(len(got) == len(want) and not wrong, f"{name}: the merged stack, frame by frame",
       f"{len(got)} frames, want {len(want)}", *wrong, *got)
    if natives is not None:
        equal(sum(frame.natives if isinstance(frame, Frame) else 1 for frame in want), natives,
              f"{name}: no native frame is missing")


MARKER_SOURCE = "fixtures/native/marker.c"
MARKS_SOURCE = "fixtures/native/marks.c"


def at(function, file, number):
    """The label of a native function with lines."""
    return f"{function} ({os.path.basename(file)}:{number})_[n]"


def hit():
    """The innermost frames of every stack: the caller of the marker's getppid comes before."""
    return [at("getppid", MARKER_SOURCE, line(MARKER_SOURCE, "braid_marker();")),
            at("braid_marker", MARKER_SOURCE, line(MARKER_SOURCE, "void braid_marker(void)\n") + 1)]


def marks(function, text):
    """The label of a function of marks.c, at the line that holds the text."""
    return at(function, MARKS_SOURCE, line(MARKS_SOURCE, text))


# libc's function between __libc_start_main and main is not exported, nor is start_thread.
TO_MAIN = ["_start_[n]", "__libc_start_main_[n]", None]
TO_OBEY = [*TO_MAIN, marks("main", "&& obey(line)")]
TO_THREAD = ["clone3_[n]", None]
HERE = [*TO_OBEY, marks("obey", "from_here(k);"), marks("from_here", "/* from_here */"), *hit()]
