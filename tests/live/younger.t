#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""flame --source: a text that was changed after the process had begun is said to be younger than that,
in the page and on the terminal."""

import os

import gate

PYTHON = "/usr/bin/python3.11"
SAID = "was changed after the process started: the code that ran may differ from this text"
SCRIPT = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end:\n    pass\n"

gate.need_root()
gate.need_program(PYTHON)
script, file, page = gate.path("burns.py"), gate.path("burns.db"), gate.path("burns.html")
with open(script, "w", encoding="utf-8") as text:
    text.write(SCRIPT)
os.chmod(gate.tmp, 0o755)
os.utime(script, (1700000000, 1700000000))
result = gate.braid("record", "-F", "499", "-o", file, "--", PYTHON, script)
gate.equal(result.status, 0, "recorded", result.err)
gate.ok(float(gate.Recording(file).meta("boot_s")) > 0, "the recording has when the machine was booted")


def flame():
    result = gate.braid("flame", "--source", "-o", page, file)
    gate.equal(result.status, 0, "a page", result.err)
    with open(page, encoding="utf-8") as html:
        lines = html.read().splitlines()
    row, = [line for line in lines if "burns.py" in line and "process_time() + 0.3" in line]
    return result.err, row


said, row = flame()
gate.equal((SAID in said, ",1]" in row[-20:]), (False, False),
           "a text that is older", row[-40:])
os.utime(script)
said, row = flame()
gate.equal((f"{script} {SAID}" in said, ",1]" in row[-20:]), (True, True), "a text that is younger",
           row[-40:], said)
gate.done()
