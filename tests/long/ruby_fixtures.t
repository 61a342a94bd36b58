#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""The stacks that the comments of fixtures/ruby promise are those that CRuby sees, all versions at
hand."""

import multiprocessing.pool
import os
import sys

import lib
import ruby_stacks as stacks
import rubies


def check(test):
    """What is wrong, line by line."""
    ruby, script = test
    promised = stacks.promised(script)
    try:
        said = ruby.said(script)
    except (OSError, RuntimeError) as error:
        return [str(error)]
    wrong = []
    known = set()
    for stack in said:
        found = stacks.with_classes(stack, promised, ruby.version)
        if found:
            known.add(tuple(label for label, _, _ in found))
        else:
            wrong.append("also " + " > ".join(label for label, _, _ in stack))
    shown = {tuple(label for label, _, _ in stacks.as_shown(stack, ruby.version))
             for stack in promised}
    return wrong + ["no " + " > ".join(stack) for stack in shown - known]


def main():
    found, skipped = rubies.rubies()
    for skip in skipped:
        print(f"# without {skip.what}: {skip.why}")
    tests = [(ruby, script) for ruby in found for script in ruby.scripts()]
    if not tests:
        lib.skip_all("no CRuby")
    with multiprocessing.pool.ThreadPool(os.cpu_count()) as pool:
        for (ruby, script), wrong in zip(tests, pool.imap(check, tests)):
            lib.ok(not wrong, f"{script} with {ruby.label}", *wrong)
    lib.done()


main()
