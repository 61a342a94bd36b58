#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""The ring buffer overflows: what is recorded and what is counted as lost are all the hits there were,
and as many are recorded as fit."""

import os
import re
import signal

import gate

RING_BYTES = 4096
HITS = 200
# Of a record in the ring: its own head, and struct rec_sample.
SHARED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bpf/shared.h")
with open(SHARED, encoding="utf-8") as header:
    HEADER_BYTES = 8 + int(re.search(r"sizeof\(struct rec_sample\) == (\d+)", header.read()).group(1))
LOST = "samples lost: ring buffer full"


def stop(process):
    """Returns when it has stopped."""
    process.send_signal(signal.SIGSTOP)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    gate.ok(os.WIFSTOPPED(status), "the recorder has stopped")


gate.need_root()
target = gate.marked(gate.MARKS)
recorder = gate.recorder(2 * HITS + 2, target, options=("-b", RING_BYTES))
recorded = 0
for name in "once", "twice":
    gate.ask(target, "here 1")
    recorded += 1
    gate.wait_line(recorder, f"recorded {recorded}")  # and the ring is empty
    stop(recorder)
    gate.ask(target, f"here {HITS}")
    recorder.send_signal(signal.SIGCONT)
    fit = (RING_BYTES - 1) // (HEADER_BYTES + 2 * 8 * len(gate.HERE))
    recorded += fit
    if name == "once":
        gate.wait_line(recorder, f"recorded {recorded}")
recording = gate.finish(recorder, 2 * HITS + 2, recorded)
gate.equal(recording.counters(), {LOST: 2 * (HITS - fit)}, "what does not fit is counted")
gate.equal(recording.count(), recorded, "what fits is recorded")
gate.check_merged("overflow", recording.merged(), gate.HERE, recorded)
samples = recording.samples()
gate.check_native("overflow", samples[:1 + fit], gate.Maps(target.pid), gate.traces()[:1 + fit])
gate.done()
