#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""What `braid report --format` writes for viewers, read back by tests/tools/read_formats.py."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "../tools")]
import read_formats  # noqa: E402
import tap  # noqa: E402

OUTPUT = os.environ.get("OUTPUT", "build")
WORK = tempfile.TemporaryDirectory()
FILE = os.path.join(WORK.name, "made.db")

SAMPLES = (
    "wall ns 1000000 running - - 42:app 42:app n:main;python:f@/x/app.py;n:strcmp",
    "wall ns 2000000 running - - 42:app 43:w n:main;python:f@/x/app.py;n:deflate",
    "wall ns 500000 waiting - read 42:app 43:w n:main;python:f@/x/app.py;n:read@/l/libc.so.6;k:vfs_read",
    "wall ns 250000 waiting - read 42:app 43:w n:main;python:f@/x/app.py;n:read@/l/libc.so.6;k:vfs_read",
    "wall ns 7000000 stopped - - 50:tool 50:tool n:main",
    "alloc bytes 2048 running - - 42:app 42:app n:main;n:malloc",
    "fault count 3 running - - 42:app 42:app n:main",
)


# When each of them was, in ns since the first one: not in the order in which they were written.
TIMES = (2000000, 0, 7000000, 7250000, 9000000, 7, 1000007)


def made(*samples):
    """As in report.t: fields of tests/tools/mksamples, with blanks between; in names "~"."""
    if os.path.exists(FILE):
        os.unlink(FILE)
    lines = "".join(sample.replace(" ", "\t").replace("~", " ") + "\n" for sample in samples)
    subprocess.run([OUTPUT + "/tests/tools/mksamples", FILE], input=lines, text=True, check=True)


def made_in_time(*samples, times=TIMES):
    made(*samples)
    with sqlite3.connect(FILE) as file:
        file.executemany("UPDATE sample SET time_ns = ? WHERE id = ?",
                         [(10**12 + time, i + 1) for i, time in enumerate(times)])


def written(name, *words):
    result = subprocess.run([OUTPUT + "/braid", "report", "--format", name, *words, FILE],
                            capture_output=True, check=False)
    tap.equal((result.returncode, result.stderr), (0, b""), f"{name} {words}: is written")
    return result.stdout


def profile(shape, name):
    result = subprocess.run([OUTPUT + "/tests/tools/mkprofile", shape, name], capture_output=True,
                            check=False)
    tap.equal(result.returncode, 0, f"{name}: {shape}")
    return result.stdout


def check_read(reader, name, shapes=("empty", "zero", "hostile", "wide", "deep", "times", "odd")):
    """Profiles of all shapes obey the format's rules, with the sum that the folded form has."""
    for shape in shapes:
        tracks = reader(profile(shape, name))
        folded = profile(shape, "folded").decode().splitlines()
        period = 10101010 if shape in ("hostile", "wide", "deep") else 1
        want = sum(int(line.rsplit(" ", 1)[1]) for line in folded) * period
        got = sum(value for track in tracks.values() for _, value in track)
        tap.equal(got, want, f"{name}: the whole of {shape}")


def check_speedscope():
    made(*SAMPLES)
    tap.equal(list(read_formats.speedscope(written("speedscope")).items()), [
        ("wall: tool (50) [nanoseconds]", [(("main",), 7000000)]),
        ("wall: app (42) [nanoseconds]", [(("main", "f (/x/app.py)", "strcmp"), 1000000)]),
        ("wall: w (43) of app (42) [nanoseconds]", [
            (("main", "f (/x/app.py)", "deflate"), 2000000),
            (("main", "f (/x/app.py)", "read", "vfs_read"), 750000)]),
        ("alloc: app (42) [bytes]", [(("main", "malloc"), 2048)]),
        ("fault: app (42) [none]", [(("main",), 3)])], "speedscope: a profile of each event and thread")
    tap.equal(read_formats.speedscope(written("speedscope", "--event", "wall", "--thread", "w",
                                              "--frames", "script")),
              {"wall: w (43) of app (42) [nanoseconds]": [(("f (/x/app.py)",), 2750000)]},
              "speedscope: what is selected")
    tap.equal(read_formats.speedscope(written("speedscope", "--event", "fault", "--annotate")),
              {"fault: app (42) [none]": [(("main_[n]",), 3)]},
              "speedscope: options are as for other formats")
    check_read(read_formats.speedscope, "speedscope")


def check_firefox():
    made_in_time(*SAMPLES)
    f = "f (/x/app.py) python"
    times = {}
    tap.equal(list(read_formats.firefox(written("firefox"), times).items()), [
        ("app of app 42/42 [tracing-ms]", [(("main [made] native", f, "strcmp [made] native"),
                                            1000000)]),
        ("w of app 42/43 [tracing-ms]", [
            (("main [made] native", f, "deflate [made] native"), 2000000),
            (("main [made] native", f, "read [libc] native", "vfs_read [kernel] kernel"), 500000),
            (("main [made] native", f, "read [libc] native", "vfs_read [kernel] kernel"), 250000)]),
        ("tool of tool 50/50 [tracing-ms]", [(("main [made] native",), 7000000)]),
        ("app (alloc) of app 42/42 [bytes]", [(("main [made] native", "malloc [made] native"), 2048)]),
        ("app (fault) of app 42/42 [samples]", [(("main [made] native",), 3)])],
              "firefox: a thread for each event and thread, a sample for each")
    tap.equal(times, {"app/42": [2000000], "w/43": [0, 7000000, 7250000], "tool/50": [9000000],
                      "app (alloc)/42": [7], "app (fault)/42": [1000007]}, "firefox: when they were")
    for frames in ("script", "collapsed"):
        times = {}
        read_formats.firefox(written("firefox", "--frames", frames, "--event", "wall"), times)
        tap.equal(times["w/43"], [0, 7000000, 7250000], f"firefox: in {frames} frames, too")
    made("cpu samples 1 running - - 42:app 42:app n:main;python:f@/x/app.py",
         "cpu samples 0 running - - 42:app 42:app n:main;python:g@/x/app.py")
    file = json.loads(written("firefox", "--frames", "script", "--annotate"))
    tap.equal((len(file["threads"]), file["shared"]["stringArray"]), (1, ["", "f", "/x/app.py"]),
              "firefox: nothing without a value")
    check_read(read_formats.firefox, "firefox", ("empty", "zero", "hostile", "deep", "times", "odd"))


def check_otlp():
    made(*SAMPLES)
    f = "f (/x/app.py) python"
    tap.equal(list(read_formats.otlp(written("otlp")).items()), [
        ("wall app 42 of app 42 [nanoseconds]", [
            (("main [made] native", f, "strcmp [made] native"), 1000000)]),
        ("wall w 43 of app 42 [nanoseconds]", [
            (("main [made] native", f, "deflate [made] native"), 2000000),
            (("main [made] native", f, "read [libc] native", "vfs_read [kernel] kernel"), 750000)]),
        ("alloc occurrences app 42 of app 42 [count]", [
            (("main [made] native", "malloc [made] native"), 1)]),
        ("alloc app 42 of app 42 [bytes]", [(("main [made] native", "malloc [made] native"), 2048)]),
        ("fault app 42 of app 42 [count]", [(("main [made] native",), 3)]),
        ("wall tool 50 of tool 50 [nanoseconds]", [(("main [made] native",), 7000000)])],
              "otlp: a profile of each event and process, samples of threads")
    with sqlite3.connect(FILE) as file:
        file.execute("UPDATE process SET command = './app --all', container = 'c0ffee' WHERE pid = 42")
    resources = read_formats.decoded(written("otlp"), "Request")["resource_profiles"]
    told = [read_formats.attributes_of(one["resource"][0]["attributes"]) for one in resources]
    tap.equal([(of["process.pid"], of.get("process.command_line"), of.get("container.id"))
               for of in told if of["process.pid"] == 42], [(42, "./app --all", "c0ffee")],
              "otlp: the command line and the container")
    made("cpu samples 1 running - - 42:app 42:app n:main;n:",
         "cpu samples 2 running - - 42:app 42:app n:main;python:f@/x/app.py")
    tap.equal(sum(value for track in read_formats.otlp(written("otlp")).values()
                  for _, value in track), 3, "otlp: a frame without a name")
    check_read(read_formats.otlp, "otlp", ("empty", "zero", "hostile", "times", "odd"))


def check_chrome():
    made_in_time(*SAMPLES, "alloc bytes 1 running - - 42:app 42:app n:main",
                 times=(*TIMES, 307))
    f = "f (app.py) python"
    reads = ("main native", f, "read native", "vfs_read kernel")
    tap.equal(list(read_formats.chrome(written("chrome")).items()), [
        ("wall: app (42) in app 42", [((), 1000000), (("main native", f, "strcmp native"), 1000000)]),
        ("wall: w (43) of app (42) in app 42", [((), 6500000), (reads, 750000)]),
        ("wall: tool (50) in tool 50", [((), 2000000), (("main native",), 7000000)]),
        ("alloc: app (42) in app 42", [((), 7), (("main native", "malloc native 2048"), 300),
                                       (("main native 1",), 1000)]),
        ("fault: app (42) in app 42", [((), 1000007), (("main native 3",), 1000)])],
              "chrome: a track for each event and thread; slices end when samples were taken")
    ticks = [f"cpu samples 1 running - - 42:app 42:app n:main;n:{name}" for name in "ffgf"]
    made_in_time(*ticks, times=(0, 12000000, 21000000, 60000000))
    with sqlite3.connect(FILE) as file:
        file.execute("INSERT INTO meta VALUES ('frequency_hz', '100')")
    tap.equal(list(read_formats.chrome(written("chrome")).values()), [[
        (("main native", "f native"), 12000000), (("main native", "g native"), 9000000),
        ((), 29000000), (("main native", "f native"), 10000000)]],
              "chrome: ticks that follow each other have no time between them")
    track, = read_formats.chrome(profile("times", "chrome")).values()
    lines = [line.rsplit(" ", 1) for line in profile("times", "folded").decode().splitlines()]
    tap.equal([([frame.rsplit(" ", 2)[0] for frame in stack], value) for stack, value in track],
              [(stack.split(";"), int(value)) for stack, value in lines], "chrome: times of calls")
    tap.equal(track[-1][0], ("_start native 0", "<module> (main.py) python 21891",
                             *["fib (math.py:12) python 21891"] * 3), "chrome: calls are counted")
    check_read(read_formats.chrome, "chrome", ("empty", "zero", "hostile", "deep"))


def check_perf():
    made_in_time(*SAMPLES)
    f = "f (/x/app.py)"
    reads = ("main (made)", f, "read (libc)", "vfs_read ([kernel.kallsyms])")
    times = {}
    tap.equal(list(read_formats.perf(written("perf"), times).items()), [
        ("wall w 42/43", [(("main (made)", f, "deflate (made)"), 2000000), (reads, 500000),
                          (reads, 250000)]),
        ("alloc app 42/42", [(("main (made)", "malloc (made)"), 2048)]),
        ("fault app 42/42", [(("main (made)",), 3)]),
        ("wall app 42/42", [(("main (made)", f, "strcmp (made)"), 1000000)]),
        ("wall tool 50/50", [(("main (made)",), 7000000)])], "perf: samples of all, by time")
    tap.equal(times, {"wall app 42/42": [2000000], "wall w 42/43": [0, 7000000, 7250000],
                      "wall tool 50/50": [9000000], "alloc app 42/42": [7],
                      "fault app 42/42": [1000007]}, "perf: when they were")
    made("cpu samples 1 running - - 42:a~b 43:x~(y)~z n:main@/l/lib~(a).so.1;python:a(b)~(c)@/x/a~(b).py")
    tap.equal(read_formats.perf(written("perf")), {"cpu x_(y)_z 42/43": [
        (("main (lib__a_)", "a(b) (c) (/x/a__b_.py)"), 1)]}, "perf: nothing looks like another field")
    made("cpu samples 1 running - - 42:#main 42:#main n:main",
         "cpu samples 2 running - - 42:#main 43:##~# n:(anonymous~namespace)::f;n:operator->;python:(a->b@/x/a.py",
         "cpu samples 4 running - - 42:#main 44:# n:#main;n:[f+0x12]",
         "cpu samples 8 running - - 42:#main 45:12/3 n:(eval)")
    tap.equal(read_formats.perf(written("perf")), {
        "cpu _#main 42/42": [(("main (made)",), 1)],
        "cpu _##_# 42/43": [(("[anonymous namespace]::f (made)", "operator=> (made)", "[a=>b (/x/a.py)"), 2)],
        "cpu _# 42/44": [(("#main (made)", "[f+0x12] (made)"), 4)],
        "cpu 12/3 42/45": [(("[eval] (made)",), 8)]}, "perf: no name looks like a comment, a process or two frames")
    check_read(read_formats.perf, "perf", ("empty", "zero", "hostile", "wide", "times"))


def check_dot():
    made("wall ns 900 running - - 42:app 42:app n:main;n:f;n:g;n:f;n:g",
         "wall ns 97 running - - 42:app 42:app n:main;n:f",
         "wall ns 3 running - - 42:app 42:app n:main;n:seldom",
         r'wall ns 100 running - - 42:app 42:app n:a"]\&e;n:f')
    tap.equal(written("dot").decode().splitlines()[3:], [
        r'	n1 [label="main\nself 0 ns (0.0%)\ntotal 1.00 us (90.9%)" fontsize=8];',
        r'	n2 [label="f\nself 197 ns (17.9%)\ntotal 1.10 us (99.7%)" fontsize=12];',
        r'	n3 [label="g\nself 900 ns (81.8%)\ntotal 900 ns (81.8%)" fontsize=24];',
        r'	n5 [label="a\"]\\&amp;e\nself 0 ns (0.0%)\ntotal 100 ns (9.1%)" fontsize=8];',
        '\tn5 -> n2 [label="100 ns" penwidth=1.4];', '\tn1 -> n2 [label="997 ns" penwidth=4.6];',
        '\tn2 -> n3 [label="900 ns" penwidth=4.3];', '\tn3 -> n2 [label="900 ns" penwidth=4.3];',
        "}"], "dot: a function, and a call, once a stack")
    if not shutil.which("dot"):
        return
    for shape in ("empty", "zero", "hostile"):
        result = subprocess.run(["dot", "-Tplain"], input=profile(shape, "dot"), capture_output=True,
                                check=False)
        tap.equal((result.returncode, result.stderr), (0, b""), f"dot takes {shape}")


check_speedscope()
check_dot()
check_firefox()
check_otlp()
check_chrome()
check_perf()
tap.done()
