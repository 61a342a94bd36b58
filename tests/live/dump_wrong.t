#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""braid dump of what cannot be dumped: one clear line, status 1, or 2 for wrong use; core files that are
cut, of another machine, or have lost their program."""

import json
import os
import shutil
import struct
import subprocess

import gate
from gate import equal, matches, ok

STANDS = os.path.join(gate.OUTPUT, "fixtures/native/stands")
EM_386, EM_AARCH64 = 3, 183


def check_refused(name, pattern, *args, status=1):
    left = gate.path("left")
    os.makedirs(left, exist_ok=True)
    result = gate.braid("dump", *args, env=dict(os.environ, TMPDIR=left))
    equal((result.status, result.out), (status, ""), f"{name}: status", result)
    equal(len(result.err.splitlines()), 1 if status == 1 else 2, f"{name}: lines", result.err)
    matches(pattern, result.err, f"{name}: says what is wrong")
    equal(os.listdir(left), [], f"{name}: nothing is left behind")


def check_usage():
    for name, pattern, args in (("nothing", "either -p PID or --core FILE", []),
                                ("both", "either -p PID or --core FILE", ["-p", 1, "--core", "x"]),
                                ("no PID", "-p takes process ids", ["-p", "x"]),
                                ("an argument", "name a process by its PID with -p", ["4711"]),
                                ("--sysroot", "--sysroot requires --core", ["-p", 1, "--sysroot", "/"]),
                                ("a runtime", "no runtime 'cobol'", ["-r", "cobol", "-p", 1])):
        check_refused(name, pattern, *args, status=2)


def elf32():
    """A program of 32 bits that waits for a signal, for good."""
    code = b"\xb8\x1d\x00\x00\x00\xcd\x80\xeb\xf7"  # pause(), again
    base, size = 0x08048000, 52 + 32 + len(code)
    head = b"\x7fELF\x01\x01\x01" + bytes(9) + struct.pack(
        "<HHIIIIIHHHHHH", 2, EM_386, 1, base + 84, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    return head + struct.pack("<IIIIIIII", 1, 0, base, base, size, size, 5, 4096) + code


def check_targets():
    gone = gate.start("true")
    gone.wait()
    check_refused("gone", f"^braid: no process with PID {gone.pid}$", "-p", gone.pid)
    zombie = gate.start("true")
    gate.wait_until(lambda: gate.state_of(zombie.pid) == "Z", "the zombie")
    check_refused("zombie", f"^braid: PID {zombie.pid} .* is a zombie", "-p", zombie.pid)
    if os.path.exists("/proc/2/stat") and os.stat("/proc/2/maps").st_size == 0:
        with open("/proc/2/comm", encoding="utf-8") as comm:
            if comm.read() == "kthreadd\n":
                check_refused("kernel thread", "^braid: PID 2 .* is a kernel thread", "-p", 2)
    with open(gate.path("elf32"), "wb") as file:
        file.write(elf32())
    os.chmod(gate.path("elf32"), 0o755)
    try:
        small = gate.start(gate.path("elf32"))
    except OSError:
        gate.skip("32 bits", "this kernel does not execute 32-bit programs")
        return
    check_refused("32 bits", rf"^braid: PID {small.pid} \(elf32\) is a 32-bit program", "-p", small.pid)
    ok(small.poll() is None, "32 bits: it runs on")
    good = gate.start("sleep", 1000)
    result = gate.braid("dump", "-p", f"{gone.pid},{good.pid}", "--json")
    equal((result.status, [process["pid"] for process in json.loads(result.out)["processes"]]),
          (1, [good.pid]), "one of two: the other is shown")


def change(file, offset, data):
    with open(file, "r+b") as core:
        core.seek(offset)
        core.write(data)


def damage_last_note(file):
    """The last one becomes longer than all notes together."""
    with open(file, "rb") as core:
        data = core.read()
    number = struct.unpack_from("<H", data, 56)[0]
    headers = [struct.unpack_from("<IIQQQQ", data, 64 + 56 * n) for n in range(number)]
    at, size = next((offset, size) for kind, _, offset, _, _, size in headers if kind == 4)
    end, last = at + size, at
    while at + 12 <= end:
        last = at
        name, desc, _ = struct.unpack_from("<III", data, at)
        at += 12 + (name + 3 & ~3) + (desc + 3 & ~3)
    change(file, last + 4, struct.pack("<I", 0xffffffff))


def check_cores():
    program = gate.path("program")
    shutil.copy(STANDS, program)
    process = gate.start(program)
    gate.wait_line(process, "ready")
    gate.run("gcore", "-o", gate.path("core"), process.pid)
    core, copy = gate.path(f"core.{process.pid}"), gate.path("copy")
    process.kill()
    whole = gate.braid("dump", "--core", core)
    equal((whole.status, whole.err), (0, ""), "core: status")
    matches(r"\n    native  in_epoll \([^)]+stands.c:\d+\)\n", whole.out, "core: a frame")
    matches(r"\nDeadlock: ", whole.out, "core: the deadlock")
    ok("note:" not in whole.out, "core: nothing is wrong with it")
    size = os.path.getsize(core)
    with open(core, "rb") as file:
        head = file.read(1 << 16)
    for name, cut, pattern in (("no header", 20, "it is not a core file"),
                               ("no segments", 64, "is truncated"),
                               ("no notes", 4096, "is truncated|contains no threads")):
        with open(copy, "wb") as file:
            file.write(head[:cut])
        check_refused(name, pattern, "--core", copy)
    shutil.copy(core, copy)
    last = 64 + 56 * (struct.unpack_from("<H", head, 56)[0] - 1)
    change(copy, last + 8, struct.pack("<Q", size - 100))  # as if the last segment began there
    result = gate.braid("dump", "--core", copy)
    equal((result.status, result.err), (0, ""), "cut: status")
    bytes_of = struct.unpack_from("<Q", head, last + 32)[0]
    matches(rf"\n  note: the core file is truncated: {bytes_of - 100} of its \d+ bytes are missing", result.out,
            "cut: is said")
    shutil.copy(core, copy)
    damage_last_note(copy)
    result = gate.braid("dump", "--core", copy)
    equal((result.status, result.err), (0, ""), "damaged notes: status")
    matches(r"\n  note: the notes of the core file are damaged: threads and mapped files may be missing", result.out,
            "damaged notes: is said")
    shutil.copy(core, copy)
    change(copy, 18, struct.pack("<H", EM_AARCH64))
    check_refused("another machine", "is the core file of an arm64 process", "--core", copy)
    change(copy, 18, struct.pack("<H", EM_386))
    check_refused("32 bits", "is the core file of a 32-bit x86 process", "--core", copy)
    check_refused("a program", "it is a program or library, not a core file", "--core", program)
    check_refused("a text", "it is not a core file", "--core", __file__)
    check_refused("a device", "is not a regular file", "--core", "/dev/zero")
    check_refused("no file", "No such file", "--core", gate.path("missing"))
    os.unlink(program)
    result = gate.braid("dump", "--core", core)
    matches(rf"\n  note: {program} is missing \(try --sysroot\)", result.out, "no program: is said")
    ok("pthread_mutex_lock" in result.out and "in_epoll" not in result.out,
       "no program: what lies elsewhere is shown")
    root = gate.path("root")
    os.makedirs(root + os.path.dirname(program))
    shutil.copy(STANDS, root + program)
    for line in subprocess.run(["ldd", STANDS], capture_output=True, check=True).stdout.split():
        if line.startswith(b"/"):
            file = os.path.realpath(line.decode())
            os.makedirs(os.path.dirname(root + file), exist_ok=True)
            shutil.copy(file, root + file)
    result = gate.braid("dump", "--core", core, "--sysroot", root)
    matches(r"\n    native  in_epoll \([^)]+stands.c:\d+\)\n", result.out, "--sysroot: a frame")


check_usage()
check_targets()
if shutil.which("gcore"):
    check_cores()
gate.done()
