#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Probes are attached where they should be, count what happens, and leave nothing behind; `braid
probes` tells which of them fire. What they count is known from the fixture."""

import collections
import glob
import json
import os
import re
import shutil
import signal
import struct
import subprocess

import lib

NOBODY = 65534
SPIN_PYTHON = """
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
print("READY", flush=True)
while True:
    fib(15)
"""
SPIN_RUBY = """
def text(x)
  x.to_s
end
puts "READY"
STDOUT.flush
loop { text([1, 2]) }
"""


# --- the fixture, and a counter attached to it ---

class Fixture:
    def __init__(self, program=lib.fixture("usdt")):
        self.process = lib.start_ready(program, stdin=subprocess.PIPE)
        self.pid = self.process.pid
        symbols = subprocess.run(["nm", lib.fixture("usdt")], capture_output=True, check=True)
        self.semaphores = {name: int(address, 16) for address, name in re.findall(
            r"([0-9a-f]+) \w usdt_(\w+)_semaphore", symbols.stdout.decode())}

    def ask(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def raised(self):
        """The semaphores as they are in its memory."""
        with open(f"/proc/{self.pid}/maps", encoding="utf-8") as file:
            base = int(file.readline().split("-")[0], 16)
        with open(f"/proc/{self.pid}/mem", "rb", buffering=0) as memory:
            return {name: struct.unpack("H", os.pread(memory.fileno(), 2, base + vaddr))[0]
                    for name, vaddr in self.semaphores.items()}

    def stop(self):
        lib.stop(self.process)


class Counter:
    def __init__(self, pid, *args, provider="braid"):
        self.process = lib.start(os.path.join(lib.OUTPUT, "tests/tools/probe_count"), pid, provider,
                                 *args, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        line = self.process.stdout.readline()
        if line != b"ATTACHED\n":
            raise RuntimeError(f"not attached: {line!r}")

    def hits(self, command=""):
        """{probe: hits at all its sites}"""
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()
        hits = collections.Counter()
        for line in iter(self.process.stdout.readline, b"\n"):
            if not line:
                raise RuntimeError("the counter has ended")
            name, count = line.decode().split()
            hits[name] += int(count)
        return hits

    def stop(self):
        lib.stop(self.process)


def check_hits(hits, rounds, name):
    lib.equal({probe: hits[probe] for probe in ("call", "branch", "return", "never")},
              {"call": rounds, "branch": rounds, "return": rounds, "never": 0}, name)


def check_counts():
    fixture = Fixture()
    fixture.ask("5")
    none = fixture.raised()
    lib.equal(none, {"call": 0, "return": 0, "quiet": 0}, "before: no semaphore is raised")
    counter = Counter(fixture.pid)
    lib.equal(fixture.raised(), {"call": 1, "return": 1, "quiet": 1}, "attached: all are")
    fixture.ask("1000")
    check_hits(counter.hits(), 2000, "two threads, 1000 rounds each")
    fixture.ask("f")
    check_hits(counter.hits(), 2000, "a forked child does not count")
    fixture.ask("x")
    fixture.ask("10")
    check_hits(counter.hits(), 2020, "the same program executed anew does")
    second = Counter(fixture.pid)
    second.stop()
    lib.equal(fixture.raised()["call"], 1, "the semaphores stay up when a second one goes")
    check_hits(counter.hits("d"), 2020, "detached: what was counted stays")
    lib.equal(fixture.raised(), none, "detached: the semaphores are down")
    fixture.ask("10")
    check_hits(counter.hits("d"), 2020, "detached, again: nothing more is counted")
    counter.stop()
    fixture.stop()


def check_marker():
    """An endbr64 at a function's beginning is not probed, but what is behind it: that is cheaper."""
    program = lib.fixture("marked")
    process = lib.start_ready(program, stdin=subprocess.PIPE)
    symbols = subprocess.run(["nm", program], capture_output=True, check=True).stdout.decode()
    with open(f"/proc/{process.pid}/maps", encoding="utf-8") as file:
        address = int(file.readline().split("-")[0], 16)
    address += int(re.search(r"([0-9a-f]+) T marked\n", symbols).group(1), 16)

    def code():
        with open(f"/proc/{process.pid}/mem", "rb", buffering=0) as memory:
            return os.pread(memory.fileno(), 5, address)

    lib.equal(code(), bytes.fromhex("f30f1efa55"), "endbr64, push: before")
    counter = Counter(process.pid, provider="marked")
    lib.equal(code(), bytes.fromhex("f30f1efacc"), "endbr64, push: the push is probed")
    process.stdin.write(b"1000\n")
    process.stdin.flush()
    process.stdout.readline()
    lib.equal(counter.hits(), {"call": 1000}, "endbr64, push: each call is seen")
    counter.stop()
    lib.stop(process)


def check_semaphore_alone():
    fixture = Fixture()
    counter = Counter(fixture.pid, "call")
    lib.equal(fixture.raised()["call"], 1, "semaphore alone: raised")
    fixture.ask("10")
    hits = counter.hits()
    lib.ok("call" not in hits and hits["return"] == 20, "semaphore alone: nothing at its site", hits)
    counter.stop()
    lib.wait_for(lambda: fixture.raised()["call"] == 0, "the semaphore")
    lib.ok(True, "semaphore alone: down again")
    fixture.stop()


def check_deleted_file():
    program = lib.path("deleted")
    shutil.copy(lib.fixture("usdt"), program)
    fixture = Fixture(program)
    os.unlink(program)
    counter = Counter(fixture.pid)
    fixture.ask("3")
    check_hits(counter.hits(), 6, "the program's file was deleted")
    counter.stop()
    fixture.stop()


def uprobes_of(pid):
    shown = subprocess.run([lib.bpftool(), "-j", "perf", "show"], capture_output=True, check=True)
    return [entry for entry in json.loads(shown.stdout or b"[]") if entry["pid"] == pid]


def check_kill():
    fixture = Fixture()
    counter = Counter(fixture.pid)
    ids = lib.bpf_ids(counter.process.pid)
    lib.ok(ids["link"] and ids["prog"] and ids["map"] and uprobes_of(counter.process.pid),
           "SIGKILL: there were links, programs, maps and uprobes", ids)
    lib.equal(fixture.raised()["call"], 1, "SIGKILL: a semaphore was raised")
    counter.process.send_signal(signal.SIGKILL)
    counter.process.wait()

    def left():
        return {kind: ids[kind] & lib.all_bpf_ids(kind) for kind in ids if ids[kind] & lib.all_bpf_ids(kind)}

    try:
        lib.wait_for(lambda: not left(), "the kernel's clean-up")
    except TimeoutError:
        pass
    lib.equal(left(), {}, "SIGKILL: no link, program or map is left")
    lib.equal(fixture.raised(), {"call": 0, "return": 0, "quiet": 0}, "SIGKILL: nor a semaphore")
    lib.equal(uprobes_of(counter.process.pid), [], "SIGKILL: nor an event")
    lib.equal(fixture.ask("10"), b"DONE\n", "SIGKILL: the target goes on")
    fixture.stop()


# --- braid probes ---

def rows(result):
    """[(wanted, live, probe, hits per second or None)] of the first image."""
    found = re.findall(r"^(yes|no) +(yes|no|only when|) +(\w+:\w+) +0x[0-9a-f]+ +(?:0x[0-9a-f]+|-) +"
                       r"(\d+)?", result.out.split("\n\n")[0], re.M)
    return [(*row[:3], int(row[3]) if row[3] else None) for row in found]


def rates(result):
    sums = collections.Counter()
    for _, _, probe, hits in rows(result):
        sums[probe] += hits or 0
    return sums


def probes_of_busy(process):
    """Of a process that calls all the time."""
    result = lib.braid("probes", "-p", process.pid)
    lib.stop(process)
    return result


def has_probe(file, probe):
    result = lib.braid("probes", file)
    return result.status == 0 and any(row[2] == probe for row in rows(result))


def check_file():
    result = lib.braid("probes", lib.fixture("usdt"))
    lib.equal(result.status, 0, "file: status", result.err)
    names = collections.Counter(row[2] for row in rows(result))
    lib.ok(names["braid:branch"] >= 2 and names["braid:call"] and names["braid:forms_none"],
           "file: its sites", names)
    lib.ok({row[0] for row in rows(result)} == {"no"}, "file: nobody wants them")
    lib.matches("8@16\\(%rsp,%rax,8\\) -4@\\(%rdi", result.out, "file: with arguments")
    other = lib.braid("probes", shutil.which("true"))
    lib.equal(other.status, 0, "file without sites: status", other.err)
    lib.matches("no probe sites", other.out, "file without sites: it says so")


def check_python_3_11():
    program = "/usr/bin/python3.11"
    name = "CPython 3.11"
    if not has_probe(program, "python:function__entry"):
        return lib.skip(name, "no python3.11 with probes here")
    result = probes_of_busy(lib.start_ready(program, "-c", SPIN_PYTHON))
    lib.equal(result.status, 0, f"{name}: status", result.err)
    lib.equal(rates(result)["python:function__entry"], 0, f"{name}: function__entry does not fire")
    lib.ok(rates(result)["python:function__return"] > 100, f"{name}: function__return does")
    lib.matches(r"SILENT +python:function__entry .*\n +-> .*python:line", result.out,
                f"{name}: that is told, with the remedy")
    lib.matches(r"\nno +probe sites .*python:line", result.out, f"{name}: so they are no source")
    lib.matches(r"\nchosen +walk", result.out, f"{name}: but the walker is")
    return None


def check_function_pair():
    name = "CPython 3.6 to 3.10 without sites"
    pythons = glob.glob(os.path.expanduser("~/.pyenv/versions/3.[6789]*/bin/python3.[6789]"))
    if not pythons:
        return lib.skip(name, "there is none here")
    result = probes_of_busy(lib.start_ready(pythons[0], "-c", SPIN_PYTHON))
    sums = rates(result)
    lib.ok(sums["uprobe:_PyEval_EvalFrameDefault"] and sums["uretprobe:_PyEval_EvalFrameDefault"],
           f"{name}: entry and return of the function fire", result)
    lib.matches(r"\nno +probe sites .*--with-dtrace", result.out, f"{name}: why not sites")
    lib.ok("SILENT" not in result.out, f"{name}: nothing is amiss")
    return None


def check_ruby():
    name = "Ruby"
    libraries = [file for pattern in ("/usr/lib/*-linux-gnu/libruby-*.so.*", "/usr/bin/ruby*")
                 for file in glob.glob(pattern) if has_probe(file, "ruby:cmethod__entry")]
    if not libraries or not shutil.which("ruby"):
        return lib.skip(name, "no Ruby with probes here")
    version = subprocess.run(["ruby", "-e", "print RUBY_VERSION"], check=True, capture_output=True,
                             text=True).stdout
    if version < "3.2" and version >= "3":  # methods in C are left alone: listened to, it crashes
        process = lib.start_ready("ruby", "-e", SPIN_RUBY)
        result = lib.braid("probes", "-p", process.pid)
        lib.stop(process)
        lib.ok(re.search(r"^no +ruby:cmethod__entry ", result.out, re.M)
               and not re.search(r"^yes +\S+ +ruby:cmethod", result.out, re.M),
               f"{name}: methods in C are not probed", result)
    else:
        result = probes_of_busy(lib.start_ready("ruby", "-e", SPIN_RUBY))
        sums = rates(result)
        lib.ok(sums["ruby:cmethod__entry"] and sums["ruby:cmethod__return"],
               f"{name}: methods in C fire", result)
    lib.equal(rates(result)["ruby:method__entry"], 0, f"{name}: methods in Ruby do not")
    lib.matches(r"\nno +probe sites .*method__entry .*hook.*\n +-> .*TracePoint\.new\(:call, :return\)",
                result.out, f"{name}: the remedy")
    hook = lib.path("hook.rb")
    with open(hook, "w", encoding="utf-8") as file:
        file.write("TracePoint.new(:call, :return) {}.enable\n")
    environment = dict(os.environ, RUBYOPT=f"-r{hook}")
    result = probes_of_busy(lib.start_ready("ruby", "-e", SPIN_RUBY, env=environment))
    lib.ok(rates(result)["ruby:method__entry"] and rates(result)["ruby:method__return"],
           f"{name}: with the remedy they fire", result)
    lib.matches(r"\n(works|chosen) +probe sites .*method__entry and method__return fire", result.out,
                f"{name}: and are a source")
    return None


def check_thread_id():
    target = lib.start_ready(lib.fixture("threads"))
    thread = lib.wait_for(lambda: set(map(int, os.listdir(f"/proc/{target.pid}/task")))
                          - {target.pid}, "a thread").pop()
    result = lib.braid("probes", "-p", thread)
    lib.equal(result.status, 0, "a thread's id will do", result.err)
    lib.stop(target)


def check_wrong():
    for args, status, pattern in (
            ([], 2, "either -p PID or a FILE"), (["-p", "1", "x"], 2, "either -p PID or a FILE"),
            (["-p", "1,2"], 2, "one process"), (["-p", "x"], 2, "-p takes"), (["a", "b"], 2, "'b'"),
            (["/etc/passwd"], 1, "not an ELF file"), (["/no/such/file"], 1, "No such file"),
            (["/"], 1, "not a regular file"), (["/dev/zero"], 1, "not a regular file"),
            (["-p", "4194304"], 1, "no process with PID 4194304")):
        result = lib.braid("probes", *args)
        name = f"probes {' '.join(args)}"
        lib.equal(result.status, status, f"{name}: status", result)
        lib.matches(f"^braid( probes)?: .*{pattern}", result.err, f"{name}: what is wrong")
        lib.ok(len(result.err.splitlines()) == status and not result.out, f"{name}: brief",
               result)
    fifo = lib.path("fifo")
    os.mkfifo(fifo)
    lib.matches("not a regular file", lib.braid("probes", fifo).err, "a pipe does not block it")


def check_malformed():
    """The first note's name is said to be longer than the file."""
    damaged = lib.path("damaged")
    with open(lib.fixture("usdt"), "rb") as file:
        data = bytearray(file.read())
    at = data.index(b"stapsdt\0") - 12
    data[at:at + 4] = b"\xff\xff\xff\x7f"
    with open(damaged, "wb") as file:
        file.write(data)
    result = lib.braid("probes", damaged)
    lib.equal(result.status, 1, "malformed notes: status", result)
    lib.matches("malformed probe notes", result.err, "malformed notes: it says so")


def as_nobody(program, *args):
    run = subprocess.run([program, "probes", *map(str, args)], capture_output=True, user=NOBODY,
                         group=NOBODY, extra_groups=[])
    return lib.Result(run.returncode, run.stdout.decode(), run.stderr.decode())


def check_not_root():
    directory = lib.path("nobody")
    os.mkdir(directory, 0o755)
    os.chmod(lib.tmp, 0o755)
    braid = shutil.copy(lib.BRAID, directory)
    program = shutil.copy(lib.fixture("usdt"), directory)
    target = lib.start_ready(program, stdin=subprocess.PIPE, user=NOBODY, group=NOBODY,
                             extra_groups=[])
    result = as_nobody(braid, program)
    lib.equal(result.status, 0, "not root: a file", result.err)
    result = as_nobody(braid, "--no-attach", "-p", target.pid)
    lib.equal(result.status, 0, "not root: a process of one's own, --no-attach", result.err)
    lib.matches("braid:call", result.out, "not root: its sites")
    result = as_nobody(braid, "--no-attach", "-p", os.getpid())
    lib.equal(result.status, 1, "not root: somebody else's process", result)
    lib.matches(f"^braid: not permitted .*user {NOBODY} lacks CAP_SYS_PTRACE", result.err,
                "not root: what is missing")
    lib.stop(target)
    python = "/usr/bin/python3.11"
    if not has_probe(python, "python:function__entry"):
        return lib.skip("not root: probes", "no python3.11 with probes here")
    target = lib.start_ready(python, "-c", SPIN_PYTHON, user=NOBODY, group=NOBODY, extra_groups=[])
    result = as_nobody(braid, "-p", target.pid)
    lib.equal(result.status, 1, "not root: cannot attach", result)
    lib.matches("^braid: not permitted .*root.*--no-attach", result.err, "not root: the way out")
    lib.stop(target)
    return None


lib.need_bpf()
check_counts()
check_marker()
check_semaphore_alone()
check_deleted_file()
check_kill()
check_file()
check_python_3_11()
check_function_pair()
check_ruby()
check_thread_id()
check_wrong()
check_malformed()
check_not_root()
lib.done()
