#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""The ring buffer overflows: what is recorded and what is counted as lost are all the hits there were,
and as many are recorded as fit: those of a stack that is known as short records. A stack that found
no room is sent again."""

import os
import re
import signal

import gate

RING_BYTES = 4096
HITS = 200
# A record in the ring has a head of 8 bytes and a struct rec_repeat.
SHARED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bpf/shared.h")
with open(SHARED, encoding="utf-8") as header:
    KNOWN_BYTES = 8 + int(re.search(r"sizeof\(struct rec_repeat\) == (\d+)", header.read()).group(1))
LOST = "samples lost: ring buffer full"
DEEP = 3
OVER = DEEP + 1  # hits of the other stack
COPIED = 4000  # so many that what is left behind the copies would be too little


def stop(process):
    """Returns when it has stopped."""
    process.send_signal(signal.SIGSTOP)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    gate.ok(os.WIFSTOPPED(status), "the recorder has stopped")


def check_copies():
    """Copies of stacks, which fill it many times over, leave room for samples."""
    target = gate.marked(gate.MARKS, trace=False, env={"FILLER": 50000 * "x"})  # on its stack
    file = gate.path("copies.db")
    braid = gate.start(gate.BRAID, "record", "-e", f"uprobe:{gate.MARKER}:braid_marker", "--unwind",
                       "copy", "--max-overhead", "none", "-p", target.pid, "-o", file,
                       stderr=gate.subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
    stop(braid)
    gate.ask(target, f"here {COPIED}")
    braid.send_signal(signal.SIGCONT)
    braid.send_signal(signal.SIGINT)
    gate.equal(braid.wait(), 0, "copies: status", braid.stderr.read().decode())
    recording = gate.Recording(file)
    gate.equal((recording.count(), recording.counters().get(LOST, 0)), (COPIED, 0),
               "copies: no sample is lost")
    gate.ok(recording.counters()["stack copies lost: ring buffer full"] > 0, "copies: some are")


gate.need_root()
check_copies()
target = gate.marked(gate.MARKS)
recorder = gate.recorder(2 * HITS + 2 + OVER + DEEP, target, options=("-b", RING_BYTES))
recorded = 0
seen = []  # which hits are recorded
hits = 0
fit = (RING_BYTES - 1) // KNOWN_BYTES
gate.ok(KNOWN_BYTES <= 64, "a stack that is known takes at most 64 bytes", KNOWN_BYTES)
for name in "once", "twice":
    gate.ask(target, "here 1")
    recorded += 1
    seen.append(hits)
    hits += 1
    gate.wait_line(recorder, f"recorded {recorded}")  # and the ring is empty
    stop(recorder)
    gate.ask(target, f"here {HITS}")
    seen += range(hits, hits + fit)
    hits += HITS
    if name == "once":
        gate.ask(target, f"deep {DEEP} {OVER}")  # no room: lost, and not known
        hits += OVER
    recorder.send_signal(signal.SIGCONT)
    recorded += fit
    if name == "once":
        gate.wait_line(recorder, f"recorded {recorded}")
        gate.ask(target, f"deep {DEEP} {DEEP}")  # sent again, and then known
        seen += range(hits, hits + DEEP)
        hits += DEEP
        recorded += DEEP
        gate.wait_line(recorder, f"recorded {recorded}")
recording = gate.finish(recorder, hits, recorded)
gate.equal(recording.counters(), {LOST: hits - recorded}, "what does not fit is counted")
gate.equal(recording.count(), recorded, "what fits is recorded")
gate.equal(sorted(count for _, count in recording.merged()), [DEEP, recorded - DEEP], "two stacks")
traces = gate.traces()
gate.check_native("overflow", recording.samples(), gate.Maps(target.pid), [traces[i] for i in seen])
gate.done()
