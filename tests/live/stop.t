#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Sampling ends with -d or with a signal, though the recorder is busy or stopped just then; what was
sampled until then is recorded. A second signal leaves out the names that are not known yet."""

import ctypes
import os
import re
import signal
import time

import gate

PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT = 17, 0x4206, 0x4207
WALL = 0x40000000
SIGINT_BIT = 1 << (signal.SIGINT - 1)
APART_S = 0.4  # docs/reference/man.in, ENDING

libc = ctypes.CDLL(None, use_errno=True)


def ptrace(request, tid):
    if libc.ptrace(request, tid, None, None):
        raise OSError(ctypes.get_errno(), f"ptrace {request}")


class Busy:
    """The recorder's main thread gets nowhere; its others go on."""

    def __init__(self, recorder):
        self.pid = recorder.pid
        ptrace(PTRACE_SEIZE, self.pid)
        ptrace(PTRACE_INTERRUPT, self.pid)
        os.waitpid(self.pid, WALL)
        self.others = [int(tid) for tid in os.listdir(f"/proc/{self.pid}/task")
                       if int(tid) != self.pid]

    def interrupt(self):
        """Returns when the signal has been taken, and whoever took it waits again."""
        os.kill(self.pid, signal.SIGINT)
        gate.wait_until(self.has_taken, "the signal's being taken")

    def has_taken(self):
        for tid in self.others:
            with open(f"/proc/{self.pid}/task/{tid}/status", encoding="utf-8") as file:
                status = dict(line.split(":\t", 1) for line in file.read().splitlines())
            if int(status["ShdPnd"], 16) & SIGINT_BIT or status["State"][0] != "S":
                return False
        return bool(self.others)

    def end(self):
        ptrace(PTRACE_DETACH, self.pid)


def check_signal():
    target = gate.marked(gate.MARKS)
    recorder = gate.recorder(1000, target)
    busy = Busy(recorder)
    gate.ask(target, "here 5")
    if not gate.ok(busy.others, "a signal: somebody waits for it"):
        return
    busy.interrupt()
    gate.ask(target, "here 100")
    busy.end()
    recording = gate.finish(recorder, 5)
    gate.check_merged("a signal", recording.merged(), gate.HERE, 5)
    gate.check_clean("a signal", recording)
    gate.equal(gate.ask(target, "here 1"), "done 0", "a signal: the target goes on")


def check_two_signals():
    target = gate.marked(gate.MARKS)
    recorder = gate.recorder(1000, target)
    busy = Busy(recorder)
    gate.ask(target, "here 5")
    busy.interrupt()
    time.sleep(APART_S)
    busy.interrupt()
    busy.end()
    recording = gate.finish(recorder, 5)
    (frames, count), = recording.merged()
    gate.equal((len(frames), count), (len(gate.HERE), 5), "two signals: the stack")
    gate.equal([frame for frame in frames if not re.match(r"\[[^]]+\+0x[0-9a-f]+\]_\[n\]$", frame)],
               [], "two signals: names are left out")
    gate.equal(recording.sql("PRAGMA integrity_check"), [("ok",)], "two signals: it is whole")


def check_duration():
    """It passes while the recorder is stopped."""
    file = gate.path("duration.db")
    braid = gate.start(gate.BRAID, "record", "-d", "2", "-F", "999", "-o", file, "--", "sh", "-c",
                       "echo $$; while :; do :; done", stderr=gate.subprocess.DEVNULL)
    pid = int(gate.line_of(braid))
    recording = gate.Recording(file)
    gate.wait_until(lambda: os.path.exists(file) and recording.sql(
        "SELECT 1 FROM meta WHERE key = 'duration_s'"), "a commit")
    braid.send_signal(signal.SIGSTOP)
    time.sleep(2.5)
    braid.send_signal(signal.SIGCONT)
    gate.equal(braid.wait(), 0, "duration: status")
    gate.equal(recording.meta("duration_s"), "2.000", "duration: to the millisecond")
    os.kill(pid, signal.SIGKILL)


def check_early():
    """The signal is there before the recording begins."""
    def interrupt():
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        os.kill(os.getpid(), signal.SIGINT)
    target = gate.start(gate.MARKS)
    result = gate.braid("record", "-o", gate.path("early.db"), "-p", target.pid,
                        preexec_fn=interrupt)
    gate.matches(r"early\.db: 0 samples in 0\.0 s\n", result.err, "early: it has taken no time")


gate.need_root()
check_signal()
check_two_signals()
check_duration()
check_early()
gate.done()
