# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of interpreter locks share: a recording of every switch of a target's threads, and
what each of them did when the kernel says that it is blocked."""

import collections
import os
import signal
import subprocess
import time

import gate

HELD, FREE, WAITED = 1, 2, 3  # enum lock_state of bpf/shared.h
READ, FUTEX, OPENAT, PPOLL, NO_SYSCALL = 0, 202, 257, 271, -1
READS = READ, 7, PPOLL  # or poll(), ppoll() before it
SWITCH = "tracepoint:sched:sched_switch"
UPROBE = f"uprobe:{gate.MARKER}:braid_marker"

Moment = collections.namedtuple("Moment", "event tid time_ns lock syscall peer object")


class Target:
    """A fixture that goes on with each byte, and braid, which records it until it says "done"."""

    def __init__(self, process):
        self.process, self.pid = process, process.pid
        self.file = gate.path(f"locks{process.pid}.db")

    def other(self):
        """Its other thread, once that is blocked in a read."""
        def blocked():
            return [tid for tid in map(int, os.listdir(f"/proc/{self.pid}/task"))
                    if tid != self.pid and self.words(tid)[0] == str(READ)]

        return gate.wait_until(blocked, "another thread in a read")[0]

    def words(self, tid):
        """The number and arguments of the system call that the thread is blocked in."""
        with open(f"/proc/{self.pid}/task/{tid}/syscall", encoding="ascii") as file:
            return file.read().split()

    def record(self, events):
        self.braid = gate.start(gate.BRAID, "record", "-e", events, "--max-overhead", "none", "-p", self.pid, "-o", self.file,
                                stderr=subprocess.PIPE)
        gate.wait_until(lambda: os.path.exists(self.file) or self.braid.poll() is not None,
                        "the first commit")

    def until(self, tid, *numbers, size=None):
        """Waits until the thread is blocked in one of these system calls; the time. It has been switched out by then."""
        def there():
            words = self.words(tid)
            return words[0] in map(str, numbers) and size in (None, int(words[3], 16))

        gate.wait_until(there, f"thread {tid} in the system call {numbers}")
        return time.monotonic_ns()

    def go_on(self):
        self.process.stdin.write(b"x")
        self.process.stdin.flush()

    def finish(self):
        """Its samples, in order of time."""
        self.braid.send_signal(signal.SIGINT)
        said = self.braid.stderr.read().decode()
        gate.equal(self.braid.wait(), 0, "braid's status", said)
        self.recording = gate.Recording(self.file)
        return [Moment(*row) for row in self.recording.sql(
            "SELECT event.name, tid, time_ns, ifnull(lock, 0), ifnull(syscall, 0) - 1, "
            "ifnull(peer, 0), ifnull(object, 0) FROM sample JOIN thread ON thread.id = thread "
            "JOIN event ON event.id = event ORDER BY time_ns, sample.id")]


def last(moments, tid, time_ns):
    """How the thread was switched out last before that time: (lock, system call, peer)."""
    found = [(one.lock, one.syscall, one.peer) for one in moments
             if one.tid == tid and one.event == SWITCH and one.time_ns <= time_ns]
    return found[-1] if found else None
