#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""The event alloc: each allocation once, with its size, below the function that asked for it, however
the allocator goes about it; what a sample stands for; what cannot be seen is refused in a sentence."""

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


def check_limit():
    """The probes are detached at one moment: the samples are all calls up to it, in their order."""
    calls = 3000000
    target = gate.start(ALLOCS)
    gate.wait_line(target, "ready")
    file = gate.path("limit.db")
    braid = gate.start(gate.BRAID, "record", "-e", "alloc", "-c", "1", "--max-overhead", "0.5", "-p",
                       target.pid, "-o", file, stderr=gate.subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
    gate.equal(gate.ask(target, f"mix 1 {calls}"), "done", "limit: the calls")
    gate.equal(gate.ask(target, "mmap 1 81920"), "done", "limit: a mapping after the end")
    braid.send_signal(signal.SIGINT)
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, "limit: status", said)
    recording = gate.Recording(file)
    gate.equal(recording.counters(), {}, "limit: nothing is lost")
    number, size = recording.sql("SELECT sum(weight), sum(total) FROM sample")[0]
    gate.ok(0 < number < calls, "limit: not every call counts", number)
    gate.equal(size, sum(16 * (1 + i * 7 % 256) for i in range(1, number + 1)),
               "limit: but each call up to one moment, with its bytes")
    gate.matches(r"alloc: probing every call took \d+ % of the machine, and --max-overhead is 0.5: calls were "
                 r"recorded for [\d.]+ s, all of them, and then no more. libbraid-heap.so", said,
                 "limit: the summary says so")
    target.stdin.close()
    target.wait()


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
check_limit()
gate.done()
