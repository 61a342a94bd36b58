#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Two programs with an allocator each, in files of the same bytes: as the C libraries of two containers.
Each call of both is seen, once."""

import os
import shutil
import subprocess

import gate

ALLOCATOR = """
#include <stddef.h>
static char memory[1 << 20];
static size_t used;
void *malloc(size_t size) { used = (used + 15) & ~15UL; void *at = memory + used; used += size; return at; }
void free(void *at) { (void)at; }
"""
PROGRAM = """
#include <stdio.h>
void *malloc(unsigned long);
int main(void)
{
	char line[8];
	setvbuf(stdout, NULL, _IONBF, 0);
	setvbuf(stdin, NULL, _IONBF, 0);
	puts("ready");
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	for (int i = 0; i < 10; i++)
		malloc(100);
	return 0;
}
"""


def build(text, *words):
    subprocess.run(["gcc", "-O1", "-fno-builtin", "-x", "c", "-", *words], input=text, text=True, check=True,
                   cwd=gate.tmp)


def run(title, seconds):
    """Records two programs; @seconds: the paths that the second one has its allocator by."""
    targets = [gate.start(gate.path("program"), env=dict(os.environ, LD_PRELOAD=file))
               for file in (gate.path("one/alloc.so"), seconds)]
    for target in targets:
        gate.wait_line(target, "ready")
    file = gate.path(title.replace(" ", "-") + ".db")
    braid = gate.start(gate.BRAID, "record", "-e", "alloc", "-c", "1", "--max-overhead", "none", "-p",
                       ",".join(str(target.pid) for target in targets), "-o", file, stderr=subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
    for target in targets:
        gate.say(target, "")
        target.wait()
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, f"{title}: status", said)
    sums = dict(gate.Recording(file).sql(
        "SELECT pid, sum(value) FROM sample JOIN thread ON thread.id = thread "
        "JOIN process ON process.id = process GROUP BY pid"))
    gate.equal([sums.get(target.pid, 0) for target in targets], [1000, 1000], f"{title}: bytes of each program",
               said)


gate.need_root()
gate.need_program("/usr/bin/gcc")
for directory in ("one", "two"):
    os.mkdir(gate.path(directory))
build(ALLOCATOR, "-shared", "-fPIC", "-Wl,--build-id", "-o", "one/alloc.so")
build(PROGRAM, "-o", "program")
shutil.copy(gate.path("one/alloc.so"), gate.path("two/alloc.so"))
os.link(gate.path("one/alloc.so"), gate.path("two/linked.so"))
run("a copy", gate.path("two/alloc.so"))
run("another name of the file", gate.path("two/linked.so"))
gate.done()
