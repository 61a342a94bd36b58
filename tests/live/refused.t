#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""A kernel that refuses a BPF program: the sentence has the first warning and the verifier's reason, -v
shows the whole log, and nothing is left behind. fixtures/native/refuse.c is that kernel."""

import errno
import os

import gate

REFUSE = os.path.join(gate.OUTPUT, "fixtures/native/refuse")
LOG = ["Validating hook() func#3...", "0: R1=mem(off=0,imm=0) R10=fp0", "R9 invalid mem access 'scalar'",
       "processed 12 insns (limit 1000000) max_states_per_insn 0", "-- END PROG LOAD LOG --"]


def reason(program):
    return (f"cannot load the BPF programs: Invalid argument (libbpf: prog '{program}': BPF program load failed: "
            "Invalid argument; the verifier: R9 invalid mem access 'scalar'). braid record -v shows the whole log")


def check(name, program, command, *options, prefix="", target=("-d", "0.1", "--", "/bin/true")):
    """Without -v there is the sentence alone; with it, the log comes before."""
    env = dict(os.environ, LD_PRELOAD=REFUSE, REFUSED=program)
    file = gate.path("never.db")
    output = ("-o", file) if command == "record" else ()
    status, out, err = gate.braid(command, *options, *output, *target, env=env)
    gate.equal((status, out, err), (1, "", f"braid: {prefix}{reason(program)}\n"), f"{name}: one sentence")
    status, out, err = gate.braid(command, "-v", *options, *output, *target, env=env)
    lines = err.splitlines()
    begin = f"libbpf: prog '{program}': -- BEGIN PROG LOAD LOG --"
    at = lines.index(begin) if begin in lines else 0
    gate.equal((status, out, lines[at + 1:at + 1 + len(LOG)], lines[-1]),
               (1, "", LOG, f"braid: {prefix}{reason(program)}"), f"{name}: -v shows the log first", *lines)
    gate.ok(not os.path.exists(file), f"{name}: no recording is left")


def check_memory():
    """As in a memory cgroup that is too small for the maps: the kernel is not to blame."""
    env = dict(os.environ, LD_PRELOAD=REFUSE, REFUSED="on_fork", REFUSED_ERRNO=str(errno.ENOMEM))
    result = gate.braid("record", "-o", gate.path("never.db"), "-d", "0.1", "--", "/bin/true", env=env)
    gate.equal(result, (1, "", "braid: cannot load the BPF programs: no memory for them and their maps. Raise the "
                               "memory limit of braid's cgroup (memory.max; systemd: MemoryMax), or record fewer "
                               "events\n"), "no memory: says so, and the way out")


gate.need_root()
check("the unwinder", "unwind_stack", "record")
check("what follows processes", "on_fork", "record", "-r", "native")
check("a second type of triggers", "on_uprobe", "record", "-e", "cpu,uprobe:libc.so.6:malloc")
check("probes", "shadow_on_fork", "calls")
check_memory()
gate.done()
