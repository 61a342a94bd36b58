#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Code whose file is a memfd: a program and a library have the stacks that their files have. Machine
code that a program wrote there is walked where its instructions prove how, and is cut elsewhere; two
functions never share a name."""

import os
import re
import subprocess

import gate

N = 20
FIXTURE = os.path.join(gate.OUTPUT, "fixtures/native/memfd_code")
PYTHON = "import os, sys; print('ready', flush=True)\n" \
         "def g(): os.getppid()\ndef f(): g()\nfor _ in sys.stdin:\n for _ in range(%d): f()" % N
SCRIPT = ["<module>_[py]", "f_[py]", "g_[py]"]
START = ["_start_[n]", "__libc_start_main_[n]", "__libc_start_call_main_[n]"]


def recording_of(title, *command):
    target = gate.start(*command)
    gate.wait_line(target, "ready")
    file = gate.path(f"{title}.db")
    braid = gate.start(gate.BRAID, "record", "-e", "syscall:getppid", "-p", target.pid, "-o", file,
                       "--max-overhead", "none", stderr=subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
    gate.say(target, f"here {N}")
    target.stdin.close()
    gate.equal(target.wait(), 0, f"{title}: the target ends as it should")
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, f"{title}: status", said)
    recording = gate.Recording(file)
    gate.equal(recording.count(), N, f"{title}: a sample for each call", said)
    return recording, said


def stacks_of(recording):
    """The different stacks, without files and lines."""
    return [[re.sub(r" \(.*\)", "", frame) for frame in frames] for frames, _ in recording.merged()]


def whole(title, command, native):
    """All stacks are complete, and have these frames."""
    recording, said = recording_of(title, *command)
    gate.equal({sample.flags & 1 for sample in recording.samples()}, {1}, f"{title}: stacks are complete", said)
    gate.equal(stacks_of(recording), [native], f"{title}: merged stacks")


gate.need_root()
whole("program", (FIXTURE, "exec", gate.MARKS),
      [*START, "main_[n]", "obey_[n]", "from_here_[n]", "getppid_[n]"])
whole("library", (FIXTURE, "open", gate.PLUGIN),
      [*START, "main_[n]", "obey_[n]", "plugin_run_[n]", "plugin_inner_[n]", "getppid_[n]"])

recording, said = recording_of("python", FIXTURE, "exec", "/usr/bin/python3.11", "-c", PYTHON)
gate.equal({sample.flags & 1 for sample in recording.samples()}, {1}, "python: stacks are complete", said)
stacks = stacks_of(recording)
gate.equal([[frame for frame in frames if frame.endswith("_[py]")] for frames in stacks], [SCRIPT],
           "python: functions of the script", stacks)

# with a frame pointer, without, with jumps (not proven), with a number in rbp
recording, said = recording_of("views", FIXTURE, "views")
callers = [*START, "main_[n]", "obey_[n]", "call_views_[n]"]
want = sorted([[*callers, "[memfd:doublemapper+0x235]_[n]", "callback_[n]", "getppid_[n]"],
               [*callers, "[memfd:doublemapper+0x10235]_[n]", "callback_[n]", "getppid_[n]"],
               ["[memfd:doublemapper+0x2023a]_[n]", "callback_[n]", "getppid_[n]"],
               [*callers, "[memfd:doublemapper+0x30239]_[n]", "callback_[n]", "getppid_[n]"]])
gate.equal(sorted(stacks_of(recording)), want, "views: stacks")
complete = sorted((len(sample.native) > 3, sample.flags & 1) for sample in recording.samples())
gate.equal(complete, [(False, 0)] * (N // 4) + [(True, 1)] * (N - N // 4),
           "views: a stack is complete unless it is cut", said)
gate.ok("code of PID" in said and "lies in no file" in said, "views: the summary says so", said)
gate.done()
