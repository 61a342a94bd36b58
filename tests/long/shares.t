#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""CPU time that is known to be spent 60 : 30 : 10 is reported so."""

import math

import lib

NATIVE = {"burn_a": 0.6, "burn_b": 0.3, "burn_c": 0.1}
PYTHON = {r"python_60 \(shares.py\)": 0.6, r"c_30 \(shares.py\)": 0.3,
          r"Worker.method_10 \(shares.py\)": 0.1}


def tolerance(share, n):
    """Two points, the promise for 10 s at 999 Hz; here are fewer samples (and some are lost on a
    busy machine), so that four standard deviations of n random ones can be more."""
    return min(max(0.02, 4 * math.sqrt(share * (1 - share) / n)), 0.04)


def cpu_times():
    """Of the machine so far: (stolen by the hypervisor, all), in ticks."""
    with open("/proc/stat", encoding="ascii") as file:
        times = list(map(int, file.readline().split()[1:9]))
    return times[7], sum(times)


def check(recording, pid, shares, name):
    stacks = recording.folded("--pid", pid)
    n = sum(count for _, count in stacks)
    lib.ok(n >= 4000, f"{name}: enough samples", n)
    for function, want in shares.items():
        got = lib.share_of(stacks, rf"(^|;){function}(;|$)")
        # Stolen time is CPU time of whom it was stolen from, and has no samples.
        lib.ok(abs(got - want) <= tolerance(want, max(n, 1)) + stolen,
               f"{name}: {function} {100 * want:g} %", f"{100 * got:.2f} % of {n} samples")


lib.need_bpf()
# Seconds of CPU time, so that there are enough samples on a busy machine, too.
native = lib.start_ready(lib.fixture("shares"), 8)
python = lib.start_ready("/usr/bin/python3", "-B", lib.script("shares.py"), 8)
before = cpu_times()
both = lib.record("-p", f"{native.pid},{python.pid}")
after = cpu_times()
stolen = (after[0] - before[0]) / max(after[1] - before[1], 1)
lib.stop(native, python)
check(both, native.pid, NATIVE, "C")
if both.sql("SELECT 1 FROM source WHERE runtime = 'python' AND source = 'walk'"):
    check(both, python.pid, PYTHON, "Python")
else:
    lib.skip("Python", "no walker for this python3")
lib.done()
