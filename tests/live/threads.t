#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Threads: those that were there, and those that are born later, each with its own stack; -p takes any
thread's id."""

import collections

import gate


gate.need_root()
target = gate.marked(gate.MARKS)
recorder = gate.recorder(8 * 5 + 3, target)
gate.ask(target, "threads 8 5")
gate.ask(target, "here 3")
recording = gate.finish(recorder, 8 * 5 + 3)
samples = recording.samples()
hits = collections.Counter(sample.tid for sample in samples)
main_hits = hits.pop(target.pid, 0)
gate.equal(main_hits, 3, "the main thread's samples")
gate.equal(sorted(hits.values()), [5] * 8, "five of each of the eight threads")
gate.check_native("threads", samples, gate.Maps(target.pid), gate.traces())
merged = recording.merged()
own = [stack for stack in merged if any("in_thread" in frame for frame in stack[0])]
gate.equal(len(merged), 2, "two stacks: the threads', and the main thread's")
gate.check_merged("threads", own, [*gate.TO_THREAD,
                                   gate.marks("in_thread", "/* in_thread */"),
                                   *gate.hit()], 40)
gate.check_clean("threads", recording)
gate.done()
