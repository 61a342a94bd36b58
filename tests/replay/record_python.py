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

# Every version has the second list, from one of its builds; other builds of it have the first one.
# What costs much is recorded with the oldest and the newest version, and wherever frames changed.
FEW = ("nested", "steps")
BASE = FEW + ("generators", "threads")
MORE = BASE + ("interruptions", "exceptions", "classes", "lines", "subinterpreters")
ALL = MORE + ("deep", "imports", "coroutines", "optimized")

OF_PYENV = {"3.6": ALL, "3.7": BASE, "3.8": MORE + ("coroutines",), "3.9": BASE + ("deep",),
            "3.10": BASE + ("interruptions",), "3.11": FEW, "3.12": MORE + ("deep",), "3.13": FEW,
            "3.13t": FEW + ("generators",)}  # without the GIL
# Those of scripts/test-pythons, by their own names; all others of its builds have the latter. What
# threads.py tells of other threads is true only while they wait for the GIL.
WITHOUT_GIL = tuple(name for name in ALL if name != "threads")
BUILT = {"3.13t": OF_PYENV["3.13t"], "3.14t": WITHOUT_GIL, "3.15t": WITHOUT_GIL}
BUILT_FEW = FEW + ("generators", "exceptions")
STRIPPED = {"3.6": ("nested",), "3.10": ("nested",), "3.12": ("nested",)}
EMBEDDED = ("3.6", "3.8", "3.10", "3.12")
DEPTHS = {"3.6": 300, "3.11": 900, "3.15": 300}  # a text has a line per frame
ENV = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": "/opt/replay/python"}

PYENV = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
OF_DEBIAN = ((None, "3.11", ALL), ("bullseye", "3.9", FEW), ("trixie", "3.13", MORE + ("deep",)),
             ("trixie", "3.13-pie", FEW), ("forky", "3.13", FEW),
             ("forky", "3.14", BASE + ("interruptions", "deep")), ("forky", "3.15", ALL))

# Without libffi and test modules
ON_MUSL = ("steps", "generators", "waiters")
OF_MUSL = {"py3.9s": ("3.9-musl", ON_MUSL), "py3.11": ("3.11-musl", ON_MUSL + ("classes", "exceptions")),
           "py3.11static": ("3.11-musl-static", ON_MUSL), "py3.13s": ("3.13-musl", ON_MUSL)}


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

    def record_all(self):
        for name in self.scenarios:
            script = ["/opt/replay/python/%s.py" % name]
            if name == "deep":
                script += [str(DEPTHS.get(self.version, 100))]
            elif name == "optimized":
                script = ["-OO", "-m", "optimized"]
            self.record(name, self.program, "-S", *script)


# What none of the scenarios imports.
LEFT_OUT = shutil.ignore_patterns("__pycache__", "test", "tests", "site-packages", "idlelib", "tkinter",
                                  "config-*", "ensurepip", "lib2to3", "pydoc_data", "*.a", "share",
                                  "include")
MODULES = "asyncio, copy, ctypes, dataclasses, functools, hashlib, runpy, sqlite3, threading, weakref"


def moved(directory, version, work):
    """A copy of an installation that calls its place /opt/python/NAME."""
    place = "/opt/python/" + os.path.basename(directory)
    copy = corpus.moved(directory, place, os.path.join(work, os.path.basename(directory)), LEFT_OUT)
    subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c",
                    'mount -t tmpfs tmpfs /opt && mkdir -p %s && mount --bind "$0" %s && '
                    'exec "$@"' % (place, place), copy,
                    "%s/bin/python%s" % (place, version), "-S", "-c",
                    "try: import %s\nexcept ImportError: pass" % MODULES],
                   check=True, env={"PATH": "/usr/bin:/bin"})
    return copy


def of_pyenv(work):
    """Their libpython is shared."""
    directories = {}
    for directory in sorted(glob.glob(PYENV + "/versions/3.*")):
        name = os.path.basename(directory)
        version = ".".join(name.split(".")[:2]) + ("t" if name.endswith("t") else "")
        directories[directory] = version
    for version in OF_PYENV:
        if version not in directories.values():
            print("not there: %s of pyenv" % version)
    for directory, version in directories.items():
        names = ["embedded", *OF_PYENV.get(version, ()),
                 *("stripped-" + name for name in STRIPPED.get(version, ()))]  # of its bundles
        if any(corpus.wanted("python/%s-%s" % (version, name)) for name in names):
            home = "python/" + os.path.basename(directory)
            yield Build(version, "/opt/%s/bin/python%s" % (home, version),
                        OF_PYENV.get(version, ALL), {moved(directory, version, work): home})


def built(work):
    for directory in sorted(glob.glob(os.path.join(corpus.ROOTS, "pythons", "[0-9]*"))):
        name = os.path.basename(directory)
        if not os.path.isdir(directory):
            continue
        scenarios = BUILT.get(name, BUILT_FEW)
        program = "python" + name.split("-")[0]
        if any(corpus.wanted("python/%s-%s" % (name, scenario)) for scenario in scenarios):
            yield Build(name, "/opt/python/%s/bin/%s" % (name, program), scenarios,
                        {moved(directory, program[len("python"):], work): "python/" + name})


def of_musl(work):
    """Those that scripts/test-musl has built."""
    for name, (label, scenarios) in OF_MUSL.items():
        directory = os.path.join(corpus.MUSL, name)
        version = label.split("-")[0]
        if not os.path.exists("%s/bin/python%s" % (directory, version)):
            print("not there: %s (scripts/test-musl)" % directory)
        elif any(corpus.wanted("python/%s-%s" % (label, scenario)) for scenario in scenarios):
            yield Build(label, "/opt/python/%s/bin/python%s" % (name, version), scenarios,
                        {moved(directory, version, work): "python/" + name})


def of_debian():
    for release, version, scenarios in OF_DEBIAN:
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
    return Build(build.label + "-stripped", build.program, STRIPPED[build.version],
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
            build.record_all()
            if build.version in STRIPPED:
                stripped(build, work).record_all()
            if build.version not in EMBEDDED:
                continue
            (copy, home), = build.binds.items()
            library = os.path.basename(glob.glob(copy + "/lib/libpython3.*.so.1.0")[0])
            embedded(build, "/opt/%s/lib/%s" % (home, library), work, {"PYTHONHOME": "/opt/" + home})
        for build in (*built(work), *of_musl(work)):
            build.record_all()
        for build in of_debian():
            build.record_all()
            libraries = glob.glob("%s/usr/lib/x86_64-linux-gnu/libpython%s.so.1.0" %
                                  (build.chroot or "", build.version))
            if libraries:
                embedded(build, libraries[0][len(build.chroot or ""):], work, {})


main()
corpus.done()
