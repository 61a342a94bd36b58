#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Pairs of probes of which one end fires less often than the other, by chosen proportions: whoever
looks at them says the same, and nobody uses those that are dead. (core/liveness.h)"""

import os
import re
import signal

import gate

PAIR = os.path.join(gate.OUTPUT, "fixtures/native/pair")
ENTRY, RETURN = "function__entry", "function__return"
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


def pair(entries, returns):
    target = gate.start(PAIR, entries, returns)
    gate.wait_line(target, "ready")
    return target


def end(target):
    target.kill()
    target.wait()


def check_probes(name, target, dead, rung):
    """`dead`: the one that is; None: neither. `rung`: what is said of the sites, a pattern."""
    out = gate.braid("probes", "-p", target.pid).out
    gate.matches(rf"(?m)^{'no' if dead else 'chosen'} +probe sites +{rung}$", out,
                 f"{name}: the ladder")
    lives = {site: life for life, site in re.findall(r"^yes +(\S+) +python:(\w+)", out, re.M)}
    gate.equal(lives, {one: "no" if one == dead else "yes" for one in (ENTRY, RETURN)},
               f"{name}: which of them lives")
    gate.equal(re.findall(r"^SILENT +python:(\w+)", out, re.M), [dead] if dead else [],
               f"{name}: which of them is silent")


def check_proportions():
    live = f"python:{ENTRY} and {RETURN} fire"
    for entries, returns, dead in (19, 20, None), (4, 5, ENTRY), (15, 1, None), (20, 1, RETURN):
        target = pair(entries, returns)
        times = rf"python:{ENTRY} fired \d+ times, {RETURN} \d+ times: {dead} is dead"
        check_probes(f"{entries} to {returns}", target, dead, times if dead else live)
        end(target)


def wait_for_verdict(*args):
    """What is said of the source, from the second line on, until the probes are given up."""
    target = pair(1, 10)
    file = gate.path("dead.db")
    braid = gate.start(gate.BRAID, *args, "-p", target.pid, *(["-o", file] if "record" in args
                                                              else []),
                       stderr=gate.subprocess.PIPE)
    lines = []
    while not lines or "dead" not in lines[-1]:
        lines.append(braid.stderr.readline().decode().rstrip("\n"))
        if not lines[-1]:
            break
    if "record" in args:
        braid.send_signal(signal.SIGINT)
    rest = braid.stderr.read().decode()
    status = braid.wait()
    end(target)
    said = rf"pid {target.pid}: python 3\.99\.0: "
    gate.matches(rf"^{said}usdt\n{said}none: its probes are dead: those of entries fired \d+ times, "
                 rf"those of returns \d+ \(.*\)$", "\n".join(lines), f"{' '.join(args)}: is told")
    entries, returns = map(int, re.findall(r"(\d+) times, those of returns (\d+)", lines[-1])[0])
    # Ten to one; but the two are not attached, nor are their hits read, at one moment.
    gate.ok(5 * entries <= returns <= 20 * entries,
            f"{' '.join(args)}: as often as they fired", lines)
    return status, rest, file


def check_used():
    """Without a limit a second of the process's CPU time tells; with one, the first window."""
    for args in (("record", "--source", "auto", "--max-overhead", "none"),
                 ("record", "--source", "probes")):
        status, _, file = wait_for_verdict(*args)
        gate.equal(status, 0, f"{' '.join(args)}: status")
        sources = gate.Recording(file).sql("SELECT source FROM source ORDER BY rowid")
        gate.equal(sources[-1], ("none",), f"{' '.join(args)}: is in the recording")
    status, rest, _ = wait_for_verdict("calls")
    gate.equal((status, rest.splitlines()[-1]),
               (1, "braid: no calls can be counted here; `braid record` needs no probes, and "
                   "`braid probes` tells more"), "calls: is refused, and ends")


def check_bench():
    for entries, returns, wanted in (1, 10, False), (1, 1, True):
        target = pair(entries, returns)
        out = gate.braid("bench", "-p", target.pid, "-d", "0.3").out
        name = f"bench, {entries} to {returns}"
        gate.equal("record --source walk -F 99" in out, True, f"{name}: predicts samples", out)
        gate.equal(["\n  calls  " in out, "record --source probes" in out], [wanted, wanted],
                   f"{name}: {'predicts' if wanted else 'does not predict'} calls", out)
        gate.equal(f"{ENTRY} is dead" in out, not wanted, f"{name}: says why not", out)
        end(target)


def check_real():
    target = gate.start(PYTHON, "-c", HALF)
    gate.wait_line(target, "ready")
    check_probes("CPython 3.11, setprofile now and then", target, ENTRY,
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
