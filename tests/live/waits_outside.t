#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Waits that begin before the recording, or outlast it, are in it for the part that it has seen, with
their stacks, also of threads that never run meanwhile: of a deadlock there is all to be seen."""

import os
import time

import gate
import waiting
from waiting import BLOCKED, FUTEX, READ

WAITS = os.path.join(gate.OUTPUT, "fixtures/native/waits")


def record(*pids):
    return waiting.record("off-cpu:1ns", *pids, options=["--max-overhead", "none"])


def check_outside():
    """Blocked before the recording begins; and still blocked when it ends."""
    waiter = waiting.Waiter(WAITS)
    waiter.begin("pipe", READ)
    braid = record(waiter.pid)
    begun = waiting.now()
    time.sleep(waiting.PAUSE_S)
    ended = waiting.now()
    waiter.end("pipe")
    wait = waiting.Wait(gate.line_of(waiter.process), begun, ended)
    waiter.begin("socket", waiting.RECVFROM)
    seen = waiting.now()
    time.sleep(waiting.PAUSE_S)
    ended = waiting.now()
    recording = waiting.finish("outside", braid)
    stopped = waiting.now()
    waiter.end("socket")
    last = waiting.Wait(gate.line_of(waiter.process), seen, ended)
    samples = recording.waits(waiter.tid)
    before = wait.seen_of(samples)
    gate.equal(len(before), 1, "blocked before: one sample")
    for sample in before:
        gate.ok(sample.value <= wait.after - braid.asked_ns, "blocked before: since the begin only")
        gate.equal((sample.state, sample.syscall), (BLOCKED, READ), "blocked before: why")
        stacks = recording.user_stacks([sample])
        gate.ok(waiting.same_frames(stacks[0], [*waiting.to("in_pipe"), "read_[n]"]),
                "blocked before: the stack", *stacks)
    after = last.seen_of(samples)
    gate.equal(len(after), 1, "blocked at the end: one sample")
    for sample in after:
        gate.ok(sample.value <= stopped - last.before, "blocked at the end: until the end",
                sample.value)
        gate.equal((sample.state, sample.syscall), (BLOCKED, waiting.RECVFROM),
                   "blocked at the end: why")
        stacks = recording.user_stacks([sample])
        gate.ok(waiting.same_frames(stacks[0], [*waiting.to("in_socket"), "recv_[n]"]),
                "blocked at the end: the stack", *stacks)
    kernel = [waiting.kernel_part(frames) for frames in recording.stacks(before + after)]
    gate.equal([set(frames) & {"schedule_[k]", "__schedule_[k]"} for frames in kernel],
               [set(), set()], "neither has the scheduler's frames")
    return kernel


def check_deadlock():
    """Recorded when it is there already: nothing happens any more."""
    waiter = waiting.Waiter(WAITS)
    gate.ask(waiter.process, "deadlock")
    threads = [int(tid) for tid in os.listdir(f"/proc/{waiter.pid}/task")]
    _, *pair = [tid for tid in sorted(threads) if tid != waiter.pid]
    for tid in pair:
        waiter.until_in(FUTEX, tid=tid)
    braid = record(waiter.pid)
    begun = waiting.now()
    time.sleep(waiting.PAUSE_S)
    least = waiting.now() - begun
    recording = waiting.finish("deadlock", braid)
    stopped = waiting.now()
    stack = [*gate.TO_THREAD, waiting.at("in_deadlock"), waiting.at("both_of"),
             "pthread_mutex_lock_[n]", None]
    for tid in pair:
        samples = recording.waits(tid)
        gate.equal(len(samples), 1, "deadlock: a sample of each thread")
        for sample in samples:
            gate.ok(least <= sample.value <= stopped - braid.asked_ns, "deadlock: the whole time",
                    least, sample.value, stopped - braid.asked_ns)
            gate.equal((sample.state, sample.syscall), (BLOCKED, FUTEX), "deadlock: why")
            stacks = recording.user_stacks([sample])
            gate.ok(waiting.same_frames(stacks[0], stack), "deadlock: the stack", *stacks, stack)


gate.need_root()
waiting.on_each_kernel(check_outside)
waiting.on_each_kernel(check_deadlock)
gate.done()
