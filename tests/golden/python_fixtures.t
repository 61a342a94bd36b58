#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The stacks that the docstrings of fixtures/python promise are those that CPython 3.11 sees."""

import glob
import itertools
import os
import re
import subprocess
import sys
import tempfile
import textwrap

FIXTURES = "fixtures/python"
HELPERS = {"fixture.py", "imported.py"}
UNLISTED = {"mixed.py"}
ARROW = " > "


def pythons():
    for pattern in ("/usr/bin/python3.11", "/usr/local/bin/python3.11",
                    "~/.pyenv/versions/3.11.*/bin/python3.11"):
        yield from glob.glob(os.path.expanduser(pattern))


def promised(path):
    """The stacks in a fixture's docstring."""
    with open(path, encoding="utf-8") as file:
        docstring = file.read().split('"""')[1]
    stacks = docstring.partition("\nStacks")[2].partition(":\n")[2]
    stacks = re.sub(r"\n +> ", ARROW, stacks)
    return [line.strip() for line in stacks.splitlines() if line.strip()]


def frame_text(line, own):
    function, file, number = line.split("\t")
    if file == own:
        return f"{function} {number}"
    if os.path.exists(os.path.join(FIXTURES, file)):
        return f"{function} {file}:{number}"
    return f"{function} {file}"


def seen(python, path):
    """The stacks in the file that the fixture writes, in the form of the docstring."""
    with tempfile.TemporaryDirectory() as directory:
        oracle = os.path.join(directory, "oracle")
        subprocess.run([python, "-B", path, "--oracle", oracle], check=True, timeout=60,
                       stdout=subprocess.DEVNULL)
        with open(oracle, encoding="utf-8") as file:
            stacks = file.read().split("\n\n")[:-1]
    for stack in stacks:
        frames = (frame_text(line, os.path.basename(path)) for line in stack.splitlines())
        groups = ((text, len(list(group))) for text, group in itertools.groupby(frames))
        yield ARROW.join(text if n == 1 else f"{text} ({n} times)" for text, n in groups)


def wrap(stack):
    """Breaks lines only in front of an arrow."""
    text = stack.replace(" ", "\xa0").replace("\xa0>\xa0", " >\xa0")
    lines = textwrap.wrap(text, 96, initial_indent="    ", subsequent_indent="        ",
                          break_long_words=False, break_on_hyphens=False)
    return [line.replace("\xa0", " ") for line in lines]


def check(python, path):
    """Returns what is wrong, line by line."""
    try:
        want = sorted(seen(python, path))
    except (OSError, subprocess.SubprocessError) as error:
        return [str(error)]
    got = sorted(promised(path))
    if os.path.basename(path) in UNLISTED or (got and got == want):
        return []
    return ["the docstring should say:"] + [line for stack in want for line in wrap(stack)]


def main():
    paths = sorted(p for p in glob.glob(FIXTURES + "/*.py") if os.path.basename(p) not in HELPERS)
    tests = [(python, path) for python in pythons() for path in paths]
    if not tests:
        print("1..0 # SKIP no CPython 3.11 found")
        return 0
    failed = 0
    print(f"1..{len(tests)}")
    for i, (python, path) in enumerate(tests, 1):
        wrong = check(python, path)
        print("not ok" if wrong else "ok", i, "-", path, "with", python)
        for line in wrong:
            print("#", line)
        failed += bool(wrong)
    return failed != 0


sys.exit(main())
