#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""braid, what it starts and what has started it are in no recording of --name, --user or -a, though their
command lines have the name. A program that fits and runs already has its frames. Nothing fits: that
is said before the recording begins."""

import sqlite3

import gate
import pythons

WORD = "braid-scope-own"
PROGRAM = "import threading\ndef waits():\n    threading.Event().wait()\nprint('ready', flush=True)\nwaits()"

gate.need_root()
gate.need_program(pythons.SYSTEM)
target = gate.start(pythons.SYSTEM, "-c", PROGRAM, WORD)
gate.wait_line(target, "ready")

for name, choice in {"--name": ["--name", WORD], "--user": ["--user", "0"], "-a": ["-a"]}.items():
    file = gate.path(name.strip("-") + ".db")
    # timeout has started sh, which has started braid; all have the word in their command lines
    result = gate.run("timeout", "300", "sh", "-c", '"$@"; exit $?', WORD, gate.BRAID, "record", "-e",
                      "wall", "-d", "1", "--max-overhead", "none", "-o", file, *choice)
    gate.equal(result.status, 0, f"{name}: recorded", result.err)
    with sqlite3.connect(file) as db:
        processes = {pid: (label, command) for pid, label, command in db.execute(
            "SELECT DISTINCT process.pid, process.name, process.command FROM sample "
            "JOIN thread ON thread.id = sample.thread JOIN process ON process.id = thread.process")}
    gate.ok(target.pid in processes, f"{name}: the program is there", processes)
    own = {pid: of for pid, of in processes.items()
           if pid != target.pid and (WORD in (of[1] or "") or of[0] in ("timeout", "braid", "braid-files")
                                     and file in (of[1] or ""))}
    gate.equal(own, {}, f"{name}: nothing of braid or above it is")
    if name != "--name":  # of all processes it takes as long as there are many
        continue
    folded = gate.braid("report", "--format", "folded", "--idle", "show", "--pid", target.pid, file).out
    gate.ok("waits" in folded, f"{name}: the program has frames of its interpreter", folded)

result = gate.braid("record", "--name", "no-such-name-anywhere", "-d", "0.1", "-o", gate.path("none.db"))
said = result.err.splitlines()
gate.equal(said[:1], ["no running process matches name no-such-name-anywhere: waiting for one "
                      "(braid ps lists running processes)"], "nothing fits: said first", result.err)
gate.done()
