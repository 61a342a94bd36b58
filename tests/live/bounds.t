#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""What a recording has lies between its beginning and its end: of waits that reach beyond either the
part inside, and nothing of what happens while braid attaches to its targets."""

import signal

import gate

SCRIPT = "import time\nwhile True: time.sleep(0.02)"

gate.need_root()
path = gate.path("bounds.db")
target = gate.start("/usr/bin/python3", "-c", SCRIPT)
for event in "off-cpu", "wall":
    result = gate.braid("record", "-e", event, "-d", "0.3", "--max-overhead", "none", "--force", "-o", path,
                        "-p", target.pid)
    gate.equal(result.status, 0, f"{event}: status", result.err)
    recording = gate.Recording(path)
    (duration_s,), = recording.sql("SELECT value FROM meta WHERE key = 'duration_s'")
    (begin_ns, end_ns, n), = recording.sql(
        "SELECT min(time_ns - CASE WHEN state > 1 THEN value ELSE 0 END), max(time_ns), "
        "sum(state > 1) FROM sample")
    gate.ok(n > 1, f"{event}: waits", n)
    gate.ok(end_ns - begin_ns <= (float(duration_s) + 0.001) * 1e9, f"{event}: within the recording",
            f"{(end_ns - begin_ns) / 1e9} s, recorded {duration_s} s")
    gate.ok(float(duration_s) >= 0.3, f"{event}: so long", duration_s)
target.send_signal(signal.SIGKILL)
gate.done()
