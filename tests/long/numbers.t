#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Counts, sums and percentiles against other tools and the programs' own clocks, at the default limit,
with -c 20 and without a limit: waits (the program's clock), block I/O (fio), allocations (ltrace), a rare
event beside frequent ones (the program's loop). The table of docs/reference/numbers.md is what it prints."""

import json
import os
import re
import sqlite3
import subprocess

import lib

LIMITS = ((), ("-c", "20"), ("--max-overhead", "none"))
QUERY = "SELECT sum(weight), sum(object * weight) FROM sample JOIN event ON event.id = event AND event.name = ?"
SLEEPS, READS, CALLS, RARE = 5000, 20000, 3000, 60
PROGRAMS = {
    "sleeps": """#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
static long long now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
static int compare(const void *a, const void *b) { long long x = *(long long *)a, y = *(long long *)b; return (x > y) - (x < y); }
int main(int argc, char **argv) { int n = atoi(argv[1]); long long *a = malloc(n * 8L), sum = 0; prctl(PR_SET_TIMERSLACK, 1);
	for (int i = 0; i < n; i++) { struct timespec t = { 0, 20000 }; long long s = now(); nanosleep(&t, 0); a[i] = now() - s; sum += a[i]; }
	qsort(a, n, 8, compare); printf("%lld %lld %lld\\n", sum / n, a[n / 2], a[n * 9 / 10]); return argc < 2; }
""",
    "calls": """#include <stdlib.h>
static void *volatile made;
int main(int argc, char **argv) { int n = atoi(argv[1]); for (int i = 0; i < n; i++) { made = malloc(1000); free(made); made = calloc(3, 500); free(made); } return argc < 2; }
""",
    "bursts": """#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) { int n = atoi(argv[1]); for (int b = 0; b < 5; b++) { for (int i = 0; i < 40000; i++) getppid(); usleep(1000); }
	for (int i = 0; i < n; i++) open("/none", 0); return argc < 2; }
""",
}


def build():
    for name, text in PROGRAMS.items():
        with open(lib.path(name + ".c"), "w", encoding="utf-8") as file:
            file.write(text)
        subprocess.run(["cc", "-O1", "-w", "-o", lib.path(name), lib.path(name + ".c")], check=True)


def record(options, events, *command):
    file = lib.path("numbers.db")
    result = subprocess.run([lib.BRAID, "record", "--force", "-o", file, "-e", events, *options, "--",
                             *map(str, command)], capture_output=True, check=True)
    return file, (result.stdout + result.stderr).decode()


def sums(file, event):
    return sqlite3.connect(file).execute(QUERY, (event,)).fetchone()


def row(claim, options, oracle, braid):
    print(f"# | {claim} | {' '.join(options) or 'default'} | {oracle} | {braid} |", flush=True)


def bounds(text, name):
    """The bucket of a percentile, a power of two, in ns."""
    number, unit = re.search(rf"{name} < ([\d.]+) (ns|us|ms|s)", text).groups()
    high = float(number) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]
    return high / 2, high


def check_sleeps(options):
    file, out = record(options, "syscall:clock_nanosleep", lib.path("sleeps"), SLEEPS)
    mean, p50, p90 = (int(word) for word in out.split())
    number = sums(file, "syscall:clock_nanosleep")[0]
    # Where intervals are sampled by their length, their number is an estimate (decision 0100).
    lib.ok(abs(number - SLEEPS) <= (0 if options else SLEEPS / 100),
           f"waits {options}: how many: {number}")
    text = subprocess.run([lib.BRAID, "report", "--histogram", file], capture_output=True,
                          check=True).stdout.decode()
    said = re.search(r"mean .*", text).group(0)
    row("clock_nanosleep", options, f"mean {mean / 1e3:.0f} us, p50 {p50 / 1e3:.1f} us, p90 {p90 / 1e3:.1f} us",
        said)
    for name, own in (("p50", p50), ("p90", p90)):
        low, high = bounds(text, name)
        # The program's clock has two calls of it as well, and what braid itself takes.
        lib.ok(low * 0.7 <= own <= high * 1.3, f"waits {options}: {name} in its bucket: {own} ns", said)


def check_reads(options):
    data, out = lib.path("fio.dat"), lib.path("fio.json")
    fio = ["fio", "--name=x", f"--filename={data}", "--size=64M", "--bs=4k", "--direct=1", "--thread",
           "--ioengine=psync", "--invalidate=0", "--output-format=json", f"--output={out}"]
    if not os.path.exists(data):
        subprocess.run([*fio, "--rw=write", "--end_fsync=1"], check=True, capture_output=True)
    file, _ = record(options, "block-io", *fio, "--rw=randread", f"--number_ios={READS}", "--io_size=1G")
    with open(out, encoding="utf-8") as text:
        read = json.load(text)["jobs"][0]["read"]
    requests, size = sums(file, "block-io")
    row("block-io", options, f"{read['total_ios']} requests, {read['io_bytes']} bytes",
        f"{requests} requests, {size} bytes")
    # Some requests are of the file system: fio's own files. What has no end is in the rest.
    lib.ok(0 <= requests - READS <= 200, f"block-io {options}: requests: {requests}")
    lib.ok(0 <= size - read["io_bytes"] <= 8 << 20, f"block-io {options}: bytes: {size}")


def check_calls(options):
    counted = subprocess.run(["ltrace", "-c", "-e", "malloc+calloc", lib.path("calls"), str(CALLS)],
                             capture_output=True, check=True).stderr.decode()
    truth = sum(int(re.search(rf"(\d+) {name}", counted).group(1)) for name in ("malloc", "calloc"))
    file, said = record(("-c", "1", *options), "alloc:malloc", lib.path("calls"), CALLS)
    own = sqlite3.connect(file).execute("SELECT sum(weight), sum(total) FROM sample "
                                        "WHERE value IN (1000, 1500)").fetchone()
    row("alloc -c 1", options, f"{truth} calls, {CALLS * 2500} bytes", f"{own[0]} calls, {own[1]} bytes")
    lib.equal(truth, 2 * CALLS, f"alloc {options}: ltrace")
    if "and then no more" in said:  # the first calls (docs/reference/alloc.md)
        lib.ok(not options and own[0] < 2 * CALLS and abs(own[1] - own[0] * 1250) <= 250, f"alloc: bytes: {own}")
    else:
        lib.equal(own, (2 * CALLS, 2500 * CALLS), f"alloc {options}: calls and bytes")


def check_rare(options):
    rare = "tracepoint:syscalls:sys_exit_openat/ret<0/"
    file, _ = record(options, "syscall:getppid,tracepoint:raw_syscalls:sys_enter," + rare,
                     lib.path("bursts"), RARE)
    name, = [name for name, in sqlite3.connect(file).execute("SELECT name FROM event") if "openat" in name]
    found = sums(file, name)[0]
    row("failing openat beside 200,000 others", options, RARE, found)
    lib.equal(found, RARE, f"rare {options}: each")


for program in ("fio", "ltrace", "cc"):
    if not lib.shutil.which(program):
        lib.skip_all(f"there is no {program}")
build()
for limit in LIMITS:
    check_sleeps(limit)
    check_reads(limit)
    check_rare(limit)
for limit in ((), ("--max-overhead", "none")):
    check_calls(limit)
lib.done()
