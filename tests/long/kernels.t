#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""kernels.t [DIRECTORY...] [-- FILE...]: the live tests on other kernels, in an emulated machine
(scripts/on-kernel). First the verifier takes all programs, then every file of tests/live runs, or
those that are named (waits.t). A DIRECTORY is where a kernel's package was unpacked; without any, it
is Debian's newest for this release (6.1 in Debian 12) and the newest 6.12 (Debian 13's), from the
mirror that apt uses here."""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../live"))
import gate

LIMIT_S = 2400  # of a test: machines are emulated
GROUP = 8  # files that share a machine, which takes half a minute to boot
BEGIN, END = "=== begin ", "=== end "
# Runs files one after the other, and marks what belongs to which.
SERIES = f"""for file; do
    echo "{BEGIN}$file"
    timeout -k 10 {LIMIT_S} "tests/live/$file"
    echo "{END}$?"
    find /tmp /var/tmp -mindepth 1 -delete
done
"""
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


def run(kernel, *command, limit_s=LIMIT_S):
    """Its status there, what it has printed on both outputs, and `uname -r`."""
    ran = subprocess.run([os.path.join(TOP, "scripts/on-kernel"), kernel, "sh", "-c",
                          f'uname -r; export HANGS_S={LIMIT_S}; exec "$@"', "sh", *command], cwd=TOP,
                         text=True, errors="replace",
                         env={**os.environ, "OUTPUT": gate.OUTPUT, "LIMIT": str(limit_s)},
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    release, _, printed = ran.stdout.partition("\n")
    return ran.returncode, release.strip(), printed


def judge(name, printed, status):
    """One check for a file, by its status, its plan and its checks."""
    wrong = re.findall(r"^not ok.*", printed, re.M)
    plan = re.search(r"^1\.\.(\d+)(.*)$", printed, re.M)
    if status == "0" and plan and plan[1] == "0":
        gate.skip(name, plan[2].partition("SKIP")[2].strip() or "the file skips itself")
        return
    gate.ok(status == "0" and plan and not wrong, name, f"status {status}",
            *wrong, *([] if wrong else printed.splitlines()[-10:]))


def run_files(kernel, release, files):
    """Each file has a check. A machine that ends too early takes down the file that ran, and what is
    left runs in another machine."""
    while files:
        group = files[:GROUP]
        _, _, printed = run(kernel, "sh", "-c", SERIES, "sh", *group, limit_s=LIMIT_S * len(group))
        before, *parts = re.split(f"^{BEGIN}.*\n", printed, flags=re.M)
        if not parts:
            gate.ok(False, f"{release}: {group[0]}: the machine runs it", *before.splitlines()[-10:])
            parts = [None]
        for name, part in zip(group, parts):
            if part is not None:
                text, _, status = part.partition(END)
                judge(f"{release}: {name}", text, status.split("\n")[0] or "none: the machine has ended")
        files = files[len(parts):]


def check(kernel, files):
    status, release, printed = run(kernel, "/usr/bin/python3", "-c", PATCH)
    gate.ok(status == 0 and printed == "patched\n",
            f"{release}: the machine is one that the kernel can patch itself on", *printed.splitlines()[:10])
    status, release, printed = run(kernel, os.path.join(gate.OUTPUT, "tests/tools/verifier_cost"))
    gate.ok(status == 0 and "VERIFY" in printed and "not loaded" not in printed,
            f"{release}: the verifier takes all programs", *printed.splitlines()[-40:])
    run_files(kernel, release, files)


gate.signal.alarm(0)  # on-kernel has its limit
gate.need_root()
split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
FILES = sys.argv[split + 1:] or sorted(name for name in os.listdir(os.path.join(TOP, "tests/live"))
                                       if name.endswith(".t"))
for directory in sys.argv[1:split] or releases():
    check(directory, FILES)
gate.done()
