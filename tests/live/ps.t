#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""braid ps lists what runs, with runtime, version and threads; a wrong command line names a process
that the user may have meant."""

import os
import shutil
import subprocess

import gate

THREADED = "import threading, time; [threading.Thread(target=input).start() for _ in 'ab']; print('ready', flush=True); time.sleep(600)"
PROGRAMS = {  # by runtime: command, text of its version command's output, threads
    "python": (["/usr/bin/python3", "-c", THREADED], ["--version"], 3),
    "perl": (["/usr/bin/perl", "-e", "$| = 1; print qq(ready\\n); sleep 600"], ["-e", "printf 'perl %vd', $^V"], 1),
}


def rows_of(*args):
    result = gate.braid("ps", *args)
    return {int(line.split()[0]): line.split(None, 3)[1:] for line in result.out.splitlines()[1:]}, result


def check_rows():
    started = {}
    for runtime, (command, _, _) in PROGRAMS.items():
        started[runtime] = gate.start(*command)
        gate.wait_line(started[runtime], "ready")
    native = gate.start("sleep", "600")
    rows, result = rows_of()
    gate.equal(result.status, 0, "ps: status", result)
    for runtime, (command, version, n_threads) in PROGRAMS.items():
        words = subprocess.run([command[0], *version], capture_output=True, text=True, check=True)
        wanted = f"{runtime} {words.stdout.split()[-1]}"
        row = rows.get(started[runtime].pid, ["", "", ""])
        gate.equal(int(row[1] or 0), n_threads, f"{runtime}: threads", result)
        gate.ok(row[2].startswith(wanted + " ") and row[2].endswith(" ".join(command)),
                f"{runtime}: {wanted} and its command", result)
    gate.ok(native.pid not in rows, "a native program is not listed", result)
    gate.matches("native programs are not listed. braid ps -a lists them", result.err, "but counted")
    rows, result = rows_of("-a")
    gate.ok(rows[native.pid][2].split() == ["native", "sleep", "600"], "-a: it is listed", result)
    rows, result = rows_of("sleep 600")
    gate.ok(native.pid in rows and all("sleep 600" in row[2] for row in rows.values()),
            "a pattern: those with it in their command, native ones as well", result)
    result = gate.braid("ps", "no-such-program-at-all")
    gate.equal([result.status, result.out], [1, ""], "a pattern that nothing matches: status 1")
    gate.matches("no process matches 'no-such-program-at-all'", result.err, "and a sentence")


def check_hints():
    """A copy of a program under a name that nothing else has."""
    name = f"zz{os.getpid()}"
    shutil.copy(shutil.which("sleep"), gate.path(name))
    first = gate.start(gate.path(name), "600")
    gate.wait_until(lambda: open(f"/proc/{first.pid}/comm").read().strip() == name, "the exec")
    file = gate.path("no.db")
    for what, pattern, *words in (
            ("-p NAME", f"not '{name}': did you mean -p {first.pid}\\?", "record", "-p", name, "-o", file),
            ("a command that runs already", f"did you mean -p {first.pid}\\? To start {name} once more",
             "record", "-o", file, name),
            ("a PID without -p", f"'{first.pid}' is the id of a process: did you mean -p {first.pid}\\?",
             "record", "-o", file, first.pid),
            ("a PID as the command", f"did you mean braid record -p {first.pid}\\?", first.pid),
            ("a command of braid", "no command 'recrod': did you mean record\\?", "recrod"),
            ("a word for an event", "no event 'heap': did you mean alloc\\?",
             "record", "-e", "heap", "-p", first.pid, "-o", file)):
        result = gate.braid(*words)
        gate.ok(result.status != 0, f"{what}: fails")
        gate.matches(pattern, result.err, f"{what}: hint")
    others = [gate.start(gate.path(name), "600") for _ in range(3)]
    for other in others:
        gate.wait_until(lambda: open(f"/proc/{other.pid}/comm").read().strip() == name, "the exec")
    gate.matches(f"4 processes run {name}: did you mean --name {name}\\?",
                 gate.braid("record", "-p", name, "-o", file).err, "many: by name")
    gate.ok(not os.path.exists(file), "no recording was made")


gate.need_root()
check_rows()
check_hints()
gate.done()
