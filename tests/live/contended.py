# SPDX-License-Identifier: GPL-2.0-or-later
"""Threads that wait for locks (fixtures/native/locks.c), and what a recording says of them."""

import os
import signal

import gate

LOCKS = os.path.join(gate.OUTPUT, "fixtures/native/locks")
ROUNDS, MS = 5, 30
LEAST_NS = MS * 1000000


def begin(event, target):
    file = gate.path(f"{len(os.listdir(gate.tmp))}.db")
    braid = gate.start(gate.BRAID, "record", "-e", event, "--max-overhead", "none", "-p",
                       target.pid, "-o", file, stderr=gate.subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
    braid.file = file
    return braid


def finish(name, braid, lost=()):
    """`lost`: what may be."""
    braid.send_signal(signal.SIGINT)
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, f"{name}: status", said)
    recording = gate.Recording(braid.file)
    gate.equal([text for text in recording.counters() if text not in lost], [],
               f"{name}: nothing is lost")
    return recording


def started(program=LOCKS):
    target = gate.start(program)
    gate.wait_line(target, "ready")
    return target


def rows(recording, event):
    """[(tid, value, object, peer, link, state)], in order of time."""
    return recording.sql(
        "SELECT tid, value, object & -1, peer, link, state FROM sample "
        "JOIN thread ON thread.id = thread JOIN event ON event.id = event "
        f"WHERE event.name = '{event}' ORDER BY time_ns")


def names(frames):
    return [frame.split(" ")[0] for frame in frames]
