#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""JVMs that braid starts, that die while they are recorded, that let nobody attach, whose tables are
damaged; one beside other runtimes; with other walkers or none."""

import copy
import os
import re
import signal
import struct
import subprocess

import java_matrix as matrix
import javas
import lib
import python_matrix

PYTHON = "/usr/bin/python3"
# What a JVM calls, in the thread that runs main, while it sets itself up.
OF_START = r"(java\.lang|jdk\.internal|sun\.launcher)\."


def check_started(builds):
    """From the first moment of the program on: also while the JVM sets itself up."""
    for java in builds:
        target = matrix.Target(java, "Lambdas")
        target.ask_oracle()
        recording = lib.record("--", *java.arguments("Lambdas", 3))
        for frames, count in recording.folded("--lines", "--annotate"):
            target.stacks[tuple(frames)] += count
        name = f"{java.label}: started by braid"
        lib.check_complete(recording, 99, name, begin=0.05)
        lib.equal(target.want - target.seen, set(), f"{name}: every stack with its lines")
        matrix.check_outermost(target, before_main=OF_START)


def check_dying(builds):
    """Killed while it is recorded: what was seen has its names."""
    for java in builds:
        name = f"{java.label}: killed"
        target = matrix.Target(java, "Natives", options=matrix.WARM)
        target.start()
        file = lib.path(f"dying-{java.version[0]}.db")
        process = lib.start_braid("record", "-p", target.process.pid, "-F", 999, "-o", file)
        lib.wait_attached(process)
        target.process.send_signal(signal.SIGCONT)
        used = lib.cpu_ticks(target.process.pid)
        lib.wait_for(lambda: lib.cpu_ticks(target.process.pid) >= used + 40, "CPU time")
        target.process.kill()
        error = process.communicate(timeout=lib.PATIENCE_S)[1].decode()
        lib.equal(process.returncode, 0, f"{name}: braid ends", error)
        target.add(lib.Recording(file, lib.Result(0, "", error)))
        lib.ok(target.with_java() >= 100, f"{name}: samples", error)
        nameless = [stack for stack in target.stacks
                    if re.search(matrix.NAMELESS, ";".join(stack))]
        count = sum(target.stacks[stack] for stack in nameless)
        lib.ok(count <= 0.02 * target.total, f"{name}: nothing without a name",
               f"{count} of {target.total}", *map(matrix.ends, nameless[:5]))


def check_closed(builds):
    """Those that cannot be asked are seen all the same, and do not notice."""
    for java in builds:
        for flag in "-Xrs", "-XX:+DisableAttachMechanism":
            target = matrix.Target(java, "Nest", options=(*matrix.WARM, flag))
            target.ask_oracle()
            target.start()
            target.process.send_signal(signal.SIGCONT)
            target.add(lib.record("-p", target.process.pid, "-d", 1))
            name = f"{java.label}: {flag}"
            lib.ok(lib.state_of(target.process.pid) in ("R", "S"), f"{name}: it goes on")
            output = read_without_waiting(target.process.stdout)
            lib.equal(output, b"", f"{name}: it says nothing more")
            lib.stop(target.process)
            lib.equal(target.want - target.seen, set(), f"{name}: its stack")


def read_without_waiting(pipe):
    os.set_blocking(pipe.fileno(), False)
    return pipe.read() or b""


# --- tables that make no sense ---

def rename_tables(library):
    replace(library, b"\0gHotSpotVMStructs\0", b"\0gHotSpotVMStruct_\0")


def rename_field(library):
    replace(library, b"\0_frame_size\0", b"\0_frame_sixe\0")


def replace(file, old, new):
    with open(file, "r+b") as library:
        text = library.read()
        if old not in text:
            raise RuntimeError(f"{file} has no {old}")
        library.seek(0)
        library.write(text.replace(old, new))


def poke(target, symbol, value):
    """Changes a number in a running JVM, which has no use of it itself."""
    library = target.java.library
    table = subprocess.run(["readelf", "-W", "--dyn-syms", library], check=True,
                           capture_output=True, text=True).stdout
    address = int(re.search(rf"(\w+) +8 OBJECT .* {symbol}(@|$)", table, re.M)[1], 16)
    with open(f"/proc/{target.process.pid}/maps", encoding="utf-8") as maps:
        base = next(int(line.split("-")[0], 16) for line in maps if line.endswith("/libjvm.so\n"))
    with open(f"/proc/{target.process.pid}/mem", "r+b", buffering=0) as memory:
        memory.seek(base + address)
        memory.write(struct.pack("<Q", value))


IN_FILE = (("no tables", rename_tables, r"does not export|gHotSpotVMStructs"),
           ("a field is missing", rename_field, r"_frame_size"))
IN_MEMORY = (("StructEntryArrayStride", 0), ("StructEntryArrayStride", 1 << 40),
             ("StructEntryArrayStride", 1), ("StructEntryFieldNameOffset", 0x7fffffffffffff00),
             ("StructEntryOffsetOffset", 3), ("Structs", 0), ("Structs", 0xffffffff00000000),
             ("Structs", 0x1000), ("TypeEntrySizeOffset", 0), ("IntConstants", 12345))


def damaged(java):
    """Started, some with a reason that braid should give."""
    for what, change, reason in IN_FILE:
        target = matrix.Target(javas.with_library(java, what, change), "Lambdas",
                               options=("-Xshare:off",))
        target.reason = reason
        target.start()
        yield target
    for symbol, value in IN_MEMORY:
        target = matrix.Target(copy.copy(java), "Lambdas")
        target.java.what = f"{symbol} is {value:#x}"
        target.reason = "."
        target.start()
        poke(target, "gHotSpotVM" + symbol, value)
        yield target


def check_damaged(java):
    """Native frames, and why there are no others."""
    targets = list(damaged(java))
    for target in targets:
        target.process.send_signal(signal.SIGCONT)
    pids = ",".join(str(target.process.pid) for target in targets)
    recording = lib.record("-p", pids, "-d", 4)
    for target in targets:
        name, pid = target.java.label, target.process.pid
        target.add(recording)
        lib.ok(lib.state_of(pid) in ("R", "S"), f"{name}: it goes on")
        told = re.search(rf"^(?:braid: )?pid {pid}: jvm [^:]*: (\w+): (.*)$",
                         recording.result.err, re.M)
        lib.ok(told and told[1] == "none", f"{name}: not walked", recording.result.err[:1500])
        lib.matches(target.reason, told[2] if told else "", f"{name}: told why")
        lib.ok(target.total >= 50, f"{name}: native frames", target.total)
        lib.equal(target.with_java(), 0, f"{name}: no others", *target.stacks)
    lib.stop(*(target.process for target in targets))


# --- beside others ---

def check_beside_others(java):
    """One recording: each process has its own kind of frames, in one flame graph."""
    commands = {"py": [PYTHON, "-B", lib.script("nest_sorted.py")],
                "rb": ["ruby", "--disable-gems", "fixtures/ruby/nest.rb"]}
    leaves = {"j": "Fixture.burn", "py": "inner_key", "rb": r"block \(3 levels\) in Inner#<=>"}
    present = {kind: command for kind, command in commands.items()
               if any(os.access(os.path.join(place, command[0]), os.X_OK)
                      for place in os.environ["PATH"].split(":"))}
    processes = {kind: lib.start_ready(*command) for kind, command in present.items()}
    processes["j"] = java.start("Nest", options=matrix.WARM)
    pids = ",".join(str(process.pid) for process in processes.values())
    recording = lib.record("-p", pids, "-d", 4)
    kinds = "|".join(processes)
    for kind, process in processes.items():
        stacks = recording.folded("--pid", process.pid, "--annotate")
        name = f"beside others: {kind}"
        lib.check_share(stacks, rf"{leaves[kind]} \([^;]*\)_\[{kind}\](;|$)", 0.8, name)
        others = "|".join(other for other in processes if other != kind)
        lib.equal(lib.share_of(stacks, rf"_\[({others})\]"), 0, f"{name}: only its own", stacks[:3])
    lib.check_complete(recording, 99, "beside others")
    lib.stop(*processes.values())
    graph = lib.path("beside.html")
    result = lib.braid("flame", "-o", graph, recording.file)
    lib.equal(result.status, 0, "beside others: one flame graph", result.err)
    with open(graph, encoding="utf-8") as file:
        text = file.read()
    for name in "Nest$Base.last", "inner_key", "Inner#":
        lib.ok(name in text or name == "Inner#" and "rb" not in kinds,
               f"beside others: {name} is in it")


def check_selected(java):
    """-r: only what is wanted is done."""
    target = java.start("Nest", options=matrix.WARM)
    for options, is_walked in ((("-r", "jvm"), True), (("-r", "native"), False),
                               (("--source", "none"), False)):
        name = f"{java.label}: {' '.join(options)}"
        recording = lib.record("-p", target.pid, "-d", 1, *options)
        share = lib.share_of(recording.folded("--annotate"), r"Fixture\.burn \([^;]*_\[j\]")
        lib.ok(share >= 0.8 if is_walked else share == 0, f"{name}: Java frames", share)
        source = recording.sql("SELECT runtime, source FROM source")
        lib.equal(source, [("jvm", "walk")] if is_walked else [], f"{name}: source")
    lib.stop(target)


every_build, skipped = matrix.begin()
one_of_each = matrix.of_each_version(every_build)
check_started(one_of_each)
check_dying(one_of_each)
check_closed(one_of_each)
check_damaged(one_of_each[0])
check_beside_others(one_of_each[0])
check_selected(one_of_each[0])
python_matrix.print_skipped(skipped)
lib.done()
