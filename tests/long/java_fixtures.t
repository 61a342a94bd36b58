#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""The stacks of fixtures/java, as Java tells them, are those of java_stacks.txt here, on every JVM at
hand: the fixtures' own frames, without those of the JDK. Their lines are the same everywhere, too.
With --print it prints what the first JVM tells, for that file."""

import multiprocessing.pool
import os
import sys

import java_matrix as matrix
import javas
import lib

LIST = "tests/long/java_stacks.txt"
OWN = tuple(f"{name}{mark}" for name in (*javas.FIXTURES, "Fixture") for mark in ".$")


def own_frames(java, script):
    """{((label, line), ...)}"""
    return {tuple((matrix.normal(label), line) for label, _, line in stack if label.startswith(OWN))
            for stack in java.oracle(script)}


def described(stack):
    """Recursion is shortened: a frame and how often it is there."""
    words = []
    for label, _ in stack:
        if words and words[-1][0] == label:
            words[-1][1] += 1
        else:
            words.append([label, 1])
    return " > ".join(label if n == 1 else f"{label} ({n} times)" for label, n in words)


def promised():
    with open(LIST, encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file if not line.startswith("#")]
    stacks = {}
    for line in lines:
        script, _, stack = line.partition(": ")
        stacks.setdefault(script, set()).add(stack)
    return stacks


def main():
    found, skipped = javas.javas()
    for skip in skipped:
        print(f"# without {skip.what}: {skip.why}")
    if not found:
        lib.skip_all("no HotSpot")
    if sys.argv[1:] == ["--print"]:
        for script in found[-1].scripts():
            for stack in sorted({described(stack) for stack in own_frames(found[-1], script)}):
                print(f"{script}: {stack}")
        return
    want = promised()
    tests = [(java, script) for java in found for script in java.scripts()]
    first = {}
    with multiprocessing.pool.ThreadPool(os.cpu_count()) as pool:
        for (java, script), stacks in zip(tests, pool.imap(lambda test: own_frames(*test), tests)):
            name = f"{script} with {java.label}"
            lib.equal({described(stack) for stack in stacks}, want.get(script, set()), name)
            lib.equal(stacks, first.setdefault(script, stacks), f"{name}: lines")
    lib.done()


main()
