#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""File descriptors that run out cost what they were wanted for, and never the recording: its counters
and its duration are in it. Nothing is held per process, and a command has the limit that its user
gave it."""

import os
import re
import resource

import gate

UNREAD = "files of code not read: no descriptor left"
NOT_UNDERSTOOD = "processes not analyzed: no descriptor or memory left"
PROGRAMS = 40


def descriptors(pid):
    return {int(fd) for fd in os.listdir(f"/proc/{pid}/fd")}


def limited(soft, hard, *args):
    return gate.run("prlimit", f"--nofile={soft}:{hard}", gate.BRAID, *args)


def needed():
    """What it says that it needs at least."""
    result = limited(64, 64, "record", "-o", gate.path("none.db"), "--", "true")
    gate.equal(result.status, 1, "too few: status")
    gate.matches(r"^braid: cannot open enough files: the hard limit is 64 \(ulimit -Hn\), and braid needs \d+ on "
                 r"this machine\n$", result.err, "too few: one line")
    gate.ok(not os.path.exists(gate.path("none.db")), "too few: no file")
    return int(re.search(r"needs (\d+)", result.err).group(1))


def check_command():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    result = limited(64, hard, "record", "-o", gate.path("command.db"), "--", "sh", "-c",
                     "ulimit -Sn; ulimit -Hn")
    gate.equal((result.status, result.out.split()), (0, ["64", str(hard)]),
               "a command has the user's limit, braid what the hard one allows")


def crowd(name, nofile, each, words, seen=lambda recording: True):
    """Ends as it should with so many processes, each with its descriptors, all at the same time; the
    recording."""
    file = gate.path(f"{name}.db")
    shell = (f"for word in {words}; do {each} 1000 & all=\"$all $!\"; done; echo begun; read line; "
             "kill $all")
    braid = gate.start("prlimit", f"--nofile={nofile}", gate.BRAID, "record", "-o", file, "--", "sh",
                       "-c", shell, stderr=gate.subprocess.PIPE)
    gate.wait_line(braid, "begun")
    recording = gate.Recording(file)
    gate.wait_until(lambda: seen(recording), "a commit")
    gate.say(braid, "end")
    err = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, f"{name}: status", err)
    gate.ok(float(recording.meta("duration_s")) > 0, f"{name}: its duration is in the recording")
    gate.equal(recording.sql("PRAGMA integrity_check"), [("ok",)], f"{name}: it is whole")
    return recording, err


def check_crowd(least):
    """More processes than descriptors."""
    recording, _ = crowd("crowd", least + 20, "sleep", f"$(seq {least + 40})")
    gate.equal(recording.counters().get(NOT_UNDERSTOOD), None, "crowd: each is understood")


def copies_of(program):
    """Different ones, by their build-id."""
    build_id = bytes.fromhex(re.search(r"Build ID: (\w+)", gate.run("readelf", "-n", program).out)
                             .group(1))
    with open(program, "rb") as file:
        content = file.read()
    os.mkdir(gate.path("programs"))
    for number in range(PROGRAMS):
        name = gate.path(f"programs/{number}")
        with open(name, "wb") as file:
            file.write(content.replace(build_id, bytes([number]) * len(build_id)))
        os.chmod(name, 0o755)


def check_programs(least):
    """More programs than descriptors."""
    copies_of("/bin/sleep")
    _, err = crowd("programs", least, "$word", gate.path("programs/*"),
                   lambda recording: recording.counters().get(UNREAD))
    gate.matches(rf"(?m)^ +\d+  {UNREAD}$", err, "programs: those that were not read are told of")


def check_none_left():
    """None is left but what is kept back, and a process begins a new program."""
    target = gate.marked("setarch", "-R", gate.MARKS, trace=False)
    recorder = gate.recorder(6, target)
    gate.ask(target, "here 2")
    gate.wait_line(recorder, "recorded 2")
    recording = gate.Recording(recorder.file)
    gate.wait_until(lambda: recording.count() == 2, "a commit")
    held = descriptors(recorder.pid)
    gate.equal([os.readlink(f"/proc/{recorder.pid}/fd/{fd}") for fd in held
                if os.readlink(f"/proc/{recorder.pid}/fd/{fd}") == "anon_inode:[pidfd]"], [],
               "none left: no descriptor stands for a process")
    first_free = min(set(range(len(held) + 1)) - set(map(int, held)))
    resource.prlimit(recorder.pid, resource.RLIMIT_NOFILE, (first_free, first_free + 4))
    pid = int(gate.ask(target, "fork-exec").split()[1])
    gate.ask(target, "here 3")
    gate.wait_until(lambda: recording.counters().get(NOT_UNDERSTOOD) == 1, "a commit")
    gate.ok(True, "none left: it goes on, and what is not understood is counted")
    gate.ask(target, "here 1")
    gate.finish(recorder, 6)
    gate.equal(len([sample for sample in recording.samples() if sample.pid == pid]), 4,
               "none left: all of its samples are there")
    gate.ok(float(recording.meta("duration_s")) > 0, "none left: its duration is in the recording")
    gate.say(target, "end")


gate.need_root()
found = needed()
check_command()
check_crowd(found)
check_programs(found)
check_none_left()
gate.done()
