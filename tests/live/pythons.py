# SPDX-License-Identifier: GPL-2.0-or-later
"""The Pythons that tests of the live gate run: the system's, and as in scripts/check-long all others that
happen to be there."""

import glob
import os
import signal

import gate

SYSTEM = "/usr/bin/python3.11"


def version_of(*python):
    return tuple(map(int, gate.run(*python, "-c", "import sys; print(*sys.version_info[:2])")
                     .out.split()))


def has_gil(*python):
    """False: a free-threaded build."""
    return gate.run(*python, "-c", "import sys; print('t' in sys.abiflags)").out.strip() != "True"


def of_roots():
    """Commands for those of the test roots."""
    roots = os.environ.get("BRAID_TEST_ROOTS", os.path.expanduser("~/.cache/braid-tests"))
    for file in sorted(glob.glob(roots + "/*/usr/bin/python3.1[345]")):
        root = file.partition("/usr/bin/")[0]
        libraries = "/lib/x86_64-linux-gnu"
        linker = glob.glob(f"{root}/usr{libraries}/ld-*.so*") or glob.glob(f"{root}{libraries}/ld-*.so*")
        if linker:
            yield ["env", f"PYTHONHOME={root}/usr", linker[0], "--library-path",
                   f"{root}/usr{libraries}:{root}{libraries}", file]


def every():
    """Commands for all of them, those that BRAID_PYTHONS lists first. Each has the time that a test has."""
    found = [[SYSTEM], *([file] for file in os.environ.get("BRAID_PYTHONS", "").split(":") if file)]
    if os.environ.get("BRAID_EVERY_INTERPRETER"):
        found += [[file] for file in sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")))]
        found += of_roots()
    for each in found:
        signal.alarm(gate.HANGS_S)
        yield each
