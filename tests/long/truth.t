#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""The truth meter: a million samples at random instants of programs whose every stack is known
(truth_programs.py), by two compilers, at five levels of optimization, with and without call frame
information and frame pointers, with link-time optimization, coroutines, signals, generated code.
Impossible edges, missing callers, and complete stacks that do not reach the root are counted:
none may be there. What is cut costs nothing but its share, which the table shows (OUTPUT/long/truth).
TRUTH_SAMPLES: how many instead of a million; TRUTH_SEED."""

import collections
import itertools
import os

import lib
import truth_check
import truth_programs

SAMPLES = int(os.environ.get("TRUTH_SAMPLES", "1000000"))
SEED = int(os.environ.get("TRUTH_SEED", "1"))
LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")
FUNCTIONS = 120
KINDS = (truth_check.IMPOSSIBLE, truth_check.MISSING, truth_check.FALSE_COMPLETE)
NO_CFI = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]
Row = collections.namedtuple("Row", "name samples complete wrong marked")

# name: (options of all files, options of file b)
VARIANTS = {
    "CFI": ([], []),
    "b without CFI": ([], NO_CFI),
    "b without CFI, with frame pointers": (["-fno-omit-frame-pointer"], NO_CFI),
    "LTO": (["-flto"], []),
    "LTO, b without CFI": (["-flto"], NO_CFI),
}


def build(compiler, level, variant, nodes, altstack):
    place = lib.path("program")
    os.makedirs(place, exist_ok=True)
    common, of_b = VARIANTS[variant]
    for name, text in truth_programs.sources(nodes, altstack).items():
        with open(f"{place}/{name}.c", "w", encoding="utf-8") as file:
            file.write(text)
    words = [compiler, level, "-w", *common]
    if "-flto" in common and compiler == "clang":
        words.append("-fuse-ld=lld")
    for name, more in ("a", []), ("b", of_b):
        lib.subprocess.run([*words, *more, "-c", f"{place}/{name}.c", "-o", f"{place}/{name}.o"],
                           check=True)
    lib.subprocess.run([*words, "-fPIC", "-shared", f"{place}/lib.c", "-o", f"{place}/libtruth.so"],
                       check=True)
    lib.subprocess.run([*words, f"{place}/a.o", f"{place}/b.o", f"{place}/libtruth.so", "-rdynamic",
                        "-Wl,-z,now", f"-Wl,-rpath,{place}", "-lpthread", "-o", f"{place}/program"],
                       check=True)
    return f"{place}/program"


def measure(name, program, nodes, wanted):
    """Records until there are so many samples; counts what is wrong."""
    truth = truth_check.Truth(nodes)
    samples = complete = 0
    wrong, marked, examples = collections.Counter(), collections.Counter(), {}
    target = lib.start(program, "1000000000")
    while samples < wanted:
        recording = lib.record("-d", "2", "-p", target.pid,
                               options=("-F", "10000", "--max-overhead", "none"))
        for frames, flags, count in truth_check.native_stacks(recording):
            found = truth.check(frames, flags & truth_check.COMPLETE)
            samples += count
            complete += count * (flags & truth_check.COMPLETE)
            if found:
                (marked if found.marked else wrong)[found.kind] += count
                examples.setdefault((found.kind, found.marked), (found.at, frames))
        os.unlink(recording.file)
    lib.stop(target)
    for kind in KINDS:
        at, frames = examples.get((kind, False), ("", []))
        lib.equal(wrong[kind], 0, f"{name}: {kind}", at,
                  " ".join(f"{frame.name}{'?' if frame.evidence == 3 else ''}" for frame in frames))
    return Row(name, samples, complete, wrong, marked)


def table(rows):
    lines = [f"{'program':52} {'samples':>8} {'cut %':>7} {'imposs.':>8} {'missing':>8} {'false c.':>8} "
             f"{'marked':>7}"]
    total = Row("all", sum(row.samples for row in rows), sum(row.complete for row in rows),
                sum((row.wrong for row in rows), collections.Counter()),
                sum((row.marked for row in rows), collections.Counter()))
    for row in [*rows, total]:
        cut = 100 * (1 - row.complete / max(row.samples, 1))
        lines.append(f"{row.name:52} {row.samples:8} {cut:7.2f} " + " ".join(
            f"{row.wrong[kind]:8}" for kind in KINDS) + f" {sum(row.marked.values()):7}")
    return lines


def main():
    lib.need_bpf()
    configurations = list(itertools.product(("gcc", "clang"), LEVELS, VARIANTS))
    rows = []
    for i, (compiler, level, variant) in enumerate(configurations):
        if variant.startswith("LTO") and (compiler == "clang" and not lib.shutil.which("ld.lld")):
            continue
        nodes = truth_programs.tree(SEED + i, FUNCTIONS)
        program = build(compiler, level, variant, nodes, i % 2)
        rows.append(measure(f"{compiler} {level} {variant}", program, nodes,
                            SAMPLES // len(configurations)))
    lines = table(rows)
    os.makedirs(f"{lib.OUTPUT}/long", exist_ok=True)
    with open(f"{lib.OUTPUT}/long/truth", "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    for line in lines:
        print("#", line)
    lib.done()


main()
