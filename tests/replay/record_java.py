#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Records the corpus of Java: usage: record_java.py [PATTERN...], with patterns of bundles' names
("java/21-*"). The programs are fixtures/replay/java/*.java, compiled once."""

import atexit
import glob
import os
import shutil
import subprocess
import sys
import tempfile

import corpus

VERSIONS = (("17", None), ("21", "trixie"), ("25", "trixie"), ("26", "forky"))
WORK = tempfile.mkdtemp(prefix="braid-replay-java-")  # for classes and the library
SOURCES = os.path.join(corpus.TOP, "fixtures/replay/java")
COMMON = ["-Xmx64m", "-Xlog:disable", "-cp", "/opt/java", "-Dreplay.library=/opt/java/libtell.so"]


def compile_all():
    """Where it can: the JDK of PATH must be a 17 or later one, with a compiler."""
    javac = shutil.which("javac")
    include = javac and os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(javac))),
                                     "include")
    if not javac or not os.path.exists(include + "/jni.h"):
        sys.exit("no javac with jni.h")
    atexit.register(shutil.rmtree, WORK, ignore_errors=True)
    os.chmod(WORK, 0o755)
    subprocess.run([javac, "--release", "17", "-g", "-encoding", "UTF-8", "-d", WORK,
                    *sorted(glob.glob(SOURCES + "/*.java"))], check=True)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-fomit-frame-pointer", "-D_GNU_SOURCE", "-I", include, "-I",
                    include + "/linux", SOURCES + "/tell.c", "-o", WORK + "/libtell.so"],
                   check=True)


def found():
    """[(version, home, the root it is in or None)]"""
    for version, release in VERSIONS:
        top = corpus.root(release) if release else ""
        home = "%s/usr/lib/jvm/java-%s-openjdk-amd64" % (top, version)
        if top is None or not os.path.exists(home + "/bin/java"):
            print("no JDK %s%s" % (version, " in " + release if release else ""))
        else:
            yield version, home, top or None


def record(java, title, program, *options, arguments=()):
    version, home, root = java
    native = ["--enable-native-access=ALL-UNNAMED"] if int(version) >= 22 else []
    return corpus.record("java/%s-%s" % (version, title),
                         ["/opt/jdk/bin/java", *COMMON, *native, *options, program, *arguments],
                         {home: "jdk", WORK: "java"}, root)


def rounds(n):
    return "-Dreplay.rounds=%d" % n


C1 = ("-XX:TieredStopAtLevel=1", "-Xbatch")
C2 = ("-XX:-TieredCompilation", "-Xbatch")
THREADS = ("VM Thread", "C2 CompilerThread0", "C1 CompilerThread0", "GC Thread#0", "G1 Main Marker",
           "Reference Handler", "Finalizer", "Signal Dispatcher", "VM Periodic Task Thread")
COLLECTING = ("VM Thread", "GC Thread#0", "ZDriver", "ZWorker", "ZDirector", "Shenandoah GC Threads#0",
              "Shenandoah Control Thread")
OPEN = ("--add-opens=java.base/java.lang=ALL-UNNAMED", "-XX:+UnlockDiagnosticVMOptions",
        "-XX:+ShowHiddenFrames")

# Where a program runs differently: with which JDKs, and with which options.
PROGRAMS = (
    ("17 25", "calls-interpreted", "Calls", ["-Xint"]),
    ("17 25 26", "calls-c1", "Calls", [*C1, rounds(5000)]),
    ("17 21 25 26", "calls-c2", "Calls", [*C2, rounds(15000)]),
    ("21", "calls-tiered", "Calls", [rounds(3000)]),
    ("17 21 25 26", "entries", "Entries", []),
    ("17 21 25 26", "threads", "Threads", []),
    ("17 21 25 26", "deopt", "Deopt", ["-Xbatch"]),
    ("17 25", "loops-interpreted", "Loops", ["-Xint", "-Dreplay.long=10000000"]),
    ("21 26", "loops-c1", "Loops", C1),
    ("17 21", "loops-c2", "Loops", C2),
    ("17 25 26", "loops-c2-calls", "Loops", [*C2, "-XX:CompileCommand=quiet",
                                             "-XX:CompileCommand=dontinline,Loops.*"]),
    ("17 26", "gc-serial", "Collections", ["-XX:+UseSerialGC"]),
    ("17 21", "gc-parallel", "Collections", ["-XX:+UseParallelGC"]),
    ("17 21 25 26", "gc-z", "Collections", ["-XX:+UseZGC"]),
    ("17 25", "gc-shenandoah", "Collections", ["-XX:+UseShenandoahGC"]),
    ("21 25 26", "virtual", "Virtual", OPEN),
)
ARGUMENTS = {"Threads": THREADS, "Collections": COLLECTING}

compile_all()
for java in found():
    for versions, title, program, options in PROGRAMS:
        if java[0] in versions.split():
            record(java, title, program, *options, arguments=ARGUMENTS.get(program, ()))
corpus.done()
