#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""HotSpot with other flags, a JVM of each version: interpreter and compilers, frame pointers,
collectors, code caches, layouts of memory; recursion deeper than braid shows; threads by name, the
JVM's own among them."""

import re
import signal

import java_matrix as matrix
import lib
import python_matrix

SHOWN = 1024  # RUNTIME_FRAMES_MAX, bpf/shared.h
DEEP = 9000
SCRIPTS = ("Lambdas", "Natives")
THOROUGH = (17, 25)  # versions that run with all flags; others with those that change frames most
MAIN_FLAGS = (
    ("-Xint",),
    ("-XX:TieredStopAtLevel=1",),
    ("-XX:-TieredCompilation",),
    ("-XX:+PreserveFramePointer",),
)
FLAGS = (
    ("-Xcomp",),
    ("-XX:-Inline",),
    ("-XX:-SegmentedCodeCache",),
    ("-XX:ReservedCodeCacheSize=4m",),
    ("-XX:-UseCompressedOops",),
    ("-XX:-UseCompressedClassPointers",),
    ("-XX:+UseCompactObjectHeaders",),
    ("-Xshare:off",),
    ("-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"),
)
# What the JVM calls its own threads, cut as the kernel does.
OF_JVM = re.compile(r"(C[12] Comp(ilerThre|\.\.hread\d)|GC Thread#\d+|G1 \w+.*|ZWorker.*|ZDriver.*|ZDirector|ZStat|"
                    r"XWorker.*|Shenand.*|VM Thread|VM Periodic Tas)$")
COLLECTS = {"Serial": "VM Thread", "Parallel": r"GC Thread#\d+", "G1": r"GC Thread#\d+",
            "Z": r"[ZX]Worker.*", "Shenandoah": r"Shenand.*"}


def is_known(java, flags):
    """Flags come and go."""
    names = [re.match(r"-XX:[-+]?(\w+)", flag) for flag in flags]
    return all(name is None or name[1] in java.flags
               or name[1] == "DebugNonSafepoints"  # a diagnostic one
               for name in names)


def make_targets(java):
    for flags in MAIN_FLAGS:
        for script in SCRIPTS:
            yield matrix.Target(java, script, options=(*matrix.WARM, *flags))
    if java.version[0] not in THOROUGH:
        return
    for flags in FLAGS:
        if is_known(java, flags):
            yield matrix.Target(java, SCRIPTS[0], options=(*matrix.WARM, *flags))
    for name in java.collectors():
        yield matrix.Target(java, "Allocation", options=(*matrix.WARM, f"-XX:+Use{name}GC"))
    for flag in "-Xint", "-XX:TieredStopAtLevel=1":
        for script in "Locks", "Exceptions", "Deopt":
            yield matrix.Target(java, script, options=(*matrix.WARM, flag))
    yield matrix.Target(java, "Osr")  # while it is compiled


# --- recursion ---

def record_as_they_are(targets, seconds=4):
    """Without an oracle, once."""
    for target in targets:
        target.start()
    for target in targets:
        target.process.send_signal(signal.SIGCONT)
    pids = ",".join(str(target.process.pid) for target in targets)
    recording = lib.record("-p", pids, "-d", seconds)
    for target in targets:
        target.add(recording)
    lib.stop(*(target.process for target in targets))
    return recording


def check_too_deep(builds):
    """What is cut is told: the innermost frames are there, in the stack and in its flags."""
    targets = [matrix.Target(java, "Deep", 0, DEEP, options=("-Xss64m", *flags, *matrix.WARM))
               for java in builds for flags in ((), ("-Xint",))]
    recording = record_as_they_are(targets)
    cut = re.search(r"(\d+) +(runtime )?stacks cut: more", recording.result.err)
    total = sum(target.with_java() for target in targets)
    lib.ok(cut and int(cut[1]) >= 0.8 * total, "deeper recursion: the summary counts",
           recording.result.err[-500:], total)
    for target in targets:
        # SAMPLE_NATIVE_TRUNCATED, SAMPLE_RUNTIME_TRUNCATED: the frames are both.
        flagged = sum(bool(flags & (8 | 16)) for flags in target.flags)
        python_matrix.at_least(flagged, target.with_java(), 80, f"{target.name}: marked",
                               target.flags[:5])
        stack = max((stack for stack in target.stacks if matrix.java_frames(stack)),
                    key=target.stacks.get)
        frames = target.frames(stack)
        # Stubs are frames, too; compiled ones may stand for several methods.
        lib.ok(len(frames) >= SHOWN - 30, f"{target.name}: frames shown", len(frames))
        lib.equal({frame[0] for frame in frames[:-1]}, {"Deep.descend"},
                  f"{target.name}: the innermost ones")


def check_overflow(builds):
    targets = [matrix.Target(java, "Overflow") for java in builds]
    record_as_they_are(targets)
    for target in targets:
        name = target.name
        wrong = [stack for stack in target.stacks if re.search(matrix.NAMELESS, ";".join(stack))]
        count = sum(target.stacks[stack] for stack in wrong)
        lib.ok(count <= 0.01 * target.total + 1, f"{name}: nothing without a name",
               f"{count} of {target.total}", *map(matrix.ends, wrong[:5]))
        labels = target.count(lambda stack: any(label == "Overflow.fall" for label, _, _
                                                in matrix.java_frames(stack)))
        lib.ok(labels > 0.2 * target.total, f"{name}: below thousands of frames",
               f"{labels} of {target.total}")


# --- threads ---

def thread_names(recording):
    """{name: samples}"""
    return dict(recording.sql("SELECT thread.name, count(*) FROM sample "
                              "JOIN thread ON thread = thread.id GROUP BY 1"))


def check_named(builds):
    """The fixture's threads by the names that Java gave them."""
    targets = [matrix.Target(java, "Threads", options=matrix.WARM) for java in builds]
    recording = record_as_they_are(targets)
    for target in targets:
        for thread, method, other in (("alpha-thread", "Threads.alpha", "Threads.beta"),
                                      ("beta-thread", "Threads.beta", "Threads.alpha"),
                                      ("pool-thread", r"Threads.lambda\$main\$\d", "Threads.beta")):
            stacks = recording.folded("--pid", target.process.pid, "--thread", thread, "--annotate")
            name = f"{target.java.label}: {thread}"
            # a pool's thread also takes tasks and hands results on
            least = 0.25 if thread == "pool-thread" else 0.5
            lib.check_share(stacks, rf"(^|;){method} \([^;]*_\[j\]", least, name)
            lib.equal(lib.share_of(stacks, rf"(^|;){other} "), 0, f"{name}: its own only")


def check_of_jvm(builds):
    """The JVM's own threads, from the start of the program on: native frames, to their start."""
    for java in builds:
        for collector in java.collectors():
            name = f"{java.label}: {collector}"
            recording = lib.record("--", *java.arguments("Allocation", 3,
                                                         options=[f"-XX:+Use{collector}GC"]))
            names = thread_names(recording)
            own = {thread: count for thread, count in names.items() if OF_JVM.match(thread)}
            lib.ok(any(re.match(COLLECTS[collector] + "$", thread) for thread in own),
                   f"{name}: the collector's threads", names)
            lib.ok(any(thread.startswith("C2 Comp") for thread in own), f"{name}: the compiler's thread", names)
            for thread in own:
                stacks = recording.folded("--thread", thread, "--annotate")
                methods = [stack for stack in stacks if matrix.java_frames(stack[0])]
                count = sum(count for _, count in methods)
                # A name is that of a moment, and may belong to the thread's number by now.
                lib.ok(count <= 1 + 0.01 * own[thread], f"{name}: {thread}: no Java frames",
                       f"{count} of {own[thread]}", *methods[:3])
            check_threads_complete(recording, name, own)


def check_threads_complete(recording, name, threads):
    flags = [flags for flags, thread in recording.sql(
        "SELECT flags, thread.name FROM sample JOIN thread ON thread = thread.id")
        if thread in threads]
    python_matrix.at_least(sum(flag & 1 for flag in flags), len(flags), 99,
                           f"{name}: the JVM's threads: stacks complete", recording.result.err)


every_build, skipped = matrix.begin()
one_of_each = matrix.of_each_version(every_build)
matrix.check_all(one_of_each, make_targets)
check_too_deep(one_of_each)
check_overflow(one_of_each)
check_named(one_of_each)
check_of_jvm(one_of_each)
python_matrix.print_skipped(skipped)
lib.done()
