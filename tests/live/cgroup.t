#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Processes of a cgroup and of those below it, of a user, of a name: by where each is and what it is
when it is sampled."""

import os
import pwd

import gate
import scopes

NOBODY = pwd.getpwnam("nobody").pw_uid

# Becomes another name when it is told so.
RENAMED = """
import ctypes, os, sys
print("ready", flush=True)
for line in sys.stdin:
    if line.startswith("be "):
        ctypes.CDLL(None).prctl(15, line.split()[1].encode())  # PR_SET_NAME
    else:
        for _ in range(int(line)):
            os.getppid()
    print("done", flush=True)
"""


def check_cgroup():
    above = scopes.Cgroup(f"/braid-{os.getpid()}")
    below = scopes.Cgroup(above.path + "/below")
    outside, inside, deep = (scopes.obeying(own, gate.MARKS) for _ in range(3))
    above.take(inside)
    below.take(deep)
    recorder = scopes.Recorder(own, "--cgroup", above.path)
    for process in outside, inside, deep:
        gate.ask(process, "here 2")
    above.take(outside)
    gate.ask(outside, "here 3")
    below.empty()
    gate.ask(deep, "here 5")
    recording = recorder.finish("cgroup")
    gate.equal(scopes.counts(recording), {outside.pid: 3, inside.pid: 2, deep.pid: 2},
               "those that are in it, or below it, while they are")
    gate.equal(dict(recording.sql("SELECT pid, cgroup FROM process")),
               {outside.pid: above.path, inside.pid: above.path, deep.pid: below.path},
               "the recording has where each was")
    gate.check_merged("cgroup", recording.merged(), gate.HERE, 7)
    gate.check_merged("--cgroup below", recording.merged("--cgroup", below.path), gate.HERE, 2)
    gate.equal({frames[0].split("_[")[0]: number for frames, number in
                recording.merged("--by", "cgroup")}, {above.path: 5, below.path: 2},
               "--by cgroup: what is of which")


def check_gone():
    """It goes, and another one comes by its name."""
    cgroup = scopes.Cgroup(f"/braid-{os.getpid()}-gone")
    target = scopes.obeying(own, gate.MARKS)
    cgroup.take(target)
    recorder = scopes.Recorder(own, "--cgroup", cgroup.directory)
    gate.ask(target, "here 2")
    cgroup.remove()
    recorder.wait_said(f"the cgroup {cgroup.directory} was removed. The recording continues")
    gate.ask(target, "here 3")
    os.mkdir(cgroup.directory)
    recorder.wait_said(f"the cgroup {cgroup.directory} was created again")
    cgroup.take(target)
    gate.ask(target, "here 4")
    recording = recorder.finish("gone")
    gate.equal(scopes.counts(recording), {target.pid: 6}, "what is in it before and after")


def check_user():
    cgroup = scopes.Cgroup(f"/braid-{os.getpid()}-user")
    users = [scopes.obeying(own, gate.MARKS, user=NOBODY) for _ in range(2)]
    root = scopes.obeying(own, gate.MARKS)
    cgroup.take(root)
    cgroup.take(users[0])
    recorder = scopes.Recorder(own, "--user", "nobody")
    both = scopes.Recorder(own, "--user", str(NOBODY), "--cgroup", cgroup.path)
    for process in *users, root:
        gate.ask(process, "here 2")
    gate.equal(scopes.counts(recorder.finish("user")), {one.pid: 2 for one in users},
               "processes of a user")
    gate.equal(scopes.counts(both.finish("user, cgroup")), {users[0].pid: 2},
               "both have to hold")


def check_name():
    wanted, other = scopes.program("wanted_one"), scopes.program("other_one")
    early, stranger = scopes.obeying(own, wanted), scopes.obeying(own, other)
    renamed = scopes.obeying(own, "/usr/bin/python3", "-c", RENAMED)
    recorder = scopes.Recorder(own, "--name", "^wanted_[a-z]+$")
    for process in early, stranger:
        gate.ask(process, "here 2")
    gate.ask(renamed, "2")
    recorder.wait_samples(2)
    gate.ask(stranger, "here 3")
    late = scopes.obeying(own, wanted)
    gate.ask(late, "here 1")
    gate.ask(renamed, "be wanted_too")
    gate.ask(renamed, "4")
    recording = recorder.finish("name")
    gate.equal(scopes.counts(recording), {early.pid: 2, late.pid: 1, renamed.pid: 4},
               "processes of that name, and what gets it", *recorder.said)
    losses = scopes.losses(recording)
    gate.ok(losses.pop(scopes.EARLY, 0) <= 4 and not losses,
            "nothing is lost but frames of Python's, before it was known", losses)


def check_waits():
    name = f"braid_waits_{os.getpid()}"
    recorder = scopes.Recorder(own, "--name", f"^{name}"[:14])
    recorder.wait_said("no running process matches name ")
    target = scopes.obeying(own, scopes.program(name))
    gate.ask(target, "here 2")
    gate.equal(scopes.counts(recorder.finish("waits")), {target.pid: 2},
               "one that there was none of yet")
    # The CPU time is left out if it was read too late after the end.
    lines = [line.split(";")[0].split(":")[0] for line in recorder.said if "thread" in line]
    gate.matches(r"^the process has( used [\d.]+ s of CPU in that time with)? 1 thread$",
                 "\n".join(lines), "what it does")


gate.need_root()
scopes.cgroup_root()
own = scopes.marker()
check_cgroup()
check_gone()
check_user()
check_name()
check_waits()
gate.done()
