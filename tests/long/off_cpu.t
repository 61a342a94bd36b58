#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""off_cpu.t [SECONDS]: two hundred threads wait and run for a minute; then two on each of two CPUs do nothing
but switch, some 36,000 times a second each. What the samples of each thread add up to is its wall time
less its time on the CPU, as the kernel has counted it (/proc/PID/task/TID/schedstat), within 1 %: with
every wait sampled, and within the default limits."""

import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../live"))
import gate
import waiting

SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 60
THREADS = 200
SLEEP_NS = 20_000_000


def check_sums(name, recording, threads):
    """`threads`: (id, begin, end, time on the CPU)."""
    sums = {tid: 0 for tid, *_ in threads}
    begins = {tid: (begin, end) for tid, begin, end, _ in threads}
    for sample in recording.waits():
        begin, end = begins.get(sample.tid, (0, 0))
        if begin <= sample.time_ns <= end:
            sums[sample.tid] += sample.value
    off = [(tid, sums[tid], end - begin - cpu) for tid, begin, end, cpu in threads]
    wrong = [(tid, got, want) for tid, got, want in off if abs(got - want) > want / 100]
    gate.equal(wrong, [], f"{name}: the sum of each thread within 1 %")
    worst = max(off, key=lambda row: abs(row[1] / row[2] - 1))
    total = sum(got for _, got, _ in off) / sum(want for *_, want in off) - 1
    print(f"# {name}: all threads {100 * total:+.3f} %, at worst {100 * (worst[1] / worst[2] - 1):+.3f} %; "
          f"{recording.count()} samples; lost: {recording.counters()}")


def check_switches(name, *options):
    target = gate.start(os.path.join(gate.OUTPUT, "fixtures/native/switches"), "2", "0")
    gate.line_of(target)
    braid = waiting.record("off-cpu", target.pid, options=options)
    begin, end, _, *rest = map(int, gate.ask(target, str(SECONDS * 1000 // 3)).split())
    recording = waiting.finish(name, braid)
    threads = [(tid, begin, end, cpu) for tid, cpu in zip(rest[::3], rest[1::3])]
    gate.equal(len(threads), 4, f"{name}: all threads answer")
    print(f"# {name}: {sum(rest[2::3]) * 10**9 // (end - begin) // len(threads)} switches/s a thread")
    check_sums(name, recording, threads)
    target.kill()


def check(name, *options):
    waiter = waiting.Waiter(os.path.join(gate.OUTPUT, "fixtures/native/waits"))
    braid = waiting.record("off-cpu", waiter.pid, options=options)
    words = gate.ask(waiter.process, f"pool {THREADS} {SECONDS * 10**9 // SLEEP_NS} {SLEEP_NS}").split()
    recording = waiting.finish(name, braid)
    threads = [tuple(map(int, words[at:at + 4])) for at in range(0, len(words), 4)]
    gate.equal(len(threads), THREADS, f"{name}: all threads answer")
    check_sums(name, recording, threads)
    gate.say(waiter.process, "end")


signal.alarm(4 * SECONDS + 240)  # instead of the live gate's
gate.need_root()
check("every wait", "--max-overhead", "none")
check("default limits")
check_switches("every switch", "--max-overhead", "none")
check_switches("switches, default limits")
gate.done()
