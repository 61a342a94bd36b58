#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Monitors of a JVM: who waits to enter one is said to, and for whom. With BRAID_EVERY_INTERPRETER of
every JVM at hand."""

import os
import subprocess

import gate
import locks
import roots
from locks import FUTEX, READ, WAITED

HOME = "/usr/lib/jvm/java-17-openjdk-amd64"
OWNER_IS_ID = 24  # of the JDK


def check(root, home, classes, major):
    java = root + home
    process = gate.start(*roots.within(root, home + "/bin/java", "-cp", classes, "Monitors"))
    gate.wait_line(process, "ready")
    target = locks.Target(process)
    target.record(locks.SWITCH)
    target.go_on()
    gate.wait_line(process, "blocked")
    tids = {}
    for tid in os.listdir(f"/proc/{target.pid}/task"):
        with open(f"/proc/{target.pid}/task/{tid}/comm", encoding="utf-8") as file:
            tids[file.read().strip()] = int(tid)
    target.until(tids["holder"], READ)
    end = target.until(tids["other"], FUTEX)
    target.go_on()
    gate.wait_line(process, "done")
    moments = target.finish()
    peer = tids["holder"] if major < OWNER_IS_ID else 0
    gate.equal(locks.last(moments, tids["other"], end), (WAITED, FUTEX, peer),
               f"{java}: a thread waits to enter a monitor", *moments)
    gate.equal([one for one in moments
                if one.lock and (one.tid != tids["other"] or
                                 one.time_ns <= end and one.peer != peer)], [],
               f"{java}: and no other one waits")
    objects = {one.object for one in moments if one.lock == WAITED and one.time_ns <= end}
    gate.equal(len(objects), 1, f"{java}: all the time for one object")
    gate.ok(not any(one.object in objects for one in moments if one.lock != WAITED),
            f"{java}: which is no futex")
    gate.say(process, "end")


gate.need_root()
gate.need_program(HOME + "/bin/javac")
subprocess.run([HOME + "/bin/javac", "--release", "8", "-nowarn", "-Xlint:-options", "-d", gate.tmp,
                "fixtures/java/Monitors.java"], check=True)
for version, place, jdk in roots.jdks(8):
    if roots.EVERY or jdk == HOME:
        with roots.Classes(place) as there:
            check(place, jdk, there, version)
gate.done()
