#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""A target whose files are not what they should be: where its program or the program's debug file was
there is now a pipe, a device, a loop, a huge hole, or a link that leads out of its root. braid goes on,
does not wait, reads none of it, and stacks are whole by what the kernel has mapped."""

import os
import re
import shutil
import signal
import struct
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


# --- claims: sizes of gigabytes, of a few KB on the disk ---

# Maps a page of the file executable, says so, and goes on for ever: the second argument is a
# function's name, by which its own stack is known.
MAPPER = """
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
__attribute__((noipa)) void spins_for_ever(void) { for (volatile long i = 0;; i++); }
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, open(argv[i], O_RDONLY), 0);
	puts("ready");
	fflush(stdout);
	spins_for_ever();
}
"""


def header(shoff, phnum, shnum):
    return (b"\x7fELF\x02\x01\x01" + bytes(9) +
            struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0x410000, 64, shoff, 0, 64, 56, phnum, 64, shnum,
                        shnum - 1 if shnum else 0))


def segment(kind, flags, offset, vaddr, size):
    return struct.pack("<IIQQQQQQ", kind, flags, offset, vaddr, vaddr, size, size, 4096 if kind == 1 else 4)


CODE = segment(1, 5, 0, 0x400000, 0x11000)


def many_segments(seed):
    size = 512 << 20
    return {0: header(0, 41, 0) + CODE + b"".join(
        segment(1, 4, 0x20000, (1 << 40) + i * size, size) for i in range(40)), 0x10000: seed}, size + 0x20000


def note(seed):
    size = 2 << 30
    return {0: header(0, 2, 0) + CODE + segment(4, 4, 0x20000, 0x400000, size), 0x10000: seed}, size + 0x20000


def names(seed):
    size, at = 2 << 30, 0x20000
    sections = bytes(64) + struct.pack("<IIQQQQIIQQ", 1, 1, 6, 0x410000, 0x10000, 64, 0, 0, 1, 0) + struct.pack(
        "<IIQQQQIIQQ", 7, 3, 0, 0, at, size, 0, 0, 1, 0)
    return {0: header(at + size, 1, 3) + CODE, 0x10000: seed, at: b"\0.text\0.shstrtab\0",
            at + size: sections}, at + size + len(sections)


def make_claims(kind, i):
    pieces, size = kind(b"%d" % i)
    place = gate.path(f"{kind.__name__}-{i}")
    with open(place, "wb") as file:
        for at, piece in pieces.items():
            file.seek(at)
            file.write(piece)
        file.truncate(size)
    os.chmod(place, 0o644)
    return place


def check_claims():
    """Ten files of each kind, mapped by nobody: what braid takes is bounded, and another target's stacks
    are as ever. A file of which a part is left out is named; and it ends when it is to."""
    program, other, file = gate.path("mapper"), gate.path("other"), gate.path("claims.db")
    subprocess.run(["gcc", "-g", "-O1", "-x", "c", "-", "-o", program], input=MAPPER.encode(), check=True)
    shutil.copy(program, other)
    os.chmod(os.path.dirname(program), 0o755)
    files = [make_claims(kind, i) for kind in (many_segments, note, names) for i in range(10)]
    mapper, target = gate.start(program, *files, user=65534), gate.start(other)
    for process in mapper, target:
        gate.wait_line(process, "ready")
    braid = gate.start(gate.BRAID, "record", "-p", f"{mapper.pid},{target.pid}", "-F", "99", "-o", file,
                       stderr=subprocess.PIPE)
    gate.wait_until(lambda: braid.poll() is not None or
                    (os.path.exists(file) and waiting.is_in_loop(braid.pid)), "the loop")
    gate.wait_until(lambda: gate.Recording(file).sql("SELECT count(*) FROM sample")[0][0] > 50, "samples")
    with open(f"/proc/{braid.pid}/status") as status:
        most = int(re.search(r"VmHWM:\s+(\d+) kB", status.read())[1])
    braid.send_signal(signal.SIGINT)
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, "claims: status", said)
    gate.ok(most < 300 << 10, f"claims: at most {most} KB of memory")
    gate.ok("file too large to read in full: " + gate.path("names-0") in said or
            "more files are too large" in said, "claims: a file is named", said)
    stacks = [";".join(frames) for frames, _ in gate.Recording(file).merged()]
    gate.ok(any("main" in stack and "spins_for_ever" in stack for stack in stacks), "claims: other stacks",
            *stacks)
    for process in mapper, target:
        process.kill()
        process.wait()


gate.need_root()
gate.need_program("/usr/bin/gcc")
check("whole", False, None)
for kind, maker in HOSTILE.items():
    check(kind, False, maker)
    check(kind + "_program", True, maker)
check_claims()
gate.done()
