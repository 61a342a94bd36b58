#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Pairs of probes of which one end fires less often than the other, by chosen proportions: whoever
looks at them says the same, and nobody uses those that are dead. (core/target/liveness.h)"""

import os
import re
import signal

import gate

PAIR = os.path.join(gate.OUTPUT, "fixtures/native/pair")
ENTRY, RETURN = "function__entry", "function__return"
# Fewer hits than decide at once: they are read when all have been fired, as a second of CPU time later.
ROUNDS = 1000
PYTHON = "/usr/bin/python3.11"
# Its entries fire while sys.setprofile is in force only: a call in a few hundred.
HALF = """
import sys
def leaf(n): return n and leaf(n - 1)
print("ready", flush=True)
while True:
    sys.setprofile(lambda *_: None)
    leaf(3)
    sys.setprofile(None)
    for _ in range(200): leaf(3)
"""


def pair(*proportion):
    target = gate.start(PAIR, *proportion)
    gate.wait_line(target, "ready")
    return target


def end(target):
    target.kill()
    target.wait()


def start_braid(*args):
    """All of a group are started before the first is waited for: they mostly wait for the kernel."""
    return gate.start(gate.BRAID, *args, stdin=gate.subprocess.DEVNULL,
                      stderr=gate.subprocess.PIPE)


def output(braid):
    return braid.communicate()[0].decode()


def check_probes(name, out, dead, rung):
    """`out`: of `braid probes`. `dead`: the one that is; None: neither. `rung`: what is said of the
    sites, a pattern."""
    gate.matches(rf"(?m)^{'no' if dead else 'chosen'} +probe sites +{rung}$", out,
                 f"{name}: the ladder")
    lives = {site: life for life, site in re.findall(r"^yes +(\S+) +python:(\w+)", out, re.M)}
    gate.equal(lives, {one: "no" if one == dead else "yes" for one in (ENTRY, RETURN)},
               f"{name}: which of them lives")
    gate.equal(re.findall(r"^SILENT +python:(\w+)", out, re.M), [dead] if dead else [],
               f"{name}: which of them is silent")


def check_proportions():
    live = f"python:{ENTRY} and {RETURN} fire"
    proportions = (19, 20, None), (4, 5, ENTRY), (15, 1, None), (20, 1, RETURN)
    targets = [pair(entries, returns) for entries, returns, _ in proportions]
    braids = [start_braid("probes", "-p", target.pid) for target in targets]
    for target, braid, (entries, returns, dead) in zip(targets, braids, proportions):
        times = rf"python:{ENTRY} fired \d+ times, {RETURN} \d+ times: {dead} is dead"
        check_probes(f"{entries} to {returns}", output(braid), dead, times if dead else live)
        end(target)


def wait_for_end(args, target, braid):
    """What is said of the source, from the second line on, until the probes are given up. (Status,
    the rest of what it says.)"""
    lines = []
    while not lines or "dead" not in lines[-1]:
        lines.append(braid.stderr.readline().decode().rstrip("\n"))
        if not lines[-1]:
            break
        if len(lines) == 1:
            gate.say(target, "they are attached")
    if "record" in args:
        braid.send_signal(signal.SIGINT)
    rest = braid.stderr.read().decode()
    status = braid.wait()
    end(target)
    said = rf"pid {target.pid}: python 3\.99\.0: "
    gate.matches(rf"^{said}usdt\n{said}none: its probes are dead: those of entries fired \d+ times, "
                 rf"those of returns \d+ \(.*\)$",
                 "\n".join(line for line in lines if not line.startswith("recording pid ")), f"{' '.join(args)}: is told")
    gate.equal(re.findall(r"(\d+) times, those of returns (\d+)", lines[-1]),
               [(str(ROUNDS), str(10 * ROUNDS))], f"{' '.join(args)}: as often as they fired")
    return status, rest


def check_used():
    """Without a limit a second of the process's CPU time tells; with one, when it is exceeded."""
    ways = [("record", "--source", "auto", "--max-overhead", "none", "-o", gate.path("auto.db")),
            ("record", "--source", "probes", "-o", gate.path("probes.db")), ("calls",)]
    targets = [pair(1, 10, ROUNDS) for _ in ways]
    braids = [start_braid(*args, "-p", target.pid) for args, target in zip(ways, targets)]
    for args, target, braid in zip(ways, targets, braids):
        status, rest = wait_for_end(args, target, braid)
        name = " ".join(args[:3])
        if args[0] == "calls":
            gate.equal((status, rest.splitlines()[-1]),
                       (1, "braid: cannot count calls: no runtime here has working probes. braid record needs no "
                           "probes; braid probes shows the reasons"), "calls: is refused, and ends")
            continue
        gate.equal(status, 0, f"{name}: status")
        sources = gate.Recording(args[-1]).sql("SELECT source FROM source ORDER BY rowid")
        gate.equal(sources[-1], ("none",), f"{name}: is in the recording")


def check_bench():
    ways = (1, 10, True), (1, 1, False)
    targets = [pair(entries, returns) for entries, returns, _ in ways]
    braids = [start_braid("bench", "-p", target.pid, "-d", "0.3", "--format", "json")
              for target in targets]
    for target, braid, (entries, returns, dead) in zip(targets, braids, ways):
        out = output(braid)
        table, = gate.json.loads(out)["tables"]
        name = f"bench, {entries} to {returns}"
        rows = {row[1].split(":")[1]: row[4:] for row in table["rows"]}
        gate.equal(set(rows), {ENTRY, RETURN}, f"{name}: both probes", out)
        gate.ok(all(hits > 0 and abs(cost - hits * ns / 1e6) < 0.01 + cost / 1000
                    for hits, ns, cost in rows.values()), f"{name}: hits times the cost of a hit", rows)
        gate.equal(any(f"{ENTRY} is dead" in note for note in table["notes"]), dead,
                   f"{name}: {'says that' if dead else 'does not say that'} one is dead", out)
        end(target)


def check_real():
    target = gate.start(PYTHON, "-c", HALF)
    gate.wait_line(target, "ready")
    check_probes("CPython 3.11, setprofile now and then",
                 output(start_braid("probes", "-p", target.pid)), ENTRY,
                 rf"python:{ENTRY} fired \d+ times, {RETURN} \d+ times: {ENTRY} is dead, as it fires "
                 r"only while the semaphore of python:line is raised")
    end(target)


gate.need_root()
check_proportions()
check_used()
check_bench()
if os.path.exists(PYTHON):
    check_real()
else:
    gate.skip("CPython 3.11", f"there is no {PYTHON}")
gate.done()
