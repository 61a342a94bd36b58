#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""What there is instead of alloc:ruby: each object that Class#new makes is counted by the probe
object__create, and what is larger than a slot of the heap is malloc's, both below the Ruby method."""

import os
import signal

import gate


gate.need_root()
gate.need_program("/usr/bin/ruby")
target = gate.start("/usr/bin/ruby", "fixtures/ruby/allocs.rb")
gate.wait_line(target, "ready")
with open(f"/proc/{target.pid}/maps", encoding="utf-8") as maps:
    library = next(line.split()[-1] for line in maps if "/libruby" in line)
file = gate.path("ruby.db")
event = f"usdt:{os.path.basename(library)}:ruby:object__create"
braid = gate.start(gate.BRAID, "record", "-e", f"{event},alloc:malloc", "-c", "1b", "--max-overhead",
                   "none", "-p", target.pid, "-o", file, stderr=gate.subprocess.PIPE)
gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
for line in ("things 100", "texts 50"):
    gate.equal(gate.ask(target, line), "done", line)
braid.send_signal(signal.SIGINT)
said = braid.stderr.read().decode()
gate.equal(braid.wait(), 0, "status", said)
target.stdin.close()
target.wait()
recording = gate.Recording(file)
gate.equal(recording.counters(), {}, "nothing is lost")
gate.equal(recording.sql(f"SELECT runtime, sum(value) FROM leaf WHERE event = '{event}' GROUP BY 1"),
           [("Class#new", 100)], "each object is counted, below the method that makes it")
gate.equal(recording.sql("SELECT runtime, value, count(*) FROM leaf WHERE event = 'alloc:malloc' "
                         "AND value > 1000 GROUP BY 1, 2"), [("String#*", 1001, 50)],
           "each text is seen with its size, below the method that makes it")
gate.done()
