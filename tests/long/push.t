#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""`braid push` to two real ClickHouse servers, the shards of a Distributed table: sums, one of them
down for a minute, and how fast what is (docs/internals/performance.md): pushing, the size of the database, and
views of SAMPLES samples (the environment; default 100 million) of STACKS different stacks (10,000)."""

import os
import signal
import subprocess
import sys
import time

from lib import BRAID, OUTPUT, done, equal, matches, ok, path, skip_all, start
import servers

SAMPLES = int(os.environ.get("SAMPLES", 100_000_000))
STACKS = int(os.environ.get("STACKS", 10_000))
DOWN_S = float(os.environ.get("DOWN_S", 60))
COUNT = "SELECT count(), sum(total) FROM braid_samples WHERE load GLOBAL NOT IN (SELECT load FROM braid_void)"

if not servers.ClickHouse.PROGRAM:
    skip_all("there is no clickhouse-server")

ports = [servers.free_ports(2) for _ in range(2)]
shards = [servers.ClickHouse(ports, number, start) for number in range(2)]
to = f"clickhouse://127.0.0.1:{shards[0].port}/braid"


def braid(*words):
    begin = time.monotonic()
    result = subprocess.run([BRAID, *words], capture_output=True, text=True, check=False)
    result.seconds = time.monotonic() - begin
    return result


def folded(*words):
    result = braid("report", "--format", "folded", *words)
    return result.stdout if not result.returncode else result


def made(name, samples, functions, depth, *stacks):
    subprocess.run([OUTPUT + "/tests/tools/mkrecording", *map(str, (samples, functions, depth)),
                    path(name), *map(str, stacks)], check=True, stdout=subprocess.DEVNULL)
    return path(name)


def check_push():
    first = braid("push", "--init", "--cluster", "shards", "--to", to)
    equal(first.returncode, 0, "the first shard has tables", first)
    matches("other servers of the cluster", first.stderr, "... and says that the other has none")
    for shard in reversed(shards):
        result = braid("push", "--init", "--cluster", "shards", "--to",
                       f"clickhouse://127.0.0.1:{shard.port}/braid")
        equal((result.returncode, "other servers" in result.stderr), (0, False), "both have", result)
    file = made("big.db", 1_000_000, 400, 30, STACKS)
    result = braid("push", file, "--to", to)
    equal(result.returncode, 0, "a million samples are sent", result)
    print(f"# pushed {1_000_000 / result.seconds:.0f} samples/s, {result.seconds:.1f} s")
    equal(shards[1].ask(COUNT), "1000000\t1000000\n", "... and are there")
    for shard in shards:
        ok(int(shard.ask("SELECT count() FROM braid_samples_local")) > 0, "... on both shards")
    equal(folded("--from-db", to), folded(file), "the view is that of the recording")
    for shard in shards:
        shard.ask("OPTIMIZE TABLE braid_samples_local FINAL")
    for table in "samples", "stacks", "frames", "series":
        size = sum(int(shard.ask("SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND "
                                 f"table = 'braid_{table}_local'")) for shard in shards)
        print(f"# {table}: {size / 1e6:.1f} MB of a million samples")


def check_many():
    """More different stacks than a view has, in a database of their own."""
    many = f"clickhouse://127.0.0.1:{shards[0].port}/many"
    file = made("many.db", 150_000, 400, 30)
    for words in ("--init",), (file,):
        equal(braid("push", *words, "--to", many).returncode, 0, f"many stacks: {words}")
    stacks = int(shards[0].ask("SELECT uniqExact(stack) FROM braid_samples", "many"))
    ok(stacks > 100_000, "more stacks than a view has", stacks)
    left = shards[0].ask("SELECT sum(n) FROM (SELECT count() AS n FROM braid_samples GROUP BY stack "
                         "ORDER BY n DESC LIMIT 100000, 1000000)", "many").strip()
    result = braid("report", "--from-db", many, "--rows", "1")
    matches("^150000 samples", result.stdout.splitlines()[1], "many stacks: all samples are there")
    matches(f"lost: stacks left out, .*: {left}\n", result.stdout, "... and it is said of how many")


def check_outage():
    """The second shard is away while a directory is pushed."""
    os.mkdir(path("dir"))
    for number in range(4):
        made(f"dir/{number}.db", 20000 + number, 100, 10 + number)
    shards[1].end()
    process = start(BRAID, "push", path("dir"), "--to", to, "--batch", "4096", "--max-wait", "5",
                    "--timeout", "10", stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    line = process.stderr.readline()
    matches("next attempt in", line, "with a shard down, push waits")
    time.sleep(DOWN_S)
    equal(process.poll(), None, "... as long as it takes")
    shards[1].begin()
    out, _ = process.communicate()
    equal((process.returncode, len(out.splitlines())), (0, 4), "... and goes on", out)
    want = 1_000_000 + sum(20000 + number for number in range(4))
    equal(shards[0].ask(COUNT), f"{want}\t{want}\n", "nothing was lost, and nothing counts twice")
    return want


def check_views(have):
    """Each round sends all samples once more into another hour, without braid: it is about views."""
    shift = 0
    while have * 2 <= SAMPLES or (have < SAMPLES and not shift):
        shift = shift * 2 or 3600
        for shard in shards:
            shard.ask("INSERT INTO braid_samples_local SELECT time + " + str(shift) +
                      ", ns, load, series, stack, value FROM braid_samples_local")
        have *= 2
    for shard in shards:
        shard.ask("INSERT INTO braid_samples_local SELECT time + " + str(shift * 2) + ", ns, load, "
                  "series, stack, value FROM braid_samples_local LIMIT " +
                  str(max(0, (SAMPLES - have) // 2)))
    count = int(shards[0].ask("SELECT count() FROM braid_samples"))
    print(f"# {count} samples")
    for where in "service = made", "thread = made and time >= 2000-01-01":
        times = []
        for _ in range(5):
            result = braid("report", "--from-db", to, "--where", where, "--rows", "5")
            equal(result.returncode, 0, f"a table: {where}", result)
            times.append(result.seconds)
        print(f"# report of {where}: {min(times):.2f} s, median {sorted(times)[2]:.2f} s")
    result = braid("flame", "--from-db", to, "-o", path("page.html"))
    equal(result.returncode, 0, "the page", result)
    print(f"# flame: {result.seconds:.2f} s")


for _number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(_number, lambda number, _: sys.exit(128 + number))
try:
    check_push()
    check_many()
    check_views(check_outage())
finally:
    for one in shards:
        one.close()
done()
