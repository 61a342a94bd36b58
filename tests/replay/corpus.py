# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes bundles of the replay corpus (docs/internals/testing.md). Each runs a program of fixtures/replay in a
mount namespace of its own, where interpreters and programs are at the same places on every machine
(/opt/NAME, /opt/replay), and with nothing of the environment."""

import difflib
import fnmatch
import os
import shlex
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUTPUT = os.path.abspath(os.environ.get("OUTPUT", os.path.join(TOP, "build")))
CORPUS = os.path.join(TOP, "tests/replay/corpus")
ROOTS = os.environ.get("BRAID_TEST_ROOTS") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "braid-tests")
MUSL = os.environ.get("BRAID_MUSL") or os.path.join(ROOTS, "musl")  # scripts/test-musl
RECORD_S = 600  # no command of the corpus needs more, on a machine that is busy

_wanted = sys.argv[1:]  # patterns of names; none: all
_failed = []
_made = 0


def root(release):
    """The directory of another Debian (scripts/test-roots), or None."""
    path = os.path.join(ROOTS, release)
    return path if os.path.isdir(path) else None


def moved(directory, place, copy, left_out):
    """A copy of an installation in which every file calls its place `place`, spelled with as many
    letters as before. The end stays: the linker may have put other texts there."""
    shutil.copytree(directory, copy, symlinks=True, ignore=left_out)
    old = directory.encode()
    first, rest = place[1:].split("/", 1)
    new = ("/" + first + ("/." * len(old))[:len(old) - len(place)] + "/" + rest).encode()
    for parent, _, names in os.walk(copy):
        for path in (os.path.join(parent, name) for name in names):
            if os.path.islink(path):
                continue
            with open(path, "r+b") as file:
                text = file.read()
                if old in text:
                    file.seek(0)
                    file.write(text.replace(old, new))
    return copy


def _script(command, binds, chroot):
    """Shell commands that arrange the namespace, then become the recorded command."""
    base = chroot or ""
    lines = ["set -e", "mount -t tmpfs tmpfs %s/opt" % base]
    for source, name in {os.path.join(TOP, "fixtures/replay"): "replay", **binds}.items():
        at = shlex.quote("%s/opt/%s" % (base, name))
        lines += ["mkdir -p " + at, "mount --bind %s %s" % (shlex.quote(source), at)]
    lines += ["if test -d %s/usr/lib/debug; then mount -t tmpfs tmpfs %s/usr/lib/debug; fi" % (base, base)]
    if not chroot:  # where a program may have been told, when it was built, to find its parts
        lines += ["mount -t tmpfs tmpfs " + shlex.quote(source) for source in binds]
    else:
        lines += ["mount -t proc proc %s/proc" % base, "mount --bind /dev %s/dev" % base]
    return "\n".join(lines + ['exec "$@"'])


def wanted(name):
    return not _wanted or any(fnmatch.fnmatch(name, pattern) for pattern in _wanted)


def _run(command):
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, timeout=RECORD_S)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", "took longer than %d s" % RECORD_S)


def _merged(path):
    """The merged stacks of an expected text, line by line."""
    lines, inside = [], False
    for line in open(path).read().splitlines():
        inside = line == "-- merged" or (inside and line[:3] not in ("-- ", "== "))
        if inside or line[:3] == "== ":
            lines.append(line)
    return lines


def record(name, command, binds=None, chroot=None, env=None, stops=()):
    """Records the bundle NAME ("python/3.8-calls"): the command runs in /opt/replay, below `chroot`
    if that is given; `binds` maps directories of this machine to names below /opt; `stops` are
    options of the recorder (record.c), for a command that tells nothing. True if what was recorded
    is what the program and libdwfl say."""
    global _made
    if not wanted(name):
        return True
    out = os.path.join(CORPUS, name)
    os.makedirs(os.path.dirname(out), exist_ok=True)
    images = os.path.join(os.path.dirname(out), "images")
    os.makedirs(images, exist_ok=True)
    command = ["sh", "-c", 'exec env -i -C /opt/replay PATH=/usr/bin:/bin HOME=/ LANG=C.UTF-8 '
               'BRAID_TELL="$BRAID_TELL" "$@"', "sh"] + \
        ["%s=%s" % item for item in (env or {}).items()] + command
    if chroot:
        command = ["chroot", chroot] + command
    run = _run(["unshare", "--mount", "--propagation", "private", "sh", "-c",
                _script(command, binds or {}, chroot), "sh",
                os.path.join(OUTPUT, "tests/replay/record"), *stops, out, images] + command)
    live = []
    if run.returncode == 0:
        live = _merged(out + ".txt")
        run = subprocess.run([os.path.join(OUTPUT, "tests/replay/replay"), "--accept",
                              out + ".bundle"], text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
    good = run.returncode == 0
    _made += good
    if not good:
        _failed.append(name)
    text = (run.stdout or "") + (run.stderr or "")
    cases = sum(line.startswith("ok ") for line in text.splitlines()) - 2
    print("%-6s %s%s" % ("ok" if good else "FAILED", name, ", %d cases" % cases if good else ""))
    for line in text.splitlines():
        if not good and not line.startswith("ok "):
            print("    " + line)
    if good:  # what the bundle lacks of what braid saw of the process itself
        for line in difflib.unified_diff(live, _merged(out + ".txt"), "live", "replay", lineterm="",
                                         n=0):
            print("    " + line)
    sys.stdout.flush()
    return good


def done():
    print("%d bundles, %d failed" % (_made + len(_failed), len(_failed)))
    sys.exit(1 if _failed else 0)
