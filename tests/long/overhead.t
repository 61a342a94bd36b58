#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""--max-overhead: what probes cost a program that does nothing but call, as the program's own
progress has it, with the limit and without; that `record` goes on by walking, that `calls` ends with
a tree that has no other edges than the program and counts that belong together; that nothing is left
behind; and that samples taken at a lowered rate weigh as much in all as the CPU time that was there."""

import collections
import os
import re
import signal
import struct
import subprocess

import lib
import pythons
from calls_run import (FIB, FILE, Calls, Workload, called, changed_code, check_losses, difference,
                       read_table, total)

CPUS = os.sysconf("SC_NPROCESSORS_ONLN")
# A twentieth of one CPU: a single thread can be made to wait for far more than that.
LIMIT = max(0.1, round(5 / CPUS, 1))
TICKS = os.sysconf("SC_CLK_TCK")
SCRIPT = "calls/windows.py"
PER_TURN = {"turn": 1, "left": 2, "right": 1, "leaf": 7}  # windows.py
CALLERS = {"turn": {"stretch"}, "left": {"turn"}, "right": {"turn"}, "leaf": {"left", "right"},
           "stretch": {"main", "child"}, "child": {"main"}, "main": {"<module>"},
           "<module>": {None}}
SECONDS = 6
FLAGGED = 16 | 32  # SAMPLE_RUNTIME_TRUNCATED, SAMPLE_RUNTIME_BROKEN, bpf/shared.h


class Target:
    """windows.py, running."""

    def __init__(self, python, *args):
        self.counter = os.path.join(python.work, f"progress-{len(os.listdir(python.work))}")
        command = python.arguments(SCRIPT, python.inside(self.counter), *args)
        self.process = lib.start_ready(*command, env=python.environment())
        self.pid = self.process.pid

    def turns(self):
        with open(self.counter, "rb") as file:
            return struct.unpack("Q", file.read(8))[0]

    def stop(self):
        lib.stop(self.process)


class Series:
    """What a target does, in slices of some CPU time."""

    SLICE_S = 0.01

    def __init__(self, target):
        self.target = target
        self.begin = lib.time.monotonic()
        self.points = [self.now()]

    def now(self):
        """(CPU s, turns): of its only thread"""
        with open(f"/proc/{self.target.pid}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[0]) / 1e9, self.target.turns()

    def watch(self, seconds):
        def over():
            now = self.now()
            if now[0] - self.points[-1][0] > self.SLICE_S:
                self.points.append(now)
            return self.seconds() > seconds and now[0] - self.points[0][0] > 0.5
        lib.wait_for(over, "the target's turns")
        return self

    def seconds(self):
        return lib.time.monotonic() - self.begin

    def slices(self):
        """[(CPU s, turns)]"""
        return [(b[0] - a[0], b[1] - a[1]) for a, b in zip(self.points, self.points[1:])]

    def cost(self):
        """CPU seconds of a turn: the median."""
        costs = sorted(cpu / max(turns, 1) for cpu, turns in self.slices())
        return costs[len(costs) // 2]

    def lost(self, cost):
        """CPU seconds that probes took. A turn with probes takes ten times as long, and more: what
        is only somewhat slower than before is so because of other programs."""
        plain = [cpu / turns for cpu, turns in self.slices() if cpu < 4 * turns * cost]
        now = max(cost, sorted(plain)[len(plain) // 2] if plain else 0)
        return sum(cpu - turns * now for cpu, turns in self.slices() if cpu > 4 * turns * cost)


def message(text):
    """(s, percent, limit) of the summary; None: there is no such sentence."""
    found = re.search(r"^probes were detached after ([\d.]+) s: probes cost ([\d.]+) % of this machine, "
                      r"more than --max-overhead ([\d.]+)", text, re.M)
    return found and tuple(map(float, found.groups()))


# --- the limit ---

def check_limit(python):
    """By the program's progress: turns that its CPU time was not enough for."""
    name = f"{python.label}: the limit"
    target = Target(python)
    cost = Series(target).watch(3).cost()
    file = lib.path("limit.out")
    calls = lib.start_braid("calls", "--max-overhead", LIMIT, "-o", file, "-p", target.pid)
    series = Series(target)
    err = calls.communicate(timeout=lib.PATIENCE_S)[1].decode()
    kept = series.watch(series.seconds() + 0.5).lost(cost)
    calls = Calls(target.pid)
    series = Series(target).watch(2)
    calls.end(name)
    own = sum(cpu for cpu, _ in series.slices())
    without = 100 * series.lost(cost) / own
    target.stop()
    print(f"# {name}: {LIMIT} %: {kept:.2f} s lost in all; without a limit {without:.1f} % of its own")
    lib.ok(message(err), f"{name}: is exceeded", err)
    lib.ok(without > 50, f"{name}: without one most of its CPU time is lost", without)
    # A second's worth (0.05 s), and while the kernel detaches probes, which may wait for a CPU.
    lib.ok(kept < 1, f"{name}: it is kept", kept, err)
    lib.ok(message(calls.err) is None, f"{name}: none", calls.err)


def niceness(pid):
    return os.getpriority(os.PRIO_PROCESS, pid)


def is_told(log):
    with open(log, encoding="utf-8") as text:
        return "--max-overhead" in text.read()


def check_off_soon(python):
    """Breakpoints, as the process's memory has them."""
    name = f"{python.label}: off"
    target = Target(python)
    file, log = lib.path("off.db"), lib.path("off.err")
    with open(log, "wb") as out:
        braid = lib.start_braid("record", "--source", "probes", "--max-overhead", LIMIT, "-F", 499,
                                "-o", file, "-p", target.pid, stderr=out)
    # They stay for some tenths of a second only, in which this test may not have had a CPU.
    lib.wait_for(lambda: changed_code(python, target.pid) or is_told(log),
                 "breakpoints")
    series = Series(target)
    lib.wait_for(lambda: not changed_code(python, target.pid), "the end of the breakpoints")
    seconds, cpu_s = series.seconds(), series.now()[0] - series.points[0][0]
    print(f"# {name}: after {seconds:.2f} s, {cpu_s:.2f} s of the target's CPU time")
    # It is 0.1 to 0.3 s on a machine of its own (docs/reference/overhead.md); here braid, the kernel's threads that
    # remove breakpoints and this test wait for a CPU, each in its turn, while the target runs.
    lib.ok(cpu_s < 3, f"{name}: before the target has run for long", cpu_s)
    state = lib.state_of(target.pid)
    lib.ok(state in ("R", "S"), f"{name}: the target goes on", state)
    before = samples_in(file)
    lib.wait_for(lambda: samples_in(file) > 2 * before + 400, "samples")
    lib.equal(niceness(braid.pid), os.nice(0), f"{name}: braid's priority is its own again")
    braid.send_signal(signal.SIGINT)
    braid.wait(timeout=lib.PATIENCE_S)
    with open(log, encoding="utf-8") as text:
        err = text.read()
    lib.equal(changed_code(python, target.pid), 0, f"{name}: and stay off")
    check_walked(python, target, lib.Recording(file, lib.Result(braid.returncode, "", err)))
    target.stop()


# --- record ---

def samples_in(file):
    """Of a recording that is being written."""
    try:
        return lib.Recording(file).samples()
    except lib.sqlite3.Error:
        return 0


def python_stacks(recording, pid):
    """[(time, flags, functions outermost first)]"""
    stacks = collections.defaultdict(list)
    for leaf, function in recording.sql("SELECT leaf, function FROM stack ORDER BY leaf, depth "
                                        "DESC, level DESC"):
        stacks[leaf].append(function)
    return [(time, flags, stacks.get(runtime, [])) for time, flags, runtime in recording.sql("""
        SELECT time_ns, flags, runtime FROM sample JOIN thread ON thread = thread.id
          JOIN process ON process = process.id WHERE pid = ? ORDER BY time_ns""", pid)]


def is_path(functions):
    return all(caller in CALLERS.get(function, ())
               for caller, function in zip([None, *functions], functions))


def check_walked(python, target, recording):
    name = f"{python.label}: record goes on by walking"
    first = "usdt" if python.dtrace else "uprobe"
    lib.equal(recording.result.status, 0, f"{name}: status", recording.result.err)
    sources = recording.sql("SELECT source, reason FROM source ORDER BY rowid")
    lib.equal([source for source, _ in sources], [first, "walk"], f"{name}: sources", sources)
    why = r"probes cost [\d.]+ % of this machine, more than --max-overhead [\d.]+$"
    lib.matches(why, sources[-1][1], f"{name}: why, in the recording")
    lib.matches(rf"(?m)^pid {target.pid}: python \S+: walk: {why}", recording.result.err,
                f"{name}: why, on stderr")
    samples = python_stacks(recording, target.pid)
    wrong = [row for row in samples if not row[1] & FLAGGED and not is_path(row[2])]
    lib.ok(len(samples) > 300 and len(wrong) <= 0.005 * len(samples), f"{name}: no other stacks",
           len(samples), wrong[:5])
    later = samples[len(samples) // 2:]
    whole = [row for row in later if not row[1] & FLAGGED and row[2][:2] == ["<module>", "main"]]
    lib.ok(len(whole) >= 0.98 * len(later), f"{name}: whole", f"{len(whole)} of {len(later)}")
    lib.ok(sum("leaf" in row[2] for row in later) > 0.01 * len(later),
           f"{name}: down to the leaves")
    said = message(recording.result.err)
    lib.ok(said and said[1] > said[2] == LIMIT, f"{name}: the summary", recording.result.err)
    lib.equal(recording.meta("max_overhead_percent"), f"{LIMIT:g}", f"{name}: a row of meta")
    lib.ok(said and abs(float(recording.meta("probes_detached_after_s")) - said[0]) <= 0.051,
           f"{name}: how long", recording.meta("probes_detached_after_s"), said)
    lib.matches(why, recording.meta("probes_detached_why"), f"{name}: why, in meta")
    lib.equal(recording.sql("SELECT value FROM counter WHERE name LIKE '%--max-overhead%'"), [(1,)],
              f"{name}: a counter")


# --- calls ---

def edges(file, name):
    """{(caller, function): [calls, total ns]} of a pprof file: none of the functions recurs."""
    text = subprocess.run(["python3", "-B", "tests/tools/read_pprof.py", file], check=True,
                          stdout=subprocess.PIPE).stdout.decode()
    found = collections.defaultdict(lambda: [0, 0])
    for calls, ns, stack in re.findall(r"^stack (\d+) (\d+) (.*)$", text, re.M):
        frames = [None, *(frame.partition(" (")[0] for frame in stack.split(";"))]
        found[tuple(frames[-2:])][0] += int(calls)
        for edge in zip(frames, frames[1:]):
            found[edge][1] += int(ns)
    lib.ok(len(found) > 4, f"{name}: there is a tree", text)
    return found


def check_tree(found, turns, name, cut):
    """Nowhere more than there were; and as many of each as belong together, but for those that the
    beginning or the end of counting cut off: `cut` turns of these."""
    strange = {edge: value for edge, value in found.items()
               if edge[0] not in CALLERS.get(edge[1], ()) and edge[0] is not None}
    lib.equal(strange, {}, f"{name}: who calls what")
    counts = collections.Counter()
    for (_, function), (calls, _) in found.items():
        counts[function] += calls
    above = {function: counts[function] for function, n in PER_TURN.items()
             if counts[function] > n * turns}
    lib.equal(above, {}, f"{name}: no more calls than there were", turns)
    lib.ok(counts["turn"] > 100, f"{name}: there were calls", counts)
    for function, n in PER_TURN.items():
        lib.ok(abs(counts[function] - n * counts["turn"]) <= n * cut,
               f"{name}: calls of {function} are {n} to a turn", counts, cut, dict(found))
    return counts


def count_limited(name, target, begin):
    """(tree, turns since `begin`, stderr) of `calls` that ends by itself."""
    file = lib.path("limited.out")
    result = lib.braid("calls", "--max-overhead", LIMIT, "--format", "pprof", "-o", file, "-p",
                       target.pid)
    turns = target.turns() - begin
    lib.equal(result.status, 0, f"{name}: status", result.err)
    said = message(result.err)
    lib.ok(said and said[1] > said[2] == LIMIT, f"{name}: the summary", result.err)
    lib.matches(r"Counts and times end there; to count for longer, give --max-overhead PCT or none$",
                result.err.rstrip("\n"), f"{name}: and what to do, at the end")
    return edges(file, name), turns, result.err


def check_calls(python):
    name = f"{python.label}: calls"
    target = Target(python)
    found, turns, err = count_limited(name, target, target.turns())
    target.stop()
    counts = check_tree(found, turns + 1, name, 1)
    print(f"# {name}: {counts['turn']} of {turns} turns, {message(err)}")
    spent, seconds = found["<module>", "main"], message(err)[0]
    lib.equal(spent[0], 0, f"{name}: what was found under way is no call", found)
    # Rounded to 0.1 s; and a program that waits for a CPU comes to no probe.
    lib.ok(0 < spent[1] / 1e9 < seconds + 0.1, f"{name}: calls from before last until the end", spent,
           seconds)
    lib.ok(found["stretch", "turn"][1] <= 1.001 * spent[1], f"{name}: callees within that", found)
    lost = re.findall(r"^ +\d+  (.*)", err, re.M)
    expected = ("returns from calls that were not seen",
                "calls that ended without their return being seen")
    lib.equal([line for line in lost if line not in expected], [], f"{name}: losses", err)


def check_forks(python):
    """With children, which have probes of their own some time after their birth."""
    name = f"{python.label}: children"
    target = Target(python, 0, "forks")
    found, turns, err = count_limited(name, target, target.turns())
    target.stop()
    children = len(set(re.findall(r"^pid (\d+): ", err, re.M))) - 1
    print(f"# {name}: {turns} turns, {message(err)}, {children} children probed")
    # What a child ends with may be cut off as well.
    check_tree(found, turns + 2, name, 2 * children + 2)


def check_quiet(python):
    """The limit that there is if nothing is said changes nothing for a program that calls little."""
    name = f"{python.label}: a quiet program"
    workload = Workload(python)
    calls = Calls(workload.pid, limit=())
    commands = {f"fib {n}": {"fib": FIB[n]} for n in (5, 8, 12)}
    workload.run(commands)
    lib.ok(holds_statistics(calls.process.pid), f"{name}: there is a limit")
    lib.equal(niceness(calls.process.pid), os.nice(0) or -10,
              f"{name}: braid, which keeps it, goes before others")
    rows = read_table(calls.end(name).decode())
    workload.stop()
    lib.equal(difference(called(rows, FILE), total(commands)), [], f"{name}: all calls", calls.err)
    lib.ok(message(calls.err) is None, f"{name}: within it", calls.err)
    check_losses(calls.err, name)


def check_command(python):
    """All of them unless a limit is asked for."""
    turns = 40000
    for limit in (), ("--max-overhead", LIMIT):
        name = f"{python.label}: a command{' with a limit' if limit else ''}"
        file = lib.path("command.out")
        run = subprocess.run([lib.BRAID, "calls", *map(str, limit), "--format", "pprof", "-o", file,
                              "--", *python.arguments(SCRIPT, python.inside(file + ".n"), turns)],
                             env=python.environment(), stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             timeout=3 * lib.PATIENCE_S, check=False)
        err = run.stderr.decode()
        lib.equal(run.returncode, 0, f"{name}: status", err)
        found = edges(file, name)
        counts = collections.Counter()
        for (_, function), (calls, _) in found.items():
            counts[function] += calls
        got = {function: counts[function] for function in PER_TURN}
        want = {function: n * turns for function, n in PER_TURN.items()}
        if limit:
            lib.ok(message(err) and counts["turn"] < turns, f"{name}: until it is exceeded", err, got)
        else:
            lib.equal((got, message(err)), (want, None), f"{name}: every call", err)


# --- ends ---

def holds_statistics(pid):
    """Has it switched on the kernel's BPF statistics?"""
    directory = f"/proc/{pid}/fd"
    return any(lib.read_link(f"{directory}/{fd}") == "anon_inode:bpf-stats"
               for fd in os.listdir(directory))


def left(ids):
    """Of these programs and links, those that the kernel still has."""
    return set().union(*(ids[kind] & lib.all_bpf_ids(kind) for kind in ("prog", "link")))


def check_killed(python):
    """While there is a limit, and all is attached."""
    target = Target(python)
    setting = lib.bpf_statistics()
    name = f"{python.label}: SIGKILL"
    calls = Calls(target.pid, limit=("--max-overhead", 100))
    lib.wait_for(lambda: holds_statistics(calls.process.pid), "the kernel's statistics")
    ids = lib.bpf_ids(calls.process.pid)
    calls.process.send_signal(signal.SIGKILL)
    calls.process.wait()
    try:
        lib.wait_for(lambda: not changed_code(python, target.pid) and not left(ids),
                     "the kernel's clean-up")
    except TimeoutError:
        pass
    lib.equal(changed_code(python, target.pid), 0, f"{name}: no breakpoint is left")
    lib.equal(left(ids), set(), f"{name}: no program, no link")
    lib.equal(lib.bpf_statistics(), setting, f"{name}: the statistics are as they were")
    turns = target.turns()
    lib.wait_for(lambda: target.turns() > turns, "the target")
    lib.ok(True, f"{name}: the target goes on")
    target.stop()


# --- a lower rate ---

def lowered(file, hz):
    """Has the rate been lowered for some time, in a recording that is being written?"""
    try:
        samples, weight = lib.Recording(file).sql(
            "SELECT count(*) FILTER (WHERE weight > 1), sum(total) FROM sample")[0]
    except lib.sqlite3.Error:
        return False
    return samples > 200 and weight > 3 * hz


def check_rate():
    """A sample counts for as many as were left out: together they are the CPU time that the
    process has used, which the kernel counts as well."""
    name = "a lower rate"
    target = lib.start_ready(lib.fixture("shares"))
    hz, limit, file = 10000, 0.1, lib.path("rate.db")
    braid = lib.start_braid("record", "-F", hz, "--max-overhead", limit, "-o", file, "-p",
                            target.pid)
    lib.wait_attached(braid)
    ticks = lib.cpu_ticks(target.pid)
    lib.wait_for(lambda: lowered(file, hz), "samples at a lower rate")
    used = (lib.cpu_ticks(target.pid) - ticks) / TICKS
    braid.send_signal(signal.SIGINT)
    err = braid.communicate(timeout=lib.PATIENCE_S)[1].decode()
    lib.stop(target)
    recording = lib.Recording(file)
    samples, weight = recording.sql("SELECT count(*), sum(total) FROM sample")[0]
    weights = [row[0] for row in recording.sql("SELECT DISTINCT weight FROM sample ORDER BY 1")]
    print(f"# {name}: {samples} samples of {weights}, {weight / hz:.2f} s of {used:.2f} s")
    lib.ok(weights[0] == 1 and len(weights) > 1 and all(n & (n - 1) == 0 for n in weights),
           f"{name}: weights are powers of two", weights, err)
    lib.ok(samples < weight - 200, f"{name}: fewer samples", samples, weight)
    lib.ok(0.85 * used < weight / hz < 1.15 * used + 0.1, f"{name}: the same time in all", used,
           weight / hz)
    lowest = int(recording.meta("lowest_frequency_hz"))
    # It may have been lowered once more since the last sample.
    lib.ok(lowest in (hz // weights[-1], hz // (2 * weights[-1])),
           f"{name}: the lowest rate, in the recording", lowest, weights)
    lib.matches(rf"(?m)^the sampling rate was lowered to {lowest} Hz, .* --max-overhead {limit:g}$", err,
                f"{name}: the lowest rate, on stderr")
    stacks = recording.folded()
    lib.equal(sum(count for _, count in stacks), weight, f"{name}: report counts them so")
    lib.check_share(stacks, "burn_[abc]", 0.8, f"{name}: stacks")


def check_rate_of_old_default():
    """Not unless it is asked for."""
    target = lib.start_ready(lib.fixture("shares"))
    recording = lib.record("-p", target.pid, "-d", 2, options=("-F", "8000"))
    lib.stop(target)
    lib.equal(recording.sql("SELECT DISTINCT weight FROM sample"), [(1,)],
              "no limit is asked for: every sample counts for itself", recording.result.err)


def check_wrong():
    for command in "record", "calls":
        for value in "0", "0.05", "101", "-1", "x", "", "5%", "nan", "inf":
            result = lib.braid(command, f"--max-overhead={value}", "-p", os.getpid())
            lib.equal(result.status, 2, f"{command} --max-overhead={value}: status", result)
            lib.matches(r"--max-overhead \(or none\) takes a number from 0.1 to 100, not", result.err,
                        f"{command} --max-overhead={value}: what is wrong")


lib.need_bpf()
found_pythons, skipped = pythons.pythons()
chosen = {}
for one in found_pythons:
    if (3, 6) <= one.version < (3, 11):
        chosen.setdefault(one.dtrace, one)
if not chosen:
    lib.skip_all("no CPython 3.6 to 3.10")
check_wrong()
check_rate()
check_rate_of_old_default()
for one in chosen.values():
    for check in (check_limit, check_off_soon, check_calls, check_forks, check_quiet,
                  check_killed):
        check(one)
    if not one.root:  # chroot executes a second program, whose beginning is missed
        check_command(one)
lib.done()
