#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Threads have the names in full that the program gave them. The machine's own CPython; with
BRAID_EVERY_INTERPRETER each from 3.8 to 3.14, those of the test roots included. Ruby's have the name
that they got last, as the kernel's changes with it, or the place of their block; also where braid has
seen an older one, and cannot look again before the last sample, as that takes long here."""

import collections
import contextlib
import glob
import json
import os
import shutil

import gate

SCRIPT = "fixtures/python/named_threads.py"
RUBY = "fixtures/ruby/named_threads.rb"
HITS = 3
THREADS = 11
RUBIES = 5


def pythons():
    yield ["/usr/bin/python3"]
    if not os.environ.get("BRAID_EVERY_INTERPRETER"):
        return
    for file in sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))):
        yield [file]
    roots = os.environ.get("BRAID_TEST_ROOTS", os.path.expanduser("~/.cache/braid-tests"))
    for file in sorted(glob.glob(roots + "/*/usr/bin/python3.*")):
        root = file[:-len("/usr/bin/") - len(os.path.basename(file))]
        linker = glob.glob(root + "/lib/x86_64-linux-gnu/ld-*.so*")
        if not linker or file.endswith("-pie"):
            continue
        yield ["env", f"PYTHONHOME={root}/usr", linker[0], "--library-path",
               root + "/usr/lib/x86_64-linux-gnu:" + root + "/lib/x86_64-linux-gnu", file]


def version(command):
    """None: it does not run with the marker, whose libraries may be too new for it."""
    told = gate.run(*command, "-I", "-c", "import sys; print(*sys.version_info[:2])",
                    env=dict(os.environ, LD_PRELOAD=gate.MARKER))
    return tuple(map(int, told.out.split())) if not told.status and told.out else None


def count_samples(file):
    """That are in the recording so far; braid has read the names of their threads by then."""
    try:
        with contextlib.closing(gate.sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
            return database.execute("SELECT count(*) FROM sample").fetchone()[0]
    except gate.sqlite3.OperationalError:  # it has no tables yet
        return 0


def check_ruby():
    target = gate.marked("ruby", "--disable-gems", RUBY)
    block = f"named_threads.rb:{gate.line(RUBY, 'thread = Thread.new do')}"
    recorder = gate.recorder(RUBIES * 2 * HITS, target)
    gate.ask(target, str(HITS))
    gate.wait_until(lambda: count_samples(recorder.file) == RUBIES * HITS, "first names")
    names = {tid: name or block for tid, name in json.loads(gate.ask(target, str(HITS)))}
    recording = gate.finish(recorder, RUBIES * 2 * HITS)
    want = collections.Counter({(tid, name): 2 * HITS for tid, name in names.items()})
    gate.equal(len(names), RUBIES, "ruby: the program has so many threads")
    gate.equal(collections.Counter((sample.tid, sample.thread) for sample in recording.samples()), want,
               "ruby: all samples of a thread have the name that it got last")
    told = gate.braid("report", "--by", "thread", recording.file).out
    gate.equal([name for name in names.values() if name not in told], [], "ruby: report --by thread")
    file = gate.path("names.pb.gz")
    gate.braid("report", "--format", "pprof", "-o", file, recording.file)
    told = gate.run("python3", "tests/tools/read_pprof.py", file).out
    gate.equal([name for name in names.values() if name not in told], [], "ruby: labels of pprof")
    target.stdin.close()
    target.wait()


gate.need_root()
for command in pythons():
    number = version(command)
    if not number or not (3, 8) <= number <= (3, 14):
        continue
    what = f"{number[0]}.{number[1]}, {os.path.basename(command[-1])}"
    target = gate.marked(*command, "-B", SCRIPT)
    recorder = gate.recorder(THREADS * HITS, target)
    names = dict(json.loads(gate.ask(target, str(HITS))))
    recording = gate.finish(recorder, THREADS * HITS)
    gate.equal(len(names), THREADS, f"{what}: the program has so many threads")
    gate.equal(collections.Counter((sample.tid, sample.thread) for sample in recording.samples()),
               collections.Counter({(tid, name): HITS for tid, name in names.items()}),
               f"{what}: each sample has the name that the program gave its thread")
    target.stdin.close()
    target.wait()
if shutil.which("ruby"):
    check_ruby()
else:
    gate.skip("ruby", "it is not there")
gate.done()
