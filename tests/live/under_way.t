#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""System calls and waits for locks that are under way when the recording begins, when it ends, or all
the time: one sample each, with the part that lies inside and the stack of the thread; and nothing of
what has begun after the end."""

import os

import gate
import waiting
from waiting import FUTEX, READ

WAITS = os.path.join(gate.OUTPUT, "fixtures/native/waits")
BIRTHS = 56, 57, 58, 435  # clone, fork, vfork, clone3
LINES = {"syscall:read": ("pipe", READ, "in_pipe"), "lock": ("mutex", FUTEX, "in_mutex"),
         "syscall": ("mutex", FUTEX, "in_mutex")}


def start():
    """A program for each event, in which one thread waits at a time."""
    return {event: waiting.Waiter(WAITS) for event in LINES}


def begin(waiters):
    for event, waiter in waiters.items():
        line, call, _ = LINES[event]
        waiter.begin(line, call)
    return waiting.now()


def end(waiters):
    """When the last of them had not ended yet, and when all had."""
    ended = waiting.now()
    for event, waiter in waiters.items():
        waiter.end(LINES[event][0])
    for waiter in waiters.values():
        gate.line_of(waiter.process)
    return ended, waiting.now()


def record(waiters):
    braid = waiting.record(",".join(LINES), *(waiter.pid for waiter in waiters.values()),
                           options=["--max-overhead", "none"])
    return braid, waiting.now()


def check(name, recording, waiters, least, most):
    gate.equal(recording.counters(), {}, f"{name}: nothing is lost")
    for event, waiter in waiters.items():
        _, call, function = LINES[event]
        samples = [sample for sample in recording.waits(waiter.tid, event) if sample.syscall == call]
        found = [sample for sample in samples for stack in recording.user_stacks([sample], event)
                 if function in [waiting.function(stack, i) for i in range(len(stack))]]
        gate.equal(len(found), 1, f"{name}: {event}: one sample", *samples)
        gate.ok(found and least <= found[0].value <= most,
                f"{name}: {event}: as long as the recording has seen it", least, most,
                *(sample.value for sample in found))


def check_at_begin():
    waiters = start()
    begin(waiters)
    braid, begun = record(waiters)
    ended, over = end(waiters)
    check("at the beginning", waiting.finish("at the beginning", braid), waiters, ended - begun,
          over - braid.asked_ns)


def check_at_end():
    waiters = start()
    braid, _ = record(waiters)
    said = waiting.now()
    begun = begin(waiters)
    asked = waiting.now()
    recording = waiting.finish("at the end", braid)
    check("at the end", recording, waiters, asked - begun, waiting.now() - said)


def check_all_the_time():
    waiters = start()
    begin(waiters)
    braid, begun = record(waiters)
    asked = waiting.now()
    recording = waiting.finish("all the time", braid)
    check("all the time", recording, waiters, asked - begun, waiting.now() - braid.asked_ns)
    values = {sample.value for event, waiter in waiters.items()
              for sample in recording.waits(waiter.tid, event) if sample.syscall == LINES[event][1]}
    gate.equal(len(values), 1, "all the time: which is the same for all", *values)
    peers = {sample.peer for sample in recording.waits(waiters["lock"].tid, "lock")}
    with_mutex = {int(tid) for tid in os.listdir(f"/proc/{waiters['lock'].pid}/task")}
    gate.equal(peers, with_mutex - {waiters["lock"].tid},
               "all the time: the lock's owner is known, although nobody saw who took it")


def check_minimum():
    """What has not been under way for so long within the recording is none."""
    waiter = waiting.Waiter(WAITS)
    waiter.begin("pipe", READ)
    braid = waiting.record("syscall:read:80000s", waiter.pid)
    recording = waiting.finish("minimum", braid)
    gate.equal(recording.waits(event="syscall"), [], "minimum: nothing is as long")


def check_born():
    """A process begins at the end of a call that another one has made."""
    shell = gate.start("/bin/sh")
    gate.ask(shell, "echo ready")
    braid = waiting.record("syscall", shell.pid, options=["--max-overhead", "none"])
    gate.ask(shell, "/bin/true; echo done")
    recording = waiting.finish("born", braid)
    samples = recording.waits(event="syscall")
    gate.equal({sample.tid for sample in samples if sample.syscall in BIRTHS}, {shell.pid},
               "born: a call that makes a process is one of its parent")
    gate.ok({sample.tid for sample in samples} > {shell.pid}, "born: and others are of the child")


gate.need_root()
check_at_begin()
check_at_end()
check_all_the_time()
check_minimum()
check_born()
gate.done()
