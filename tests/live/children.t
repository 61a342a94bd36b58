#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Processes below the one that is named, which were there before: recorded, unless --no-children says
not. All of them wait, so that each is one sample of off-cpu."""

import atexit
import os
import signal

import gate

# A child, one with a child of its own, and one that executes another program.
SCRIPT = """
import os, signal
def child(run):
    pid = os.fork()
    if not pid:
        run()
        signal.pause()
    return pid
first = child(lambda: None)
second = child(lambda: child(lambda: None))
third = child(lambda: os.execv("/bin/sleep", ["sleep", "1000"]))
print(first, second, third, flush=True)
signal.pause()
"""
PAUSE, CLOCK_NANOSLEEP = 34, 230  # arch/x86/entry/syscalls/syscall_64.tbl


def waits(pid):
    with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
        return file.read().split()[0] in (str(PAUSE), str(CLOCK_NANOSLEEP))


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return list(map(int, file.read().split()))


def record(*options):
    """By PID: how many samples. Up to the first commit, and no longer."""
    path = gate.path(f"{len(options)}.db")
    braid = gate.start(gate.BRAID, "record", "-e", "off-cpu", *options, "-p", target.pid, "-o", path,
                       stderr=gate.subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(path), "the first commit")
    braid.send_signal(signal.SIGINT)
    err = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, f"status {options}", err)
    return dict(gate.Recording(path).sql(
        "SELECT process.pid, count(*) FROM sample JOIN thread ON thread.id = thread "
        "JOIN process ON process.id = thread.process GROUP BY 1")), err


gate.need_root()
target = gate.start("/usr/bin/python3", "-c", SCRIPT, start_new_session=True)
atexit.register(lambda: os.killpg(target.pid, signal.SIGKILL))
below = list(map(int, gate.line_of(target).split()))
gate.wait_until(lambda: children(below[1]), "the child has a child")
below += children(below[1])
for pid in [target.pid, *below]:
    gate.wait_until(lambda pid=pid: waits(pid), f"{pid} waits")
counts, messages = record()
gate.equal(counts, {pid: 1 for pid in [target.pid, *below]}, "all of them, a sample each", messages)
gate.matches(rf"(?m)^recording pid {target.pid} \(.*\) and 4 child processes until they end \(Ctrl-C ends the recording; --no-children leaves child processes out\)$", messages,
             "it says so")
counts, messages = record("--no-children")
gate.equal(counts, {target.pid: 1}, "--no-children: that process alone", messages)
gate.ok("below it" not in messages, "and no word of others", messages)

# Nobody runs: the summary says what they do instead.
result = gate.braid("record", "-d", "0.05", "-o", gate.path("cpu.db"), "-p", target.pid)
gate.matches(r"\n\S+: 0 samples in \d+\.\d s\nthe processes have (?:used \d+\.\d\d s of CPU in that time with )?5 "
             r"threads; now in pause \(4\), clock_nanosleep \(1\): try -e wall, ", result.err,
             "no samples: what they do")

# One that is forked meanwhile is not followed, either.
path = gate.path("forked.db")
result = gate.braid("record", "--no-children", "-o", path, "--", "/bin/sh", "-c", "/bin/true; /bin/true; :")
gate.equal(result.status, 0, "a command with children: status", result.err)
gate.equal(gate.Recording(path).sql("SELECT count(DISTINCT pid) FROM process"), [(1,)],
           "the command alone", result.err)
gate.done()
