#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""What samples stand for: with the default limit, with -c and without a limit, weights and totals are
those of a program that makes a known number of calls. What follows the last sample of an event is
that event's. (docs/decisions/0100-value-weight-total.md, 0101-rests-by-event.md)"""

import os

import gate

COUNTED = os.path.join(gate.OUTPUT, "fixtures/native/counted")
LIMITS = ((), ("-c", "20"), ("-c", "7"), ("--max-overhead", "none"))
FREQUENT, RARE = 60000, 63
ENTRIES = "tracepoint:raw_syscalls:sys_enter"
GETPPID, OPENAT = "tracepoint:syscalls:sys_enter_getppid", "tracepoint:syscalls:sys_enter_openat"
FAILED = "tracepoint:syscalls:sys_exit_openat/ret<0/"
SLEEPS, NS = 3000, 20000
SLEEP = "syscall:clock_nanosleep"


def record(options, events, *program):
    file = gate.path("weights.db")
    result = gate.run(gate.BRAID, "record", *options, "-e", events, "-o", file, "--force", "--",
                      COUNTED, *map(str, program))
    gate.equal(result.status, 0, f"{options}: status", result.err)
    return gate.Recording(file), result.out


def sums(recording, event):
    return recording.sql("SELECT sum(weight), sum(total) FROM sample JOIN event ON "
                         "event.id = event AND event.name = ?", event)[0]


def check_counted(options):
    recording, _ = record(options, ",".join((ENTRIES, GETPPID, FAILED)), "calls", FREQUENT, RARE)
    gate.equal(sums(recording, GETPPID), (FREQUENT, FREQUENT), f"{options}: all frequent calls")
    gate.equal(sums(recording, FAILED), (RARE, RARE), f"{options}: all rare ones")
    shown = sum(count for _, count in recording.merged("--event", FAILED))
    gate.equal(shown, RARE, f"{options}: so does the report")


def check_measured(options):
    recording, said = record(options, SLEEP, "sleeps", SLEEPS, NS)
    weight, total = sums(recording, SLEEP)
    gate.ok(SLEEPS * NS <= total <= int(said), f"{options}: totals are within the program's clock",
            SLEEPS * NS, total, said)
    if options:
        gate.equal(weight, SLEEPS, f"{options}: as many as there were")
    shortest, = recording.sql("SELECT min(value) FROM sample WHERE thread IS NOT NULL")[0]
    gate.ok(shortest >= NS, f"{options}: no sleep is shorter than it is", shortest)
    alone = recording.sql("SELECT count(*) FROM sample WHERE weight = 1 AND total <> value AND "
                          "thread IS NOT NULL")[0]
    if options:
        gate.equal(alone, (0,), f"{options}: one that stands for itself has its own total")


def check_wakers():
    """Interrupts end these sleeps. One of seven is sampled, whoever wakes."""
    recording, _ = record(("-c", "7", "--max-overhead", "none"), "wakeup", "sleeps", SLEEPS, NS)
    weights = recording.sql("SELECT DISTINCT weight FROM sample WHERE thread IS NOT NULL")
    gate.equal(weights, [(7,)], "-c 7: each waker stands for seven")


check_wakers()
for limit in LIMITS:
    check_counted(limit)
    check_measured(limit)
gate.done()
