#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Native stacks are proven step by step, or cut under the reason why: code without tables, with and
without frame pointers, return addresses that are no code, hand-made stacks, steps to a lower stack,
more mappings than are followed, and a program's own first function. The fixture knows its stacks."""

import os
import subprocess

import gate

gate.need_root()
PROOFS = os.path.join(gate.OUTPUT, "fixtures/native/proofs")
START = os.path.join(gate.OUTPUT, "fixtures/native/own_start")
RULE, POINTER = 0, 1  # node.evidence; NULL is RULE
SLOT, LEVELS, KINDS = 64, 3, ["keeps", "leaves", "blind", "zeroes"]
MADE = ["made_0", "made_1", "made_2"]
OUTER = ["obey", "converse", "call_on", "main", "_start"]


def symbols(file):
    rows = subprocess.check_output(["nm", file], text=True).split("\n")
    return sorted((int(row.split()[0], 16), row.split()[2]) for row in rows
                  if len(row.split()) == 3 and row.split()[1] in "tT")


def named(file, table, made):
    """The name of a native frame of the fixture; None in other files."""
    def name(image, address):
        if image == file:
            return max((at, text) for at, text in table if at <= address)[1]
        return None if image else made(address)
    return name


def stacks(recording, name):
    """[(names of the fixture's frames, {name: evidence}, is complete)], innermost frame first."""
    nodes = {node: row for node, *row in recording.sql(
        "SELECT node.id, parent, path, address, evidence FROM node JOIN frame ON frame.id = frame "
        "LEFT JOIN image ON image.id = image")}
    for node, flags in recording.sql("SELECT native, flags FROM sample ORDER BY time_ns, id"):
        frames, evidence = [], {}
        while node:
            node, image, address, how = nodes[node]
            text = name(image, address & (1 << 64) - 1)
            if text:
                frames.append(text)
                evidence[text] = how or RULE
        yield frames, evidence, flags & 1


def record(mode, n=2):
    """The stacks of one mode, and the counters that are not 0."""
    recorder = gate.recorder(n, target)
    gate.equal(gate.ask(target, f"{mode} {n}"), "done", f"{mode}: the fixture obeys")
    recording = gate.finish(recorder, n)
    counters = {text for text, value in recording.counters().items()
                if value and text.startswith("stacks cut")}
    return list(stacks(recording, name)), counters, recording


def check(mode, frames, complete, why=None, evidence=None):
    """`why`: a part of the only counter's text. Frames and evidence are those of every sample."""
    found, counters, recording = record(mode)
    gate.equal([one[0] for one in found], [frames] * 2, f"{mode}: the frames")
    gate.equal({one[2] for one in found}, {complete}, f"{mode}: complete or not", counters)
    gate.equal([text for text in counters if not why or why not in text], [], f"{mode}: no other counter")
    if why:
        gate.ok(counters, f"{mode}: cut, as {why}")
    for text, how in (evidence or {}).items():
        gate.equal({one[1].get(text) for one in found}, {how}, f"{mode}: evidence of {text}")
    return recording


target = gate.start(PROOFS, env=dict(os.environ, LD_PRELOAD=gate.MARKER))
bases = [int(word, 16) for word in gate.wait_line(target, "ready")[0].split()[1:-1]]
n_pages, pages = 1500, bases.pop()
file = os.path.realpath(PROOFS)


def made(address):
    slot, page = (address - bases[0]) // SLOT, (address - pages) // 8192
    if 0 <= slot < LEVELS * len(KINDS):
        return MADE[slot % LEVELS]
    return f"page_{page}" if 0 <= page < n_pages else f"unknown {address:#x}"


name = named(file, symbols(file), made)
FROM = ["from_made"]
recording = check("keeps", [*FROM, *MADE, *OUTER], 1, evidence={
    "from_made": RULE, "made_0": RULE, "made_1": POINTER, "made_2": POINTER, "obey": POINTER,
    "converse": RULE})
check("leaves", [*FROM, *MADE, *OUTER], 1, evidence={"made_1": RULE, "obey": RULE})
check("blind", [*FROM, "made_0"], 0, "no proof of a frame pointer")
check("zeroes", [*FROM, "made_0"], 0, "frame pointer 0")
OVER = [*FROM, "call_over"]
check("data", OVER, 0, "in data")
check("constant", OVER, 0, "not executable")
check("nowhere", OVER, 0, "nothing is mapped")
check("zero", OVER, 0, "return address 0")
check("function", OVER, 0, "no call ends")
check("up", [*FROM, "from_other", "call_on", *OUTER], 1)

# Nothing has called __start_context. Whether it is shown is for libc's call frame information to say.
found, counters, recording = record("bottom")
gate.equal([one[0] for one in found], [[*FROM, "from_context"]] * 2, "bottom: the frames")
gate.equal({one[2] for one in found}, {0 if counters else 1}, "bottom: complete, or counted", counters)
gate.equal([text for text in counters if "no call ends" not in text], [], "bottom: no other counter")

# Far more mappings than are followed: the last ones are found as the first.
recorder = gate.recorder(6, target)
WANTED = [0, 1, 700, 1200, 1498, 1499]
for page in WANTED:
    gate.ask(target, f"many {page}")
recording = gate.finish(recorder, 6)
found = list(stacks(recording, name))
gate.equal([one[0] for one in found], [[*FROM, f"page_{page}", *OUTER] for page in WANTED],
           "many: each page has its callers")
gate.equal({one[2] for one in found}, {1}, "many: complete", recording.counters())

target = gate.start(START)
file = os.path.realpath(START)
name = named(file, symbols(file), lambda address: f"unknown {address:#x}")
recorder = gate.recorder(3, target, symbol=START + ":here")
gate.wait_line(recorder, "taken")
gate.equal(recorder.wait(), 0, "the recorder ends")
found = list(stacks(gate.Recording(recorder.file), name))
gate.ok(len(found) >= 3, "a program's own first function: there are samples")
gate.equal({tuple(one[0]) for one in found}, {("here", "work", "_start")}, "it is the last frame")
gate.equal({one[2] for one in found}, {1}, "and complete")
target.kill()
gate.done()
