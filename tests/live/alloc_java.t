#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""The event alloc:jvm: each piece of the heap that a thread gets (TLAB) and each object that is too
large for one, with their bytes, below the Java method that asked for them; by the JVM's own account of
what the thread has allocated. With BRAID_EVERY_INTERPRETER of every JVM at hand."""

import glob
import os
import shutil
import signal
import subprocess

import gate

JAVA = "/usr/lib/jvm/java-17-openjdk-amd64/bin/java"
CACHE = os.path.expanduser("~/.cache")
TLAB = 65536
HEADER = 16  # of an array
OPTIONS = ["-XX:+UseSerialGC", "-Xmx1g", "-Xmn800m", f"-XX:TLABSize={TLAB}", "-XX:-ResizeTLAB"]
IN_TLAB = "AllocTracer::send_allocation_in_new_tlab ("
OUTSIDE = "AllocTracer::send_allocation_outside_tlab ("


def samples(recording):
    """{tid: [(value, names of its stack's functions from the root)]}, of threads of the fixture."""
    return {tid: recording.sql(f"""SELECT value, native, runtime FROM leaf
                                    WHERE tid = {tid} AND thread = 'allocator'""")
            for tid, in recording.sql("SELECT DISTINCT tid FROM thread WHERE name = 'allocator'"
                                      " ORDER BY tid")}


def check(name, *command):
    target = gate.start(*command)
    gate.wait_line(target, "ready")
    file = gate.path(f"{len(os.listdir(gate.tmp))}.db")
    braid = gate.start(gate.BRAID, "record", "-e", "alloc:jvm", "-c", "1", "--max-overhead", "none",
                       "-p", target.pid, "-o", file, stderr=gate.subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
    small, large = (gate.ask(target, line) for line in ("20000 1008", "300 1000000"))
    braid.send_signal(signal.SIGINT)
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, f"{name}: status", said)
    target.stdin.close()
    target.wait()
    recording = gate.Recording(file)
    gate.equal(recording.counters(), {}, f"{name}: nothing is lost")
    threads = list(samples(recording).values())
    gate.equal((small, large), ("allocated 20480000", "allocated 300004800"),
               f"{name}: what the JVM says the threads have allocated")
    gate.equal(len(threads), 2, f"{name}: both threads are seen", threads)
    # A TLAB is made larger by the object that did not fit into the last one. Of these objects 65
    # would fit, but some hundred bytes at its end are reserved. What the last one has left counts.
    gate.equal([value for value, _, _ in threads[0]], [TLAB + 1008 + HEADER] * -(-20000 // 64),
               f"{name}: small objects: each TLAB, with its size")
    # The first one takes a TLAB along; the others do not fit into what that has left.
    gate.equal(sorted(value for value, _, _ in threads[1]),
               [1000000 + HEADER] * 299 + [1000000 + HEADER + TLAB],
               f"{name}: large objects: each with its size")
    gate.equal(sum(value for value, _, _ in threads[1]), 300004800 + TLAB,
               f"{name}: together the JVM's account and one TLAB")
    callers = {(native, runtime) for thread in threads for _, native, runtime in thread}
    gate.equal({runtime for _, runtime in callers}, {"Allocs.allocate"},
               f"{name}: all below the method that allocates")
    gate.equal({native for native, _ in callers},
               {"AllocTracer::send_allocation_in_new_tlab",
                "AllocTracer::send_allocation_outside_tlab"}, f"{name}: and what it calls")


def check_launched(java):
    """braid starts the JVM itself, which maps libjvm.so later."""
    file = gate.path("launched.db")
    braid = gate.start(gate.BRAID, "record", "-e", "alloc:jvm", "-c", "1", "--max-overhead", "none",
                       "-o", file, "--", java, *OPTIONS, "-cp", gate.tmp, "Allocs",
                       stderr=gate.subprocess.PIPE)
    gate.wait_line(braid, "ready")
    recording = gate.Recording(file)
    gate.wait_until(lambda: gate.ask(braid, "1 1000000") and samples(recording), "a sample")
    gate.equal(gate.ask(braid, "300 1000000"), "allocated 300004800", "launched: the JVM's account")
    braid.stdin.close()
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, "launched: status", said)
    most = max(samples(recording).values(), key=len)
    gate.equal(sorted(value for value, _, _ in most),
               [1000000 + HEADER] * 299 + [1000000 + HEADER + TLAB],
               "launched: large objects: each with its size")
    # braid knows libjvm.so before the launcher maps it, so that the probes see the first allocation.
    gate.ok(recording.one("SELECT count(*) FROM stack WHERE function = 'JNI_CreateJavaVM'") and
            "are not seen" not in said, "launched: from the creation of the JVM on", said)


def check_none():
    """No program that the command executes has a JVM."""
    result = gate.braid("record", "-e", "alloc:jvm", "-o", gate.path("none.db"), "--", "/bin/true")
    gate.equal(result.status, 0, "none: status", result.err)
    gate.matches(r"alloc:jvm: no program has mapped a file with a function \S*AllocTracer", result.err,
                 "none: it is said")


def check_root(path):
    root, java = path.partition("/usr/lib/jvm/")[0], path[path.index("/usr/lib/jvm/"):]
    classes = os.path.join(root, "tmp", os.path.basename(gate.tmp))
    os.mkdir(classes)
    try:
        for file in glob.glob(gate.tmp + "/*.class"):
            shutil.copy(file, classes)
        # The launcher asks /proc where it is.
        check(f"{os.path.basename(root)} {java.split('/')[4]}", "unshare", "--mount", "sh", "-c",
              'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"', root, java, *OPTIONS,
              "-cp", "/tmp/" + os.path.basename(gate.tmp), "Allocs")
    finally:
        shutil.rmtree(classes)


gate.need_root()
gate.need_program(JAVA)
gate.need_program(JAVA + "c")
subprocess.run([JAVA + "c", "-d", gate.tmp, "fixtures/java/alloc/Allocs.java"], check=True)
others, roots = [], []
if os.environ.get("BRAID_EVERY_INTERPRETER"):
    others = [path for path in sorted(glob.glob("/usr/lib/jvm/*/bin/java")) if path != JAVA]
    roots = glob.glob(os.environ.get("BRAID_TEST_ROOTS", CACHE + "/braid-tests") +
                      "/*/usr/lib/jvm/java-*-amd64/bin/java")
for path in [JAVA, *others]:
    if not os.path.islink(os.path.dirname(os.path.dirname(path))):
        check(path.split("/")[4], path, *OPTIONS, "-cp", gate.tmp, "Allocs")
check_launched(JAVA)
check_none()
for path in sorted(roots):
    if not os.path.islink(os.path.dirname(os.path.dirname(path))):
        check_root(path)
gate.done()
