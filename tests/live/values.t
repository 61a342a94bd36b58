#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Values of samples: a program calls a function with known arguments, and the recording has exactly these, as
often as the program used them; arguments of functions, of both sites of a USDT probe, of tracepoints, and results."""

import collections
import os
import subprocess

import gate

PROGRAM = os.path.join(gate.OUTPUT, "fixtures/native/values")
CALLS = 100
TEXTS = ["", "a text?with a tab", "x" * 64 + "...", "[unreadable]"]
VALUES = ("SELECT event.name, sample.id, label.key, label.value, sample.weight FROM sample JOIN event ON "
          "event.id = sample.event JOIN label ON label.context = sample.context")


def recorded(events, *command, text=None):
    """The samples of each event, as sorted texts of their values, and the recording."""
    file = gate.path(f"{len(os.listdir(gate.tmp))}.db")
    done = subprocess.run([gate.BRAID, "record", "-e", events, "-c", "1", "--max-overhead", "none", "-o", file, "--",
                           *command], input=text, capture_output=True, text=True, check=False)
    gate.equal(done.returncode, 0, f"{events.replace(PROGRAM, str())}: recorded", done.stderr)
    recording = gate.Recording(file)
    samples = collections.defaultdict(dict)
    for event, sample, key, value, _ in recording.sql(VALUES):
        samples[event, sample][key] = value
    seen = collections.defaultdict(list)
    for (event, _), labels in samples.items():
        seen[event.split(":")[0]].append(sorted(f"{key[6:]}={value}" for key, value in labels.items()))
    return {event: sorted(rows) for event, rows in seen.items()}, recording


def expected(row):
    return sorted(sorted(row(i)) for i in range(CALLS))


def check_calls():
    seen, recording = recorded(
        f"uprobe:{PROGRAM}:values__call(number:s32, text:str, large:u64, small:s16, byte:u8, pointer:ptr),"
        f"uretprobe:{PROGRAM}:values__call(ret:s64)", PROGRAM, text=f"{CALLS}\n")
    gate.equal(seen["uprobe"], expected(lambda i: [
        f"number={-i}", f"text={TEXTS[i % 4]}", f"large={10**10 + i}", "small=-7", f"byte={200 + i % 50}",
        "pointer=0x1234"]), "the arguments of each call")
    gate.equal(seen["uretprobe"], expected(lambda i: [f"ret={-2 * i - 200 - i % 50}"]), "the result of each call")
    gate.equal(recording.counters().get("values of samples missing: memory not readable"), CALLS // 4,
               "unreadable texts are counted")
    rows = recording.merged("--event", f"uprobe:{PROGRAM}:values__call")
    gate.equal((len(rows), sum(n for _, n in rows)), (1, CALLS), "all calls have one stack")


def check_stack_arguments():
    seen, _ = recorded(f"uprobe:{PROGRAM}:values__call(_, _, _, _, _, _, seventh:s32, e=arg8)", PROGRAM,
                       text=f"{CALLS}\n")
    gate.equal(seen["uprobe"], expected(lambda i: [f"seventh={-70 - i}", f"e={1 << 63}"]), "arguments on the stack")


def check_sites():
    """Odd and even calls hit different sites, with their arguments in different places."""
    seen, _ = recorded(f"usdt:{PROGRAM}:braid:value(n, text:str, arg3)", PROGRAM, text=f"{CALLS}\n")
    gate.equal(seen["usdt"], expected(lambda i: [f"n={-i}", f"text={TEXTS[i % 4]}", "arg3=-7"]),
               "the arguments of both sites of a probe")
    seen, _ = recorded(f"usdt:{PROGRAM}:braid:value()", PROGRAM, text=f"{CALLS}\n")
    gate.equal([len(row) for row in seen["usdt"]], [3] * CALLS, "an empty list: all arguments")


def check_kernel():
    name = gate.path("a file")
    with open(name, "w", encoding="ascii") as file:
        file.write("text")
    seen, _ = recorded("tracepoint:syscalls:sys_enter_openat(_, name:str),"
                       "tracepoint:sched:sched_process_exec(p->comm, bprm->argc, bprm->filename)",
                       "/bin/cat", name, name)
    gate.equal(sum(row == [f"name={name}"] for row in seen["tracepoint"]), 2, "a system call's text")
    gate.ok(["argc=3", "comm=cat", "filename=/bin/cat"] in seen["tracepoint"], "fields behind a tracepoint's arguments",
            seen["tracepoint"])
    seen, _ = recorded("tracepoint:syscalls:sys_exit_openat(ret)", "/bin/cat", gate.path("none"))
    gate.ok(["ret=-2"] in seen["tracepoint"], "a system call's result", seen["tracepoint"])


def check_interval():
    seen, _ = recorded(f"uprobe:{PROGRAM}:values__call:latency:uretprobe:{PROGRAM}:values__call(ret:s64)", PROGRAM,
                       text=f"{CALLS}\n")
    gate.equal(seen["uprobe"], expected(lambda i: [f"ret={-2 * i - 200 - i % 50}"]), "the result at an interval's end")


check_calls()
check_stack_arguments()
check_sites()
check_kernel()
check_interval()
gate.done()
