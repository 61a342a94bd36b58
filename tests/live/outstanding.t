#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""The event outstanding: what was allocated and is not freed at the end, each with its size and its
age, below the function that asked for it; whatever frees it, moves it or takes it over."""

import os
import signal
import time

import gate

ALLOCS = os.path.join(gate.OUTPUT, "fixtures/native/allocs")
PYTHON = os.path.expanduser("~/.pyenv/versions/3.11.7/bin/python3.11")
LIVE_ALLOCS_MAX = 65536  # bpf/outstanding.h


def record(title, lines, counters=None, options=("-c", "1"), ends=False):
    """What the fixture does by those lines, begun before it was seen."""
    target = gate.start(ALLOCS)
    gate.wait_line(target, "ready")
    file = gate.path(f"{len(os.listdir(gate.tmp))}.db")
    braid = gate.start(gate.BRAID, "record", "-e", "alloc:malloc", "--outstanding", *options,
                       "--max-overhead", "none", "-p", target.pid, "-o", file,
                       stderr=gate.subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
    begin = time.monotonic_ns()
    for line in lines:
        if callable(line):
            line()
        else:
            gate.equal(gate.ask(target, line), "done", f"{title}: {line}")
    if ends:
        target.stdin.close()
        target.wait()
    else:
        braid.send_signal(signal.SIGINT)
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, f"{title}: status", said)
    if not ends:
        target.stdin.close()
        target.wait()
    recording = gate.Recording(file)
    recording.file = file
    recording.begin = begin
    gate.equal(recording.counters(), counters or {}, f"{title}: what is lost")
    return recording


def by_caller(recording):
    """{function of the fixture: bytes}."""
    held = {}
    for frames, value in recording.merged():
        at = next(at for at, frame in enumerate(frames) if frame.startswith("obey ("))
        name = frames[at + 1].split(" ")[0]
        held[name] = held.get(name, 0) + value
    return held


def sizes(recording):
    return sorted(value for value, in recording.sql("SELECT value FROM sample"))


def check_family():
    recording = record("family", ["keep 3 1000", "malloc 50 1000", "calloc 5 40", "realloc 5 100",
                                  "reallocarray 5 80", "aligned 5 64", "keep_calloc 2 4000",
                                  "keep_aligned 1 640", "keep 2 7777", "drop 1 0", "mix 1 2000"])
    gate.equal(by_caller(recording), {"keep": 3 * 1000 + 7777, "keep_calloc": 2 * 4000,
                                      "keep_aligned": 3 * 640},
               "family: what is held, below who asked for it, and nothing else")
    gate.equal(sizes(recording), [640] * 3 + [1000] * 3 + [4000] * 2 + [7777],
               "family: each with its size")
    gate.equal(recording.sql("SELECT name, unit FROM event"), [("outstanding:malloc", "bytes")],
               "family: the event")


def check_moves():
    # 2000 grows by moving as something lies behind it, 300000 has a mapping of its own.
    recording = record("moves", ["keep 1 2000", "keep 1 48", "drop 1 0", "keep 1 2000",
                                 "grow 1 300000", "grow 1 500000", "grow 1 600"])
    gate.equal(by_caller(recording), {"keep": 2000, "grow": 600},
               "moves: what was moved is held once, with its last size; failures change nothing")


def check_others():
    recording = record("others", ["keep 4 100", "drop_in_thread 1 0", "drop_in_child 1 0"])
    gate.equal(by_caller(recording)["keep"], 3 * 100,
               "others: freed in another thread, it is free; in a child, only its copy is")
    reused = "frees that were not seen: the address was allocated again"
    recording = record("unseen", ["keep 2 5000", "drop_unseen 1 0", "keep 1 5000"], {reused: 1})
    gate.equal(sizes(recording), [5000, 5000],
               "unseen: what has the address of what was freed unseen takes its place")


def check_ends():
    """Held until the process ends, or what it executes does: so old it is."""
    recording = record("exit", ["keep 2 300", lambda: time.sleep(1.1), "keep 1 50"], ends=True)
    gate.equal(sizes(recording), [50, 300, 300], "exit: what was held then")
    ages = dict(recording.sql("SELECT value, min(object) FROM sample GROUP BY value"))
    gate.ok(ages[300] >= 1100000000 + ages[50], "exit: its age is what passed until then", ages)
    ends = {end for end, in recording.sql("SELECT time_ns + object FROM sample")}
    gate.equal(len(ends), 1, "exit: all end when the process does", ends)
    for options, wanted in [(("--by", "age"), ["held less than 1 s", "held 1 s to 10 s"]),
                            (("--min-age", "1"), ["600 B in 2 samples"])]:
        text = gate.braid("report", *options, recording.file).out
        for words in wanted:
            gate.ok(words in text, f"exit: report {' '.join(options)}: {words}", text)
    result = gate.braid("report", "--by", "age", "--format", "folded", recording.file).out
    sums = {}
    for line in result.splitlines():
        stack, value = line.rsplit(" ", 1)
        sums[stack.split(";")[0]] = sums.get(stack.split(";")[0], 0) + int(value)
    gate.equal(sums, {"held less than 1 s": 50, "held 1 s to 10 s": 600},
               "exit: bytes by age")


def check_exec():
    file = gate.path("exec.db")
    result = gate.braid("record", "-e", "alloc:malloc", "--outstanding", "-c", "1",
                        "--max-overhead", "none", "-o", file, "--", ALLOCS,
                        input=b"keep 2 1234\nexecute 1 0\n", stdin=None)
    gate.equal(result.status, 0, "exec: status", result.err)
    held = [value for value in sizes(gate.Recording(file)) if value == 1234]
    gate.equal(held, [1234, 1234], "exec: what the program before held then")


def check_sampled():
    period = 65536
    recording = record("sampled", ["keep 5 4000000", "drop 2 0", "mix 1 20000", "keep 1000 10"],
                       options=("-c", "64k"))
    samples = recording.sql("SELECT value, total FROM sample")
    gate.equal(samples.count((4000000, 4000000)), 3, "sampled: what is large is always seen, as it is")
    gate.equal([sample for sample in samples if sample[0] not in (10, 4000000)], [], "sampled: each with its size")
    gate.equal([sample for sample in samples if sample[0] == 10 and abs(sample[1] - period - 5) > 2], [],
               "sampled: what is small stands for about the period")


def check_bound():
    """More at once than there is room for: what comes later is not followed, and counted."""
    full = "allocations not followed until they are freed: too many at once"
    recording = record("bound", [f"keep {LIVE_ALLOCS_MAX + 100} 32", "drop 200 0", "keep 50 40"],
                       {full: 100})
    gate.equal(sizes(recording), [32] * (LIVE_ALLOCS_MAX - 100) + [40] * 50,
               "bound: what was freed makes room again")


def check_python():
    """CPython's own allocator, where the interpreter has its symbols."""
    file = gate.path("python.db")
    script = ("import sys\ndef keep(n):\n return [bytes(300) for i in range(n)]\n"
              "def drop(n):\n keep(n)\nkept = keep(1000)\ndrop(1000)\n"
              "import os\nos._exit(0)\n")
    result = gate.braid("record", "-e", "alloc:python", "--outstanding", "-c", "1",
                        "--max-overhead", "none", "-o", file, "--", PYTHON, "-c", script)
    gate.equal(result.status, 0, "python: status", result.err)
    held = gate.Recording(file).sql("""SELECT runtime, value, count(*) FROM leaf
                                        WHERE value = 333 GROUP BY 1, 2""")
    gate.equal(held, [("keep.<locals>.<listcomp>", 333, 1000)],
               "python: what is held, below who made it, not what was dropped")


def check_refused():
    for event, status, words in [
            ("cpu", 2, "--outstanding requires -e alloc"), ("alloc:mmap", 2, "/proc/PID/smaps"),
            ("alloc:mallok", 2, "did you mean alloc:malloc?"),
            ("alloc,outstanding", 2, "cannot be recorded together"),
            ("alloc:ruby", 1, "does not report their size"),
            ("alloc:jvm", 1, "the garbage collector does not report")]:
        result = gate.braid("record", "-e", event, "--outstanding", "-o", gate.path("refused.db"),
                            "--", "true")
        gate.equal(result.status, status, f"{event}: status", result.err)
        gate.ok(words in result.err, f"{event}: says why", result.err)
    file = gate.path("cpu.db")
    gate.braid("record", "-o", file, "--", "true")
    for option in [("--by", "age"), ("--min-age", "1")]:
        result = gate.braid("report", *option, file)
        gate.ok(result.status and "has no ages" in result.err, f"{option[0]}: of cpu is refused",
                result.err)


def check_limit():
    """More calls than the limit allows (those of other programs cost, too): that is said, and what
    comes later is not seen."""
    file = gate.path("limit.db")
    result = gate.braid("record", "-e", "alloc:malloc", "--outstanding", "-c", "1k",
                        "--max-overhead", "0.1", "-o", file, "--", ALLOCS,
                        input=b"rate 100000 1\nkeep 1 5000000\n", stdin=None)
    gate.equal(result.status, 0, "limit: status", result.err)
    gate.ok("--max-overhead is 0.1: the figures are those after" in result.err,
            "limit: that it was given up is said", result.err)
    gate.equal([value for value in sizes(gate.Recording(file)) if value == 5000000], [],
               "limit: what came later is not there")


gate.need_root()
check_family()
check_moves()
check_others()
check_ends()
check_exec()
check_sampled()
check_bound()
if os.path.exists(PYTHON):
    check_python()
check_refused()
check_limit()
gate.done()
