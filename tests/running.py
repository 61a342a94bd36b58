# SPDX-License-Identifier: GPL-2.0-or-later
"""What the live gate (tests/live/gate.py) and the long tests (tests/long/lib.py) share: processes that
do not outlive the test, a directory and a cache of its own, what the kernel has of braid, recordings.
They run as root, from the top directory, with OUTPUT in the environment."""

import atexit
import collections
import contextlib
import ctypes
import glob
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile

OUTPUT = os.path.abspath(os.environ.get("OUTPUT", "build"))
BRAID = os.path.join(OUTPUT, "braid")
PR_SET_PDEATHSIG = 1

libc = ctypes.CDLL(None, use_errno=True)
processes = []

tmp = tempfile.mkdtemp(prefix="braid-test-")
os.environ["XDG_CACHE_HOME"] = os.path.join(tmp, "cache")
os.environ["LC_ALL"] = "C.UTF-8"


@atexit.register
def _clean():
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.wait()
    shutil.rmtree(tmp, ignore_errors=True)


for _number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(_number, lambda number, _: sys.exit(128 + number))


def path(name):
    return os.path.join(tmp, name)


# --- processes ---

def _die_with_test():
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start(*command, **options):
    """A process that does not outlive the test. (From its main thread: a process started by another
    one ends with that thread.)"""
    process = subprocess.Popen([str(word) for word in command], preexec_fn=_die_with_test,
                               **options)
    processes.append(process)
    return process


def state_of(pid):
    """One letter, as in ps; None: there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return None


Result = collections.namedtuple("Result", "status out err")


# --- what is in the kernel ---

SYS_BPF = 321  # x86-64
NEXT_ID = {"prog": 11, "map": 12, "link": 31}  # enum bpf_cmd: BPF_PROG_GET_NEXT_ID, ...


def ids_of(pid):
    """The kernel's ids of a process's BPF objects: {"prog": {...}, "map": {...}, "link": {...}}."""
    ids = {kind: set() for kind in NEXT_ID}
    for info in glob.glob(f"/proc/{pid}/fdinfo/*"):
        try:
            with open(info, encoding="utf-8") as file:
                text = file.read()
        except OSError:
            continue
        # A link's file names its program, too, and a program array's its owner.
        for kind in "link", "map", "prog":
            found = re.search(rf"^{kind}_id:\s*(\d+)", text, re.M)
            if found:
                ids[kind].add(int(found.group(1)))
                break
    return ids


def all_ids(kind):
    """Of the whole machine. Not by bpftool, which opens all: the kernel (6.18) never frees a
    program array that is opened and closed again just when its owner has closed it."""
    found, at = set(), 0
    while True:
        attr = (ctypes.c_uint32 * 3)(at)  # start_id, next_id, open_flags
        if libc.syscall(SYS_BPF, NEXT_ID[kind], attr, ctypes.sizeof(attr)):
            return found
        at = attr[1]
        found.add(at)


# --- recordings ---

class Recording:
    """One that is finished, or whatever of it is committed."""

    def __init__(self, file):
        self.file = file

    def sql(self, query, *values):
        # Closed at once: as long as it is open, removing the file frees no room.
        with contextlib.closing(sqlite3.connect(f"file:{self.file}?mode=ro", uri=True)) as database:
            return database.execute(query, values).fetchall()

    def one(self, query, *values):
        return self.sql(query, *values)[0][0]

    def meta(self, key):
        return self.one("SELECT value FROM meta WHERE key = ?", key)


def stacks_of(folded):
    """[(frames, count)] of folded output, outermost frame first."""
    lines = (line.rpartition(" ") for line in folded.splitlines())
    return [(stack.split(";"), int(count)) for stack, _, count in lines]
