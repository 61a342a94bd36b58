#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""The stacks that the docstrings of fixtures/python promise are those that CPython sees: 3.11 to
the line; in other versions a call's line is another one, and comprehensions may have no frame."""

import glob
import itertools
import multiprocessing.pool
import os
import re
import sys
import textwrap

import lib
import pythons

FIXTURES = "fixtures/python"
HELPERS = {"fixture.py", "imported.py", "embedded.py"}
UNLISTED = {"mixed.py"}
ARROW = " > "


def promised(path):
    """The stacks in a fixture's docstring."""
    with open(path, encoding="utf-8") as file:
        docstring = file.read().split('"""')[1]
    stacks = docstring.partition("\nStacks")[2].partition(":\n")[2]
    stacks = re.sub(r"\n +> ", ARROW, stacks)
    return [line.strip() for line in stacks.splitlines() if line.strip()]


def frame_text(function, file, line, own):
    if file == own:
        return f"{function} {line}"
    if os.path.exists(os.path.join(FIXTURES, file)):
        return f"{function} {file}:{line}"
    return f"{function} {file}"


def seen(python, script):
    """The stacks in the file that the fixture writes, in the form of the docstring."""
    for stack in python.oracle(script):
        frames = (frame_text(*frame, script) for frame in stack)
        groups = ((text, len(list(group))) for text, group in itertools.groupby(frames))
        yield ARROW.join(text if n == 1 else f"{text} ({n} times)" for text, n in groups)


def same_everywhere(stack, version):
    """What all versions agree on: the fixture's own functions, and the innermost line; of a call
    over several lines only since 3.8."""
    frames = [re.sub(r" \(\d+ times\)", "", frame) for frame in stack.split(ARROW)]
    own = [re.sub(r" \d+$", "", frame) for frame in frames if re.search(r"[ :]\d+$", frame)
           and not re.search(r"<(list|set|dict)comp>", frame)]
    line = version >= (3, 8) and re.search(r"[ :](\d+)$", frames[-1])
    return ARROW.join(name for name, _ in itertools.groupby(own)) + (line[0] if line else "")


def wrap(stack):
    """Breaks lines only in front of an arrow."""
    text = stack.replace(" ", "\xa0").replace("\xa0>\xa0", " >\xa0")
    lines = textwrap.wrap(text, 96, initial_indent="    ", subsequent_indent="        ",
                          break_long_words=False, break_on_hyphens=False)
    return [line.replace("\xa0", " ") for line in lines]


def check(test):
    """What is wrong, line by line."""
    python, script = test
    try:
        want = sorted(seen(python, script))
    except (OSError, RuntimeError) as error:
        return [str(error)]
    if script in UNLISTED:
        return []
    got = sorted(promised(os.path.join(FIXTURES, script)))
    if python.version[:2] != (3, 11):
        got = {same_everywhere(stack, python.version) for stack in got}
        want = {same_everywhere(stack, python.version) for stack in want}
        return [f"also {stack}" for stack in want - got] + [f"no {stack}" for stack in got - want]
    if got and got == want:
        return []
    return ["the docstring should say:"] + [line for stack in want for line in wrap(stack)]


def main():
    found, skipped = pythons.pythons()
    for skip in skipped:
        print(f"# without {skip.what}: {skip.why}")
    scripts = sorted(set(map(os.path.basename, glob.glob(FIXTURES + "/*.py"))) - HELPERS)
    tests = [(python, script) for python in found for script in scripts]
    if not tests:
        lib.skip_all("no CPython")
    with multiprocessing.pool.ThreadPool(os.cpu_count()) as pool:
        for (python, script), wrong in zip(tests, pool.imap(check, tests)):
            lib.ok(not wrong, f"{script} with {python.label}", *wrong)
    lib.done()


main()
