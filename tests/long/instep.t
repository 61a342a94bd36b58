#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""A program in step with the timer, or nearly so, is seen as it is: it spends 30 % of each round in one
function, by its own account, and so do the samples say. Met at one moment of its round, it would be
0 % or 100 %."""

import math
import subprocess

import lib

SECONDS = 60


def check(hz, program_hz):
    name = f"{hz} Hz, a program at {program_hz} Hz"
    target = lib.start_ready(lib.fixture("instep"), program_hz, 30, stdin=subprocess.PIPE)
    recording = lib.record("-p", target.pid, "-d", SECONDS, options=("-F", hz))
    told, _ = target.communicate(b"\n")
    want = float(told.split()[1])
    stacks = [(frames, count) for frames, count in recording.folded()
              if any(frame.startswith("in_") for frame in frames)]
    n = sum(count for _, count in stacks)
    got = lib.share_of(stacks, "(^|;)in_first(;|$)")
    lib.ok(n >= SECONDS * hz / 10, f"{name}: enough samples", n)
    # Four standard deviations of random samples that are so many; twice that, as those of one
    # period are no independent ones.
    lib.ok(abs(got - want) <= 8 * math.sqrt(want * (1 - want) / max(n, 1)),
           f"{name}: the share is true", f"{100 * got:.2f} % of {n} samples, not {100 * want:.2f} %")


lib.need_bpf()
for rates in (99, 99), (99, 100), (100, 100), (99, 198), (99, 49.5), (999, 999):
    check(*rates)
lib.done()
