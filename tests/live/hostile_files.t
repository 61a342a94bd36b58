#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""A target whose files are not what they should be: where its program or the program's debug file was
there is now a pipe, a device, a loop, a huge hole, or a link that leads out of its root. braid goes on,
does not wait, reads none of it, and stacks are whole by what the kernel has mapped."""

import os
import re
import shutil
import signal
import subprocess

import gate
import waiting

CALLS = 3
SOURCE = """
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((noipa)) void named(int n) { while (n-- > 0) syscall(SYS_getppid); __asm__ volatile(""); }
int main(void)
{
	char line[16];

	for (puts("ready"), fflush(stdout); fgets(line, sizeof(line), stdin); puts("done"), fflush(stdout))
		named(atoi(line));
	return 0;
}
"""


def root(name):
    """(A directory to be a root, where the program is in it, the place of its debug file, that file.)"""
    directory = gate.path(name)
    program, debug = directory + "/bin/program", gate.path(name + ".debug")
    digits = name.encode().hex().ljust(40, "0")
    os.makedirs(directory + "/bin")
    # One of its own for each, as what is known of a content is known for all that have it.
    subprocess.run(["gcc", "-g", "-O2", "-static", f"-Wl,--build-id=0x{digits}", "-x", "c", "-", "-o", program],
                   input=SOURCE.encode() + f"\nconst char own[] = \"{name}\";".encode(), check=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", program], check=True)
    place = f"{directory}/usr/lib/debug/.build-id/{digits[:2]}/{digits[2:]}.debug"
    os.makedirs(os.path.dirname(place))
    return directory, program, place, debug


def hole(path, _):
    """It begins as ELF files do."""
    with open(path, "wb") as file:
        file.write(b"\x7fELF\x02\x01\x01" + bytes(57))
        file.truncate(1 << 42)


HOSTILE = {"pipe": lambda path, _: os.mkfifo(path),
           "device": lambda path, _: os.mknod(path, 0o20666, os.makedev(1, 5)),  # /dev/zero
           "loop": lambda path, _: os.symlink(os.path.basename(path), path),
           "outside": lambda path, debug: os.symlink("../" * 40 + debug.lstrip("/"), path),
           "through": lambda path, debug: os.symlink("/proc/1/root" + debug, path),
           "hole": hole}


def record(target, name):
    """Of CALLS system calls: what it says, the stacks."""
    file = gate.path(f"{name}-{len(gate.running.processes)}.db")
    braid = gate.start(gate.BRAID, "record", "-e", "syscall:getppid", "--max-overhead", "none", "-o", file,
                       "-p", target.pid, stderr=subprocess.PIPE)
    gate.wait_until(lambda: braid.poll() is not None or
                    (os.path.exists(file) and waiting.is_in_loop(braid.pid)), "the loop")
    gate.ask(target, str(CALLS))
    braid.send_signal(signal.SIGINT)
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, f"{name}: status", said)
    recording = gate.Recording(file)
    flags = [flag & 1 for flag, in recording.sql("SELECT flags FROM sample")]
    gate.equal(flags, [1] * CALLS, f"{name}: stacks are whole", said)
    return {";".join(frame for frame in frames if not frame.endswith("_[k]"))
            for frames, _ in recording.merged()}


def check(name, replaces_program, make):
    directory, program, place, debug = root(name)
    if make and not replaces_program:
        make(place, debug)
    elif not make:
        shutil.copy(debug, place)
    target = gate.start("chroot", directory, "/bin/program")
    gate.wait_line(target, "ready")
    if replaces_program:
        os.unlink(program)
        make(program, debug)
    stacks = record(target, name)
    gate.ok(stacks and all(("named (" in stack) == (not make) for stack in stacks),
            f"{name}: names are there only if its own debug file is", *stacks)
    if make:
        gate.ok(all(re.search(r"\[program\+0x[0-9a-f]+\]", stack) for stack in stacks),
                f"{name}: its functions are addresses", *stacks)
    target.kill()
    target.wait()


gate.need_root()
gate.need_program("/usr/bin/gcc")
check("whole", False, None)
for kind, maker in HOSTILE.items():
    check(kind, False, maker)
    check(kind + "_program", True, maker)
gate.done()
