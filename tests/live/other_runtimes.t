#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runtimes without a walker: a process is told to run one by the files that it has mapped, each of
several by a sentence of its own; a map names the code as that runtime writes names. The libraries
here have no more than what a runtime is recognized by."""

import os
import subprocess

import gate

PYTHON = "/usr/bin/python3.11"
# push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret
SCRIPT = """
import ctypes, mmap, os, sys
libraries = [ctypes.CDLL(path) for path in sys.argv[1:]]
made = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
made.write(bytes.fromhex("554889e5ffd75dc3"))
address = ctypes.addressof(ctypes.c_char.from_buffer(made))
call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(address)
getppid = ctypes.cast(ctypes.CDLL(None).getppid, ctypes.c_void_p)
print("ready", flush=True)
for line in sys.stdin:
    print(hex(address) if line == "where\\n" else call(getppid), flush=True)
"""
LUA = "native code is named, Lua functions are not"
BEAM = ("native code is named, Erlang functions are not, and their stacks end early; for names start it with erl "
        "+JPperf true (ERL_FLAGS='+JPperf true')")
BEAM_MAP = "Erlang functions have names; a stack in a built-in function ends there"


def library(name, symbol):
    path = gate.path(f"{name}.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", path], check=True,
                   input=f"int {symbol}(void) {{ return 1; }}\n", encoding="ascii")
    return path


def record(*libraries, environment=None, name=None, old=False):
    """The sources of a process, but for Python's, and the names of compiled code in its stack."""
    target = gate.marked(PYTHON, "-c", SCRIPT, *libraries, env=environment or {})
    if name:
        address = int(gate.ask(target, "where"), 16)
        with open(f"/tmp/perf-{target.pid}.map", "w", encoding="ascii") as file:
            file.write(f"{address:x} 8 {name}\n")
        if old:
            os.utime(f"/tmp/perf-{target.pid}.map", (1e9, 1e9))
    recorder = gate.recorder(1, target)
    gate.ask(target, "go")
    recording = gate.finish(recorder, 1)
    sources = recording.sql("SELECT runtime, version, source, reason FROM source WHERE runtime <> 'python'")
    frames = [frame for frames, _ in recording.merged() for frame in frames if frame.endswith("_[j]")]
    if name:
        os.unlink(f"/tmp/perf-{target.pid}.map")
    return sorted(sources), frames


def check(name, recorded, sources, frames=()):
    gate.equal(recorded, (sources, list(frames)), name)


gate.need_root()
gate.need_program(PYTHON)
lua, more_lua, beam = library("one", "lua_newstate"), library("two", "lua_newstate"), library("three", "erl_drv_busy_msgq_limits")
check("one without a map", record(lua), [("other", "Lua", "none", LUA)])
check("two files of one are one runtime", record(lua, more_lua), [("other", "Lua", "none", LUA)])
check("two runtimes", record(lua, beam),
      [("other", "Erlang (BEAM)", "none", BEAM), ("other", "Lua", "none", LUA)])
check("with its option", record(beam, environment={"ERL_FLAGS": "+JPperf true"}, name="$k:leaf/2-CodeInfoPrologue"),
      [("other", "Erlang (BEAM)", "map", BEAM_MAP)], ["k:leaf/2_[j]"])
check("with a map that is there", record(beam, name="$k:leaf/2"),
      [("other", "Erlang (BEAM)", "map", BEAM_MAP)], ["k:leaf/2_[j]"])
sources, frames = record(beam, name="$k:leaf/2", old=True)
gate.equal(([row for row in sources if row[1]], frames), ([("other", "Erlang (BEAM)", "none", BEAM)], []),
           "with a map of a former process")
sources, frames = record(lua, name="leaf")
gate.equal(([row for row in sources if row[1]], frames), ([("other", "Lua", "none", LUA)], ["leaf_[j]"]),
           "with a map that this runtime cannot have written")
gate.done()
