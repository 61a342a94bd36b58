#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""All processes: each is found by its first sample, which is whole, whatever its runtime and however
short its life; those that begin later, too; threads of the kernel."""

import json
import signal

import gate
import scopes

SHORT = 30  # processes that live for a millisecond or two
PYTHON = "/usr/bin/python3"
SCRIPT = "fixtures/python/marked/marked.py"

FROM_CHILD = [*gate.TO_MAIN, gate.marks("main", "from_child(atol(argv[1]))"),
              gate.marks("from_child", "/* from_child */"), *gate.hit()]


def python_frames(frames):
    return [frame for frame in frames if frame.endswith("_[py]")]


def check_native():
    early = scopes.obeying(own, gate.MARKS)
    recorder = scopes.Recorder(own, "-a")
    gate.ask(early, "here 3")
    late = scopes.obeying(own, gate.MARKS)
    gate.ask(late, "here 2")
    gate.ask(early, "here 1")
    recording = recorder.finish("native")
    gate.equal(scopes.counts(recording), {early.pid: 4, late.pid: 2},
               "a sample of each call, in those that were there and those that began later")
    gate.check_merged("of one that was there", recording.merged("--pid", early.pid), gate.HERE, 4)
    gate.check_merged("of one that began", recording.merged("--pid", late.pid), gate.HERE, 2)
    gate.equal(scopes.losses(recording), {}, "nothing is lost")


def check_short():
    parent = scopes.obeying(own, gate.MARKS)
    recorder = scopes.Recorder(own, "-a")
    gate.ask(parent, "here 1")  # its files are known from here on
    recorder.wait_samples(1)
    for _ in range(SHORT):
        gate.ask(parent, "spawn 1")
    recording = recorder.finish("short")
    counts = scopes.counts(recording)
    gate.equal(counts.pop(parent.pid), 1, "short: the parent's")
    gate.equal(sorted(counts.values()), [1] * SHORT, "short: one of each process")
    names = recording.sql("SELECT DISTINCT name, command FROM process WHERE pid != ?", parent.pid)
    gate.equal(names, [("exe", "marks 1")], "short: what they are called (by /proc/self/exe)")
    got = [frames for frames, number in recording.merged() for _ in range(number)]
    gate.equal(len(got), SHORT + 1, "short: all have stacks")
    gate.check_merged("short", [(frames, number) for frames, number in recording.merged()
                                if any("from_child" in frame for frame in frames)],
                      FROM_CHILD, SHORT)


def check_unread():
    """Each has ended, and its parent has forgotten it, when braid gets to look at it."""
    program = scopes.program("unread")
    recorder = scopes.Recorder(own, "-a")
    environment = dict(gate.os.environ, LD_PRELOAD=own)
    for run in 1, 2:
        recorder.process.send_signal(signal.SIGSTOP)
        gate.wait_until(lambda: gate.state_of(recorder.process.pid) == "T", "braid stands")
        gate.equal(gate.run(program, 1, env=environment).status, 0, "unread: a program")
        recorder.process.send_signal(signal.SIGCONT)
        recorder.wait_samples(run)
    recording = recorder.finish("unread")
    last = recording.one("SELECT max(pid) FROM process")
    gate.check_merged("unread, once its file is known", recording.merged("--pid", last), FROM_CHILD, 1)
    gate.equal(recording.one("SELECT count(*) FROM sample JOIN node ON node.id = native JOIN frame "
                             "ON frame.id = frame WHERE image IS NULL"), 0, "unread: names files")


def check_python():
    """The first sample makes the interpreter known."""
    target = scopes.obeying(own, PYTHON, SCRIPT)
    recorder = scopes.Recorder(own, "-a", "--verbose")
    gate.ask(target, "1")
    recorder.wait_said(f"pid {target.pid}: python ")
    told, = json.loads(gate.ask(target, "1"))
    recording = recorder.finish("python")
    gate.equal(scopes.counts(recording), {target.pid: 2}, "python: a sample of each call")
    gate.equal(recording.sql("SELECT flags & 1 FROM sample ORDER BY id"), [(0,), (1,)],
               "python: a stack without the frames of its interpreter is not whole")
    gate.equal(scopes.losses(recording), {scopes.EARLY: 1}, "python: it is said that the first lacks its own frames")
    lines = [python_frames(frames) for frames, _ in recording.merged() if python_frames(frames)]
    names = [frame[0] for part in [told] for frame in part]
    gate.equal([[frame.split(" (")[0].split(".")[-1] for frame in frames] for frames in lines],
               [names], "python: what the interpreter says of the second")


def check_kernel_threads():
    """They come and go all the time, a millisecond or two each."""
    recorder = scopes.Recorder(own, "-a", "-e", "off-cpu")
    query = ("FROM sample JOIN thread ON thread.id = thread JOIN process ON process.id = process "
             "WHERE parent_pid = 2")
    gate.wait_until(lambda: gate.Recording(recorder.file).one(f"SELECT count(*) {query}"),
                    "a thread of the kernel")
    recording = recorder.finish("kernel")
    gate.equal(recording.one(f"SELECT count(*) {query} AND (runtime IS NOT NULL OR NOT flags & 1)"),
               0, "kernel: their stacks are whole")
    gate.equal(recording.one(
        "SELECT count(*) FROM (SELECT DISTINCT frame.kind AS kind FROM node JOIN frame "
        f"ON frame.id = frame WHERE node.id IN (SELECT native {query})) "
        "JOIN kind ON kind.id = kind WHERE name != 'kernel'"), 0, "kernel: of the kernel's frames")


gate.need_root()
own = scopes.marker()
check_native()
check_short()
check_unread()
if gate.os.path.exists(PYTHON):
    check_python()
check_kernel_threads()
gate.done()
