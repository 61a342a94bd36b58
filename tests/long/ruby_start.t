#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""CRuby started by braid, and a server's processes; native frames compared with those that other
unwinders find."""

import re
import shutil
import subprocess

import lib
import python_matrix
import ruby_matrix as matrix
import ruby_stacks as stacks
import rubies


def check_started(builds):
    """From the first moment of the program on: also the stacks of its loading."""
    for ruby in builds:
        target = matrix.Target(ruby, "blocks.rb")
        target.ask_oracle()
        recording = lib.record("--", *ruby.arguments("blocks.rb", 1))
        for frames, count in recording.folded("--lines", "--annotate"):
            target.stacks[tuple(frames)] += count
        name = f"{ruby.label}: started by braid"
        lib.equal(target.want - target.seen, set(), f"{name}: every stack with its lines")
        hits = target.count(lambda stack: target.frames(stack) in target.want)
        matrix.at_least(hits, target.total, 60, f"{name}: in most samples",
                        *matrix.common(target))


class Server:
    """A parent and its workers."""

    def __init__(self, ruby):
        self.ruby = ruby
        self.parent = ruby.start("forker.rb")
        self.workers = children(self.parent.pid)
        self.want = ruby.oracle("forker.rb")

    @property
    def pids(self):
        return [self.parent.pid, *self.workers]

    def own_stacks(self, pid):
        """What a process should be seen to do."""
        return {stack for stack in self.want
                if (stack[-2][0] == "Forker#supervise") == (pid == self.parent.pid)}

    def check(self, recording):
        name = f"{self.ruby.label}: server"
        lib.equal(len(self.workers), 4, f"{name}: workers")
        for pid in self.pids:
            own = self.own_stacks(pid)
            folded = recording.folded("--pid", pid, "--lines", "--annotate")
            total = sum(count for _, count in folded)
            hits = sum(count for frames, count in folded
                       if stacks.shown(frames, self.ruby.version) in own)
            lib.ok(total >= 20, f"{name}: samples", total)
            matrix.at_least(hits, total, 90, f"{name}: its stack", own, *folded[:3])
            lib.equal([source for _, source in matrix.sources(recording, pid)], ["walk"],
                      f"{name}: source")


def check_servers(builds):
    """By their process ids."""
    servers = [Server(ruby) for ruby in builds]
    pids = [str(pid) for server in servers for pid in server.pids]
    recording = lib.record("-p", ",".join(pids), "-d", 6)
    lib.stop(*(server.parent for server in servers))
    for server in servers:
        server.check(recording)
    lib.check_complete(recording, 99.5, "servers")


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
        return [int(word) for word in file.read().split()]


# --- other unwinders ---

def check_tables(builds):
    """Native frames as libunwind finds them. Not in another root, where the test would read its own
    libraries for the program's."""
    for ruby in builds:
        if not ruby.root:
            lib.check_unwinder(f"{ruby.label}: c_methods.rb", *ruby.arguments("c_methods.rb"),
                               env=ruby.environment())


# Without what was inlined, and without functions that have jumped to another one.
FRAMES = """python
frame = gdb.newest_frame()
while frame:
    if frame.type() == gdb.NORMAL_FRAME:
        print("function", frame.name())
    frame = frame.older()
"""


def native_by_gdb(process):
    """The native functions of a stack that stays as it is, from main to the innermost interpreter
    loop."""
    script = lib.path("frames.gdb")
    with open(script, "w", encoding="utf-8") as file:
        file.write(FRAMES)
    run = subprocess.run(["gdb", "-nx", "-batch", "-p", str(process.pid), "-x", script],
                         capture_output=True, text=True, check=True)
    functions = re.findall(r"^function (?:__GI_)?_*(\w+)", run.stdout, re.M)
    return functions[functions.index("rb_vm_exec"):][::-1]


def check_gdb(builds):
    """All native frames are there in gdb's order."""
    static = [ruby for ruby in builds if not ruby.is_library and ruby.has_symtab]
    if not static or not shutil.which("gdb"):
        lib.skip("native frames against gdb", "no gdb or no Ruby with symbols")
        return
    for ruby in static[:1] + static[-1:]:
        name = f"{ruby.label}: against gdb"
        process = ruby.start("nest.rb")
        want = native_by_gdb(process)
        recording = lib.record("-p", process.pid, "-d", 2)
        lib.stop(process)
        hits = 0
        folded = recording.folded("--annotate", "--keep-vm")
        for frames, count in folded:
            matches = (re.fullmatch(r"_*([^.]*).*_\[n\]", frame) for frame in frames)
            got = [match[1].removesuffix("_[n]") for match in matches if match]
            start = got.index("main") if "main" in got else 0
            hits += count * (got[start:start + len(want)] == want)
        lib.ok(want.count("rb_vm_exec") >= 5, f"{name}: loops", want)
        matrix.at_least(hits, recording.samples(), 95, f"{name}: the same frames", want,
                        *folded[:2])


lib.need_bpf()
found, skipped = rubies.rubies()
known = [ruby for ruby in found if matrix.is_known(ruby)]
if not known:
    lib.skip_all("no CRuby")
each_version = matrix.of_each_version(known)
check_started(each_version)
check_servers(each_version)
check_tables(each_version[:1] + each_version[-1:])
check_gdb(known)
python_matrix.print_skipped(skipped)
lib.done()
