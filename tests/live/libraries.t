#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Four threads open and close fifty libraries, which take each other's addresses faster than braid reads
what is mapped. Each sample has the functions of the library that was there when it was taken."""

import os
import re
import subprocess

import gate

LIBRARIES, TURNS = 50, 100
LIBRARY = """
#include <sys/syscall.h>
#include <unistd.h>
#define ROOM(bytes) volatile char room[bytes]; room[0] = 1
{others}
__attribute__((noipa)) long inner_{i}(void) {{ ROOM({inner}); return syscall(SYS_getppid) + room[0]; }}
__attribute__((noipa)) long work_{i}(void) {{ ROOM({work}); return inner_{i}() + room[0]; }}
"""
PROGRAM = """
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void use(const char *file, const char *function)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	long (*work)(void) = library ? (long (*)(void))dlsym(library, function) : NULL;
	if (!work)
		exit(1);
	work();
	dlclose(library);
}
#define USE(i) __attribute__((noipa)) void use_##i(void) { use("./" #i ".so", "work_" #i); __asm__ volatile(""); }
"""
MAIN = """
static void *run(void *seed)
{
	unsigned at = (unsigned long)seed;
	for (long i = 0; i < %d; i++) {
		at = at * 1103515245 + 12345;
		uses[(at >> 16) %% (sizeof(uses) / sizeof(*uses))]();
	}
	return NULL;
}
int main(void)
{
	pthread_t threads[4];
	puts("ready");
	fflush(stdout);
	getchar();
	for (unsigned long i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, run, (void *)(77 * i + 1));
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
"""


def build(text, *words):
    subprocess.run(["gcc", "-O1", "-x", "c", "-", *words], input=text, text=True, check=True, cwd=gate.tmp)


def build_all():
    for i in range(LIBRARIES):
        others = "".join(f"int other_{k}(int x) {{ return x * {k} + {i}; }}\n" for k in range(i * 37 % 200))
        build(LIBRARY.format(i=i, others=others, inner=16 + i * 24 % 300, work=8 + i * 56 % 500),
              "-shared", "-fPIC", "-o", f"{i}.so")
    every = range(LIBRARIES)
    build(PROGRAM + "".join(f"USE({i})\n" for i in every) + "static void (*const uses[])(void) = { " +
          ", ".join(f"use_{i}" for i in every) + " };\n" + MAIN % TURNS, "-o", "program", "-pthread", "-ldl")


def verdict(frames):
    """What a stack shows of libraries, against the function of the program that has opened one."""
    text = ";".join(frames)
    used = set(re.findall(r"\buse_(\d+)", text))
    shown = set(re.findall(r"\b(?:work|inner)_(\d+)", text))
    if len(used | shown) > 1 or re.search(r"\bother_\d|\[\d+\.so\+", text):
        return "wrong"
    return "right" if used and shown else "cut"


gate.need_root()
gate.need_program("/usr/bin/gcc")
build_all()
target = subprocess.Popen(["./program"], cwd=gate.tmp, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
gate.wait_line(target, "ready")
file = gate.path("libraries.db")
braid = gate.start(gate.BRAID, "record", "-e", "syscall:getppid", "-p", target.pid, "-o", file,
                   "--max-overhead", "none", stderr=subprocess.PIPE)
gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
target.stdin.write(b"\n")
target.stdin.close()
gate.equal(target.wait(), 0, "the program ends as it should")
said = braid.stderr.read().decode()
gate.equal(braid.wait(), 0, "status", said)
recording = gate.Recording(file)
gate.equal(recording.count(), 4 * TURNS, "a sample of each call", said)
merged = recording.merged()
gate.equal([frames for frames, _ in merged if verdict(frames) == "wrong"], [],
           "no stack has code of a library that was not there", said)
gate.ok(any(verdict(frames) == "right" for frames, _ in merged), "stacks show libraries", merged[:3])
whole = recording.sql("SELECT count(*) FROM sample WHERE flags & 1")[0][0]
gate.equal(whole + sum(value for name, value in recording.counters().items() if name.startswith("stacks cut")),
           4 * TURNS, "what is not complete is counted", said)
gate.done()
