#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""The event lock:pthread: each call of the C library that waits for a lock once, with its time by the
caller's own clock, the lock, its stack and who has the lock; calls that do not wait are no samples."""

import os
import shutil
import signal

import gate
from contended import LEAST_NS, LOCKS, MS, ROUNDS, begin, finish, names, rows, started

LINES = "mutex", "write", "read"


def check_waits(libc, recording, line, answer):
    """As long as the caller's own clock says, and as long at least as the lock was held. glibc's locks say
    who has them, of musl's not these."""
    name = f"{libc}: {line}"
    _, waited, address, holder, waiter = answer.split()
    calls = [row for row in rows(recording, "lock:pthread") if row[0] == int(waiter)]
    lets = [row for row in rows(recording, "lock-holder") if row[4] in [call[4] for call in calls]]
    gate.equal([(lock, peer, state) for _, _, lock, peer, _, state in calls],
               [(int(address), int(holder) if libc == "glibc" else None, 3)] * ROUNDS,
               f"{name}: each wait once, with the lock and who has it")
    total = sum(row[1] for row in calls)
    gate.ok(ROUNDS * LEAST_NS <= total <= int(waited), f"{name}: the time", total, waited)
    gate.equal([(tid, peer) for tid, _, _, peer, _, _ in lets],
               [(int(holder), int(waiter))] * ROUNDS, f"{name}: joined to who lets it go on")
    stacks = [names(frames) for frames, _ in recording.merged("--event", "lock:pthread")]
    gate.equal([frames[-1] for frames in stacks if f"by_{line}" in frames], [f"by_{line}"],
               f"{name}: in its caller")


def check_stuck(libc, recording, answer):
    """Behind the probes at returns, which change the stack."""
    _, first, other, second, mutex = answer.split()
    tids = [int(first), int(second)]
    peers = tids[::-1] if libc == "glibc" else [None, None]
    last = {tid: (tid, lock, peer) for tid, _, lock, peer, _, _ in rows(recording, "lock:pthread")
            if tid in tids}  # musl's first() may wait for a moment for its first mutex
    gate.equal(sorted(last.values()),
               sorted(zip(tids, [int(other), int(mutex)], peers)),
               f"{libc}: deadlock: both calls that never return, and who has the locks")
    stacks = [names(frames) for frames, _ in recording.merged("--event", "lock:pthread")]
    stacks = [[name for name in frames if name in ("first", "second", "second_lock")]
              for frames in stacks if "second_lock" in frames]
    if libc == "glibc":
        gate.equal(sorted(stacks), [["first", "second_lock"], ["second", "second_lock"]],
                   f"{libc}: deadlock: with their stacks")


def check_calls(program, libc):
    target = started(program)
    braid = begin("lock:pthread,lock-holder", target)
    free = gate.ask(target, f"free {ROUNDS}")
    answers = {line: gate.ask(target, f"{line} {ROUNDS} {MS}") for line in LINES}
    answer = gate.ask(target, "deadlock")
    recording = finish(libc, braid)
    for line in LINES:
        check_waits(libc, recording, line, answers[line])
    check_stuck(libc, recording, answer)
    gate.equal((free, [frames for frames, _ in recording.merged("--event", "lock:pthread")
                       if "by_free" in names(frames)]), ("done", []),
               f"{libc}: no sample of a lock that nobody, the thread itself, or only readers have")
    target.kill()


def check_limit():
    """More calls than may be watched."""
    target = started()
    file = gate.path("limit.db")
    braid = gate.start(gate.BRAID, "record", "-e", "lock:pthread", "--max-overhead", "0.1", "-p",
                       target.pid, "-o", file, stderr=gate.subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
    gate.ask(target, "free 300000")
    braid.send_signal(signal.SIGINT)
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, "limit: status", said)
    gate.ok("the probes cost more than --max-overhead 0.1 and were detached after" in said,
            "limit: which is said", said)
    gate.say(target, "end")


def of_musl():
    """The same program with musl; None: it cannot be made here."""
    program = gate.path("locks-musl")
    compiler = shutil.which("musl-gcc")
    made = compiler and gate.run(compiler, "-O1", "-g", "-pthread", "-D_GNU_SOURCE", "-o", program,
                                 "fixtures/native/locks.c")
    return program if made and not made.status else None


gate.need_root()
check_limit()
MUSL = of_musl()
for PROGRAM, LIBC in (LOCKS, "glibc"), (MUSL, "musl"):
    if PROGRAM:
        check_calls(PROGRAM, LIBC)
    else:
        gate.skip(LIBC, "there is no musl-gcc")
gate.done()
