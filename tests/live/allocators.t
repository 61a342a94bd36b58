#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""alloc:malloc, and what is outstanding of it, with other allocators than glibc's: loaded before it
(jemalloc, tcmalloc), instead of it (musl), within the program. Each call counts once, for the allocator
that is really called."""

import os
import re
import signal
import subprocess
import sys

import gate

ALLOCS = os.path.join(gate.OUTPUT, "fixtures/native/allocs")
SOURCE = "fixtures/native/allocs.c"
LIBRARIES = "/usr/lib/x86_64-linux-gnu/"
LEFT_OUT = "too many allocating functions: calls between them count twice"
LINES = ["malloc 3 100", "malloc 1 3000000", "calloc 5 40", "realloc 2 1000", "aligned 1 64",
         "keep 3 1000", "keep_calloc 2 400", "keep_aligned 1 640", "grow 1 30000", "keep 1 3000000",
         "drop 1 0", "keep 1 48"]
ALLOCATED = sorted([100] * 3 + [3000000] * 2 + [40] * 5 + [1000, 2000] * 2 + [64] * 3 +
                   [1000] * 3 + [400] * 2 + [640] * 3 + [30000, 48])
HELD = sorted([1000] * 3 + [400] * 2 + [640] * 2 + [30000, 48])


def record(name, command, environment, lines, *options):
    target = gate.start(*command, env={**os.environ, **environment})
    gate.wait_line(target, "ready")
    file = gate.path(f"{len(os.listdir(gate.tmp))}.db")
    braid = gate.start(gate.BRAID, "record", "-e", "alloc:malloc", "-c", "1", *options,
                       "--max-overhead", "none", "-p", target.pid, "-o", file,
                       stderr=gate.subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
    for line in lines:
        gate.equal(gate.ask(target, line), "done", f"{name}: {line}")
    braid.send_signal(signal.SIGINT)
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, f"{name}: status", said)
    target.stdin.close()
    target.wait()
    return gate.Recording(file), said


def check(name, command, environment=None):
    for options, wanted, what in (((), ALLOCATED, "allocated"),
                                  (("--outstanding",), HELD, "outstanding")):
        recording, said = record(name, command, environment or {}, LINES, *options)
        gate.equal(recording.counters(), {}, f"{name}: nothing is lost", said)
        gate.equal(sorted(value for value, in recording.sql("SELECT value FROM sample")), wanted,
                   f"{name}: what is {what}, each once")


def check_forked():
    """Programs that a running shell starts are not held: each that runs without probes is told of."""
    shell = gate.start("/bin/sh", "-c", "read x; for i in $(seq 20); do /bin/true; done; echo done; read x")
    file = gate.path("forked.db")
    braid = gate.start(gate.BRAID, "record", "-e", "alloc:malloc", "-c", "1", "--max-overhead", "none",
                       "-p", shell.pid, "-o", file, stderr=gate.subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
    gate.say(shell, "")
    gate.wait_line(shell, "done")
    gate.say(shell, "")
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, "forked: status", said)
    found = [int(n) for n in re.findall(r"(\d+) process(?:es)? (?:ended without probes|that started later had)", said)]
    gate.ok(sum(found) >= 20, "forked: each program that had no probes from its start is counted", said)


def check_launched():
    """A shell executes one program several times, each time with another allocator loaded before it:
    each has its probes before it runs."""
    libraries = [path for path in (LIBRARIES + "libjemalloc.so.2",
                                   LIBRARIES + "libtcmalloc_minimal.so.4") if os.path.exists(path)]
    script = f'printf "%s\\n" "$@" | {ALLOCS}; ' + "".join(
        f'printf "%s\\n" "$@" | LD_PRELOAD={library} {ALLOCS}; ' for library in libraries)
    file = gate.path("launched.db")
    result = gate.braid("record", "-e", "alloc:malloc", "-c", "1", "--max-overhead", "none", "-o", file,
                        "--", "sh", "-c", script, "-", *LINES)
    gate.equal(result.status, 0, "launched: status", result.err)
    sums = dict(gate.Recording(file).sql("SELECT value, count(*) FROM sample WHERE value IN "
                                         "(100, 30000, 3000000) GROUP BY 1"))
    times = 1 + len(libraries)
    gate.equal(sums, {100: 3 * times, 30000: times, 3000000: 2 * times},
               "launched: all that each program allocates", result.err)
    gate.equal("mapped an allocator" in result.err, False, "launched: nothing is late",
               result.err)


def check_late():
    """An allocator that is loaded by a program that runs: a line says what was missed."""
    source, library = gate.path("own.c"), gate.path("own.so")
    with open(source, "w", encoding="utf-8") as text:
        text.write("void *malloc(unsigned long size) { static char room[64]; return size ? room : 0; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-fno-builtin", "-o", library, source], check=True)
    code = f"""
import ctypes, sys
sys.stdin.readline()
library = ctypes.CDLL({library!r})
print("loaded", flush=True)
for _ in sys.stdin:
    library.malloc(3000001)
    print("done", flush=True)
"""
    target = gate.start(sys.executable, "-c", code)
    file = gate.path("late.db")
    braid = gate.start(gate.BRAID, "record", "-e", "alloc:malloc", "-c", "1", "--max-overhead",
                       "none", "-p", target.pid, "-o", file, stderr=gate.subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
    gate.equal(gate.ask(target, ""), "loaded", "late: the library is loaded")
    recording = gate.Recording(file)
    gate.wait_until(lambda: gate.ask(target, "go") and recording.one(
        "SELECT count(*) FROM sample WHERE value = 3000001"), "a call that is seen")
    braid.send_signal(signal.SIGINT)
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, "late: status", said)
    gate.matches(r"alloc:malloc: 1 process mapped an allocator that got its probes up to [\d.]+ ms "
                 "later: earlier calls are not seen", said, "late: a line says so")
    target.stdin.close()
    target.wait()


def check_full():
    """More functions that allocate than the kernel half has room for: those left out are counted."""
    names = ["malloc", "calloc", "realloc", "reallocarray", "aligned_alloc", "memalign",
             "posix_memalign", "valloc", "pvalloc", "mallocx", "rallocx", "_Znwm", "_Znam"]
    source, library, directory = gate.path("all.c"), gate.path("all.so"), gate.path("copies")
    with open(source, "w", encoding="utf-8") as text:
        for name in names:
            text.write(f"void *{name}(unsigned long size) {{ static char room[64]; "
                       "return size ? room : 0; }\n")
    subprocess.run(["cc", "-w", "-shared", "-fPIC", "-fno-builtin", "-O1", "-o", library, source],
                   check=True)
    os.mkdir(directory)
    with open(library, "rb") as file:
        code = file.read()
    number = 16384 // len(names) + 10
    for i in range(number):
        with open(f"{directory}/{i}.so", "wb") as file:
            file.write(code + b"%d" % i)  # no two files are the same
    program = (f"import ctypes, sys\nfor i in range({number}): ctypes.CDLL(f'{directory}/{{i}}.so')\n"
               "print('ready', flush=True)\nsys.stdin.readline()")
    target = gate.start(sys.executable, "-c", program)
    gate.wait_line(target, "ready")
    file = gate.path("full.db")
    result = gate.braid("record", "-e", "alloc:malloc", "-c", "1", "--max-overhead", "none", "-p",
                        target.pid, "-d", "0.1", "-o", file)
    target.stdin.close()
    target.wait()
    gate.equal(result.status, 0, "full: status", result.err)
    counted = gate.Recording(file).counters().get(LEFT_OUT, 0)
    # glibc's own functions are among those that found room, or among those that did not.
    gate.ok(number * len(names) - 16383 <= counted <= number * len(names) - 16383 + len(names),
            f"full: {counted} functions are left out and counted")
    gate.matches(rf"(?m)^ *{counted}  {LEFT_OUT}$", result.err, "full: the summary says so")


def check_operators(library):
    """Operators new of an allocator's own library, also those that may throw."""
    program = os.path.join(gate.OUTPUT, "fixtures/native/operators")
    environment = {"LD_PRELOAD": library} if library else {}
    name = os.path.basename(library or "libstdc++")
    recording, _ = record(name, [program], environment, ["go"])
    sums = recording.sql("SELECT value, count(*) FROM sample WHERE value > 5000 GROUP BY 1")
    gate.equal(sums, [(10001, 3), (10002, 3), (10003, 3)], f"{name}: operators new count once")
    recording, said = record(name, [program], environment, ["go"], "--outstanding")
    held = recording.sql("SELECT value, count(*) FROM sample WHERE value > 5000 GROUP BY 1")
    gate.equal(held, [(10001, 1), (10002, 1), (10003, 1)], f"{name}: what is held", said)


def check_turns(library):
    """Functions by turns, with the same stack pointer and the same return address."""
    environment = {"LD_PRELOAD": library} if library else {}
    name = os.path.basename(library or "glibc")
    kinds = ["plain", "aligned", "small", "pages", "grown", "first", "array", "operators", "arrays",
             "pointers"]
    # tcmalloc has an mmap of its own, through which the program's own mappings go.
    kinds += ["mappings"] if "tcmalloc" not in name else []
    for kind in kinds:
        for size in 5001, 300001:
            target = gate.start(os.path.join(gate.OUTPUT, "fixtures/native/alloc_turns"),
                                env={**os.environ, **environment})
            gate.wait_line(target, "ready")
            file = gate.path(f"{len(os.listdir(gate.tmp))}.db")
            braid = gate.start(gate.BRAID, "record", "-e",
                               "alloc" if kind == "mappings" else "alloc:malloc", "-c", "1",
                               "--max-overhead", "none", "-p", target.pid, "-o", file)
            gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "a commit")
            wanted = int(gate.ask(target, f"{kind} {size}"))
            braid.send_signal(signal.SIGINT)
            gate.equal(braid.wait(), 0, f"{name}: {kind}: status")
            target.stdin.close()
            target.wait()
            rows = gate.Recording(file).sql(f"SELECT sum(value / {size} * {size}), count(*) "
                                            f"FROM sample WHERE value >= {size}")
            gate.equal(rows, [(wanted, wanted // size)], f"{name}: {kind} of {size} by turns")


gate.need_root()
gate.need_program("/usr/bin/cc")
preloads = [LIBRARIES + name for name in ("libjemalloc.so.2", "libtcmalloc_minimal.so.4")]
check("glibc", [ALLOCS])
for path in preloads:
    if os.path.exists(path):
        check(os.path.basename(path), [ALLOCS], {"LD_PRELOAD": path})
own = gate.path("own")
subprocess.run(["cc", "-g", "-O1", "-include", "fixtures/native/prefixed.h", "-o", own, SOURCE],
               check=True)
check("je_malloc", [own])
if os.path.exists("/usr/bin/musl-gcc"):
    musl = gate.path("musl")
    subprocess.run(["musl-gcc", "-g", "-O1", "-o", musl, SOURCE], check=True)
    check("musl", [musl])
    subprocess.run(["musl-gcc", "-static", "-g", "-O1", "-o", musl, SOURCE], check=True)
    check("musl, static", [musl])
check_forked()
check_launched()
check_late()
check_full()
check_operators(None)
for path in preloads:
    if os.path.exists(path):
        check_operators(path)
for path in [None, *preloads]:
    if not path or os.path.exists(path):
        check_turns(path)
gate.done()
