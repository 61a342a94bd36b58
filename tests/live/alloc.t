#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""The event alloc: each allocation once, with its size, below the function that asked for it, however
the allocator goes about it; what a sample stands for; what cannot be seen is refused in a sentence."""

import ctypes
import math
import os
import signal

import gate

ALLOCS = os.path.join(gate.OUTPUT, "fixtures/native/allocs")
STATIC = os.path.join(gate.OUTPUT, "fixtures/native/static")
PAGE = 4096


def record(event, lines, *options):
    """What the fixture does by those lines, begun before it was seen."""
    target = gate.start(ALLOCS)
    gate.wait_line(target, "ready")
    file = gate.path(f"{len(os.listdir(gate.tmp))}.db")
    braid = gate.start(gate.BRAID, "record", "-e", event, *options, "--max-overhead", "none", "-p",
                       target.pid, "-o", file, stderr=gate.subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
    for line in lines:
        gate.equal(gate.ask(target, line), "done", f"{event}: {line}")
    braid.send_signal(signal.SIGINT)
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, f"{event}: status", said)
    target.stdin.close()
    target.wait()
    recording = gate.Recording(file)
    gate.equal(recording.counters(), {}, f"{event}: nothing is lost")
    return recording


def by_caller(recording):
    """{function of the fixture: bytes}."""
    sums = {}
    for frames, value in recording.merged():
        at = next(at for at, frame in enumerate(frames) if frame.startswith("obey ("))
        name = frames[at + 1].split(" ")[0]
        sums[name] = sums.get(name, 0) + value
    return sums


def check_family():
    recording = record("alloc:malloc", ["malloc 3 100", "calloc 5 40", "realloc 2 1000",
                                        "reallocarray 7 80", "aligned 1 64", "malloc 2 300000",
                                        "mmap 1 8192", "brk 1 8192"], "-c", "1")
    gate.equal(by_caller(recording),
               {"by_malloc": 3 * 100 + 2 * 300000, "by_calloc": 5 * 40,
                "by_realloc": 2 * (1000 + 2000), "by_reallocarray": 7 * 80, "by_aligned": 3 * 64},
               "malloc: every byte once, below who asked for it")
    gate.equal(recording.count(), 3 + 5 + 4 + 7 + 3 + 2, "malloc: every call is a sample")
    gate.equal(recording.sql("SELECT DISTINCT unit FROM event"), [("bytes",)], "malloc: in bytes")


def check_all():
    recording = record("alloc", ["malloc 2 300000", "mmap 3 8192", "malloc 4 50"], "-c", "1b")
    gate.equal(by_caller(recording), {"by_malloc": 600200, "by_mmap": 3 * 8192},
               "alloc: what malloc maps is counted once, what the program maps, too")
    gate.equal(recording.count(), 9, "alloc: as many samples")


def check_mmap():
    recording = record("alloc:mmap", ["mmap 3 8192", "brk 2 40000", "malloc 1 300000"], "-c", "1")
    sums = by_caller(recording)
    gate.equal((sums["by_mmap"], sums["by_brk"]), (3 * 8192, 2 * 40000),
               "mmap: what is mapped to be written, and the growth of the heap")
    # malloc's header, in whole pages.
    gate.equal(sums["by_malloc"], (300000 + 16 + PAGE - 1) // PAGE * PAGE,
               "mmap: and what malloc maps")


def check_sampled():
    period = 65536
    recording = record("alloc:malloc", ["malloc 20 4000000", "mix 1 20000"], "-c", "64k")
    samples = recording.sql("SELECT value, total FROM sample")
    gate.equal(samples.count((4000000, 4000000)), 20, "sampled: what is large is always sampled, as it is")
    rest = [sample for sample in samples if sample[0] != 4000000]
    gate.equal([sample for sample in rest
                if abs(sample[1] - sample[0] / -math.expm1(-sample[0] / period)) > 3], [],
               "sampled: what is small stands for size / (1 - exp(-size / period))")
    gate.ok(rest, "sampled: some of these are")
    gate.ok(len(rest) < 2000, "sampled: but few of 20000", len(rest))


def check_command():
    file = gate.path("command.db")
    result = gate.braid("record", "-e", "alloc:malloc", "-c", "1", "--max-overhead", "none", "-o",
                        file, "--", ALLOCS, input=b"calloc 3 100\n", stdin=None)
    gate.equal(result.status, 0, "a command: status", result.err)
    gate.equal(sum(sample.value for sample in gate.Recording(file).samples()
                   if sample.value == 100), 300, "a command: from its first line on")


PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000
CLOCK_NANOSLEEP = "230"


def call_of(pid, tid):
    """The number of its system call; None: the thread has ended."""
    try:
        with open(f"/proc/{pid}/task/{tid}/syscall", encoding="ascii") as file:
            return file.read().split()[0]
    except OSError:
        return None


def in_window(pid):
    """Stops the thread that holds a window open, of which it sleeps the most. Returns the function that
    lets it go on, or None if there is no window now."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long] * 4
    for tid in [int(tid) for tid in os.listdir(f"/proc/{pid}/task") for _ in range(1000)]:
        if call_of(pid, tid) != CLOCK_NANOSLEEP or libc.ptrace(PTRACE_SEIZE, tid, 0, 0):
            continue
        libc.ptrace(PTRACE_INTERRUPT, tid, 0, 0)
        os.waitpid(tid, WALL)
        if call_of(pid, tid) == CLOCK_NANOSLEEP:  # it has not gone on meanwhile
            return lambda tid=tid: libc.ptrace(PTRACE_DETACH, tid, 0, 0)
        libc.ptrace(PTRACE_DETACH, tid, 0, 0)
    return None


def running_seconds(file):
    try:
        with open(file, encoding="ascii") as metrics:
            return next(float(line.split()[1]) for line in metrics if line.startswith("braid_running_seconds "))
    except OSError:
        return 0


def check_window_stands_still():
    """A window takes as long as threads need. The recording's own loop, which has a second's work to do,
    does not wait for it."""
    target = gate.start(ALLOCS)
    gate.wait_line(target, "ready")
    metrics = gate.path("metrics")
    braid = gate.start(gate.BRAID, "record", "-e", "alloc:malloc", "--metrics", metrics, "-p", target.pid, "-o",
                       gate.path("window.db"), stderr=gate.subprocess.PIPE)
    gate.wait_until(lambda: running_seconds(metrics), "the first figures")
    gate.say(target, "mix 1 1000000000")  # at once, so that probes are not left open
    go_on = gate.wait_until(lambda: in_window(braid.pid), "a window")
    begun = running_seconds(metrics)
    try:
        gate.wait_until(lambda: running_seconds(metrics) >= begun + 3, "figures while a window stands still")
        gate.ok(True, "a window that stands still does not stop the recording")
    finally:
        go_on()
    braid.send_signal(signal.SIGINT)
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, "a window that stood still: status", said)


def check_refused():
    stripped = gate.path("static")
    gate.run("strip", "-o", stripped, STATIC)
    for event, command, status, words in [
            ("alloc:mallocs", "true", 2, "did you mean alloc:malloc?"),
            ("alloc:ruby", "true", 1, "does not report their size"),
            ("alloc,alloc:mmap", "true", 2, "cannot be recorded together"),
            ("alloc:python", "/usr/bin/python3.11", 1, "_PyObject_Malloc"), # Debian's has no symbols
            ("alloc:cobol", ALLOCS, 1, "Choose alloc, alloc:usdt, alloc:malloc, alloc:mmap, alloc:python"),
            ("alloc", stripped, 1, "is statically linked and has no symbol malloc. Use -e alloc:mmap "
                                   "for memory from the kernel")]:
        result = gate.braid("record", "-e", event, "-o", gate.path("refused.db"), "--", command)
        gate.equal(result.status, status, f"{event}: status", result.err)
        gate.ok(words in result.err, f"{event}: says why", result.err)
    for options, words in [(("-e", "cpu,tracepoint:sched:sched_switch", "-c", "10k"),
                            "-c with a unit applies only to events in bytes"),
                           (("-e", "alloc", "-c", "k"), "-c takes a number"),
                           (("-e", "alloc", "-c", "-5k"), "takes a number")]:
        result = gate.braid("record", *options, "-o", gate.path("refused.db"), "--", "true")
        gate.equal(result.status, 2, f"{options}: status", result.err)
        gate.ok(words in result.err, f"{options}: says why", result.err)


gate.need_root()
check_family()
check_all()
check_mmap()
check_sampled()
if os.path.exists(STATIC):
    check_refused()
check_command()
check_window_stands_still()
gate.done()
