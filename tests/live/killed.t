#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""However braid ends, by a signal or by kill -9, the kernel and the target are as before: no program,
map, link, probe, semaphore or breakpoint is left, no thread is stopped or traced; and killed, it
leaves a recording of all that was committed."""

import ctypes
import glob
import os
import re
import signal
import struct

import gate

PYTHON = "/usr/bin/python3.11"


def check_target(name, pid):
    """No thread of it is stopped or traced."""
    wrong = []
    for status in glob.glob(f"/proc/{pid}/task/*/status"):
        with open(status, encoding="utf-8") as file:
            found = dict(line.split(":\t", 1) for line in file.read().splitlines())
        if found["State"][0] not in "RS" or found["TracerPid"] != "0":
            wrong.append(found)
    gate.equal(wrong, [], f"{name}: no thread is stopped or traced")


def check_end(target, number):
    """Killed: what was committed is there, all at once, once a second. Else: all of it."""
    name = signal.Signals(number).name
    recorder = gate.recorder(1000, target)
    ids = gate.ids_of(recorder.pid)
    gate.ask(target, "here 5")
    gate.wait_line(recorder, "recorded 5")
    recording = gate.Recording(recorder.file)
    if number == signal.SIGKILL:
        gate.wait_until(lambda: recording.count() == 5, "a commit")
    recorder.send_signal(number)
    if number == signal.SIGKILL:
        gate.equal(recorder.wait(), -number, f"{name}: status")
    else:
        gate.finish(recorder, 5)
    gate.check_gone(name, ids)
    check_target(name, target.pid)
    gate.equal(recording.sql("PRAGMA integrity_check"), [("ok",)], f"{name}: it is whole")
    gate.check_merged(name, recording.merged(), gate.HERE, 5)
    gate.equal(gate.braid("report", recording.file).status, 0, f"{name}: as a table, too")
    gate.equal(gate.ask(target, "here 1"), "done 0", f"{name}: the target goes on")
    gate.equal(recording.count(), 5, f"{name}: unseen")


def check_killed_command():
    file = gate.path("command.db")
    braid = gate.start(gate.BRAID, "record", "-o", file, "--", gate.MARKS,
                       stderr=gate.subprocess.DEVNULL)
    pid = int(gate.wait_line(braid, "ready")[-1].split()[1])
    ids = gate.ids_of(braid.pid)
    braid.kill()
    braid.wait()
    gate.check_gone("SIGKILL with a command", ids)
    check_target("SIGKILL with a command", pid)
    gate.equal(gate.ask(braid, "here 1"), "done 0", "SIGKILL with a command: it goes on")
    gate.say(braid, "end")
    gate.equal(gate.line_of(braid), "", "SIGKILL with a command: until its own end")


class Probes:
    """The code and the semaphores of a program's probes in a process."""

    def __init__(self, program, pid):
        notes = gate.run("readelf", "-n", program).out
        self.sites = sorted({int(site, 16) for site in re.findall(r"Location: (\S+),", notes)})
        self.semaphores = sorted({int(found, 16) for found in
                                  re.findall(r"Semaphore: (\S+)", notes)} - {0})
        self.base = gate.Maps(pid).base(program)
        self.pid = pid

    def read(self):
        with open(f"/proc/{self.pid}/mem", "rb", 0) as memory:
            return [os.pread(memory.fileno(), size, self.base + address)
                    for addresses, size in ((self.sites, 5), (self.semaphores, 2))
                    for address in addresses]

    def attached(self, before):
        """A site's code is changed, and a semaphore raised."""
        changed = [a != b for a, b in zip(self.read(), before)]
        return any(changed[:len(self.sites)]) and any(changed[len(self.sites):])


def check_killed_probes():
    target = gate.marked(PYTHON, "-B", "fixtures/python/marked/marked.py")
    probes = Probes(PYTHON, target.pid)
    before = probes.read()
    gate.equal(set(before[len(probes.sites):]), {b"\0\0"}, "probes: no semaphore is raised before")
    braid = gate.start(gate.BRAID, "calls", "-p", target.pid, stderr=gate.subprocess.DEVNULL)
    gate.wait_until(lambda: probes.attached(before), "probes")
    ids = gate.ids_of(braid.pid)
    braid.kill()
    braid.wait()
    gate.wait_until(lambda: probes.read() == before, "the clean-up")
    gate.ok(True, "SIGKILL with probes: code and semaphores are as before")
    gate.check_gone("SIGKILL with probes", ids)
    check_target("SIGKILL with probes", target.pid)
    gate.ok(gate.ask(target, "1").startswith('[[["<module>"'),
            "SIGKILL with probes: the target goes on")


def check_failed_command():
    before = {kind: gate.all_ids(kind) for kind in ("prog", "link")}
    result = gate.braid("record", "-o", gate.path("none.db"), "--", "/no/such/program")
    gate.equal(result.status, 1, "no such command: status", result.err)

    def left():
        """Of all that is new, what no process holds: braids of other tests come and go."""
        new = {kind: gate.all_ids(kind) - before[kind] for kind in before}
        held = [gate.ids_of(name) for name in os.listdir("/proc") if name.isdigit()]
        return [i for kind in new for i in new[kind] - set().union(*(ids[kind] for ids in held))]

    gate.wait_until(lambda: not left(), "the clean-up")
    gate.ok(True, "no such command: nothing in the kernel")


LINKAT, RENAME = 265, 82  # x86-64


def dies_at(number):
    """A process ends at this system call, as by kill -9 (linux/seccomp.h, linux/filter.h)."""
    def prepare():
        code = (struct.pack("HBBI", 0x20, 0, 0, 0) +  # the number of the call
                struct.pack("HBBI", 0x15, 0, 1, number) +
                struct.pack("HBBI", 0x06, 0, 0, 0x80000000) +  # SECCOMP_RET_KILL_PROCESS
                struct.pack("HBBI", 0x06, 0, 0, 0x7fff0000))  # SECCOMP_RET_ALLOW
        text = ctypes.create_string_buffer(code)
        program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(text)))
        gate.running.libc.prctl(22, 2, program, 0, 0)  # PR_SET_SECCOMP
    return prepare


def check_killed_writing():
    """Where files get their names and places: nothing is left, or the next one takes it."""
    directory = gate.path("written")
    os.mkdir(directory)
    words = (gate.BRAID, "record", "-d", "0.1", "-p", os.getpid(), "-o", directory + "/r.db", "--metrics",
             directory + "/m")
    report = (gate.BRAID, "report", "-o", directory + "/t", directory + "/r.db")

    def files():
        return sorted(os.listdir(directory))

    result = gate.run(*words, preexec_fn=dies_at(LINKAT))
    gate.equal((result.status, files()), (-signal.SIGSYS, []), "killed writing: nothing of the first")
    there = ["m", "r.db", "t"]
    gate.equal((gate.run(*words).status, gate.run(*report).status, files()), (0, 0, there),
               "killed writing: all of it")
    for name, command, after in ("record", words, ["m", "r.db", "r.db.old", "t"]), (
            "report", report, ["m", "r.db", "r.db.old", "t"]):
        result = gate.run(*command, preexec_fn=dies_at(LINKAT))
        gate.equal((result.status, files()), (-signal.SIGSYS, there),
                   f"killed writing: {name}: before it has a name")
        for _ in range(2):
            result = gate.run(*command, preexec_fn=dies_at(RENAME))
            gate.equal((result.status, len(files())), (-signal.SIGSYS, len(there) + 1),
                       f"killed writing: {name}: before it has its place: one is left")
        gate.equal((gate.run(*command).status, files()), (0, after),
                   f"killed writing: {name}: the next one leaves none")
        there = after


gate.need_root()
found = gate.marked(gate.MARKS)
for ending in signal.SIGINT, signal.SIGKILL:
    check_end(found, ending)
check_killed_command()
if os.path.exists(PYTHON):
    check_killed_probes()
else:
    gate.skip("SIGKILL with probes", f"there is no {PYTHON}")
check_failed_command()
check_killed_writing()
gate.done()
