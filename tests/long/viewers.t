#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Files for viewers, read by the viewers' own programs: the Firefox profiler's profiler-cli, from
npm's registry into a temporary directory, and go tool pprof. What this machine cannot have is
skipped, and said."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..")]
import tap  # noqa: E402

OUTPUT = os.path.abspath(os.environ.get("OUTPUT", "build"))
WORK = tempfile.TemporaryDirectory()
FILE = os.path.join(WORK.name, "made.db")

SAMPLES = (
    "wall ns 1000000 running - - 42:app 42:app n:main;python:f@/x/app.py;n:strcmp",
    "wall ns 2000000 running - - 42:app 43:w n:main;python:f@/x/app.py;n:deflate",
    "wall ns 750000 waiting - read 42:app 43:w n:main;python:f@/x/app.py;n:read@/l/libc.so.6;k:vfs_read",
    "alloc bytes 2048 running - - 42:app 42:app n:main;n:malloc",
)


def run(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, check=False, **more)


def made(name, *words):
    path = os.path.join(WORK.name, "out." + name)
    result = run(OUTPUT + "/braid", "report", "--format", name, "-o", path, *words, FILE)
    tap.equal((result.returncode, result.stderr), (0, ""), f"{name}: is written")
    return path


def below(tree):
    """{name: (total, {children})} of profiler-cli's call tree."""
    return {child["name"]: (round(child["totalSamples"], 6), below(child))
            for child in tree["children"]}


def shape_of(shape):
    path = os.path.join(WORK.name, shape + ".json")
    with open(path, "wb") as out:
        subprocess.run([OUTPUT + "/tests/tools/mkprofile", shape, "firefox"], stdout=out, check=True)
    return path


def check_firefox():
    if not shutil.which("npm"):
        tap.skip("profiler-cli", "there is no npm")
        return
    where = os.path.join(WORK.name, "npm")
    os.mkdir(where)
    result = run("npm", "install", "--no-audit", "--no-fund", "--prefix", where,
                 "@firefox-devtools/profiler-cli@0.10.0", "node@24", timeout=300)
    if result.returncode:
        tap.skip("profiler-cli", "npm has no access to its registry")
        return
    environment = {**os.environ, "HOME": where,
                   "PATH": where + "/node_modules/.bin:" + os.environ["PATH"]}

    def cli(*words):
        result = run("profiler-cli", *words, env=environment, timeout=120)
        tap.equal(result.returncode, 0, f"profiler-cli {' '.join(words[:2])}", result.stdout,
                  result.stderr)
        return result.stdout

    cli("load", made("firefox"))
    try:
        threads = json.loads(cli("thread", "list", "--json"))["threads"]
        tap.equal(sorted((one["name"], one["processName"], str(one["pid"])) for one in threads),
                  [("app", "app", "42"), ("app (alloc)", "app", "42"), ("w", "app", "42")],
                  "firefox: threads")
        handle, = [one["threadHandle"] for one in threads if one["name"] == "w"]
        cli("thread", "select", handle)
        tree = json.loads(cli("thread", "samples-top-down", "--json"))
        tap.equal((tree["weightType"], below(tree["regularCallTree"])), ("tracing-ms", {
            "main": (2.75, {"f": (2.75, {"deflate": (2.0, {}),
                                         "read": (0.75, {"vfs_read": (0.75, {})})})})}),
                  "firefox: the call tree")
    finally:
        cli("stop")
    for shape in ("empty", "hostile", "deep", "odd"):
        cli("load", shape_of(shape))
        cli("stop")


def check_pprof():
    if not shutil.which("go"):
        tap.skip("go tool pprof", "there is no go (Debian's golang-go)")
        return
    environment = {**os.environ, "HOME": WORK.name, "PPROF_TMPDIR": WORK.name}
    path = made("pprof", "--lines")

    def pprof(*words):
        result = run("go", "tool", "pprof", *words, path, env=environment, timeout=120)
        tap.equal(result.returncode, 0, f"go tool pprof {words}", result.stderr)
        return result.stdout

    rows = [line.split() for line in pprof("-top", "-unit=us", "-sample_index=wall").splitlines()]
    own = {row[5]: row[0] for row in rows if len(row) > 5 and row[1].endswith("%")}
    tap.equal({name: own.get(name) for name in ("deflate", "strcmp", "vfs_read")},
              {"deflate": "2000us", "strcmp": "1000us", "vfs_read": "750us"}, "pprof: -top", rows)
    tags = pprof("-tags", "-sample_index=wall")
    tap.ok("thread" in tags and "w" in tags.split(), "pprof: labels", tags)
    only = pprof("-top", "-sample_index=wall", "-tagfocus=thread=w")
    tap.ok("strcmp" not in only and "deflate" in only, "pprof: -tagfocus", only)
    tap.ok("malloc" in pprof("-top", "-sample_index=alloc"), "pprof: another event")


lines = "".join(sample.replace(" ", "\t") + "\n" for sample in SAMPLES)
subprocess.run([OUTPUT + "/tests/tools/mksamples", FILE], input=lines, text=True, check=True)
check_firefox()
check_pprof()
tap.done()
