#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""braid dump joins threads that have one stack, and folds idle ones. --all shows each, and the JSON has
each, with its own lock and whether it is idle."""

import dumps
import gate
import pythons
from gate import equal, matches

PROGRAM = """
import concurrent.futures, threading
pool = concurrent.futures.ThreadPoolExecutor(2)
both = threading.Barrier(3)
for i in range(2):
    pool.submit(both.wait)
both.wait()
gate, other = threading.Event(), threading.Event()
def same():
    gate.wait()
def alone():
    other.wait()
threads = [threading.Thread(target=same, name=f"same-{i}") for i in range(3)]
threads.append(threading.Thread(target=alone, name="alone"))
for thread in threads:
    thread.start()
print("ready", flush=True)
gate.wait()
"""

gate.need_program(pythons.SYSTEM)
process = gate.start(pythons.SYSTEM, "-c", PROGRAM)
gate.wait_line(process, "ready")


def settled():
    """All wait, the workers of the pool for work."""
    dump = dumps.dump("-p", process.pid)
    return (all(thread.state == "sleeping" for thread in dump.threads.values()) and
            sum(thread.said.get("idle", False) for thread in dump.threads.values()) == 2 and dump)


dump = gate.wait_until(settled, "the waits")
same = sorted(tid for tid, thread in dump.threads.items() if "same" in thread.functions("python"))
idle = sorted(tid for tid, thread in dump.threads.items() if thread.said.get("idle"))
equal(len(same), 3, "three threads have one stack")
equal(["_worker" in dump.threads[tid].functions("python") for tid in idle], [True, True],
      "the pool's workers are idle")

text = gate.braid("dump", "-p", process.pid).out
named = ", ".join(f'{tid} "{dump.threads[tid].name}"' for tid in same)
matches(rf"\n3 threads sleeping in futex \([^)]*\)[^\n]*: {named}\n", text, "one head for the three")
equal(text.count("  > python  same ("), 1, "their stack is shown once")
equal(text.count("  > python  alone ("), 1, "another stack is shown, too")
named = ", ".join(f'{tid} "{dump.threads[tid].name}"' for tid in idle)
matches(rf"\n2 idle threads \(--all shows them\): {named}\n", text, "idle threads are one line")
equal("_worker (" in text, False, "without their stacks")

text = gate.braid("dump", "--all", "-p", process.pid).out
equal(text.count("  > python  same ("), 3, "--all: each of the three has its stack")
equal(text.count("  > python  _worker ("), 2, "--all: the idle ones have theirs")
equal(text.count("\nThread "), len(dump.threads), "--all: each thread has its head")
result = gate.braid("dump", "--all", "--json", "-p", process.pid)
equal(result.status, 2, "--all is for people", result.err)
gate.done()
