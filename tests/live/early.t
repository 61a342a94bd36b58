#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Interpreters that braid has not read when a sample finds them: each sample that has the loop and
no frame of Python's is counted, and none of these counts as complete. Those that run when the
recording begins are read before the first sample."""

import os
import signal
import time

import gate

PROGRAM = "import time\nprint('ready', flush=True)\nwhile True:\n    sum(i * i for i in range(9999))\n"
EARLY = """WITH RECURSIVE up(sample, node) AS (
    SELECT id, native FROM sample WHERE NOT coalesce(runtime, 0)
    UNION ALL SELECT up.sample, parent FROM up JOIN node ON node.id = up.node)
  SELECT count(DISTINCT up.sample), count(DISTINCT CASE WHEN flags & 1 THEN up.sample END)
    FROM up JOIN node ON node.id = up.node JOIN frame ON frame.id = node.frame
    JOIN sample ON sample.id = up.sample WHERE frame.loop"""



def early_of(recording):
    early, complete = recording.sql(EARLY)[0]
    counters = recording.counters()
    counted = counters.get("runtime stacks missing: taken before the interpreter was known", 0)
    unread = counters.get("stacks cut: mappings of the process not read yet", 0)
    return early, complete, counted, unread


def workers(program, number):
    for _ in range(number):
        gate.wait_line(gate.start(program, "-c", PROGRAM), "ready")


def check_later(name, program):
    """They begin while braid records, and are found by their first samples."""
    file = gate.path("later.db")
    recorder = gate.start(gate.BRAID, "record", "--name", name, "-F", "999", "-o", file)
    gate.wait_until(lambda: os.path.exists(file), "the first commit")
    # A machine that is out of CPU is the moment when all processes are recorded.
    gate.ok(os.getpriority(os.PRIO_PROCESS, recorder.pid) < os.getpriority(os.PRIO_PROCESS, 0),
            "braid itself comes before others")
    workers(program, 3)
    recording = gate.Recording(file)
    gate.wait_until(lambda: recording.one("SELECT count(*) FROM sample WHERE runtime") > 20,
                    "samples with frames")
    recorder.send_signal(signal.SIGINT)
    gate.equal(recorder.wait(), 0, "later: status")
    early, complete, counted, _ = early_of(recording)
    without = recording.one("SELECT count(*) FROM sample WHERE NOT coalesce(runtime, 0)")
    gate.ok(early <= counted <= without, f"all {early} early samples are counted: {counted} of "
            f"{without} without frames")
    gate.equal(complete, 0, "none counts as complete")


def check_before(name, program):
    """They run already: no sample lacks their frames."""
    workers(program, 3)
    file = gate.path("before.db")
    result = gate.braid("record", "--name", name, "-F", "999", "-d", "1", "-o", file)
    gate.equal(result.status, 0, f"before: status: {result.err}")
    recording = gate.Recording(file)
    early, _, counted, unread = early_of(recording)
    gate.ok(recording.one("SELECT count(*) FROM sample WHERE runtime") > 0, "there are frames")
    gate.equal((early, counted, unread), (0, 0, 0), "and no sample without them")


def check_lack(name, program):
    """braid runs for a hundredth of the time only, and processes come all the time."""
    file, log = gate.path("lack.db"), gate.path("lack.err")
    with open(log, "w", encoding="utf-8") as errors:
        recorder = gate.start(gate.BRAID, "record", "--name", name, "-F", "999", "-o", file,
                              stderr=errors)
    gate.wait_until(lambda: os.path.exists(file), "the first commit")

    def said_after_more():
        recorder.send_signal(signal.SIGSTOP)
        workers(program, 1)
        for _ in range(20):
            time.sleep(0.02)
            recorder.send_signal(signal.SIGCONT)
            time.sleep(0.002)
            recorder.send_signal(signal.SIGSTOP)
        with open(log, encoding="utf-8") as errors:
            return "braid lacks CPU" in errors.read()

    gate.wait_until(said_after_more, "the line")
    recorder.send_signal(signal.SIGCONT)
    recorder.send_signal(signal.SIGINT)
    gate.equal(recorder.wait(), 0, "lack: status")
    with open(log, encoding="utf-8") as errors:
        text = errors.read()
    gate.matches(r"(?m)^braid lacks CPU: [1-9]\d* processes still unread$", text, "a line says so")
    gate.equal(text.count("braid lacks CPU"), 1, "once")
    gate.matches(r"(?m)^braid lacked CPU for [\d.]+ s: up to [1-9]\d* processes still unread", text,
                 "and so does the summary")
    counters = gate.Recording(file).counters()
    gate.ok(counters.get("processes still unread, at most: braid lacked CPU", 0) > 0,
            "and the recording", counters)


gate.need_root()
gate.need_program("/usr/bin/python3.11")
for i, check in enumerate([check_later, check_before, check_lack]):
    own = f"early{os.getpid()}n{i}"
    os.symlink("/usr/bin/python3.11", gate.path(own))
    check(own, gate.path(own))
gate.done()
