#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""A program with 700 KB of assembly that no frame description covers. Its rules are made where samples
fall: the first stack is cut there, the last one is complete, and a later recording has the rules from
the cache. A dump has them at once."""

import os
import subprocess

import gate

CALLS, PAUSE_US = 60, 50_000
FUNCTIONS, CALLED = 1200, 700
LATER = "stacks cut: unwind rules of assembly not ready yet"
MAIN = """
#include <stdio.h>
#include <unistd.h>
int fn_%d(int);
%s
int main(int argc, char **argv)
{
    for (int i = 0; i < %d && getchar() != EOF; i++)
        for (int k = 0; k < %d; k++, usleep(%d))
            fn_%d(argc);
    return 0;
}
"""
FUNCTION = """
.p2align 4
.globl fn_%d
.type fn_%d,@function
fn_%d: push %%rbx
sub $%d,%%rsp
call %s@PLT
.fill 190,3,0xc0ff48
add $%d,%%rsp
pop %%rbx
ret
"""


def build(called):
    described = "\n".join(f"int described_{i}(int n) {{ return n / {i + 2}; }}" for i in range(60))
    with open(gate.path("main.c"), "w", encoding="utf-8") as file:
        file.write(MAIN % (CALLED, described, 1, CALLS, PAUSE_US, CALLED))
    with open(gate.path("much.s"), "w", encoding="utf-8") as file:
        file.write(".text\n")
        for i in range(FUNCTIONS):
            file.write(FUNCTION % (i, i, i, 16 + 16 * (i % 7), called, 16 + 16 * (i % 7)))
        file.write(".section .note.GNU-stack\n")
    program = gate.path("much")
    subprocess.run(["gcc", "-O1", "-o", program, gate.path("main.c"), gate.path("much.s")], check=True)
    return program


def record(program, title):
    target = gate.start(program)
    file = gate.path(title + ".db")
    braid = gate.start(gate.BRAID, "record", "-e", "syscall:getppid", "-p", target.pid, "-o", file,
                       "--max-overhead", "none", env=env, stderr=subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
    gate.say(target, "go")
    gate.equal(target.wait(), 0, f"{title}: the target ends as it should")
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, f"{title}: status", said)
    return gate.Recording(file), said


gate.need_root()
env = dict(os.environ, XDG_CACHE_HOME=gate.path("cache"))
os.makedirs(gate.path("cache"), exist_ok=True)
program = build("getppid")

first, said = record(program, "first")
complete = [sample.flags & 1 for sample in first.samples()]
gate.equal(len(complete), CALLS, "a sample for each call", said)
gate.equal((complete[0], complete[-1]), (0, 1), "the first stack is cut, the last one is complete", said)
gate.equal(complete, sorted(complete), "and all between are complete from one on", complete)
gate.equal(first.counters().get(LATER), CALLS - sum(complete), "the reason is counted", first.counters())
stacks = [" ".join(frames) for frames, _ in first.merged()]
gate.ok(stacks and all(f"fn_{CALLED}" in stack for stack in stacks), "the function is in all stacks", stacks)
gate.ok(any(f" main_[n] fn_{CALLED}" in " " + stack for stack in stacks), "and its caller in the complete ones",
        stacks)

second, said = record(program, "second")
gate.equal([sample.flags & 1 for sample in second.samples()], [1] * CALLS,
           "with the cache all stacks are complete", said)
gate.equal(second.counters().get(LATER), None, "and no rule is made", second.counters())

env["XDG_CACHE_HOME"] = gate.path("empty")
os.makedirs(gate.path("empty"), exist_ok=True)
target = gate.start(build("pause"))
gate.say(target, "go")
gate.wait_until(lambda: gate.run("cat", f"/proc/{target.pid}/syscall").out.startswith("34 "), "pause()")
dump = gate.run(gate.BRAID, "dump", "-p", target.pid, env=env)
gate.ok(f"fn_{CALLED}" in dump.out and "main" in dump.out and "cut" not in dump.out,
        "a dump is complete at once", dump.out, dump.err)
target.kill()
gate.done()
