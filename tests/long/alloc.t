#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""1,000,000 allocations a second under the default limit: they are watched part of the time, which
is said, and the estimate is within 5 % of the truth. For a machine with nothing else to do."""

import os
import re
import sqlite3

import lib

ALLOCS = os.path.join(lib.OUTPUT, "fixtures/native/allocs")
RATE, SECONDS = 1000000, 120


lib.need_bpf()
file = lib.path("rate.db")
result = lib.subprocess.run(
    [lib.BRAID, "record", "-e", "alloc:malloc", "-c", "16k", "-o", file, "--", ALLOCS],
    input=f"rate {RATE} {SECONDS}\n".encode(), capture_output=True)
said = result.stdout.decode() + result.stderr.decode()
truth = int(re.search(r"allocated (\d+)", said).group(1))
estimate, = sqlite3.connect(file).execute("SELECT sum(value) FROM sample").fetchone()
lib.equal(result.returncode, 0, "status", said)
lib.ok("which stand for the rest" in said, "that it was watched part of the time is said", said)
lib.ok(abs(estimate - truth) <= 0.05 * truth, "the estimate is within 5 % of the truth", estimate,
       truth)
lib.done()
