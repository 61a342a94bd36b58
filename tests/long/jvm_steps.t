#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""The frames of HotSpot's own code at each instruction that is executed: stubs, adapters, entries of
the interpreter, and compiled methods. A thread of fixtures/java/Steps.java is stepped through
(tests/tools/step_jvm.c), and the stack is compared with the calls that the thread has made. None may
be wrong, unless the step is marked as inferred; the sums of all are printed. JVM_STEPS: instructions
of each run (default: 400000). JVM_STEPS_ONLY: runs whose name has this word in it."""

import atexit
import os
import re
import shutil
import subprocess
import tempfile

import lib
import javas

STEPS = os.environ.get("JVM_STEPS", "400000")
ONLY = os.environ.get("JVM_STEPS_ONLY", "")
TOOLS = os.path.join(lib.OUTPUT, "tests/tools")
C1, C2 = "-XX:TieredStopAtLevel=1", "-XX:-TieredCompilation"
LEAST = 1000  # different instructions
RUNS = [  # rounds of the program until READY, options
    (300, [C2]), (100, [C1]), (10, ["-Xint"]), (100, []),
    *((300, [C2, f"-XX:UseAVX={n}"]) for n in range(3)),
    (300, [C2, "-XX:UseAVX=0", "-XX:UseSSE=2"]), (100, [C1, "-XX:UseAVX=0", "-XX:UseSSE=2"]),
    (300, [C2, "-XX:-UseAES", "-XX:-UseSHA", "-XX:-UseSSE42Intrinsics"]),
    (300, [C2, "-XX:+UseSHA", "-XX:-UseSHA512Intrinsics", "-XX:-UseCRC32Intrinsics"]),
    (300, [C2, "-XX:-UseCompressedOops", "-XX:+UseParallelGC"]), (300, [C2, "-XX:+UseSerialGC"]),
    (300, [C2, "-XX:+PreserveFramePointer"]), (100, [C1, "-XX:+PreserveFramePointer"]),
]


def compiled():
    where = lib.path("steps")
    os.mkdir(where)
    subprocess.run([javas.compiler()[0], "--release", "17", "-nowarn", "-g", "-d", where,
                    "fixtures/java/Steps.java"], check=True, stderr=subprocess.DEVNULL)
    return where


def classes_in(java):
    if not java.root:
        return CLASSES
    place = tempfile.mkdtemp(prefix="braid-steps-", dir=java.root + "/tmp")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    os.chmod(place, 0o755)
    shutil.copytree(CLASSES, place, dirs_exist_ok=True)
    return java.inside(place)


def thread_of(pid):
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/comm", encoding="utf-8") as file:
            if file.read() == "steps\n":
                return tid
    raise RuntimeError("no thread steps")


def interpreter(pid):
    facts = subprocess.run([f"{TOOLS}/jvm_facts", str(pid)], capture_output=True, text=True, check=True)
    return re.search(r"^interpreter\t(\w+)\t(\w+)$", facts.stdout, re.M).groups()


def check(java, classes, rounds, options):
    name = f"{java.label}: {' '.join(options) or 'tiers'}"
    if ONLY not in name:
        return
    target = lib.start_ready(*java.command, "-Xmx256m", "-XX:+UnlockDiagnosticVMOptions",
                             "-XX:+IgnoreUnrecognizedVMOptions", "-XX:-PrintWarnings", *options, "-cp",
                             classes, "Steps", rounds, env=java.environment(),
                             stderr=subprocess.DEVNULL)
    run = subprocess.run([f"{TOOLS}/step_jvm", str(target.pid), thread_of(target.pid), STEPS,
                          *interpreter(target.pid)], capture_output=True, text=True, check=False)
    lib.stop(target)
    told = re.search(r"sums\t(\d+) instructions, (\d+) right, (\d+) cut, (\d+) marked, (\d+) wrong, "
                     r"(\d+) steps left", run.stdout)
    wrong = re.findall(r"^wrong.*", run.stdout, re.M)
    lib.ok(told and int(told[1]) >= LEAST and told[5] == "0" and told[6] == "0", name,
           run.stderr[-300:], *wrong[:10])
    print(f"# {name}: {told[0][5:] if told else 'no sums'}")


CLASSES = compiled()
found, skipped = javas.javas()
for one in skipped:
    print("#", *one)
for found_java in found:
    inside = classes_in(found_java)
    for run_rounds, run_options in RUNS:
        check(found_java, inside, run_rounds, run_options)
lib.done()
