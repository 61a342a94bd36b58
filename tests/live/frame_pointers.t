#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Code that a process makes, with a word in its frame that may be a return address: the frame
pointer is believed if the process has a runtime whose compiler keeps them, in memory of a size that
only a compiler reserves. The library has no more than what the runtime is recognized by."""

import subprocess

import gate

PYTHON = "/usr/bin/python3.11"
# push %rbp; mov %rsp,%rbp; sub $32,%rsp; lea 7(%rip),%rax; mov %rax,8(%rsp); call *%rdi;
# xor %ecx,%ecx; leave; ret: what 7(%rip) is follows the call.
SCRIPT = """
import ctypes, mmap, sys
library = ctypes.CDLL(sys.argv[2])
made = mmap.mmap(-1, int(sys.argv[1]), prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
made.write(bytes.fromhex("554889e54883ec20488d05070000004889442408ffd731c9c9c3"))
call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(ctypes.addressof(ctypes.c_char.from_buffer(made)))
getppid = ctypes.cast(ctypes.CDLL(None).getppid, ctypes.c_void_p)
print("ready", flush=True)
for line in sys.stdin:
    print(call(getppid), flush=True)
"""
UNPROVEN = "stacks cut: no unwind rule and no proof of a frame pointer"


def library(name, source):
    path = gate.path(f"{name}.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", path], check=True, input=source, encoding="ascii")
    return path


def check(name, size, path, complete):
    target = gate.marked(PYTHON, "-c", SCRIPT, str(size), path)
    recorder = gate.recorder(1, target)
    gate.ask(target, "go")
    recording = gate.finish(recorder, 1)
    gate.equal(recording.sql("SELECT flags & 1 FROM sample"), [(complete,)], f"{name}: complete or not")
    gate.equal(recording.counters().get(UNPROVEN, 0), 1 - complete, f"{name}: cut")


gate.need_root()
gate.need_program(PYTHON)
engine = library("engine", "int _ZN2v87Isolate10GetCurrentEv(void) { return 1; }\n"
                 'const char option[] = "interpreted-frames-native-stack";\n')
other = library("other", "int lua_newstate(void) { return 1; }\n")
check("its compiler's memory", 32 << 20, engine, 1)
check("too little memory", 1 << 20, engine, 0)
check("a runtime that says nothing", 32 << 20, other, 0)
gate.done()
