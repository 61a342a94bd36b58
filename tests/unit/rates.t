#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""A directory of recordings that were made at several rates: ticks weigh what they stand for."""

import json
import os
import sqlite3
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import tap  # noqa: E402
from tap import equal, matches  # noqa: E402

OUTPUT = os.environ.get("OUTPUT", "build")
WORK = tempfile.TemporaryDirectory()


def made(directory, number, hz, samples):
    """A finished recording of ten seconds, which lie `number` minutes after midnight."""
    os.makedirs(os.path.join(WORK.name, directory), exist_ok=True)
    file = os.path.join(WORK.name, directory, f"20261124T00{number:02}00Z-000000.db")
    lines = "".join("\t".join(sample.split(" ")) + "\n" for sample in samples)
    subprocess.run([OUTPUT + "/tests/tools/mksamples", file], input=lines, text=True, check=True)
    titles = {"started_at": f"2026-11-24T00:{number:02}:00Z", "duration_s": "10"}
    titles.update({"frequency_hz": str(hz)} if hz else {})
    with sqlite3.connect(file) as database:
        database.execute("DELETE FROM meta WHERE key IN ('frequency_hz', 'duration_s', 'started_at')")
        database.executemany("INSERT INTO meta VALUES (?, ?)", titles.items())
    database.close()


def report(directory, *words):
    return subprocess.run([OUTPUT + "/braid", "report", *words, os.path.join(WORK.name, directory)],
                          capture_output=True, text=True, check=False)


def sums(directory, *words):
    result = report(directory, "--format", "folded", *words)
    return dict(line.rsplit(" ", 1) for line in result.stdout.splitlines())


def ticks(function, n):
    return [f"cpu samples 1 running - - 7:app 7:app n:main;n:{function}"] * n


WAITS = ["off-cpu ns 5000 waiting - read 7:app 7:app n:main;n:read"]

made("two", 1, 99, ticks("slow", 99) + WAITS)
made("two", 2, 990, ticks("fast", 990) + WAITS)
equal(sums("two"), {"main;slow": "1000000000", "main;fast": "1000000000"}, "two rates: the same time")
equal(sums("two", "--event", "off-cpu", "--idle", "show"), {"main;read": "10000"},
      "two rates: other events are as they were")
equal("left out" in report("two").stderr, False, "two rates: nothing is left out")
matches(r", 20\.0 s$", report("two").stdout.splitlines()[1], "two rates: the time of both")
profiles = json.loads(report("two", "--format", "speedscope").stdout)["profiles"]
equal([(one["unit"], sum(one["weights"])) for one in profiles if one["name"].startswith("cpu")],
      [("nanoseconds", 2 * 10**9)], "two rates: in a format with units")

made("one", 1, 99, ticks("slow", 99))
made("one", 2, 99, ticks("fast", 9))
equal(sums("one"), {"main;slow": "99", "main;fast": "9"}, "one rate: ticks")

made("without", 1, 99, ticks("slow", 99))
made("without", 2, 990, ticks("fast", 990))
made("without", 3, None, ticks("unknown", 10))
made("without", 4, None, WAITS)
equal(sums("without"), {"main;slow": "1000000000", "main;fast": "1000000000"},
      "an unknown rate among several: ticks are left out")
equal(sums("without", "--event", "off-cpu", "--idle", "show"), {"main;read": "5000"},
      "an unknown rate: other events are there")
matches("has no sampling rate", report("without").stderr, "an unknown rate: is named")
tap.done()
