#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""CPython in special circumstances, every build at hand: sub-interpreters, recursion as deep as
braid shows and deeper, -X perf, mount namespaces, embedded in a program, virtual environments; and
what is refused: builds that are none of what they say, pre-releases, versions that nobody knows."""

import glob
import os
import re
import subprocess

import lib
import python_matrix as matrix
import pythons

SHOWN = 1024  # RUNTIME_FRAMES_MAX, bpf/shared.h
OTHERS = 4  # frames of deep.py besides the recursion's


def of_each_version(builds):
    """One of each, to save time."""
    return {python.version[:2]: python for python in builds}.values()


def has_trampolines(python):
    if python.version < (3, 12):
        return False
    process = subprocess.Popen([*python.command, "-c",
                                "import sys; sys.activate_stack_trampoline('perf')"],
                               stderr=subprocess.DEVNULL)
    process.wait()
    remove_perf_map(python, process)
    return process.returncode == 0


def remove_perf_map(python, process):
    file = f"{python.root}/tmp/perf-{process.pid}.map"
    if os.path.exists(file):
        os.unlink(file)


def make_targets(builds):
    for python in builds:
        yield matrix.Target(python, "subinterpreters.py")
        yield matrix.Target(python, "deep.py", 0, SHOWN - OTHERS)
        if has_trampolines(python):
            for script in "classes.py", "nest_sorted.py", "generators.py":
                yield matrix.Target(python, script, options=("-X", "perf"))
        if python.root:
            yield matrix.Target(pythons.in_mount_namespace(python), "nest_sorted.py")
    libraries = [python for python in builds if python.is_library]
    for python in libraries:
        yield matrix.Target(pythons.embedded(python), "embedded.py")
    static = [python for python in builds if not python.is_library and not python.root]
    for python in libraries[-1:] + static[-1:]:
        yield matrix.Target(pythons.virtual_environment(python), "classes.py")
    for python in builds:
        for library in glob.glob(f"{python.root}/usr/lib/*/libpython{python.version[0]}."
                                 f"{python.version[1]}.so.1.0") if python.root else ():
            yield matrix.Target(pythons.embedded(python, python.inside(library)), "embedded.py")


def check(target):
    # Before 3.11 deep recursion has more native frames than are shown.
    if target.script != "deep.py" or target.python.version >= (3, 11):
        matrix.check_complete(target)
    matrix.check_oracle(target)
    matrix.check_nesting(target)
    trampolines = target.count(lambda stack: any("py::" in frame for frame in stack))
    lib.ok(not trampolines, f"{target.name}: no trampoline beside its function",
           *matrix.common(target))


def check_too_deep(builds):
    """What is cut is told: the innermost frames are there, in the stack and in its flags, and the
    summary counts."""
    targets = [matrix.Target(python, "deep.py", 0, 10 * SHOWN) for python in builds]
    recording, = matrix.record(targets, rounds=1)
    cut = re.search(r"(\d+) +runtime stacks cut", recording.result.err)
    total = sum(len(target.flags) for target in targets)
    lib.ok(cut and int(cut[1]) >= 0.8 * total, "deeper recursion: the summary counts",
           recording.result.err[-500:], total)
    for target in targets:
        flagged = sum(flags & 16 for flags in target.flags) // 16  # SAMPLE_RUNTIME_TRUNCATED
        matrix.at_least(flagged, target.total, 80, f"{target.name}: marked", target.flags[:5])
        stack = max(target.stacks, key=target.stacks.get)
        lib.equal(len(matrix.python_frames(stack)), SHOWN, f"{target.name}: frames shown")
        lib.equal({frame[0] for frame in matrix.python_frames(stack)}, {"descend"},
                  f"{target.name}: the innermost ones")


# --- refusals ---

def hex_version(major, minor, level=0xf0):
    return major << 24 | minor << 16 | level


def debug_offsets(binary):
    """Where _Py_DebugOffsets is in a file, or -1; its version is at 8, free_threaded at 16."""
    with open(binary, "rb") as file:
        found = re.search(rb"xdebugpy(?=..[\x0d-\x20]\x03\0{4})", file.read(), re.S)
    return found.start() if found else -1  # elsewhere the cookie is part of an instruction


def with_version(python, what, value):
    def words(binary):
        yield pythons.file_offset(binary, "Py_Version"), "<I", value
        if debug_offsets(binary) > 0:
            yield debug_offsets(binary) + 8, "<Q", value

    return pythons.patched(python, what, words)


def free_threaded(binary):
    yield debug_offsets(binary) + 16, "<Q", 1


def refused(builds):
    """[(interpreter, what the refusal says)]"""
    for python in of_each_version(python for python in builds if python.is_library):
        if python.version >= (3, 11):
            yield (with_version(python, "unknown version", hex_version(3, 99)), r"3\.99\S*: none: ")
            yield (with_version(python, "pre-release", hex_version(*python.version[:2], 0xb2)),
                   rf"3\.{python.version[1]}\.0b2: none: ")
        if python.version >= (3, 13):
            yield (pythons.patched(python, "free-threaded, it says", free_threaded),
                   r"3\.\S*: none: [^\n]*are malformed")


def check_refused(cases):
    targets = [matrix.Target(python, "nest_sorted.py") for python, _ in cases]
    recording, = matrix.record(targets, rounds=1)
    for target, (python, pattern) in zip(targets, cases):
        lib.matches(rf"(^|\n)pid {target.process.pid}: python {pattern}", recording.result.err,
                    f"{python.label}: refused by name")
        lib.equal(target.with_python(), 0, f"{python.label}: no Python frame")
        loops = target.count(lambda stack: any("_PyEval_EvalFrameDefault" in frame
                                               for frame in stack))
        lib.ok(target.total >= 20 and (loops or not python.is_library),
               f"{python.label}: native frames", *matrix.common(target))
        matrix.check_complete(target)


lib.need_bpf()
found, skipped = pythons.pythons()
known = [python for python in found if matrix.is_known(python)]
if not known:
    lib.skip_all("no CPython")
every_target = list(make_targets(known))
matrix.record(every_target)
for one in every_target:
    check(one)
    remove_perf_map(one.python, one.process)
check_too_deep(of_each_version(known))
unknown = [(python, rf"3\.{python.version[1]}[.\d]*: none: \S") for python in found
           if python not in known]
check_refused(unknown + list(refused(known)))
matrix.print_skipped(skipped)
lib.done()
