#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Two threads that use one Perl interpreter in turns: only the thread that runs it has its frames."""

import os
import signal
import subprocess

import gate

LIBRARY = "/usr/lib/x86_64-linux-gnu/libperl.so.5.36"

gate.need_root()
gate.need_program(LIBRARY)
target = gate.start(os.path.join(gate.OUTPUT, "fixtures/native/perl_turns"), LIBRARY)
gate.wait_line(target, "ready")
file = gate.path("turns.db")
braid = gate.start(gate.BRAID, "record", "-e", "syscall:getppid", "-p", target.pid, "-o", file,
                   "--max-overhead", "none", stderr=subprocess.PIPE)
gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
target.stdin.write(b"x")
target.stdin.flush()
gate.wait_line(target, "in")
os.kill(target.pid, signal.SIGUSR1)
gate.wait_line(target, "done")
target.stdin.write(b"x")
target.stdin.flush()
gate.equal(target.wait(), 0, "the target ends as it should")
said = braid.stderr.read().decode()
gate.equal(braid.wait(), 0, "status", said)
recording = gate.Recording(file)
gate.equal(recording.count(), 5 + 20, "a sample for each call", said)
gate.equal({sample.flags & 1 for sample in recording.samples()}, {1}, "stacks are complete", said)
first, second = ([frames for frames, _ in recording.merged() if (" in_c" in " " + " ".join(frames)) == in_c]
                 for in_c in (False, True))
gate.equal({tuple(frame.split(" ")[0] for frame in frames if frame.endswith("_[pl]")) for frames in first},
           {("eval", "main::outer", "main::inner")}, "the first thread is in Perl", recording.merged())
gate.equal(len(second), 2, "the second one is called by libperl, too", second)
gate.ok(second and not any(frame.endswith(("_[pl]", "_[pl?]")) for frames in second for frame in frames),
        "the second one is in C only", recording.merged())
gate.done()
