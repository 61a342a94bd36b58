#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Interpreters whose section headers were removed: their stacks are those of the untouched files,
with the names that the dynamic symbols give."""

import os
import struct
import subprocess

import gate

N = 20
PYTHON = "import os\ninput()\ndef g(): os.getppid()\ndef f(): g()\nfor _ in range(%d): f()" % N
PHP = "fgets(STDIN); function g() { posix_getppid(); } function f() { g(); } for ($i = 0; $i < %d; $i++) f();" % N
PERL = "<STDIN>; sub g { getppid; 1 } sub f { g(); 1 } f() for 1..%d" % N
LIBRARIES = {"/usr/bin/ruby3.1": "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1"}  # with the interpreter
RUBY = "gets; def g = Process.ppid; def f = g; %d.times { f }" % N
PROGRAMS = {"/usr/bin/python3.11": ("-c", PYTHON), "/usr/bin/php8.2": ("-n", "-d", "extension=posix", "-r", PHP),
            "/usr/bin/perl": ("-e", PERL), "/usr/bin/ruby3.1": ("--disable-gems", "-e", RUBY)}


def copy_of(program, folder, sections):
    """A copy, the section headers of which nothing leads to."""
    os.makedirs(gate.path(folder), exist_ok=True)
    copy = os.path.join(gate.path(folder), os.path.basename(program))
    with open(program, "rb") as file:
        data = bytearray(file.read())
    if not sections:
        struct.pack_into("<Q", data, 0x28, 0)  # e_shoff
        struct.pack_into("<HHH", data, 0x3a, 0, 0, 0)  # e_shentsize, e_shnum, e_shstrndx
    with open(copy, "wb") as file:
        file.write(data)
    os.chmod(copy, 0o755)
    return copy


def recording_of(title, program, arguments):
    target = gate.start(program, *arguments, env=dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(program)))
    file = gate.path(f"{title.replace(' ', '-')}.db")
    braid = gate.start(gate.BRAID, "record", "-e", "syscall:getppid", "-p", target.pid, "-o", file,
                       "--max-overhead", "none", stderr=subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
    gate.say(target, "go")
    gate.equal(target.wait(), 0, f"{title}: the target ends as it should")
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, f"{title}: status", said)
    return gate.Recording(file), said


def check(program, arguments):
    name = os.path.basename(program)
    stacks, natives = {}, {}
    for folder, sections in ("with", True), ("without", False):
        title = f"{name} {folder} sections"
        if program in LIBRARIES:
            copy_of(LIBRARIES[program], folder, sections)
        recording, said = recording_of(title, copy_of(program, folder, sections), arguments)
        stacks[folder] = [frames for frames, _ in recording.merged()]
        natives[folder] = [(sample.native, sample.flags & 1) for sample in recording.samples()]
        gate.equal(recording.count(), N, f"{title}: a sample for each call", said)
        gate.equal({complete for _, complete in natives[folder]}, {1}, f"{title}: stacks are complete", said)
    place = gate.path("without"), gate.path("with")
    moved = [([(file and file.replace(*place), at) for file, at in native], complete)
             for native, complete in natives["without"]]
    gate.equal(moved, natives["with"], f"{name}: native frames are the same")
    gate.equal(stacks["without"], stacks["with"], f"{name}: so are merged stacks")
    script = [[frame for frame in frames if frame.startswith(("f (", "g (", "f:", "g:", "main::", "Object#f", "Object#g"))]
              for frames in stacks["without"]]
    gate.ok(script and all(len(frames) >= 2 for frames in script), f"{name}: functions of the script",
            stacks["without"])


gate.need_root()
for program, arguments in PROGRAMS.items():
    gate.need_program(program)
    check(program, arguments)
gate.done()
