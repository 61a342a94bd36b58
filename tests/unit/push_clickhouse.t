#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""`braid push` to a real ClickHouse server, and views from there: they are those of the recordings,
whatever gets lost on the way."""

import atexit
import ctypes
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import servers  # noqa: E402
import tap  # noqa: E402
from tap import equal, matches, ok  # noqa: E402

OUTPUT = os.environ.get("OUTPUT", "build")
WORK = tempfile.TemporaryDirectory()
libc = ctypes.CDLL(None)

if not servers.ClickHouse.PROGRAM:
    tap.skip_all("there is no clickhouse-server")


def start(*command, **options):
    """It does not outlive the test."""
    return subprocess.Popen(command, preexec_fn=lambda: libc.prctl(1, signal.SIGKILL), **options)


for _number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(_number, lambda number, _: sys.exit(128 + number))
SERVER = servers.ClickHouse([servers.free_ports(2)], 0, start)
atexit.register(SERVER.close)
URL = f"clickhouse://127.0.0.1:{SERVER.port}/braid"

HOSTILE = "o'x\\';--"
APP = [
    f"{event} {value + n % 3} {state} {lock} {call} {pid}:{process} {tid}:w{tid} {frames}"
    for n in range(10)
    for event, value, state, lock, call in (("cpu samples", 1, "running", "held", "-"),
                                            ("off-cpu ns", 5000, "waiting", "waited", "read"),
                                            ("off-cpu ns", 700, "preempted", "-", "-"))
    for pid, process, tid in ((42, "app", 42), (42, "app", 43), (50, HOSTILE, 51))
    for frames in (f"n:main;python:f{n % 4}@/x/app.py;n:strcmp@/l/libc.so.6",
                   "n:main;python:g@/x/app.py;python:h@/x/app.py;n:read@/l/libc.so.6;k:vfs_read",
                   "n:main;n:@/bin/stripped", "n:a'b\\c--;k:\x1b[31m")
]


def path(name):
    return os.path.join(WORK.name, name)


def made(name, samples):
    lines = "".join("\t".join(sample.split(" ")) + "\n" for sample in samples)
    subprocess.run([OUTPUT + "/tests/tools/mksamples", path(name)], input=lines, text=True,
                   check=True)
    return path(name)


def braid(*words):
    return subprocess.run([OUTPUT + "/braid", *words], capture_output=True, text=True, check=False,
                          timeout=60)


def push(*words, to=URL):
    return braid("push", *words, "--to", to, "--max-wait", "0.02")


def forget():
    for name in os.listdir(WORK.name):
        if name.startswith(".braid-push-"):
            os.unlink(path(name))


def report(*words):
    result = braid("report", *words)
    return result.stdout if not result.returncode else result


def from_db(where, *words):
    return report("--from-db", URL, *(["--where", where] if where else []), *words)


FILE = made("app.db", APP)
OTHER = made("other.db", APP[:50])
SUMS = "SELECT sum(total), count() FROM braid_samples WHERE load NOT IN (SELECT load FROM braid_void)"
WANT = f"{sum(int(one.split()[2]) for one in APP)}\t{len(APP)}\n"


def check_views():
    result = push(FILE)
    matches("--init creates them|Use --init to create them", result.stderr, "without tables: says what makes them")
    result = braid("push", "--init", "--to", URL)
    equal(result.returncode, 0, "tables are made", result)
    salt = SERVER.ask("SELECT value FROM braid_meta WHERE key = 'salt'")
    equal(braid("push", "--init", "--to", URL).returncode, 0, "... and made again")
    equal(SERVER.ask("SELECT value FROM braid_meta WHERE key = 'salt'"), salt, "... with one salt")
    result = push(FILE, "--host", "one", "--batch", "64")
    equal((result.returncode, result.stdout), (0, f"app.db: {len(APP)} samples sent\n"), "is sent",
          result)
    equal(SERVER.ask(SUMS), WANT, "all of it is there")
    for words in ((), ("--by", "state"), ("--by", "syscall"), ("--frames", "script"), ("--lines",),
                  ("--keep-vm",), ("--by", "thread"), ("--thread", "w43"), ("--pid", "50"),
                  ("--runtime", "kernel"), ("--annotate",), ("--event", "off-cpu"),
                  ("--event", "off-cpu", "--idle", "show", "--by", "state"),
                  ("--event", "off-cpu", "--state", "waiting")):
        words = "--format", "folded", *words
        equal(from_db(None, *words), report(*words, FILE), f"as the recording: {words[2:]}")
    ok(from_db(None, "--format", "speedscope").count('"name":"off-cpu') ==
       report("--format", "speedscope", FILE).count('"name":"off-cpu') > 0, "all events of a format")
    result = braid("flame", "--from-db", URL, "-o", path("page.html"))
    equal(result.returncode, 0, "the page", result)
    matches("one", from_db(None, "--format", "folded", "--by", "process"), "processes have a host")


def total(where, *words):
    text = from_db(where, "--format", "folded", "--event", "off-cpu", *words)
    return text if not isinstance(text, str) else sum(int(line.rsplit(" ", 1)[1])
                                                      for line in text.splitlines())


def check_where():
    push(OTHER, "--host", "two", "--service", "shop")

    def value(samples, *words):
        return sum(int(one.split()[2]) for one in samples
                   if one.startswith("off-cpu") and all(word in one for word in words))
    one, two = value(APP), value(APP[:50])
    for where, want in (
            ("host = one", one), ("host=two", two), ("host != one", two), ("service = shop", two),
            ("service=app or service=shop", value(APP, ":app") + two),
            ("service ~ '^(app|shop)$'", value(APP, ":app") + two), ("not host = one", two),
            ("host !~ o[n]e", two), ("tid = 43 and host = one", value(APP, "43:w43")),
            ("thread = w43 and not (host = two)", value(APP, "43:w43")),
            ("pid=50 and host=one", value(APP, "50:")),
            ("time >= now-1h and host = one", one), ("host = one and time < 2100-01-01T00:00", one),
            ("(time >= now-1h or host = nobody) and host = two", two),
            ("not (time < now-1h) and host = two", two), ("event = off-cpu and host = two", two),
            ('process = "o\'x\\\';--" and host = one', value(APP, HOSTILE)),
            ("process = 'o''x\\'';--' and host = one", value(APP, HOSTILE))):
        equal(total(where), want, f"--where {where}")
    for where in ("host = nobody", "host = \"' OR 1 = 1 --\"", "host = 'one'' OR ''1'' = ''1'",
                  "service = '\\x27) OR (1 = 1'", "host = `one`", "time > now and host = one"):
        result = from_db(where, "--format", "folded")
        ok(result == "" or (result.returncode == 1 and "no samples that match --where" in result.stderr),
           f"--where {where}: nothing", result)
    for where in ("host", "host one", "host = ", "host = 'one", "nothing = one", "(host = one",
                  "host = one)", "host = one host = two", "host < one", "pid = x", "pid = 1 or",
                  "time = yesterday", "time ~ 1", "host = one; DROP TABLE braid_samples", "and",
                  "(" * 1000, "not " * 1000, " or ".join(["pid = 1"] * 1001)):
        result = from_db(where)
        equal(result.returncode, 2, f"--where {where:.40} makes no sense", result)
    result = from_db("host ~ '('")
    matches("answers .*(regexp|regular expression|OptimizedRegular|compile)", result.stderr,
            "a regular expression that is none")
    equal("gave up" in result.stderr, False, "... is not asked for again")
    result = from_db("host = one", "--from", "-1m")
    equal(result.returncode, 1, "--from is not taken for a time in the database")
    matches("in --where", result.stderr, "... and it is said how that is asked for")
    new = from_db("host = one", "--format", "folded", "--diff", "host = two")
    equal(sum(int(line.split()[-1]) for line in new.splitlines()),
          sum(int(one.split()[2]) for one in APP if one.startswith("cpu")), "--diff with another part")


def check_repeats():
    before = SERVER.ask(SUMS), SERVER.ask("SELECT count() FROM braid_samples")
    for words in ((), ("--batch", "1024"), ("--batch", "1")):
        forget()
        equal(push(FILE, "--host", "one", *words).returncode, 0, f"sent again {words}")
    equal((SERVER.ask(SUMS), SERVER.ask("SELECT count() FROM braid_samples")), before,
          "nothing was added")
    os.rename(FILE, path("renamed.db"))
    push(path("renamed.db"))
    os.rename(path("renamed.db"), FILE)
    equal(SERVER.ask(SUMS), before[0], "under another name neither")


BY_PROCESS = """SELECT process, sum(total) FROM braid_samples ANY INNER JOIN
(SELECT series, process FROM braid_series GROUP BY series, process) USING series
WHERE load NOT IN (SELECT load FROM braid_void) AND process LIKE 'p%' GROUP BY process
FORMAT TabSeparated"""


def lose(verdict, n, samples):
    """The n-th request or its answer is lost, or braid is killed when the n-th was answered. Returns
    how many there were."""
    killed = []

    def judge(_, count):
        if count == n and verdict == "kill":
            killed[0].kill()
        return None if count != n else "lose answer" if verdict == "kill" else verdict
    file = made("lossy.db", samples)
    between = servers.Between(SERVER.port, judge)
    killed.append(start(OUTPUT + "/braid", "push", file, "--max-wait", "0.02", "--to",
                        f"clickhouse://127.0.0.1:{between.server_port}/braid",
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    killed[0].wait(timeout=60)
    between.close()
    if verdict == "kill":
        push(file)
    forget()
    return between.n


def check_losses():
    want, names = {}, {}
    for verdict, first in ("lose request", 1), ("lose answer", 1), ("kill", 6):
        n = first
        while True:
            process = f"p{len(want)}"
            want[process] = sum(int(one.split()[2]) for one in APP[:8])
            names[process] = f"{verdict} {n}"
            count = lose(verdict, n, [one.replace(":app", ":" + process)
                                      .replace(":" + HOSTILE, ":" + process) for one in APP[:8]])
            if count < n:
                ok(n > 8, f"{verdict}: that was all", n)
                break
            n += 1
    got = dict(line.split("\t") for line in SERVER.ask(BY_PROCESS).splitlines())
    for process, value in want.items():
        equal(got.get(process), str(value), f"{names[process]}: everything counts once")
    matches(r"^[1-9]", SERVER.ask("SELECT count() FROM braid_void"), "some attempts do not count")


def check_who():
    with open(path("token"), "w", encoding="ascii") as file:
        file.write("shop:s3cret")
    equal(push(made("who.db", APP[:5]), "--token-file", path("token")).returncode, 0, "a user")
    with open(path("token"), "w", encoding="ascii") as file:
        file.write("shop:wrong")
    forget()
    result = push(path("who.db"), "--token-file", path("token"))
    equal((result.returncode, len(result.stderr.splitlines())), (1, 1), "a wrong password", result)
    ok("wrong" not in result.stderr.replace("Wrong password", ""), "... is not shown", result.stderr)
    equal("--init" in result.stderr, False, "... is not taken for tables that are missing")
    with open(path("token"), "w", encoding="ascii") as file:
        file.write("bearer")
    result = push(path("who.db"), "--token-file", path("token"))
    equal((result.returncode, len(result.stderr.splitlines())), (1, 1),
          "a way to say who we are that the server does not know: is not tried again", result)
    result = push(FILE, to=URL.replace("/braid", "/none"))
    matches("--init", result.stderr, "no such database")
    result = braid("push", "--init", "--to", URL.replace("/braid", "/none"), "--cluster", "none")
    equal((result.returncode, len(result.stderr.splitlines())), (1, 1), "no such cluster: ends", result)
    result = braid("push", "--init", "--to", URL, "--cluster", "x'); --")
    equal((result.returncode, "name of a cluster" in result.stderr), (2, True), "no name of a cluster")
    for name in "a b", "a/b", "a'b", "a;b", "x" * 80:
        equal(push(FILE, to=URL.replace("/braid", "/" + name)).returncode in (1, 2), True,
              f"no name of a database: {name:.10}")


STARTED = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def clocked(name, hz, length_s, samples):
    """A recording of a timer of that rate, whose samples lie evenly in so many seconds."""
    file = made(name, samples)
    with sqlite3.connect(file) as database:
        database.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)",
                             (("frequency_hz", str(hz)), ("started_at", STARTED)))
        database.execute("UPDATE sample SET time_ns = (SELECT min(time_ns) FROM sample) + "
                         "(id - 1) * ? / ?", (length_s * 10**9, max(len(samples) - 1, 1)))
    database.close()
    return file


def check_rates():
    """Two machines that are as busy as each other, at 99 and at 990 Hz; and one that was recorded for
    longer than what is chosen."""
    for host, hz, function, length_s in (("slow", 99, "f", 3), ("fast", 990, "g", 3), ("long", 99, "h", 40)):
        file = clocked(host + ".db", hz, length_s, [
            f"cpu samples 1 running - - 7:rates 7:rates n:main;n:{function}"] * hz)
        equal(push(file, "--host", host, "--service", "rates").returncode, 0, f"{host}: is sent")

    def sums(where, *words):
        text = from_db(f"service = rates and {where}", "--format", "folded", *words)
        return dict(line.rsplit(" ", 1) for line in text.splitlines())
    both = "(host = slow or host = fast)"
    equal(sums(both), {"main;f": "1000000000", "main;g": "1000000000"}, "two rates: the same time")
    equal(sums(both, "--by", "process"), {"rates on fast (7);main;g": "1000000000",
                                          "rates on slow (7);main;f": "1000000000"},
          "two rates: of two hosts")
    equal(sums("host = fast"), {"main;g": "990"}, "one rate: ticks")
    for where, seconds in (("host = slow", 4), (both, 4), ("host = long", 41)):
        matches(rf", {seconds}.0 s(, 99 Hz)?$", from_db(f"service = rates and {where}").splitlines()[1],
                f"{where}: its duration")


check_views()
check_where()
check_rates()
check_repeats()
check_losses()
check_who()
tap.done()
