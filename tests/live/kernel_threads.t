#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""A thread that the kernel has made in a process runs no user code and is in no system call: its
stack has kernel frames only and is complete."""

import os
import subprocess

import gate

gate.need_root()
target = gate.start(os.path.join(gate.OUTPUT, "fixtures/native/uring"))
said = target.stdout.readline().decode()
if said != "ready\n":
    gate.skip_all("this kernel has no io_uring")
file = gate.path("uring.db")
braid = gate.start(gate.BRAID, "record", "-e", "cpu", "-p", target.pid, "-o", file,
                   stderr=subprocess.PIPE)
QUERY = "SELECT count(*) FROM sample JOIN thread ON thread.id = thread WHERE name LIKE 'iou-%'"


def taken():
    return os.path.exists(file) and gate.Recording(file).one(QUERY) >= 20


gate.wait_until(lambda: taken() or braid.poll() is not None, "samples of the kernel's thread")
target.stdin.close()
gate.equal(target.wait(), 0, "the target ends as it should")
told = braid.stderr.read().decode()
gate.equal(braid.wait(), 0, "status", told)
recording = gate.Recording(file)
samples = [sample for sample in recording.samples() if sample.thread.startswith("iou-")]
gate.ok(len(samples) >= 20, "the kernel's thread is sampled", told)
gate.equal({sample.flags & 1 for sample in samples}, {1}, "its stacks are complete", told)
gate.equal({(image, address >> 63) for sample in samples for image, address in sample.native}, {(None, 1)},
           "kernel frames only")
gate.equal(recording.sql("SELECT DISTINCT syscall FROM sample JOIN thread ON thread.id = thread "
                         "WHERE name LIKE 'iou-%'"), [(None,)], "no system call")
gate.done()
