#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Who wakes a thread that sleeps: an interrupt, whatever it has interrupted. It comes on a CPU that another
program keeps in system calls, and its stack ends where it has entered the kernel."""

import os
import re

import gate
import waiting

WAITS = os.path.join(gate.OUTPUT, "fixtures/native/waits")
SLEEPS = 200
CALLS = "import os\nwhile True: os.stat('/proc/self/status')"


def check():
    cpu = {min(os.sched_getaffinity(0))}
    waiter = waiting.Waiter(WAITS)
    os.sched_setaffinity(waiter.pid, cpu)
    busy = gate.start("/usr/bin/python3", "-c", CALLS)
    os.sched_setaffinity(busy.pid, cpu)
    braid = waiting.record("wakeup", waiter.pid, options=["--max-overhead", "none"])
    for _ in range(SLEEPS):
        gate.ask(waiter.process, "sleep 1000000")
    busy.kill()
    recording = waiting.finish("wakers", braid)
    woken = {row[0] for row in recording.sql(
        "SELECT sample.id FROM sample JOIN thread ON thread.id = thread WHERE thread.name = '(interrupt)'")}
    samples = [sample for sample in recording.waits(event="wakeup") if sample.id in woken]
    gate.ok(samples, "interrupts end sleeps")
    stacks = recording.stacks(samples, event="wakeup")
    entry = re.compile(r"asm_(sysvec_\w+|common_interrupt)_\[k\]")
    gate.equal([frames for frames in stacks if not entry.fullmatch(frames[0])], [],
               "its stack begins at the interrupt")
    gate.equal([frames for frames in stacks if any(entry.fullmatch(frame) for frame in frames[1:])], [],
               "and is of one interrupt")
    gate.ok(all(any("hrtimer" in frame for frame in frames) for frames in stacks), "of the timer", *stacks)


gate.need_root()
gate.need_program("/usr/bin/python3")
waiting.on_each_kernel(check)
gate.done()
