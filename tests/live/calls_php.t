#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian 12's PHP, whose probes tell of every call: `braid calls` counts what a program calls that
knows how often, `braid probes` and `calls` say when they do not fire, and the shadow stack that they
feed is the one that PHP sees."""

import os
import re
import signal
import sys

import gate

sys.path.insert(0, "tests/long")
from calls_run import FIB, called, difference, read_table  # noqa: E402 (the path)

PHP = "/usr/bin/php8.2"
SCRIPT = "fixtures/php/calls/calls.php"
MARKED = "fixtures/php/marked/marked.php"
REMEDY = "USE_ZEND_DTRACE=1 in its environment"
EVALUATED = "calls.php(84) : eval()'d code"

# By arithmetic. Generators count their creation, and each resume.
FIBERS = 3 + 100
STEPS = 2 * 50 + 2 + 100
IN_PHP = {
    "<main>": 1, "fib": FIB[15], "descend": 901 + 3001, "catches": 1, "fall": 70 * 10,
    "{closure}": 70 + 1, "walk": 2, "count_up": 2 * (1 + 21), "delegate": 1 + 2, "fibers": 1,
    "in_fiber": FIBERS, "step": STEPS, "leave": 1, "Tool::make": 70, "Tool::use": 70,
    "Tool::missing": 70, "Tool::__call": 70, "Tool::__construct": 70, "Tool::__destruct": 70,
    "assist": 70 + 2 * 20 + STEPS + 100 + 3 * 70 + 1 + 1}
IN_C = {"array_map": 70, "Exception::__construct": 70, "Fiber::__construct": FIBERS,
        "Fiber::start": FIBERS, "Fiber::resume": 100 + 1 + 100, "Fiber::suspend": STEPS, "usort": 1,
        "strcmp": 1, "function_exists": 3, "register_shutdown_function": 1}


def qualified(name):
    return name if name == "<main>" else f"Calls\\{name}"


def check_counts():
    out = gate.path("calls.out")
    result = gate.braid("calls", "-o", out, "--", PHP, "-n", SCRIPT)
    gate.equal(result.status, 0, "counts: status")
    gate.matches(r"^pid \d+: php 8\.2\.\d+: usdt$", result.err.splitlines()[0], "counts: by what")
    gate.equal(re.findall(r"(?m)^ +\d+  .*", result.err), [], "counts: nothing is lost")
    want = {(qualified(name), "calls.php"): calls for name, calls in IN_PHP.items()}
    want.update({(name, None): calls for name, calls in IN_C.items()})
    want.update({("include", "included.php"): 3, ("Calls\\compare", "included.php"): 1})
    want.update({(f"{name} ({EVALUATED})", None): 1 for name in ("eval", "Calls\\evaluated")})
    with open(out, encoding="utf-8") as file:
        rows = [row._replace(file=row.file or None) for row in read_table(file.read())]
    gate.equal(difference(dict(called(rows)), want), [], "counts: of each function")


def check_silent():
    """A process that was started without what the probes need."""
    target = gate.marked(PHP, "-n", "-d", "extension=ffi", "-d", "ffi.enable=1", MARKED)
    result = gate.braid("calls", "-p", target.pid)
    gate.equal(result.status, 1, "silent: calls refuses")
    gate.matches(rf"php 8\.2\.\d+: none: php: its probes fire only if PHP is started with {REMEDY}",
                 result.err, "silent: and says why")
    result = gate.braid("probes", "-p", target.pid)
    gate.matches(rf"(?m)^no +probe sites +php:execute__entry fires only if PHP is started with "
                 rf"{REMEDY}\n +-> start PHP with ", result.out, "silent: so does probes")
    target.kill()


def check_samples():
    target = gate.marked(PHP, "-n", "-d", "extension=ffi", "-d", "ffi.enable=1", MARKED,
                         env={"USE_ZEND_DTRACE": "1"})
    file = gate.path("samples.db")
    braid = gate.start(gate.BRAID, "record", "--source", "probes", "--max-overhead", "none",
                       "-e", f"uprobe:{gate.MARKER}:braid_marker", "-p", target.pid, "-o", file,
                       stderr=gate.subprocess.PIPE, stdin=gate.subprocess.DEVNULL)
    gate.matches(r"^pid \d+: php 8\.2\.\d+: usdt$", braid.stderr.readline().decode().rstrip("\n"),
                 "samples: where frames come from")
    gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
    told = gate.ask(target, "3").split("|")
    braid.send_signal(signal.SIGINT)
    braid.stderr.read()
    gate.equal(braid.wait(), 0, "samples: status")
    recording = gate.Recording(file)
    (frames, count), = recording.merged()
    gate.equal(count, 3, "samples: each hit, all alike")
    # PHP does not show that __call was called by another name. The main script ran before.
    names = [frame.rpartition(":")[0] for frame in told[0].split(";")][1:]
    names.insert(names.index("Marked\\Item::__call"), "Marked\\Item::missing")
    php = [re.sub(r" \(.*", "", frame.removesuffix("_[php]"))
           for frame in frames if frame.endswith("_[php]")]
    gate.equal(php, [*names, "getppid"], "samples: PHP's own stack")
    # Whatever runs it is beside it: the function in C that its frame is, or what has called it.
    natives = [frame for frame in frames if not frame.startswith("[")]
    begin = natives.index("array_map_[php]")
    gate.equal([re.sub(r" \(.*\)", "", frame) for frame in natives[begin:begin + 5]],
               ["array_map_[php]", "array_map_[n]", "zend_call_function_[n]", "dtrace_execute_ex_[n]",
                "Marked\\{closure}_[php]"], "samples: the native frames between")


gate.need_root()
gate.need_program(PHP)
check_counts()
check_silent()
check_samples()
gate.done()
