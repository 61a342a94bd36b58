#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Code objects that live for one call, of which the next one may have the memory: each sample has the
names of its own. A name that could not be read in time is counted, and never another one's."""

import collections
import re

import gate
import pythons

CALLS = 300

gate.need_root()


def check(title, *command, stale=None, options=()):
    """Each call is one sample, with one pair of functions of the call's number, or files of it."""
    target = gate.marked(*command, trace=False)
    recorder = gate.recorder(CALLS, target, options=options)
    gate.ask(target, str(CALLS))
    recording = gate.finish(recorder, CALLS)
    pairs, stales = collections.Counter(), 0
    for frames, count in recording.merged():
        numbers = re.findall(r"(?:f|caller|file)_(\d{4})", ";".join(frames))
        if stale and any(stale in frame for frame in frames):
            stales += count
            pairs.update({number: 0 for number in numbers})
        else:
            pairs[tuple(sorted(set(numbers)))] += count
    wrong = {numbers: count for numbers, count in pairs.items() if isinstance(numbers, tuple) and
             (len(numbers) != 1 or count != 1)}
    gate.ok(not wrong, f"{title}: each sample has the names of its own",
            f"{len(wrong)} of {len(pairs)}", *list(wrong.items())[:5])
    gate.equal(sum(pairs.values()) + stales, CALLS, f"{title}: none is without names")
    return recording


for python in pythons.every():
    check("python " + python[-1], *python, "-B", "fixtures/python/replaced/replaced.py")
check("ruby", "/usr/bin/ruby3.1", "fixtures/ruby/replaced/replaced.rb")
check("perl", "/usr/bin/perl", "fixtures/perl/replaced/replaced.pl")
check("php", "/usr/bin/php8.2", "-n", "-d", "extension=ffi", "-d", "ffi.enable=1",
      "fixtures/php/replaced/replaced.php", gate.tmp)
check("node", "/usr/bin/node", "--expose-gc", "fixtures/node/replaced/replaced.js")
gate.done()
