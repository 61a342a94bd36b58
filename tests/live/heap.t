#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""The events alloc:usdt and outstanding:usdt: allocations that libbraid-heap.so samples in the
process. The recording is compared with the program's own sums, and with the library's."""

import os
import signal

import gate

HEAP = os.path.join(gate.OUTPUT, "fixtures/native/heap")
LIBRARY = os.path.join(gate.OUTPUT, "lib/braid/libbraid-heap.so")
JEMALLOC = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
PYTHON = "/usr/bin/python3"


def record(title, lines, options=(), period=1, more=(), everywhere=False):
    """(the recording, the program's last answer as numbers)."""
    env = dict(os.environ, LD_PRELOAD=":".join([LIBRARY, *more]), BRAID_HEAP_BYTES=str(period))
    target = gate.start(HEAP, env=env)
    gate.wait_line(target, "ready")
    file = gate.path(f"{len(os.listdir(gate.tmp))}.db")
    braid = gate.start(gate.BRAID, "record", "-e", "alloc:usdt", *options, "--max-overhead", "none",
                       *(("-a",) if everywhere else ("-p", target.pid)), "-o", file, stderr=gate.subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
    for line in lines:
        answer = gate.ask(target, line)
    braid.send_signal(signal.SIGINT)
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, f"{title}: status", said)
    target.stdin.close()
    gate.equal(target.wait(), 0, f"{title}: the program ends well")
    recording = gate.Recording(file)
    if not everywhere:  # other processes have losses of their own
        gate.equal(recording.counters(), {}, f"{title}: nothing is lost")
    return recording, [int(word) for word in answer.split()[1:]]


def by_function(recording):
    sums = {}
    for frames, value in recording.merged():
        name = next((frame.split(" ")[0].split("(")[0] for frame in frames if frame.startswith("by_")), "none")
        sums[name] = sums.get(name, 0) + value
    return sums


LINES = ["malloc 100 50", "realloc 10 40", "new 20 33", "aligned 10 128", "throw 3 77",
         "threads 50 10"]
LEAVES = {"malloc": 5000, "calloc": 10 * 40, "realloc": 10 * 120, "operator new": 10 * 640, "aligned_alloc": 10 * 128,
          "operator new[]": 20 * 33 + 3 * 77 + 200 * 10}
BYTES = {"by_malloc": 5000, "by_realloc": 10 * (40 + 120), "by_new": 20 * 33 + 3 * 77 + 200 * 10,
         "by_aligned": 10 * (640 + 128)}


def check_each(title, more=()):
    recording, (calls, size, _, *library) = record(title, LINES, more=more)
    gate.equal(library[:3], [calls, size, size], f"{title}: the library samples each call")
    gate.equal(recording.sql("SELECT count(*), sum(value), sum(total) FROM sample"),
               [(calls, size, size)], f"{title}: each call is a sample, with its bytes")
    gate.equal(by_function(recording), BYTES, f"{title}: below the functions that asked")
    leaves = {}
    for frames, value in recording.merged():
        leaf = frames[-1].split("(")[0].strip()
        leaves[leaf] = leaves.get(leaf, 0) + value
    gate.equal(leaves, LEAVES, f"{title}: they end in the functions that the program called")


def check_children():
    """A forked child, and one that executes a program: with -a they have probes from their start."""
    recording, _ = record("children", ["malloc 100 50", "fork 20 33", "exec 10 77", "threads 50 10"], everywhere=True)
    sums = by_function(recording)
    sums.pop("none", None)  # before the executed program's main
    gate.equal(sums, {"by_malloc": 5000, "by_new": 20 * 33 + 10 * 77 + 200 * 10},
               "children: each call of parent, child and executed program, once")
    gate.equal(recording.one("SELECT count(DISTINCT pid) FROM sample JOIN thread ON thread.id = sample.thread "
                             "JOIN process ON process.id = thread.process"), 3, "children: in three processes")


LIAR = """#include <stdio.h>
#include "probes/heap/sampler.h"
unsigned short otel_memory_alloc_semaphore __attribute__((section(".probes")));
static void sample(unsigned long bytes, unsigned long weight)
{
    struct heap_sample sample = { &sample, bytes, weight };
    HEAP_SITE("alloc", "8@(%0) 8@8(%0) 8@16(%0)", "r"(&sample));
}
int main(void)
{
    puts("ready"), fflush(stdout), getchar();
    sample(0, 1), sample(1UL << 48, 1UL << 48), sample(100, 99), sample(100, 101 + (1UL << 40)), sample(7, -1UL);
    sample(100, 100), sample(100, 100 + (1UL << 40));
    return 0;
}
"""


def check_bounds():
    """A producer's values are bounded: the weight lies between the size and the size + 2^40."""
    source, program = gate.path("liar.c"), gate.path("liar")
    with open(source, "w", encoding="utf-8") as text:
        text.write(LIAR)
    gate.run("cc", "-O1", "-I.", "-o", program, source)
    target = gate.start(program)
    gate.wait_line(target, "ready")
    file = gate.path("liar.db")
    braid = gate.start(gate.BRAID, "record", "-e", "alloc:usdt", "--max-overhead", "none", "-p", target.pid,
                       "-o", file, stderr=gate.subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
    target.stdin.close()
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, "bounds: status", said)
    recording = gate.Recording(file)
    gate.equal(recording.sql("SELECT value, total FROM sample ORDER BY total"), [(100, 100), (100, 100 + (1 << 40))],
               "bounds: what is within them is recorded")
    gate.equal(list(recording.counters().values()), [5], "bounds: the rest is a counted loss", recording.counters())


def check_estimate():
    recording, (_, size, _, allocs, sampled, weight, _) = record(
        "estimate", ["malloc 200000 700", "new 100000 3000", "malloc 50 1000000"], period=65536)
    gate.equal(recording.sql("SELECT count(*), sum(value), sum(total) FROM sample"),
               [(allocs, sampled, weight)], "estimate: what the library reports is recorded")
    gate.ok(abs(weight / size - 1) < 0.05, "estimate: within 5 % of the bytes", (weight, size))


def check_outstanding():
    lines = ["malloc 100 50", "keep 30 100", "realloc 10 40", "new 20 33", "threads 50 10"]
    recording, (calls, _, frees, allocs, _, _, library_frees) = record(
        "outstanding", lines, ["--outstanding"])
    gate.equal((allocs, library_frees), (calls, frees), "outstanding: the library sees each free")
    gate.equal(by_function(recording), {"by_keep": 3000}, "outstanding: what is not freed")


def check_python():
    """PYTHONMALLOC=malloc: each object is an allocation of malloc."""
    script = "def keep(n):\n return [bytes(5000) for i in range(n)]\nkept = keep(1000)\n"
    file = gate.path("python.db")
    env = dict(os.environ, LD_PRELOAD=LIBRARY, BRAID_HEAP_BYTES="1", PYTHONMALLOC="malloc")
    result = gate.braid("record", "-e", "alloc:usdt", "--max-overhead", "none", "-o", file, "--",
                        PYTHON, "-c", script, env=env)
    gate.equal(result.status, 0, "python: status", result.err)
    sums = sum(value for frames, value in gate.Recording(file).merged()
               if any(frame.startswith("keep ") for frame in frames)
               and value % 5033 == 0)
    gate.equal(sums, 1000 * 5033, "python: bytes objects, below the function that makes them")


def check_command():
    """A command gets the library, before another preloaded one, and the period of -c."""
    for options, wanted in [(["-c", "1"], BYTES), (["--no-preload"], {})]:
        file = gate.path(f"command{len(options)}.db")
        env = dict(os.environ, LD_PRELOAD=gate.MARKER)
        result = gate.braid("record", "-e", "alloc:usdt", *options, "--max-overhead", "none", "-o",
                            file, "--", HEAP, env=env, input="\n".join(LINES).encode() + b"\n",
                            stdin=None)
        gate.equal(result.status, 0, f"command {options}: status", result.err)
        sums = by_function(gate.Recording(file))
        sums.pop("none", None)  # before main
        gate.equal(sums, wanted, f"command {options}: bytes below the functions that asked")


def check_none():
    target = gate.start(HEAP)
    gate.wait_line(target, "ready")
    result = gate.braid("record", "-e", "alloc:usdt", "-p", target.pid, "-d", "1", "-o",
                        gate.path("none.db"))
    gate.ok(result.status != 0 and "LD_PRELOAD=libbraid-heap.so" in result.err,
            "none: a process without the probes is refused, with the remedy", result.err)
    target.stdin.close()


gate.need_root()
check_each("glibc")
if os.path.exists(JEMALLOC):
    check_each("jemalloc", [JEMALLOC])
else:
    gate.skip(f"there is no {JEMALLOC}", "jemalloc: each call is a sample")
check_children()
check_bounds()
check_estimate()
check_outstanding()
check_python()
check_command()
check_none()
gate.done()
