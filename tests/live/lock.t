#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""The event lock: each wait for a futex once, with its time by the waiter's own clock, its lock, its
stack and who has the lock; who lets it go on has a sample that is joined to it; a deadlock shows."""

import contended
import gate
from contended import begin, finish, names, rows, started

ROUNDS, MS = contended.ROUNDS, contended.MS
LEAST_NS = contended.LEAST_NS


def check_mutex():
    target = started()
    braid = begin(f"lock:{MS}ms,lock-holder:{MS}ms", target)
    _, waited, address, holder, waiter = gate.ask(target, f"mutex {ROUNDS} {MS}").split()
    recording = finish("mutex", braid)
    waits = [row for row in rows(recording, "lock") if row[2] == int(address)]
    gate.equal([(tid, peer, state) for tid, _, _, peer, _, state in waits],
               [(int(waiter), int(holder), 3)] * ROUNDS,
               "mutex: each wait is a sample of who waits, blocked, with who has the lock")
    total = sum(row[1] for row in waits)
    gate.ok(ROUNDS * LEAST_NS <= total <= int(waited), "mutex: the time is no longer than the "
            "waiter's own clock says, and no shorter than the lock was held", total, waited)
    lets = [row for row in rows(recording, "lock-holder") if row[2] == int(address)]
    gate.equal([(tid, peer, link) for tid, _, _, peer, link, _ in lets],
               [(int(holder), int(waiter), row[4]) for row in waits],
               "mutex: who lets go has a sample, too, joined to the wait")
    gate.equal([let for let, wait in zip(lets, waits) if not LEAST_NS <= let[1] <= wait[1]], [],
               "mutex: with how long the other has waited until then")
    stacks = [names(frames) for frames, _ in recording.merged("--event", "lock")]
    gate.ok(any("by_mutex" in frames for frames in stacks), "mutex: below by_mutex", *stacks)
    stacks = [names(frames) for frames, _ in recording.merged("--event", "lock-holder")]
    gate.ok(any("hold" in frames for frames in stacks), "mutex: let go by hold", *stacks)
    gate.say(target, "end")


def check_condition():
    target = started()
    braid = begin("lock", target)
    gate.ask(target, f"condition {ROUNDS} {MS}")
    recording = finish("condition", braid)
    found = [(frames, value) for frames, value in recording.merged()
             if "by_condition" in names(frames) and value >= LEAST_NS]
    gate.equal(len(found), 1, "condition: one stack of by_condition waits that long")
    gate.ok(any(name.startswith("pthread_cond_wait") for name in names(found[0][0])),
            "condition: and says that it is a condition", *found[0][0])
    gate.say(target, "end")


def check_deadlock():
    target = started()
    _, first, other, second, mutex = gate.ask(target, "deadlock").split()
    braid = begin("lock", target)
    recording = finish("deadlock", braid)
    waits = rows(recording, "lock")
    gate.equal(sorted((tid, lock) for tid, _, lock, _, _, _ in waits),
               sorted([(int(first), int(other)), (int(second), int(mutex))]),
               "deadlock: both threads, and what they wait for")
    gate.equal(sorted((tid, peer) for tid, _, _, peer, _, _ in waits),
               sorted([(int(first), int(second)), (int(second), int(first))]),
               "deadlock: and that each has what the other waits for")
    gate.equal(len({row[1] for row in waits}), 1, "deadlock: as long as the recording")
    stacks = [names(frames) for frames, _ in recording.merged()]
    gate.equal(sorted(name for frames in stacks for name in frames if name in ("first", "second")),
               ["first", "second"], "deadlock: with their stacks")
    target.kill()


def check_refused():
    for event in ("lock:pthread:fast", "lock:pthread:", "lock:pthreads", "lock:fast", "lock:10", "lock-holder:-1ms"):
        result = gate.braid("record", "-e", event, "-o", gate.path("refused.db"), "--", "true")
        gate.equal(result.status, 2, f"{event}: status", result.err)
        gate.ok("minimum time of waiting" in result.err, f"{event}: says why", result.err)


gate.need_root()
check_mutex()
check_condition()
check_deadlock()
check_refused()
gate.done()
