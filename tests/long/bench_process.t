#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""`braid bench -p PID`: hits a second are those that the process counts itself; what they cost is
hits times the cost of a hit; what cannot be looked at is refused; killed, it leaves nothing behind."""

import bisect
import json
import os
import re
import signal
import subprocess
import threading

import lib
import pythons

RATE = 20000
SECONDS = 1.0
NOBODY = 65534


class Paced:
    """A process that tells how many calls it has made until when."""

    def __init__(self, python):
        self.process = python.start("calls/paced.py", RATE)
        self.pid = self.process.pid
        self.times, self.calls = [], []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            words = line.split()
            if len(words) == 2:
                self.calls.append(int(words[1]))
                self.times.append(float(words[0]))

    def rates(self, seconds):
        """The lowest and the highest number of calls a second in any such time."""
        found = []
        for i, begin in enumerate(self.times):
            k = bisect.bisect_left(self.times, begin + seconds)
            if k < len(self.times):
                found.append((self.calls[k] - self.calls[i]) / (self.times[k] - begin))
        return min(found), max(found)

    def stop(self):
        self.process.kill()
        self.process.wait()


def bench(pid, *args):
    """(tables by name, what it told meanwhile)"""
    command = [lib.BRAID, "bench", "-p", str(pid), "-d", str(SECONDS), "--format", "json", *args]
    run = subprocess.run(command, capture_output=True, timeout=600, check=False)
    told = run.stderr.decode()
    if run.returncode:
        raise RuntimeError(told)
    tables = {table["name"]: table for table in json.loads(run.stdout)["tables"]}
    return {name: (rows_of(table), table["notes"]) for name, table in tables.items()}, told


def rows_of(table):
    names = [column["name"] for column in table["columns"]]
    return [dict(zip(names, row + [None] * len(names))) for row in table["rows"]]


def is_near(got, want, share=0.01, least=0.01):
    return abs(got - want) <= max(share * abs(want), least)


def check_hits(name, paced, rows):
    low, high = paced.rates(SECONDS)
    for row in rows:
        lib.ok(0.98 * low <= row["hits"] <= 1.02 * high,
               f"{name}: hits/s of {row['probe']} are the calls that the process counts",
               f"{row['hits']} is not from {low:.0f} to {high:.0f}")
        lib.ok(row["a hit"] > 0, f"{name}: a hit of {row['probe']} costs something", row)


def check_formula(name, table):
    rows, notes = table
    wrong = [row for row in rows if not is_near(row["CPU time"], row["hits"] * row["a hit"] / 1e6)]
    lib.equal(wrong, [], f"{name}: CPU time = hits x a hit")
    whole, share = map(float, re.findall(r"Total: ([\d.]+) ms of CPU time a second, ([\d.]+) % of this "
                                         "machine", "\n".join(notes))[0])
    lib.ok(is_near(whole, sum(row["CPU time"] for row in rows), least=0.02), f"{name}: the sum", notes)
    lib.ok(is_near(share, whole / 10 / os.cpu_count(), least=0.02), f"{name}: of this machine", notes)
    lib.ok(any("lower bounds of the cost of `braid calls`" in note for note in notes),
           f"{name}: says what that means", notes)


def check_python(python):
    name = f"{python.label} {python.kind}"
    paced = Paced(python)
    tables, said = bench(paced.pid)
    check_hits(name, paced, tables["probes"][0])
    check_formula(name, tables["probes"])
    probes = ("python:function__entry, python:function__return" if python.dtrace else
              "uprobe:_PyEval_EvalFrameDefault, uretprobe:_PyEval_EvalFrameDefault")
    lib.matches(rf"counting hits in PID {paced.pid} for 1.0 s, of {probes}: each costs it about a "
                "microsecond", said, f"{name}: announced")
    return paced


def check_without(python):
    """A version that has no probes at its calls: why."""
    name = f"{python.label}: no probes"
    paced = Paced(python)
    tables, _ = bench(paced.pid)
    paced.stop()
    lib.matches(r"no calls are seen by probes.*3\.12 to 3\.14 have no probes for calls",
                "\n".join(tables["probes"][1]), f"{name}: says why")


def check_native():
    target = lib.start_ready(lib.fixture("shares"))
    tables, said = bench(target.pid)
    lib.stop(target)
    lib.matches("It runs no runtime that braid supports", "\n".join(tables["probes"][1]),
                "no runtime: says so")
    lib.equal((tables["probes"][0], "counting" in said), ([], False), "no runtime: nothing to count")


# --- what cannot be looked at ---

def check_refused(name, result, pattern):
    lines = [line for line in result.err.splitlines() if line.startswith("braid: ")]
    lib.equal((result.status, len(lines), result.out), (1, 1, ""), f"{name}: exit 1, one line",
              result)
    lib.matches(pattern, lines[0] if lines else "", f"{name}: says what is wrong")


def check_refusals():
    gone = subprocess.Popen(["true"])
    gone.wait()
    check_refused("no such PID", lib.braid("bench", "-p", gone.pid), f"PID {gone.pid}")
    sleeper = lib.start("sleep", "1000")
    nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    copy = lib.path("braid")
    subprocess.run(["install", "-m755", lib.BRAID, copy], check=True)
    os.chmod(lib.tmp, 0o755)
    run = subprocess.run([*nobody, copy, "bench", "-p", str(sleeper.pid)], capture_output=True,
                         check=False)
    check_refused("not permitted", lib.Result(run.returncode, run.stdout.decode(),
                                              run.stderr.decode()), "root")
    lib.stop(sleeper)
    threads = [p for p in (2, 3, 4) if lib.state_of(p) and not os.path.exists(f"/proc/{p}/exe")]
    if threads:
        check_refused("kernel thread", lib.braid("bench", "-p", threads[0]), "kernel thread")
    else:
        lib.skip("kernel thread", "none to be seen here")


def until_told(process, text):
    for line in process.stderr:
        if text in line:
            return True
    return False


def check_ending(paced):
    """Of the process, while its probes are counted."""
    process = lib.start_braid("bench", "-p", paced.pid, "-d", "2")
    lib.ok(until_told(process, b"counting"), "a process that ends: is being counted")
    paced.stop()
    error = process.communicate(timeout=lib.PATIENCE_S)[1].decode()
    lib.equal(process.returncode, 1, "a process that ends: status", error)
    lib.matches(rf"braid: PID {paced.pid} .*ended", error, "a process that ends: says so")


# --- what is left ---

def check_killed(paced):
    name = "SIGKILL while counting"
    process = lib.start_braid("bench", "-p", paced.pid, "-d", "100")
    lib.ok(until_told(process, b"counting"), f"{name}: it has come to that")
    ids = lib.wait_for(lambda: attached(process.pid), f"{name}: begun")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    try:
        lib.wait_for(lambda: not any(ids[kind] & lib.all_bpf_ids(kind) for kind in ids), "clean-up")
    except TimeoutError:
        pass
    lib.equal({kind: ids[kind] & lib.all_bpf_ids(kind) for kind in ids}, {kind: set() for kind in ids},
              f"{name}: no program, map or link is left")
    calls = paced.calls[-1]
    lib.wait_for(lambda: paced.calls[-1] > calls + RATE, "the target's calls")
    lib.ok(True, f"{name}: the target goes on")


def attached(pid):
    ids = lib.bpf_ids(pid)
    return ids if len(ids["link"]) >= 2 else None


lib.need_bpf()
builds = pythons.pythons()[0]
probed = [python for python in builds if (3, 8) <= python.version < (3, 11)]
chosen = [next((p for p in reversed(probed) if p.dtrace == dtrace), None)
          for dtrace in (True, False)]
last = None
for python_build, what in zip(chosen, ("USDT", "function probes")):
    if not python_build:
        lib.skip(what, "no CPython 3.8 to 3.10 has them here")
        continue
    if last:
        last.stop()
    last = check_python(python_build)
without = next((python for python in builds if (3, 12) <= python.version < (3, 15)), None)
if without:
    check_without(without)
else:
    lib.skip("no probes", "no CPython 3.12 to 3.14 is here")
check_native()
check_refusals()
if last:
    check_killed(last)
    check_ending(last)
lib.done()
