# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that wait (fixtures/*/waits), and what a recording says of it. Nothing here depends on how
long anything takes: a thread has waited at most from one reading of its own clock to the next, and at
least from when the test has seen that it is off the CPU until the test ended the wait."""

import os
import re
import select
import shutil
import signal
import socket
import sqlite3
import time

import gate

PAUSE_S = 0.02  # every wait takes so long, at least
FUTEX, READ, RECVFROM, NANOSLEEP, EPOLL_WAIT = 202, 0, 45, 230, 232
POLL, PPOLL, PSELECT6, TGKILL = 7, 271, 270, 234
FSYNC, PREAD64, PWRITE64, SYNC_FILE_RANGE = 74, 17, 18, 277


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def syscall_of(pid, tid):
    """(number, first argument) of the system call in which a thread is off the CPU; None: it runs.
    The kernel looks at threads that have left the CPU only."""
    with open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as file:
        words = file.read().split()
    return (int(words[0]), int(words[1], 16)) if len(words) > 3 else None


def on_each_kernel(check):
    """With what this kernel has, and again as on one before 6.16: what that returns is the same."""
    results = [check()]
    os.environ["BRAID_TEST_OLDER_KERNEL"] = "1"
    print("# as on a kernel before 6.16")
    results.append(check())
    del os.environ["BRAID_TEST_OLDER_KERNEL"]
    gate.equal(results[1], results[0], "the same on kernels before 6.16")


def kernel_part(frames):
    return [frame for frame in frames if frame.endswith("_[k]")]


class Wait:
    """One that is over: the thread's readings; and what the test has seen of it, if it has: off the
    CPU from `by_ns` on at the latest, until `until_ns` at the earliest."""

    def __init__(self, answer, by_ns=None, until_ns=None):
        self.before, self.after, *self.more = map(int, answer.split())
        self.by_ns, self.until_ns = by_ns, until_ns

    def of(self, samples):
        """Those that were taken meanwhile: of waiting at its end, of block I/O at its begin."""
        return [sample for sample in samples if self.before <= sample.time_ns <= self.after]

    def seen_of(self, samples):
        """Those that can be what the test has seen: one, if it has looked twice (by < until). Others
        may be as long: a thread that is ready may be kept off the CPU for any time."""
        return [sample for sample in self.of(samples)
                if sample.time_ns - sample.value <= self.by_ns and self.until_ns <= sample.time_ns]


class Waiter:
    """A program of fixtures/*/waits; `thread`: the name of the thread that waits."""

    def __init__(self, *command, thread=None, **options):
        fifo = gate.path(f"fifo-{len(gate.running.processes)}")
        os.mkfifo(fifo)
        self.fifo = os.open(fifo, os.O_RDWR)
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.process = gate.start(*command, fifo, server.getsockname()[1], **options)
            self.connection, _ = server.accept()
        ready = gate.wait_line(self.process, "ready")[-1].split()
        self.pid = self.process.pid
        self.tid = self.thread(thread) if thread else int(ready[1])

    def thread(self, name):
        for tid in os.listdir(f"/proc/{self.pid}/task"):
            with open(f"/proc/{self.pid}/task/{tid}/comm", encoding="utf-8") as comm:
                if comm.read().rstrip("\n") == name:
                    return int(tid)
        raise RuntimeError(f"no thread of {self.pid} is called {name}")

    def until_in(self, *calls, tid=None):
        """Until the thread is off the CPU in one of these system calls, and not for its input."""
        gate.wait_until(lambda: (syscall_of(self.pid, tid or self.tid) or (None, 0))[0] in calls and
                        syscall_of(self.pid, tid or self.tid) != (READ, 0), "the wait")

    def begin(self, line, *calls):
        """The thread waits."""
        gate.say(self.process, line)
        self.until_in(*calls)

    def end(self, line):
        """Ends what the line began."""
        if line == "socket":
            self.connection.send(b"x")
        elif line == "stop":
            os.kill(self.pid, signal.SIGCONT)
        else:
            os.write(self.fifo, b"x")

    def switches(self):
        """How often the thread has given up the CPU."""
        with open(f"/proc/{self.pid}/task/{self.tid}/status", encoding="utf-8") as status:
            return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status.read(), re.M)[1])

    def pause(self, *calls):
        """Until the thread has not run for a while, in one of these system calls: from when until
        when the test says so. (It may have woken for a moment, to look after other things.)"""
        while True:
            self.until_in(*calls)
            before, begun = self.switches(), now()
            if not syscall_of(self.pid, self.tid):
                continue
            time.sleep(PAUSE_S)
            ended = now()
            if syscall_of(self.pid, self.tid) and self.switches() == before:
                return begun, ended

    def wait(self, line, *calls):
        """From its begin to its end."""
        gate.say(self.process, line)
        seen = self.pause(*calls)
        self.end(line)
        return Wait(gate.line_of(self.process), *seen)

    def sees(self, *calls):
        """Is it off the CPU in one of these calls before it answers? The times around the look; None:
        it was not."""
        while not select.select([self.process.stdout], [], [], 0)[0]:
            begun = now()
            if (syscall_of(self.pid, self.tid) or (None,))[0] in calls:
                return begun, now()
        return None

    def sleep(self, line, *calls):
        """What ends by itself, at a time that the answer may tell. Again, if it has ended before the
        test has looked, or if what the test has seen was something before it (a lock of the JVM)."""
        while True:
            gate.say(self.process, line)
            seen = self.sees(*calls)
            wait = Wait(gate.line_of(self.process))
            if not seen or seen[0] < wait.before:
                continue
            wait.until_ns, wait.by_ns = seen
            if len(wait.more) == 2:
                wait.until_ns = wait.more[1]
            if len(wait.more) < 2 or wait.by_ns < wait.until_ns:
                return wait


class Sample:
    def __init__(self, row):
        (self.id, self.time_ns, self.value, self.tid, self.state, self.syscall, self.object,
         self.peer, self.cpu) = row


# sample.state of a recording, bpf/shared.h
PREEMPTED, BLOCKED, STOPPED = 2, 3, 4


# Of threads that come back from a switch that the kernel tells no tracer of; some machines have such
# (bpf/off_cpu_before.bpf.c).
UNTOLD = "waits without the kernel's frames: their end was not seen"


class Recording(gate.Recording):
    def counters(self):
        counters = super().counters()
        counters.pop(UNTOLD, None)
        return counters

    def kernel_stacks(self, samples):
        """The kernel's part of the stacks of these samples, each once; of those that have one."""
        stacks = {tuple(kernel_part(frames)) for frames in self.stacks(samples)}
        return sorted(stacks - ({()} if UNTOLD in super().counters() else set()))

    def waits(self, tid=None, event="off-cpu"):
        """Samples of the event, in order of time; syscall: its number, None for none."""
        rows = self.sql(
            "SELECT sample.id, time_ns, value, tid, state, syscall - 1, object, peer, cpu "
            "FROM sample JOIN thread ON thread.id = thread JOIN event ON event.id = event "
            "WHERE event.name = ? OR event.name LIKE ? ORDER BY time_ns", event, event + ":%")
        return [Sample(row) for row in rows if tid in (None, row[3])]

    def stacks(self, samples, event="off-cpu"):
        """The merged stacks of these samples, each once, outermost frame first."""
        part = Recording(gate.path("part.db"))
        shutil.copy(self.file, part.file)
        with sqlite3.connect(part.file) as database:
            database.execute("DELETE FROM sample WHERE id NOT IN (%s)" %
                             ",".join(str(sample.id) for sample in samples))
        database.close()
        return sorted(frames for frames, _ in part.merged("--event", event, "--idle", "show"))

    def user_stacks(self, samples, event="off-cpu"):
        """The same without the kernel's frames."""
        stacks = {tuple(frame for frame in frames if not frame.endswith("_[k]"))
                  for frames in self.stacks(samples, event)}
        return [list(frames) for frames in sorted(stacks)]


SOURCE = "fixtures/native/waits.c"


OBEY = [*gate.TO_MAIN, None, None]  # ... to obey


def at(function):
    """The label of a function of waits.c, at the line where it waits."""
    return gate.at(function, SOURCE, gate.line(SOURCE, f"/* {function} */"))


def to(function):
    """The frames of waits.c that lead there, outermost first."""
    call = {"in_sync": "in_sync(fd);", "in_read": "in_read(fd);", "in_touch": "in_touch(mapping);",
            "in_direct": "in_direct(fd, ", "in_write": "in_write(fd, ",
            "in_behind": "in_behind(fd, "}
    obey = ["obey_[n]"]
    if function in call:
        obey = [gate.at("obey", SOURCE, gate.line(SOURCE, "with_file(what, file, n);")),
                gate.at("with_file", SOURCE, gate.line(SOURCE, call[function]))]
    return [*gate.TO_MAIN, gate.at("main", SOURCE, gate.line(SOURCE, "&& obey(line)")), *obey,
            at(function)]


def function(frames, at_frame):
    """The name of one of them; None: there are fewer."""
    return frames[at_frame].split(" (")[0].split("_[")[0] if at_frame < len(frames) else None


def same_frames(got, want):
    """As gate.check_merged compares. What libc inlines shows where its debug file is: left out."""
    got = [frame for frame in got if not frame.endswith("_[i]")]
    return len(got) == len(want) and all(
        a == b if a.endswith("_[k]") else gate.is_frame(a, b) for a, b in zip(got, want))


def is_in_loop(pid):
    """All is attached when braid first waits for something to happen."""
    return (syscall_of(pid, pid) or (None,))[0] == POLL


def record(events, *pids, options=()):
    """braid, once it samples."""
    file = gate.path(f"{len(gate.running.processes)}.db")
    asked_ns = now()
    braid = gate.start(gate.BRAID, "record", "-e", events, *options, "-p", ",".join(map(str, pids)),
                       "-o", file, stderr=gate.subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
    gate.wait_until(lambda: braid.poll() is not None or is_in_loop(braid.pid), "the loop")
    braid.file, braid.asked_ns = file, asked_ns
    return braid


def finish(name, braid):
    """The recording, while the target goes on."""
    braid.send_signal(signal.SIGINT)
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, f"{name}: status", said)
    return Recording(braid.file)


# --- programs with a runtime ---

def runtime_part(frames, suffix):
    """The names of a runtime's functions in a merged stack, without their classes and places."""
    names = [frame[:-len(suffix)].split(" (")[0] for frame in frames if frame.endswith(suffix)]
    return [name.rpartition(".")[2].rpartition("#")[2] for name in names]


def ends(frames, want):
    """Are these the innermost frames?"""
    frames = [frame for frame in frames if not frame.endswith("_[i]")]
    return same_frames(frames[-len(want):], want)


def check_long(name, recording, tid, waits, calls, is_stack):
    """Of each wait there is one sample that holds what the test has seen of it: blocked, in one of these
    system calls, with a stack of which `is_stack` is true. Other threads, and the runtime's lock, may
    keep it waiting for a while longer; all of that lies between its own readings."""
    everything = recording.waits(tid)
    found = [wait.of(everything) for wait in waits]
    gate.equal([wait.before for wait, samples in zip(waits, found)
                if sum(sample.value for sample in samples) > wait.after - wait.before], [],
               f"{name}: not longer than the program says")
    seen = [wait.seen_of(everything) for wait in waits]
    if any(wait.by_ns >= wait.until_ns for wait in waits):  # looked once: others may lie close by
        seen = [[sample for sample in samples if sample.state == BLOCKED and sample.syscall in calls][:1]
                for samples in seen]
    gate.equal([len(samples) for samples in seen], [1] * len(waits),
               f"{name}: one sample is the wait that the test has seen")
    samples = [sample for some in seen for sample in some]
    gate.equal({sample.state for sample in samples}, {BLOCKED}, f"{name}: blocked")
    gate.ok({sample.syscall for sample in samples} <= set(calls), f"{name}: the system call",
            *(sample.syscall for sample in samples))
    # More than one: CPython calls a C function by another way when it has done so some times.
    stacks = recording.user_stacks(samples)
    gate.ok(stacks and all(map(is_stack, stacks)), f"{name}: the stack", *stacks)
