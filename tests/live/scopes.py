# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests of processes that nobody has named share. Each has a copy of the marker of its own, and
records the calls of that alone: so whatever else runs on the machine, it is never a sample, and
each call in the processes that are meant is one."""

import atexit
import os
import shutil
import signal
import sqlite3
import threading

import gate


# Of an interpreter: as many samples as come before its walker is there.
EARLY = "runtime stacks missing: taken before the interpreter was known"


def marker():
    """A copy of the marker, which everybody may read."""
    os.chmod(gate.tmp, 0o755)
    return shutil.copy(gate.MARKER, gate.path("own_marker.so"))


def program(name):
    """The fixture that obeys, as a program of that name."""
    return shutil.copy(gate.MARKS, gate.path(name))


def obeying(own, *command, **options):
    """A process that comes to the marker when it is told to."""
    process = gate.start(*command, env=dict(os.environ, LD_PRELOAD=own), **options)
    gate.wait_line(process, "ready")
    return process


class Recorder:
    """braid, from its first commit on; what it says is there as soon as it says it."""

    def __init__(self, own, *words):
        self.file = gate.path(f"{len(os.listdir(gate.tmp))}.db")
        self.process = gate.start(gate.BRAID, "record", "-e", f"uprobe:{own}:braid_marker",
                                  "--max-overhead", "none", *words, "-o", self.file,
                                  stderr=gate.subprocess.PIPE)
        self.said = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        gate.wait_until(lambda: os.path.exists(self.file) or self.process.poll() is not None,
                        "the first commit")

    def _read(self):
        for line in self.process.stderr:
            self.said.append(line.decode(errors="replace").rstrip("\n"))

    def wait_said(self, text):
        gate.wait_until(lambda: any(text in line for line in self.said), repr(text))

    def wait_samples(self, n):
        """Until so many are in the file."""
        gate.wait_until(lambda: self.samples() >= n, f"{n} samples")

    def samples(self):
        """How many are in the file."""
        with sqlite3.connect(f"file:{self.file}?mode=ro", uri=True) as db:
            return db.execute("SELECT count(*) FROM sample").fetchone()[0]

    def finish(self, name):
        self.process.send_signal(signal.SIGINT)
        gate.equal(self.process.wait(), 0, f"{name}: status", *self.said)
        self.reader.join()
        return gate.Recording(self.file)


def counts(recording):
    """{pid: samples}."""
    return dict(recording.sql(
        "SELECT pid, count(*) FROM sample JOIN thread ON thread.id = thread "
        "JOIN process ON process.id = process GROUP BY pid"))


def losses(recording):
    """What is lost, but for what was repaired."""
    return {name: value for name, value in recording.counters().items() if value}


def cgroup_root():
    """Where cgroups of version 2 can be made; else the test is skipped."""
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        roots = [line.split()[4] for line in mounts if " - cgroup2 " in line]
    if not roots or not os.access(roots[0], os.W_OK):
        gate.skip_all("no cgroup hierarchy of version 2 that can be written")
    return roots[0]


class Cgroup:
    """A cgroup of the test's own, by its path as in /proc/PID/cgroup."""

    def __init__(self, path):
        self.path, self.directory = path, cgroup_root() + path
        os.mkdir(self.directory)
        atexit.register(self.remove)

    def take(self, process):
        with open(self.directory + "/cgroup.procs", "w", encoding="ascii") as file:
            file.write(str(process.pid))

    def remove(self):
        if os.path.isdir(self.directory):
            self.empty()
            gate.wait_until(self._try, f"the end of {self.path}")

    def empty(self):
        with open(self.directory + "/cgroup.procs", encoding="ascii") as file:
            pids = file.read().split()
        for pid in pids:
            try:
                with open(cgroup_root() + "/cgroup.procs", "w", encoding="ascii") as root:
                    root.write(pid)
            except ProcessLookupError:
                pass

    def _try(self):
        try:
            os.rmdir(self.directory)
        except OSError:
            return False
        return True
