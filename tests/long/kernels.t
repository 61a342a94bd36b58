#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""kernels.t [DIRECTORY...]: a part of the live tests on other kernels, in an emulated machine
(scripts/on-kernel): the verifier takes all programs, stacks of Python and Ruby are whole, waiting is
seen. A DIRECTORY is where a kernel's package was unpacked; without any, it is Debian's newest for this
release (6.1 in Debian 12) and the newest 6.12 (Debian 13's), from the mirror that apt uses here."""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../live"))
import gate

TESTS = ["doctor.t", "privileges.t", "service.t", "surroundings.t", "marker_python.t", "marker_ruby.t", "events_more.t", "waits.t",
         "waits_outside.t", "waits_python.t", "waits_ruby.t"]
LIMIT_S = 2400  # of a test: machines are emulated
# Has the kernel patch itself, in its scheduler (a static key), while both CPUs are there.
PATCH = """if True:
    import os
    for _ in range(2):
        if not os.fork():
            (r, w), (answered, answer) = os.pipe(), os.pipe()
            if not os.fork():
                while os.read(r, 1):
                    os.write(answer, b"x")
            while os.write(w, b"x"):
                os.read(answered, 1)
    for _ in range(300):
        for value in "10":
            with open("/proc/sys/kernel/sched_schedstats", "w", encoding="ascii") as file:
                file.write(value)
    print("patched")
"""
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def newest(*command, pattern):
    """The package with the highest number among those that a question to apt names."""
    said = subprocess.run(["apt-cache", *command], capture_output=True, text=True, check=False).stdout
    found = re.findall(pattern, said, re.M)
    return max(found, key=lambda name: [int(number) for number in re.findall(r"\d+", name)], default=None)


def unpacked(package):
    where = gate.path(package)
    os.mkdir(where)
    got = subprocess.run(["apt-get", "download", package], cwd=where, stdout=subprocess.DEVNULL, check=False)
    files = [name for name in os.listdir(where) if name.endswith(".deb")]
    if got.returncode or not files:
        gate.skip(package, "apt does not download it")
        return []
    subprocess.run(["dpkg", "-x", os.path.join(where, files[0]), where], check=True)
    os.remove(os.path.join(where, files[0]))
    return [where]


def releases():
    """Debian's kernels, unpacked: of this release, and 6.12 where it is offered as well."""
    own = newest("depends", "linux-image-amd64", pattern=r"linux-image-\S*\d\S*-amd64$")
    newer = newest("pkgnames", "linux-image-6.12.", pattern=r"^linux-image-6\.12\.[\w.+]+-amd64$")
    packages = sorted({package for package in (own, newer) if package})
    if not packages:
        gate.skip_all("apt knows no kernel")
    return [where for package in packages for where in unpacked(package)]


def run(kernel, command):
    """Its status there, and what it and `uname -r` have said."""
    ran = subprocess.run([os.path.join(TOP, "scripts/on-kernel"), kernel, "sh", "-c",
                          f"uname -r; exec env HANGS_S={LIMIT_S} {command}"], cwd=TOP, text=True,
                         env={**os.environ, "OUTPUT": gate.OUTPUT, "LIMIT": str(LIMIT_S)},
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    release, _, said = ran.stdout.partition("\n")
    return ran.returncode, release.strip(), said


def check(kernel):
    status, release, said = run(kernel, f"/usr/bin/python3 -c '{PATCH}'")
    gate.ok(status == 0 and said == "patched\n", f"{release}: the machine is one that the kernel can patch itself on",
            *said.splitlines()[:10])
    status, release, said = run(kernel, os.path.join(gate.OUTPUT, "tests/tools/verifier_cost"))
    gate.ok(status == 0 and "VERIFY" in said and "not loaded" not in said,
            f"{release}: the verifier takes all programs", *said.splitlines()[-40:])
    for test in TESTS:
        status, _, said = run(kernel, f"tests/live/{test}")
        wrong = re.findall(r"^not ok.*", said, re.M)
        plan = re.search(r"^1\.\.(\d+)\s*$", said, re.M)
        gate.ok(status == 0 and plan and not wrong, f"{release}: {test}", *wrong,
                *([] if wrong else said.splitlines()[-10:]))


gate.signal.alarm(0)  # on-kernel has its limit
gate.need_root()
for directory in sys.argv[1:] or releases():
    check(directory)
gate.done()
