#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""An hour of recordings in a row, of programs that come and go: neither memory nor open files grow, and no
more recordings are there than are kept. BRAID_SOAK_S: another time than an hour."""

import os
import statistics
import subprocess

import lib

SECONDS = int(os.environ.get("BRAID_SOAK_S", "3600"))

lib.need_bpf()
result = subprocess.run(["scripts/soak", str(SECONDS), str(max(SECONDS // 60, 1))], check=False,
                        stdout=subprocess.PIPE, env=dict(os.environ, BRAID=lib.BRAID))
lib.equal(result.returncode, 0, "status")
rows = [[float(word) for word in line.split()] for line in result.stdout.decode().splitlines()]
for row in rows:
    print("#", *row)
# The first third is when tables and caches fill up.
early = rows[len(rows) // 3:len(rows) * 2 // 3]
late = rows[len(rows) * 2 // 3:]
for column, name in (1, "memory"), (3, "open files"):
    before, after = (statistics.median(row[column] for row in part) for part in (early, late))
    lib.ok(after <= 1.05 * before, f"{name} in the last third as in the second: {after:.0f}, {before:.0f}")
lib.ok(max(row[4] for row in rows) <= 6, "no more recordings than are kept")
lib.ok(all(a[5] < b[5] for a, b in zip(rows, rows[1:])), "samples all the time")
lib.done()
