#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Waiting of a Java program: one sample as long as each wait, with Java's and the JVM's frames of it,
and not longer than Java's own clock says."""

import subprocess

import gate
import waiting
from waiting import FUTEX, READ

JAVA = "/usr/lib/jvm/java-17-openjdk-amd64/bin/java"
N = 5
TO_OBEY = ["call_stub", "run", "run", "lambda$start$0", "run", "serve", "obey"]

gate.need_root()
gate.need_program(JAVA)
gate.need_program(JAVA + "c")
subprocess.run([JAVA + "c", "-d", gate.tmp, "fixtures/java/waits/Waits.java"], check=True)
waiter = waiting.Waiter(JAVA, "-cp", gate.tmp, "Waits", thread="waiter")
braid = waiting.record("off-cpu", waiter.pid, options=["--max-overhead", "none"])
waits = [("monitor", [waiter.wait("monitor", FUTEX) for _ in range(N)], FUTEX, ["inMonitor"]),
         ("lock", [waiter.wait("lock", FUTEX) for _ in range(N)], FUTEX,
          ["inLock", "lock", "lock", "acquire", "acquire", "park", "park"]),
         ("pipe", [waiter.wait("pipe", READ) for _ in range(N)], READ,
          ["inPipe", "read", "read0"]),
         ("socket", [waiter.wait("socket", READ) for _ in range(N)], READ,
          ["inSocket", "read", "read", "read", "read", "implRead", "tryRead", "read", "read0"]),
         ("sleep", [waiter.sleep("sleep 20", FUTEX) for _ in range(N)], FUTEX,
          ["inSleep", "sleep"])]
recording = waiting.finish("java", braid)
for name, found, call, inner in waits:
    waiting.check_long(name, recording, waiter.tid, found, (call,),
                       lambda frames, inner=inner: waiting.runtime_part(frames, "_[j]") ==
                       [*TO_OBEY, *inner])
gate.done()
