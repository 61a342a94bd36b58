#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Code objects that live for one call, of which the next one may have the memory: each sample has the
names of its own. A name that could not be read in time is counted, and never another one's."""

import collections
import os
import re
import signal

import gate
import pythons

CALLS = 300
STALE = "runtime frames unnamed: gone before their name was read"

gate.need_root()


def check(title, *command, stale=None, late=False, options=()):
    """Each call is one sample, with one pair of functions of the call's number, or files of it. @late: the
    recorder is stopped until all calls are over, so that it reads nothing in time."""
    target = gate.marked(*command, trace=False)
    recorder = gate.recorder(CALLS, target, options=options)
    if late:
        os.kill(recorder.pid, signal.SIGSTOP)
    gate.ask(target, str(CALLS))
    if late:
        os.kill(recorder.pid, signal.SIGCONT)
    recording = gate.finish(recorder, CALLS)
    pairs, named, stales, stale_frames = collections.Counter(), 0, 0, 0
    for frames, count in recording.merged():
        numbers = re.findall(r"(?:f|caller|file)_(\d{4})", ";".join(frames))
        if stale and any(stale in frame for frame in frames):
            stales += count
            stale_frames += count * sum(stale in frame for frame in frames)
            if len(set(numbers)) > 1:
                pairs[tuple(sorted(set(numbers)))] += count
        else:
            named += count
            pairs[tuple(sorted(set(numbers)))] += count
    wrong = {numbers: count for numbers, count in pairs.items() if len(numbers) != 1 or count != 1}
    gate.ok(not wrong, f"{title}: each sample has the names of its own",
            f"{len(wrong)} of {len(pairs)}", *list(wrong.items())[:5])
    gate.equal(named + stales, CALLS, f"{title}: none is without names")
    if stale:
        gate.equal(recording.counters().get(STALE, 0), stale_frames, f"{title}: stale frames are counted")
    return recording


for python in pythons.every():
    check("python " + python[-1], *python, "-B", "fixtures/python/replaced/replaced.py")
check("ruby", "/usr/bin/ruby3.1", "fixtures/ruby/replaced/replaced.rb")
check("perl", "/usr/bin/perl", "fixtures/perl/replaced/replaced.pl")
check("php", "/usr/bin/php8.2", "-n", "-d", "extension=ffi", "-d", "ffi.enable=1",
      "fixtures/php/replaced/replaced.php", gate.tmp)
for way in ("vm", "eval", "function", "hot"):
    for late in (False, True):
        check(f"node, {way}{', read late' * late}", "/usr/bin/node", "--expose-gc", "--no-compilation-cache",
              "fixtures/node/replaced/replaced.js", way, stale="[unknown JavaScript function]", late=late)
gate.done()
