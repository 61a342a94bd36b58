#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""The truth meter of runtimes with C in between: script functions call C functions, which call script
functions again. Each function has one caller, so its name says which stack is possible
(truth_graph.py). Every merged stack is compared with it, frame by frame. Impossible edges, missing
callers and complete stacks that do not reach the root are counted: all three must be 0. The table's
"cut" stacks are not complete. "inferred" ones are, but a step of theirs is inferred. "inlined" ones have
true steps, but names of inlined functions that are inferred (decision 0110). "marked" ones are wrong, and
say so.
TRUTH_SAMPLES: samples of each runtime (default: 100000). TRUTH_SEED: other programs. TRUTH_RUNTIMES:
only these. The table is left in OUTPUT/long/truth-runtimes."""

import collections
import os
import re
import sqlite3

import lib
import truth_go
import truth_graph
import truth_java
import truth_node
import truth_perl
import truth_php
import truth_python
import truth_ruby

SAMPLES = int(os.environ.get("TRUTH_SAMPLES", "100000"))
SEED = int(os.environ.get("TRUTH_SEED", "1"))
ONLY = os.environ.get("TRUTH_RUNTIMES", "").split()
LANGUAGES = (truth_python, truth_ruby, truth_perl, truth_php, truth_java, truth_node, truth_go)
COMPILERS = (("gcc", "-O0", "-w"), ("gcc", "-O2", "-w"), ("clang", "-O2", "-w"), ("gcc", "-Os", "-w"))
FUNCTIONS = 60
COMPLETE = 1  # bpf/shared.h: SAMPLE_COMPLETE
SCRIPT_CUT = 16 | 32  # SAMPLE_RUNTIME_TRUNCATED, SAMPLE_RUNTIME_BROKEN
LABEL = re.compile(r"(.*)_\[(\w+)(\?)?\]", re.S)
Row = collections.namedtuple("Row", "name samples shares wrong marked")
CUT, INFERRED, INLINED = "cut %", "inferred %", "inlined %"  # shares of a row


def frame_of(text):
    found = LABEL.fullmatch(text)
    return truth_graph.Frame(re.sub(r" \([^()]*\)$", "", found[1]), found[2], bool(found[3]))


def merged_stacks(recording):
    """[(frames, flags, count)], innermost frame first."""
    stacks = []
    for (flags,) in recording.sql("SELECT DISTINCT flags FROM sample"):
        part = lib.path("part.db")
        lib.shutil.copyfile(recording.file, part)
        with sqlite3.connect(part) as connection:
            connection.execute("DELETE FROM sample WHERE flags != ?", (flags,))
        connection.close()
        for frames, count in lib.Recording(part).folded("--annotate", "--frames", "all"):
            frames = [frame_of(text) for text in frames if LABEL.fullmatch(text)]
            stacks.append(([frame for frame in reversed(frames) if frame.kind != "k"], flags, count))
        os.unlink(part)
    return stacks


def measure(name, language, nodes, command, wanted):
    """Records until there are so many samples; counts what is wrong."""
    paths = truth_graph.Paths(nodes, language.EDGES, language.ROOT, language.RECURSION)
    plain = getattr(language, "normal", lambda name: name)
    check = truth_graph.Check(paths, language.ENDS, lambda frame: normal(frame, paths, plain))
    samples = 0
    shares, wrong, marked, examples = (collections.Counter(), collections.Counter(),
                                       collections.Counter(), {})
    target = lib.start_ready(*command, stderr=lib.subprocess.DEVNULL)
    while samples < wanted:
        recording = lib.record("-d", "2", "-p", target.pid,
                               options=("-F", "10000", "--max-overhead", "none"))
        for frames, flags, count in merged_stacks(recording):
            script_cut = bool(flags & SCRIPT_CUT)
            complete = flags & COMPLETE and not script_cut
            found = check.check(frames, complete, script_cut)
            samples += count
            shares[doubt_of(frames, complete)] += count
            if found:
                (marked if found.marked else wrong)[found.kind] += count
                examples.setdefault((found.kind, found.marked), (found.at, frames, flags))
        if os.environ.get("TRUTH_KEEP"):
            lib.shutil.copyfile(recording.file, os.environ["TRUTH_KEEP"])
        os.unlink(recording.file)
    lib.stop(target)
    for kind in truth_graph.KINDS:
        at, frames, flags = examples.get((kind, False), ("", [], ""))
        lib.equal(wrong[kind], 0, f"{name}: {kind}", at, f"flags: {flags}",
                  " ".join(f"{frame.name}[{frame.kind}]" for frame in frames))
    return Row(name, samples, shares, wrong, marked)


def doubt_of(frames, complete):
    """The share of a row that the stack belongs to; None: it is complete, and all of it is proven."""
    if not complete:
        return CUT
    inferred = {frame.kind for frame in frames if frame.inferred}
    return INFERRED if inferred & {"n", "i"} else INLINED if inferred else None


def normal(frame, paths, plain):
    """The frame's name if it is a part of some path. `plain`: how the language writes it."""
    name = plain(frame.name)
    if truth_graph.IN_C.match(name) and frame.kind not in ("n", "i"):
        return None  # a runtime's frame for a C function, beside the native one
    return name if name in paths.starts else None


def table(rows):
    lines = [f"{'program':60} {'samples':>8} {CUT:>7} {INFERRED:>10} {INLINED:>9} {'imposs.':>8} "
             f"{'missing':>8} {'false c.':>8} {'marked':>7}"]
    for row in rows:
        cut, inferred, inlined = (100 * row.shares[kind] / max(row.samples, 1)
                                  for kind in (CUT, INFERRED, INLINED))
        lines.append(f"{row.name[:60]:60} {row.samples:8} {cut:7.2f} {inferred:10.2f} {inlined:9.2f} " +
                     " ".join(f"{row.wrong[kind]:8}" for kind in truth_graph.KINDS) +
                     f" {sum(row.marked.values()):7}")
    return lines


def main():
    lib.need_bpf()
    rows = []
    for language in LANGUAGES:
        if ONLY and language.NAME not in ONLY:
            continue
        missing = language.missing()
        if missing:
            lib.skip(language.NAME, f"{missing} is missing")
            continue
        compilers = getattr(language, "COMPILERS", COMPILERS)
        for i, compiler in enumerate(compilers):
            nodes = truth_graph.graph(SEED * 100 + i, FUNCTIONS, {**language.EDGES,
                                                                  "cc": truth_graph.EDGES_IN_C})
            place = lib.path(f"{language.NAME}-{i}")
            os.makedirs(place)
            command = language.build(place, nodes, compiler)
            options = getattr(language, "OPTIONS", [[]] * len(compilers))[i]
            label = language.label(i) if hasattr(language, "label") else ""
            name = " ".join([f"{label or language.NAME}, C by {' '.join(compiler[:2])}", *options])
            rows.append(measure(name, language, nodes, command, SAMPLES // len(compilers)))
    lines = table(rows)
    os.makedirs(f"{lib.OUTPUT}/long", exist_ok=True)
    with open(f"{lib.OUTPUT}/long/truth-runtimes", "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    for line in lines:
        print("#", line)
    lib.done()


main()
