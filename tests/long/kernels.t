#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""kernels.t [DIRECTORY...]: a part of the live tests on other kernels, in an emulated machine
(scripts/on-kernel): the programs load, stacks of Python and Ruby are whole, waiting is seen. A
DIRECTORY is where a kernel's package was unpacked; without any, it is Debian's newest for this release,
from the mirror that apt uses here."""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../live"))
import gate

TESTS = ["marker_python.t", "marker_ruby.t", "events_more.t", "waits.t", "waits_outside.t",
         "waits_python.t", "waits_ruby.t"]
LIMIT_S = 1200  # of a test: machines are emulated
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def debians():
    """Debian's kernel, unpacked."""
    said = subprocess.run(["apt-cache", "depends", "linux-image-amd64"], capture_output=True, text=True, check=False)
    package = re.search(r"linux-image-\S*\d\S*-amd64", said.stdout)
    if not package:
        gate.skip_all("apt knows no kernel")
    where = gate.path("kernel")
    os.mkdir(where)
    got = subprocess.run(["apt-get", "download", package[0]], cwd=where, check=False)
    files = [name for name in os.listdir(where) if name.endswith(".deb")]
    if got.returncode or not files:
        gate.skip_all(f"apt does not download {package[0]}")
    subprocess.run(["dpkg", "-x", os.path.join(where, files[0]), where], check=True)
    return where


def check(kernel):
    for test in TESTS:
        ran = subprocess.run([os.path.join(TOP, "scripts/on-kernel"), kernel, "sh", "-c",
                              f"uname -r; exec tests/live/{test}"], cwd=TOP, text=True,
                             env={**os.environ, "OUTPUT": gate.OUTPUT, "LIMIT": str(LIMIT_S)},
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        release = ran.stdout.split("\n", 1)[0].strip()
        wrong = re.findall(r"^not ok.*", ran.stdout, re.M)
        plan = re.search(r"^1\.\.(\d+)\s*$", ran.stdout, re.M)
        gate.ok(ran.returncode == 0 and plan and not wrong, f"{release}: {test}", *wrong,
                *([] if wrong else ran.stdout.splitlines()[-10:]))


gate.signal.alarm(0)  # on-kernel has its limit
gate.need_root()
for directory in sys.argv[1:] or [debians()]:
    check(directory)
gate.done()
