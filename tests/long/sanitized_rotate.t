#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""record -a --rotate 2, built with sanitizers, beside programs that come and go for good, until files of
theirs were released (core/target/images_unused.c) and others are known: memory that is misused and
undefined behaviour end braid."""

import os
import re
import shutil
import signal
import subprocess

import lib

SANITIZED = os.path.join(lib.OUTPUT, "san")
FLAGS = {"ASAN_OPTIONS": "detect_leaks=1", "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
         "LSAN_OPTIONS": "suppressions=" + os.path.abspath("tests/lsan.supp")}
# Wants a CPU until it is sampled, in a program and a library that only it has.
PROGRAM = "import ctypes, sys\nctypes.CDLL(sys.argv[1])\nprint('ready', flush=True)\nwhile True: sum(range(1000))"


def metrics(file):
    if not os.path.exists(file):
        return {}
    with open(file, encoding="utf-8") as text:
        return {name: float(value) for name, value in re.findall(r"^(\w+) (\S+)$", text.read(), re.M)}


def come_and_go(number):
    """A program and a library of its own, which are removed."""
    program, library = lib.path(f"program-{number}"), lib.path(f"library-{number}.so")
    shutil.copy("/usr/bin/python3.11", program)
    shutil.copy("/lib/x86_64-linux-gnu/libm.so.6", library)
    with open(library, "ab") as file:
        file.write(os.urandom(64))
    process = lib.start(program, "-c", PROGRAM, library, stdout=subprocess.PIPE)
    process.stdout.readline()
    return process, (program, library)


lib.need_bpf()
subprocess.run(["make", "-j2", "SAN=address,undefined", f"OUTPUT={SANITIZED}", f"{SANITIZED}/braid"],
               stdout=subprocess.DEVNULL, check=True)
with open(f"{SANITIZED}/braid", "rb") as built:
    lib.ok(b"__asan_init" in built.read(), "it is built with sanitizers")
file, directory = lib.path("metrics"), lib.path("d")
braid = lib.start(SANITIZED + "/braid", "record", "-a", "-F", "499", "--rotate", "2", "--keep", "10", "-o",
                  directory, "--metrics", file, stderr=subprocess.PIPE, env={**os.environ, **FLAGS})
ROUNDS = 0
while braid.poll() is None and metrics(file).get("braid_code_files_released_total", 0) < 20:
    seen = metrics(file).get("braid_samples_total", 0)
    process, files = come_and_go(ROUNDS)
    lib.wait_for(lambda: braid.poll() is not None or
                 metrics(file).get("braid_samples_total", 0) > seen + 200, "samples")
    process.kill()
    process.wait()
    for path in files:
        os.remove(path)
    ROUNDS += 1
figures = metrics(file)
print("#", ROUNDS, "rounds", figures)
lib.ok(braid.poll() is None, "it goes on")
braid.send_signal(signal.SIGINT)
said = braid.communicate()[1].decode(errors="replace")
lib.equal(braid.returncode, 0, "status", said)
lib.ok(not re.search(r"Sanitizer|runtime error", said), "sanitizers: nothing", said[-3000:])
lib.ok(figures.get("braid_code_files_released_total", 0) >= 20 and figures["braid_code_files"] > 0,
       "files were released, and others are known", figures)
lib.ok(figures["braid_recordings_finished_total"] > 30, "recordings were finished meanwhile")
result = subprocess.run([lib.BRAID, "report", directory], capture_output=True, check=False)
lib.equal(result.returncode, 0, "report: status", result.stderr)
lib.done()
