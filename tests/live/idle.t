#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs in which all threads but one wait because there is nothing to do, the runtimes' own threads
among them: that one is shown, with all of its time, the others are hidden, and it is said how much."""

import os
import re
import subprocess

import gate

JAVA = "/usr/lib/jvm/java-17-openjdk-amd64/bin/java"
SECONDS = 0.5


def tasks(pid):
    return sorted(map(int, os.listdir(f"/proc/{pid}/task")))


def waiting(pid):
    """Do all of its threads wait?"""
    for tid in tasks(pid):
        with open(f"/proc/{pid}/task/{tid}/stat", encoding="utf-8") as stat:
            if stat.read().rpartition(")")[2].split()[0] != "S":
                return False
    return True


def folded(file, *words):
    result = gate.braid("report", "--format", "folded", "--by", "thread", "--state", "waiting",
                        *words, file)
    sums = {}
    for text in result.out.splitlines():
        stack, _, weight = text.rpartition(" ")
        thread, _, frames = stack.partition(";")
        tid = int(re.fullmatch(r".* \((\d+)\)", thread)[1])
        sums.setdefault(tid, []).append((int(weight), frames))
    return sums, result.err


def check(name, leaf, *command):
    """The thread that has `leaf` in its only stack is shown."""
    target = gate.start(*command)
    gate.wait_line(target, "ready")
    gate.wait_until(lambda: waiting(target.pid), "threads that wait")
    file = gate.path(name + ".db")
    result = gate.braid("record", "-e", "off-cpu", "-d", SECONDS, "-p", target.pid, "-o", file)
    gate.equal(result.status, 0, f"{name}: recorded", result.err)
    shown, err = folded(file)
    everything, quiet = folded(file, "--idle", "show")
    gate.equal([len(stacks) for stacks in shown.values()], [1], f"{name}: one stack is shown", shown)
    thread = next(iter(shown), None)
    frames = shown[thread][0][1] if thread else ""
    gate.ok(re.search(leaf, frames), f"{name}: it is that of the thread that has work", frames)
    gate.equal(shown.get(thread), everything.get(thread), f"{name}: with all of its time")
    gate.ok(set(everything) <= set(tasks(target.pid)) and len(everything) > 1,
            f"{name}: there are others", everything)
    told = re.fullmatch(r"hidden as idle: .* of .* in (\d+) threads? \(--idle show\)\n", err)
    gate.equal(told and int(told[1]), len(everything) - 1, f"{name}: how many is told", err)
    gate.equal(quiet, "", f"{name}: nothing is hidden from who wants it")
    target.kill()
    target.wait()
    return len(everything)


gate.need_root()
if os.path.exists("/usr/bin/python3"):
    count = check("python", "<module> .*read", "/usr/bin/python3", "fixtures/python/idle/idle.py")
    gate.equal(count, 9, "python: all threads are there")
if os.path.exists("/usr/bin/ruby"):
    check("ruby", "block in <main> .*IO#gets", "/usr/bin/ruby", "fixtures/ruby/idle/idle.rb")
if os.path.exists(JAVA + "c"):
    subprocess.run([JAVA + "c", "-d", gate.tmp, "fixtures/java/idle/Idle.java"], check=True)
    check("java", "Idle.main .*FileInputStream.read", JAVA, "-cp", gate.tmp, "Idle")
if os.path.exists("/usr/bin/node"):
    check("node", "worker::Worker.*read", "/usr/bin/node", "fixtures/node/idle/idle.js")
gate.done()
