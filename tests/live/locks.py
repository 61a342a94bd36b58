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
READ, FUTEX, NO_SYSCALL = 0, 202, -1
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
        tid, = (int(name) for name in os.listdir(f"/proc/{self.pid}/task") if int(name) != self.pid)
        self.until(tid, READ)
        return tid

    def record(self, events):
        self.braid = gate.start(gate.BRAID, "record", "-e", events, "-p", self.pid, "-o", self.file,
                                stderr=subprocess.PIPE)
        gate.wait_until(lambda: os.path.exists(self.file) or self.braid.poll() is not None,
                        "the first commit")

    def until(self, tid, number, size=None):
        """Waits until the thread is blocked there; the time. It has been switched out by then."""
        def there():
            with open(f"/proc/{self.pid}/task/{tid}/syscall", encoding="ascii") as file:
                words = file.read().split()
            return words[0] == str(number) and (size is None or int(words[3], 16) == size)

        gate.wait_until(there, f"thread {tid} in the system call {number}")
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
