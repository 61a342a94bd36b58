#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Go: how many stacks reach their root, of a fixture that keeps the runtime busy (maps, garbage,
channels, stacks that grow, C and back), as it is linked and stripped, and of a program of Debian's."""

import os
import shutil
import subprocess

import lib

BUSY = os.path.join(lib.OUTPUT, "fixtures/go/busy")
LEAST = 99.9


def check(name, recording, image, pid=None):
    lib.check_complete(recording, LEAST, name, pid)
    named, frames = recording.sql("""
        SELECT total(function IS NOT NULL), count(*) FROM sample JOIN node ON node.id = native
          JOIN frame ON frame.id = node.frame JOIN image ON image.id = frame.image
          LEFT JOIN location ON location.frame = frame.id AND level = 0 WHERE path LIKE ?""", "%" + image)[0]
    lib.ok(frames >= 1000 and named >= frames * LEAST / 100, f"{name}: innermost frames have names",
           f"{named:g} of {frames}")
    with_task, samples = recording.sql("SELECT total(task != 0), count(*) FROM sample")[0]
    lib.ok(with_task > 0.5 * samples, f"{name}: goroutines are told apart", f"{with_task:g} of {samples}")


def check_busy(name, program):
    process = lib.start_ready(program)
    recording = lib.record("-p", process.pid, "-d", 10)
    lib.stop(process)
    check(name, recording, os.path.basename(program))


def check_restic():
    env = dict(os.environ, RESTIC_PASSWORD="x", RESTIC_REPOSITORY=lib.path("repository"),
               RESTIC_CACHE_DIR=lib.path("cache"))
    os.environ.update(env)
    subprocess.run(["restic", "init", "--quiet"], check=True)
    check("restic", lib.record("--", "restic", "backup", "--quiet", "/usr/lib/x86_64-linux-gnu"), "/restic")


lib.need_bpf()
if os.path.exists(BUSY):
    check_busy("busy", BUSY)
    stripped = lib.path("bare")
    subprocess.run(["strip", "-o", stripped, BUSY], check=True)
    check_busy("busy, stripped", stripped)
else:
    lib.skip("busy", "there is no Go")
if shutil.which("restic"):
    check_restic()
else:
    lib.skip("restic", "it is not installed")
lib.done()
