#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""CPython 3.11 started in its many ways: -c, from a virtual environment, forked, by exec."""

import os
import subprocess

import lib

PYTHON = "/usr/bin/python3.11"
BURN = "def burn():\n    n = 0\n    while n < 9000000: n += 1\n"
FORK = BURN + """
import os
def in_child():
    burn()
def in_parent():
    burn()
pid = os.fork()
if not pid:
    in_child()
    os._exit(0)
in_parent()
os.waitpid(pid, 0)
"""
POOL = """
import multiprocessing
def job(x):
    n = 0
    while n < 2000000: n += 1
    return x
if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        pool.map(job, range(8))
"""
EXEC = BURN + """
import os, sys
def before_exec():
    burn()
before_exec()
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1]])
"""
AFTER_EXEC = BURN + """
def after_exec():
    burn()
after_exec()
"""


def write(name, text):
    with open(lib.path(name), "w", encoding="utf-8") as file:
        file.write(text)
    return lib.path(name)


def check_command_line():
    recording = lib.record("--", PYTHON, "-c", BURN + "burn()")
    lib.check_share(recording.folded("--lines"),
                    r";<module> \(<string>:4\);burn \(<string>:3\)(;|$)", 0.5, "python -c")


def check_virtual_environment():
    directory = lib.path("venv")
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", "--symlinks", directory], check=True)
    python = os.path.join(directory, "bin/python")
    script = write("inside.py", BURN + "burn()\n")
    recording = lib.record("--", python, script)
    lib.ok(os.path.islink(python), "venv: its python is a link")
    lib.check_share(recording.folded(), r";<module> \(inside.py\);burn \(inside.py\)(;|$)", 0.5,
                    "venv")


def check_fork():
    recording = lib.record("--", PYTHON, write("forking.py", FORK))
    pids = [pid for pid, in recording.sql("SELECT DISTINCT pid FROM process ORDER BY parent_pid = ("
                                          "SELECT min(pid) FROM process)")]
    lib.equal(len(pids), 2, "fork: two processes", pids)
    parent, child = pids[0], pids[-1]
    lib.check_share(recording.folded("--pid", child),
                    r";<module> \(forking.py\);in_child \(forking.py\);burn \(forking.py\)(;|$)",
                    0.95, "fork: the child, from its birth")
    lib.check_share(recording.folded("--pid", parent),
                    r";<module> \(forking.py\);in_parent \(forking.py\);burn \(forking.py\)(;|$)",
                    0.5, "fork: the parent")
    lib.check_complete(recording, 99, "fork: the child", child)


def check_multiprocessing():
    recording = lib.record("--", PYTHON, write("pool.py", POOL))
    jobs = recording.sql("""
        SELECT pid, count(DISTINCT sample.id) FROM sample
          JOIN thread ON thread = thread.id JOIN process ON process = process.id
          JOIN stack ON stack.leaf = sample.runtime
         WHERE function = 'job' GROUP BY pid""")
    lib.equal(len(jobs), 2, "multiprocessing: both workers", jobs)
    lib.check_share(recording.folded(),
                    r";<module> \(pool.py\);.*Process._bootstrap \(process.py\);.*"
                    r";worker \(pool.py\);.*;job \(pool.py\)(;|$)", 0.5, "multiprocessing")


def check_exec():
    recording = lib.record("--", PYTHON, "-c", EXEC, AFTER_EXEC)
    stacks = recording.folded()
    lib.equal(recording.one("SELECT count(DISTINCT pid) FROM process"), 1, "exec: one PID")
    lib.check_share(stacks, r";before_exec \(<string>\);burn", 0.2, "exec: before")
    lib.check_share(stacks, r";after_exec \(<string>\);burn", 0.2, "exec: after")
    lib.ok(not lib.share_of(stacks, "before_exec.*after_exec|after_exec.*before_exec"),
           "exec: nothing of the old program is left")


lib.need_bpf()
if not os.path.exists(PYTHON):
    lib.skip_all("no " + PYTHON)
for check in (check_command_line, check_virtual_environment, check_fork, check_multiprocessing,
              check_exec):
    check()
lib.done()
