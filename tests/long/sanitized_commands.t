#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""All commands, built with sanitizers, on programs in seven languages: misused memory, undefined behaviour and leaks
end braid with a report. Each program computes, waits, locks and allocates until it is killed."""

import os
import re
import shutil
import signal
import subprocess

import lib

SANITIZED = os.path.join(lib.OUTPUT, "san")
BRAID = os.path.join(SANITIZED, "braid")
# LeakSanitizer stops the process by ptrace, which a dump of other processes does not disturb.
FLAGS = {"ASAN_OPTIONS": "detect_leaks=1", "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
         "LSAN_OPTIONS": "suppressions=" + os.path.abspath("tests/lsan.supp")}
SOURCES = {
    "work.py": "import threading, time\ndef f(n):\n    return [x * x for x in range(n)]\ndef g():\n    while True:\n"
               "        f(20000)\n        time.sleep(0.002)\nthreading.Thread(target=g).start()\ng()\n",
    "work.rb": "def f(n) = (0...n).map { |x| x * x }\ndef g\n  loop { f(20000); sleep 0.002 }\nend\nThread.new { g }\ng\n",
    "Work.java": "public class Work {\n  static int[] f(int n) { int[] a = new int[n]; for (int i = 0; i < n; i++) a[i] = i * i; return a; }\n"
                 "  static synchronized void h() { f(200000); }\n"
                 "  static void g() { try { while (true) { h(); Thread.sleep(2); } } catch (InterruptedException e) { } }\n"
                 "  public static void main(String[] a) { new Thread(Work::g).start(); g(); }\n}\n",
    "work.js": "function f(n) { return Array.from({length: n}, (_, x) => x * x); }\nsetInterval(function g() { f(20000); }, 2);\n",
    "work.php": "<?php\nfunction f($n) { return array_map(fn($x) => $x * $x, range(1, $n)); }\n"
                "function g() { while (true) { f(20000); usleep(2000); } }\ng();\n",
    "work.pl": "sub f { my @a = map { $_ * $_ } 1 .. $_[0]; return scalar @a }\n"
               "sub g { while (1) { f(20000); select(undef, undef, undef, 0.002) } }\ng();\n",
    "work.go": "package main\nimport \"time\"\n//go:noinline\nfunc f(n int) []int { a := make([]int, n); for i := range a { a[i] = i * i }; return a }\n"
               "var sink []int\nfunc g() { for { sink = f(200000); time.Sleep(2 * time.Millisecond) } }\nfunc main() { go g(); g() }\n"}
EVENTS = ["cpu,wall", "off-cpu", "cpu,alloc,lock", "page-fault,syscall:getpid"]
EVENTS_OF_GO = [events.replace("alloc", "alloc:mmap") for events in EVENTS]  # it has no malloc
FORMATS = ["table", "tree", "folded", "json", "markdown", "pprof", "speedscope", "firefox", "perf", "otlp", "chrome", "dot"]


def language(name, program, *command):
    """(Name, command), or None where the machine lacks it."""
    if shutil.which(program):
        return name, [shutil.which(program), *command]
    lib.skip(name, f"there is no {program}")
    return None


def languages():
    for name, text in SOURCES.items():
        with open(lib.path(name), "w", encoding="utf-8") as source:
            source.write(text)
    if shutil.which("javac"):
        subprocess.run(["javac", "-d", lib.tmp, lib.path("Work.java")], check=True)
    all_of = [language("Python", "/usr/bin/python3", lib.path("work.py")), language("Ruby", "/usr/bin/ruby", lib.path("work.rb")),
              language("Java", "java", "-cp", lib.tmp, "Work"), language("Node", "node", lib.path("work.js")),
              language("PHP", "php", lib.path("work.php")), language("Perl", "/usr/bin/perl", lib.path("work.pl"))]
    if shutil.which("go"):
        subprocess.run(["go", "build", "-o", lib.path("work"), lib.path("work.go")], check=True,
                       env={**os.environ, "GOCACHE": lib.path("go-cache"), "GO111MODULE": "off", "GOFLAGS": "-mod=mod"})
        all_of.append(("Go", [lib.path("work")]))
    else:
        lib.skip("Go", "there is no go")
    return [one for one in all_of if one]


def clean(name, *command, statuses=(0,), interrupt_s=None):
    """Runs braid with it, and ends its command, which goes on and has its output; an interrupt ends what has no end of its own."""
    with open(lib.path("said"), "w+b") as output:
        process = lib.start(BRAID, *command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=output,
                            env={**os.environ, **FLAGS}, start_new_session=True)
        try:
            process.wait(timeout=interrupt_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            process.wait()
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        output.seek(0)
        said = output.read().decode(errors="replace")
    found = re.search(r"Sanitizer|runtime error", said)
    lib.ok(process.returncode in statuses and not found, f"{name}: braid {' '.join(str(word) for word in command[:4])}",
           process.returncode, said[:300], said[-3000:] if found else "")


def check(name, command):
    target = lib.start(*command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    pid = str(target.pid)
    files = []
    for number, events in enumerate(EVENTS_OF_GO if name == "Go" else EVENTS):
        files.append(lib.path(f"{name}-{number}.db"))
        clean(name, "record", "-e", events, "-d", "3", "-o", files[-1], "-p", pid)
    clean(name, "record", "--source", "probes", "-d", "2", "-o", lib.path("probed.db"), "--force", "-p", pid, statuses=(0, 1))
    for shown in FORMATS:
        clean(name, "report", "--format", shown, "-o", lib.path(f"{name}.{shown}"), files[0], statuses=(0, 2))
    clean(name, "report", "--diff", files[0], files[0])
    clean(name, "flame", "-o", lib.path(f"{name}.html"), files[0])
    clean(name, "flame", "-o", lib.path(f"{name}.svg"), files[2])
    clean(name, "dump", "-p", pid)
    clean(name, "top", "--once", "-i", "2", "-p", pid)
    clean(name, "calls", "-d", "2", "-p", pid, statuses=(0, 1))
    clean(name, "probes", "-p", pid)
    clean(name, "bench", "-p", pid, statuses=(0, 1, 2), interrupt_s=20)
    lib.ok(target.poll() is None, f"{name}: the program still runs")
    target.kill()
    target.wait()
    clean(name, "record", "-d", "3", "-o", lib.path("command.db"), "--force", "--", *command, statuses=(0, 137))


lib.need_bpf()
subprocess.run(["make", "-j2", "SAN=address,undefined", f"OUTPUT={SANITIZED}", BRAID], stdout=subprocess.DEVNULL, check=True)
with open(BRAID, "rb") as built:
    lib.ok(b"__asan_init" in built.read(), "it is built with sanitizers")
for one in languages():
    check(*one)
clean("machine", "doctor", statuses=(0, 1))
clean("machine", "events")
clean("machine", "record", "-a", "-d", "3", "-o", lib.path("all.db"))
clean("machine", "push", lib.path("all.db"), "--to", "http://127.0.0.1:9/", statuses=(1, 2))
lib.done()
