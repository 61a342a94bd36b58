#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Records the replay corpus of CPython: the scenarios of fixtures/replay/python with every interpreter
that is there. usage: record_python.py [PATTERN...], of names like python/3.8-nested"""

import glob
import os
import shutil
import subprocess
import tempfile

import corpus

# Each version has these from one of its builds; other builds of it have the first few.
SCENARIOS = ("nested", "generators", "steps", "threads", "imports", "coroutines", "exceptions",
             "interruptions", "classes", "lines", "subinterpreters")
OTHERS = ("nested", "steps")
STRIPPED = ("nested", "generators")

DEPTHS = {"3.6": 300, "3.8": 900, "3.11": 900, "3.14": 900}  # a text has a line per frame
ENV = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": "/opt/replay/python"}

PYENV = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
DEBIAN = ((None, "3.11", SCENARIOS), ("bullseye", "3.9", OTHERS), ("trixie", "3.13", SCENARIOS),
          ("trixie", "3.13-pie", OTHERS), ("forky", "3.13", OTHERS), ("forky", "3.14", SCENARIOS),
          ("forky", "3.15", SCENARIOS))


class Build:
    """An interpreter: `label` names it, `program` is its path where it is recorded."""

    def __init__(self, label, program, scenarios, binds=None, chroot=None, env=None):
        self.label, self.program, self.scenarios, self.chroot = label, program, scenarios, chroot
        self.version = label.split("-")[0]
        self.binds = binds or {}
        self.env = {**ENV, **(env or {})}

    def record(self, name, *command):
        corpus.record("python/%s-%s" % (self.label, name), list(command), binds=self.binds,
                      chroot=self.chroot, env=self.env)

    def run(self, scenario, *arguments):
        self.record(scenario, self.program, "-S", "/opt/replay/python/%s.py" % scenario, *arguments)

    def run_all(self):
        for scenario in self.scenarios:
            self.run(scenario)
        if self.scenarios is SCENARIOS:
            self.run("deep", str(DEPTHS.get(self.version, 100)))
            self.record("optimized", self.program, "-S", "-OO", "-m", "optimized")


# What none of the scenarios imports.
LEFT_OUT = shutil.ignore_patterns("__pycache__", "test", "tests", "site-packages", "idlelib", "tkinter",
                                  "config-*", "ensurepip", "lib2to3", "pydoc_data", "*.a", "share",
                                  "include")
MODULES = "asyncio, copy, ctypes, dataclasses, functools, hashlib, runpy, sqlite3, threading, weakref"


def moved(directory, version, work):
    """A copy of an installation in which every file calls its place /opt/python."""
    copy = os.path.join(work, version)
    shutil.copytree(directory, copy, symlinks=True, ignore=LEFT_OUT)
    old, new = directory.encode(), b"/opt/python"
    new += (b"/." * len(old))[:len(old) - len(new)]  # a path of the same length
    for place, _, names in os.walk(copy):
        for path in (os.path.join(place, name) for name in names):
            if os.path.islink(path):
                continue
            with open(path, "r+b") as file:
                text = file.read()
                if old in text:
                    file.seek(0)
                    file.write(text.replace(old, new))
    subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c",
                    'mount -t tmpfs tmpfs /opt && mkdir /opt/python && '
                    'mount --bind "$0" /opt/python && exec "$@"', copy,
                    "/opt/python/bin/python" + version, "-S", "-c",
                    "try: import %s\nexcept ImportError: pass" % MODULES],
                   check=True, env={"PATH": "/usr/bin:/bin"})
    return copy


def of_pyenv(work):
    """Their libpython is shared. Of 3.11 and 3.13 Debian's builds have all scenarios."""
    for directory in sorted(glob.glob(PYENV + "/versions/3.*")):
        version = ".".join(os.path.basename(directory).split(".")[:2])
        names = SCENARIOS + ("deep", "optimized", "embedded") + \
            tuple("stripped-" + name for name in STRIPPED)
        if not any(corpus.wanted("python/%s-%s" % (version, name)) for name in names):
            continue
        yield Build(version, "/opt/python/bin/python" + version,
                    OTHERS if version in ("3.11", "3.13") else SCENARIOS,
                    {moved(directory, version, work): "python"})


def of_debian():
    for release, version, scenarios in DEBIAN:
        root = corpus.root(release) if release else ""
        program = "/usr/bin/python" + version
        if root is None or not os.path.exists(root + program):
            print("not there: %s of %s" % (program, release or "this Debian"))
            continue
        yield Build("%s-%s" % (version, release or "debian"), program, scenarios, chroot=root or None)


def stripped(build, work):
    """With a libpython that has no symbols but the dynamic ones."""
    library, = glob.glob("%s/lib/libpython%s*.so.1.0" % (next(iter(build.binds)), build.version))
    directory = os.path.join(work, "stripped-" + build.version)
    os.mkdir(directory)
    subprocess.run(["strip", "--strip-unneeded", "-o",
                    os.path.join(directory, os.path.basename(library)), library], check=True)
    return Build(build.label + "-stripped", build.program, STRIPPED,
                 {**build.binds, directory: "stripped"},
                 env={"LD_LIBRARY_PATH": "/opt/stripped"})


def embedded(build, library, work, env):
    """A C program that runs Python (fixtures/native/embed.c)."""
    directory = os.path.join(work, "embed")
    os.makedirs(directory, exist_ok=True)
    shutil.copy(os.path.join(corpus.OUTPUT, "fixtures/native/embed"), directory)
    made = Build(build.label, "/opt/embed/embed", (), {**build.binds, directory: "embed"},
                 chroot=build.chroot, env={**build.env, **env})
    made.record("embedded", made.program, library, "/opt/replay/python/embedded.py")


def main():
    with tempfile.TemporaryDirectory(prefix="braid-record-") as work:
        for build in of_pyenv(work):
            build.run_all()
            stripped(build, work).run_all()
            library = os.path.basename(
                glob.glob("%s/lib/libpython3.*.so.1.0" % next(iter(build.binds)))[0])
            embedded(build, "/opt/python/lib/" + library, work, {"PYTHONHOME": "/opt/python"})
        for build in of_debian():
            build.run_all()
            libraries = glob.glob("%s/usr/lib/x86_64-linux-gnu/libpython%s.so.1.0" %
                                  (build.chroot or "", build.version))
            if libraries:
                embedded(build, libraries[0][len(build.chroot or ""):], work, {})


main()
corpus.done()
