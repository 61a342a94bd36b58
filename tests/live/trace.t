#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""braid trace: a line for each call of a program, with its arguments and its stack; counts that add up to the calls; a
clean end by a limit and by Ctrl-C."""

import collections
import os
import re
import signal
import subprocess

import gate

PROGRAM = os.path.join(gate.OUTPUT, "fixtures/native/values")
EVENT = f"uprobe:{PROGRAM}:values__call"
CALLS = 100
LINE = re.compile(r"\d\d:\d\d:\d\d\.\d{6} +(\d+) +(\d+) (\S+) +(\S+)(.*)")


def trace(*args, calls=CALLS):
    done = subprocess.run([gate.BRAID, "trace", "--max-overhead", "none", *args, "--", PROGRAM], input=f"{calls}\n",
                          capture_output=True, text=True, check=False)
    gate.equal(done.returncode, 0, " ".join(args).replace(PROGRAM, "values"), done.stderr)
    return done


def check_lines():
    done = trace("-e", EVENT + "(number:s32, text:str, large:u64)")
    lines = [LINE.fullmatch(line) for line in done.stdout.splitlines() if line[0].isdigit()]
    texts = ["[empty]", "a text?with a tab", "x" * 64 + "...", "[unreadable]"]
    gate.equal([line.group(5) for line in lines],
               [f" number={-i} text={texts[i % 4]} large={10**10 + i}" for i in range(CALLS)], "each call, in order")
    gate.equal({line.group(1) == line.group(2) and line.group(3, 4) for line in lines}, {("values", EVENT)},
               "its thread and event")
    gate.ok(f"{CALLS} occurrences" in done.stderr and f"{CALLS // 4}  values" in done.stderr,
            "the end has their number, and what was unreadable", done.stderr)


def check_stacks():
    done = trace("--stacks", "--limit", "3", "-e", EVENT + "(number:s32)")
    lines = [line for line in done.stdout.splitlines() if line != "ready" and not line.startswith("-")]
    gate.equal([line.split("number=")[1] for line in lines if "number=" in line], ["0", "-1", "-2"], "--limit 3")
    stacks = "\n".join(re.sub(r" \(.*\)", "", line) for line in lines).split(EVENT)[1:]
    gate.ok(all(re.search(r"\n +values__call\n +run\n +main\n", stack) for stack in stacks) and len(stacks) == 3,
            "each line has its stack", done.stdout)


def check_counts():
    done = trace("--interval", "0.1", "-e", f"uprobe:{PROGRAM}:[rv][ua][nl]*", calls=2000)
    counts = collections.Counter()
    for line in done.stdout.splitlines():
        row = re.fullmatch(r" +[\d.]+/s +(\d+)  \S+  (\S+)", line)
        if row:
            counts[row.group(2)] += int(row.group(1))
    gate.equal(counts, collections.Counter({"run": 1, "values__call": 2000}), "counts add up to the calls")


def check_signal():
    target = gate.start(PROGRAM)
    gate.wait_line(target, "ready")
    braid = gate.start(gate.BRAID, "trace", "--max-overhead", "none", "-e", EVENT + "(number:s32)", "-p", target.pid,
                       stderr=subprocess.PIPE)
    gate.ok(braid.stderr.readline().startswith(b"tracing pid"), "it says when it traces")
    gate.ask(target, "3")
    for i in range(3):
        gate.ok(gate.line_of(braid).endswith(f"number={-i}"), f"call {i} is printed while it runs")
    braid.send_signal(signal.SIGINT)
    gate.ok("3 occurrences" in braid.stderr.read().decode(), "Ctrl-C: the number of occurrences")
    gate.equal(braid.wait(), 0, "... and a clean end")
    gate.say(target, "2")
    target.stdin.close()
    target.wait()


def check_clock():
    done = subprocess.run([gate.BRAID, "trace", "-e", "cpu", "--limit", "3", "--", "sh", "-c",
                           "i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done"], capture_output=True, text=True,
                          check=False)
    gate.equal([line.split()[4] for line in done.stdout.splitlines()], ["cpu"] * 3, "an event of the clock has lines")


def check_misuse():
    for args, says in (([], "-e is missing"), (["-e", "cpu", "--interval", "1", "--stacks"], "--interval prints counts"),
                       (["-e", "nothing"], "there is no event 'nothing'")):
        result = gate.braid("trace", *args, "--", "true")
        gate.ok(result.status == 2 and says in result.err, f"trace {args}: {says}", result.err)


check_lines()
check_stacks()
check_counts()
check_signal()
check_clock()
check_misuse()
gate.done()
