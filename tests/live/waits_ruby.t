#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Waiting of a Ruby program: one sample as long as each wait, with Ruby's and C's frames of it, and not
longer than Ruby's own clock says."""

import gate
import waiting
from waiting import FUTEX, POLL, PPOLL, READ

RUBY = "/usr/bin/ruby3.1"
N = 5

gate.need_root()
gate.need_program(RUBY)
waiter = waiting.Waiter(RUBY, "fixtures/ruby/waits/waits.rb")
braid = waiting.record("off-cpu", waiter.pid, options=["--max-overhead", "none"])
# A thread that sleeps looks after signals meanwhile (ppoll), if none other does (futex).
SLEEP = (PPOLL, FUTEX)
waits = [("lock", [waiter.wait("lock", *SLEEP) for _ in range(N)], SLEEP, "in_lock", "lock"),
         ("pipe", [waiter.wait("pipe", READ) for _ in range(N)], (READ,), "in_pipe", "sysread"),
         ("socket", [waiter.wait("socket", POLL) for _ in range(N)], (POLL,), "in_socket", "sysread"),
         ("sleep", [waiter.sleep("sleep 0.02", *SLEEP) for _ in range(N)], SLEEP, "in_sleep", "sleep")]
recording = waiting.finish("ruby", braid)
for name, found, calls, *inner in waits:
    waiting.check_long(name, recording, waiter.tid, found, calls,
                       lambda frames, inner=inner: waiting.runtime_part(frames, "_[rb]") ==
                       ["<main>", "main", "obey", *inner])
gate.done()
