#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""-p: a process that runs already is recorded from the moment that the recorder says so, hit by hit;
by the id of any of its threads; and it is as it was when the recorder has gone."""

import gate


def check_attach(target):
    recorder = gate.recorder(5, target)
    gate.equal(gate.ask(target, "here 5"), "done 0", "attach: the target is done")
    recording = gate.finish(recorder, 5)
    samples = recording.samples()
    gate.equal([(sample.pid, sample.tid, sample.thread, sample.value) for sample in samples],
               [(target.pid, target.pid, "marks", 1)] * 5, "attach: whose they are")
    gate.check_native("attach", samples, gate.Maps(target.pid), gate.traces())
    gate.check_merged("attach", recording.merged(), gate.HERE, 5)
    gate.check_clean("attach", recording)
    gate.equal(recording.sql("SELECT pid, name FROM process"), [(target.pid, "marks")],
               "attach: the process and no other")


def check_again(target):
    """Nothing of the first recorder is left in the way."""
    recorder = gate.recorder(2, target)
    gate.ask(target, "here 1")
    said = gate.wait_line(recorder, "recorded")
    gate.equal(said[-1], "recorded 1", "again: recorded before the next one comes")
    gate.ask(target, "here 1")
    recording = gate.finish(recorder, 2)
    gate.check_merged("again", recording.merged(), gate.HERE, 2)


def check_two(target):
    other = gate.marked(gate.MARKS, trace=False)
    recorder = gate.recorder(5, target, other)
    gate.ask(target, "here 2")
    gate.ask(other, "here 3")
    recording = gate.finish(recorder, 5)
    for process, hits in (target, 2), (other, 3):
        gate.check_merged(f"two PIDs, {hits}", recording.merged("--pid", process.pid), gate.HERE,
                          hits)
    gate.equal(recording.sql("SELECT pid FROM process ORDER BY id"),
               [(target.pid,), (other.pid,)], "two PIDs: both, and no other")
    gate.matches(rf"pid {target.pid}.*pid {other.pid}", recording.meta("target"),
                 "two PIDs: both are the target")


def check_duration(target):
    file = gate.path("duration.db")
    result = gate.braid("record", "-p", target.pid, "-d", "0.05", "-o", file)
    gate.equal(result.status, 0, "-d: status", result.err)
    gate.matches(rf"^recording pid {target.pid} \(\S+\) for 0.05 s \(Ctrl-C ends the recording\)\n"
                 r"\S+: 0 samples in 0\.\d s\n", result.err, "-d: what begins, then the summary")
    gate.equal(gate.Recording(file).meta("target"), f"pid {target.pid} ({gate.MARKS})",
               "-d: the target")


def check_end(target):
    """More are waited for when the target ends."""
    recorder = gate.recorder(1000, target)
    gate.ask(target, "here 7")
    gate.say(target, "end")
    gate.equal(target.wait(), 0, "end of the target: its status")
    recording = gate.finish(recorder, 7)
    gate.check_merged("end of the target", recording.merged(), gate.HERE, 7)


gate.need_root()
found = gate.marked(gate.MARKS)
check_attach(found)
check_again(found)
check_two(found)
check_duration(found)
check_end(found)
gate.done()
