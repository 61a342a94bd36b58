#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""What is recorded, from when and until when: -p in its forms, -- COMMAND, the end of the target,
signals; the status line and the summary."""

import os
import pty
import signal
import threading

import lib


def check_two_pids():
    a, b = lib.start_ready(lib.fixture("shares")), lib.start_ready(lib.fixture("realign"))
    recording = lib.record("-p", f"{a.pid},{b.pid}", "-d", 1)
    lib.stop(a, b)
    pids = {pid for pid, in recording.sql("SELECT DISTINCT pid FROM process")}
    lib.equal(pids, {a.pid, b.pid}, "two PIDs: both and no other")
    lib.check_share(recording.folded("--pid", a.pid), "main;burn_", 0.8, "two PIDs: the first")
    lib.check_share(recording.folded("--pid", b.pid), "main;realigned_", 0.8,
                    "two PIDs: the second")
    lib.matches(f"{a.pid}.*{b.pid}", recording.meta("target"), "two PIDs: both are the target")


def check_thread_id():
    target = lib.start_ready(lib.fixture("threads"))
    tid = max(map(int, os.listdir(f"/proc/{target.pid}/task")))
    recording = lib.record("-p", tid, "-d", 1.5)
    lib.stop(target)
    lib.ok(tid != target.pid, "thread's id: is not the main thread's")
    pids = {pid for pid, in recording.sql("SELECT DISTINCT pid FROM process")}
    lib.equal(pids, {target.pid}, "thread's id: its process")
    tids = recording.one("SELECT count(DISTINCT tid) FROM thread")
    lib.ok(tids >= 8, "thread's id: all threads", tids)


def check_start_of_command():
    recording = lib.record("--", "/usr/bin/python3", "-c", "import decimal, json, unittest",
                           options=("-F", "9999"))
    stacks = recording.folded("--annotate")
    lib.check_share(stacks, r"(^|;)[^;]*exec[^;]*_\[k\]", 0.0001, "command: exec itself")
    lib.check_share(stacks, r"(^|;)(_dl_start|_dl_sysdep_start|dl_main|\[ld-linux[^;]*\]"
                    r"|_start)[^;]*_\[n\]", 0.0001, "command: the dynamic linker")
    first = recording.sql("SELECT count(*) FROM sample")[0][0]
    lib.ok(first >= 50, "command: samples", first)
    if recording.sql("SELECT 1 FROM source WHERE runtime = 'python' AND source = 'walk'"):
        lib.check_share(stacks, r"<module> \(<string>\)_\[py\];.*_find_and_load[^;]*_\[py\];.*"
                        r"<module> \((decimal|json|unittest|__init__|main|case)[^;]*_\[py\]", 0.01,
                        "command: imports")
    else:
        lib.skip("command: imports", "no walker for this python3")
    commands = [text for text, in recording.sql("SELECT command FROM process ORDER BY id")]
    lib.ok(any("import decimal" in text for text in commands), "command: its command line",
           commands)
    own = recording.sql("""
        SELECT group_concat(function, ';') AS stack FROM sample
          JOIN thread ON thread = thread.id JOIN process ON process = process.id
          LEFT JOIN stack ON leaf = native
         WHERE process.name LIKE 'braid%' GROUP BY sample.id HAVING stack NOT LIKE '%exec%'""")
    lib.equal(own, [], "command: of braid's own child nothing but the exec")


def check_end_of_target():
    target = lib.start_ready(lib.fixture("shares"), 1)
    file = lib.path("ended.db")
    result = lib.braid("record", "-p", target.pid, "-F", 999, "-o", file)
    lib.stop(target)
    lib.equal(result.status, 0, "end of the target: status", result.err)
    lib.check_share(lib.Recording(file).folded(), "main;burn_[abc]", 0.8, "end of the target")
    result = lib.braid("record", "-o", file, "--", "sh", "-c", "exit 3")
    lib.equal(result.status, 0, "end of the command: braid's status is its own", result.err)
    lib.matches("ended with status 3", result.err, "end of the command: its status is told")
    result = lib.braid("record", "-o", file, "--", "sh", "-c", "kill -SEGV $$")
    lib.equal(result.status, 0, "command killed by a signal: status", result.err)
    lib.matches("signal 11", result.err, "command killed by a signal: told")


def check_signal(number):
    name = signal.Signals(number).name
    target = lib.start_ready(lib.fixture("shares"))
    file = lib.path(name + ".db")
    process = lib.start_braid("record", "-p", target.pid, "-F", 999, "-o", file)
    lib.wait_attached(process)
    used = lib.cpu_ticks(target.pid)
    lib.wait_for(lambda: lib.cpu_ticks(target.pid) >= used + 30, "CPU time of the target")
    process.send_signal(number)
    error = process.communicate(timeout=lib.PATIENCE_S)[1].decode()
    lib.equal(process.returncode, 0, f"{name}: status", error)
    lib.matches(r"(?m)^\S+: \d+ samples = [\d.]+ m?s CPU in .*\n(?:.*\n)*next: .*braid flame", error,
                f"{name}: summary")
    lib.ok("\r" not in error and " lost, own CPU" not in error, f"{name}: no status line", error)
    lib.ok(lib.Recording(file).samples() >= 100, f"{name}: recorded")
    lib.equal(lib.state_of(target.pid) in ("R", "S"), True, f"{name}: the target goes on")
    lib.stop(target)


def check_terminal():
    target = lib.start_ready(lib.fixture("shares"))
    master, slave = pty.openpty()
    process = lib.start_braid("record", "-p", target.pid, "-o", lib.path("pty.db"), stderr=slave)
    os.close(slave)
    text = bytearray()

    def read_all():
        try:
            while chunk := os.read(master, 4096):
                text.extend(chunk)
        except OSError:
            pass  # the other end is closed

    reader = threading.Thread(target=read_all)
    reader.start()
    lib.wait_for(lambda: text.count(b"lost, own CPU") >= 2, "two status lines")
    process.send_signal(signal.SIGINT)
    process.wait(timeout=lib.PATIENCE_S)
    reader.join()
    lib.stop(target)
    lib.equal(process.returncode, 0, "terminal: status")
    lib.matches(r"\r\x1b\[K\d+ s, \d+ samples \(\d+/s\), \d+ lost, own CPU [\d.]+ %\r\n",
                text.decode(), "terminal: a status line, in place")
    lib.matches(r"\n\S+: \d+ samples = ", text.decode(), "terminal: then the summary")


lib.need_bpf()
check_two_pids()
check_thread_id()
check_start_of_command()
check_end_of_target()
check_signal(signal.SIGINT)
check_signal(signal.SIGTERM)
check_terminal()
lib.done()
