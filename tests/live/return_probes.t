#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Probes at returns, where functions are left by exceptions, longjmp, the end of a thread and
switches of stacks as well: the target lives, each return is counted, and no other process has a
breakpoint."""

import os
import signal
import subprocess

import gate

LEAVES = os.path.join(gate.OUTPUT, "fixtures/native/leaves")
N = 60
# Line of the input, function: its calls and its returns.
LEFT = {"deep": (2 * 3 * N, 2 * 3 * N // 2), "caught": (N, N), "jumped": (N, N // 2), "ended": (N, 0),
        "switched": (2 * N, 2 * N)}
RETURNS = {"many": (N + N // 9 + 1, N + N // 9 + 1), "cold": (N, N), "table": (N, N), "tail": (N, N), "target": (2 * N, 2 * N)}


def events_of(functions):
    events = []
    for name in functions:
        call, back = f"uprobe:{LEAVES}:{name}", f"uretprobe:{LEAVES}:{name}"
        events += [call, back, f"{call}:latency:{back}"]
    return events


def begin(events, *options):
    """A target, and a recording of it that has begun."""
    target = gate.start(LEAVES)
    gate.wait_line(target, "ready")
    file = gate.path(f"{len(os.listdir(gate.tmp))}.db")
    braid = gate.start(gate.BRAID, "record", "-e", ",".join(events), "--max-overhead", "none",
                       "-p", target.pid, "-o", file, *options, stderr=subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
    return target, braid, file


def end(title, target, braid, file):
    target.stdin.close()
    gate.equal(gate.line_of(target), "end", f"{title}: it goes on to its end")
    gate.equal(target.wait(), 0, f"{title}: and is not aborted")
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, f"{title}: status", said)
    recording = gate.Recording(file)
    return recording, said


def counts(recording):
    return dict(recording.sql("SELECT event.name, count(*) FROM sample JOIN event "
                              "ON event.id = event GROUP BY 1"))


def check_counts(title, functions, lines):
    events = events_of(functions)
    target, braid, file = begin(events)
    for line in lines:
        gate.equal(gate.ask(target, f"{line} {N}"), "done", f"{title}: {line}")
    recording, said = end(title, target, braid, file)
    found = counts(recording)
    for at, (name, (calls, returns)) in enumerate(functions.items()):
        call, back, latency = (found.get(event, 0) for event in events[3 * at:3 * at + 3])
        gate.equal((call, back, latency), (calls, returns, returns),
                   f"{name}: calls, returns, and times from one to the other", said)
    lost = {name: n for name, n in recording.counters().items() if not name.startswith("stacks cut")}
    gate.equal(lost, {}, f"{title}: nothing is lost", said)


def check_callers():
    event = f"uretprobe:{LEAVES}:tail"
    target, braid, file = begin([event])
    gate.equal(gate.ask(target, f"tail {N}"), "done", "callers: tail")
    gate.equal(gate.ask(target, f"target {N}"), "done", "callers: target")
    recording, _ = end("callers", target, braid, file)
    gate.equal([(frames[-1].split(" ")[0], value) for frames, value in recording.merged()],
               [("step", N)], "tail: returns are those of its calls, to who called it")


def text_of(pid):
    """Differences of the program's code in memory and in its file: {address: byte}."""
    with open(f"/proc/{pid}/maps") as maps:
        line = next(line for line in maps if line.rstrip().endswith("/leaves") and " r-xp " in line)
    (start, last), offset = (int(word, 16) for word in line.split()[0].split("-")), line.split()[2]
    with open(f"/proc/{pid}/mem", "rb") as memory, open(LEAVES, "rb") as file:
        memory.seek(start)
        file.seek(int(offset, 16))
        code = memory.read(last - start)
        return {at for at, (a, b) in enumerate(zip(code, file.read(last - start))) if a != b}


def probes_of(braid):
    """The number of uprobes that braid holds. Its other files come and go."""
    found = 0
    for fd in os.listdir(f"/proc/{braid.pid}/fdinfo"):
        try:
            with open(f"/proc/{braid.pid}/fdinfo/{fd}") as file:
                found += any(line.split() in (["link_type:", "perf"], ["link_type:", "perf_event"],
                                              ["link_type:", "uprobe_multi"]) for line in file)
        except FileNotFoundError:
            pass
    return found


def check_others():
    """Another user's process of the same file, before and after it starts to run."""
    before = gate.start(LEAVES, user="nobody", group="nogroup", extra_groups=[])
    gate.wait_line(before, "ready")
    target, braid, file = begin(events_of(["deep", "many"]))
    after = gate.start(LEAVES)
    gate.wait_line(after, "ready")
    gate.equal(gate.ask(target, f"deep {N}"), "done", "others: deep")
    gate.equal(len(text_of(target.pid)) >= 2 + 1 + 3, True, "others: the target has breakpoints")
    for name, other in ("older", before), ("newer", after):
        gate.equal(gate.ask(other, f"deep {N}"), "done", f"others: {name}: deep")
        gate.equal(text_of(other.pid), set(), f"others: {name}: no breakpoint, and no other change")
        other.stdin.close()
        gate.equal(other.wait(), 0, f"others: {name}: lives")
    recording, _ = end("others", target, braid, file)
    gate.equal(counts(recording)[f"uprobe:{LEAVES}:deep"], 3 * N, "others: only the target's calls")


def check_child():
    """A child gets probes of its own as soon as braid has heard of it."""
    target, braid, file = begin(events_of(["deep"]))
    probes = probes_of(braid)
    gate.ok(probes >= 3, "child: the first process has its probes", probes)
    gate.say(target, "fork 0")
    gate.ok(gate.line_of(target).startswith("child "), "child: it runs")
    gate.wait_until(lambda: probes_of(braid) >= 2 * probes, "the child's probes")
    gate.equal(gate.ask(target, f"deep {N}"), "done", "child: deep")
    recording, said = end("child", target, braid, file)
    gate.equal(sorted(counts(recording).values()), [3 * N // 2, 3 * N // 2, 3 * N],
               "child: its calls and returns", said)
    gate.ok("started later had its probes up to" in said, "child: that it came late is said", said)


def check_refused():
    target = gate.start(LEAVES)
    gate.wait_line(target, "ready")
    for name, why in (("worked_out", "jumps to a computed address"),
                      ("unsized", "the file does not contain its end")):
        for event in (f"uretprobe:{LEAVES}:{name}",
                      f"uprobe:{LEAVES}:{name}:latency:uretprobe:{LEAVES}:{name}"):
            result = gate.braid("record", "-e", event, "-p", target.pid, "-d", "1", "-o",
                                gate.path("refused.db"))
            gate.equal(result.status, 1, f"{name}: refused", result.err)
            gate.ok(why in result.err and "--force" in result.err,
                    f"{name}: with the reason and the way out", result.err)
    gate.say(target, "end")
    target.stdin.close()
    target.wait()
    event = f"uretprobe:{LEAVES}:worked_out"
    both = f"uprobe:{LEAVES}:worked_out:latency:{event}"
    target, braid, file = begin([event, both], "--force")
    gate.equal(gate.ask(target, f"worked_out {N}"), "done", "--force: worked_out")
    recording, said = end("--force", target, braid, file)
    gate.equal(counts(recording), {event: N, both: N}, "--force: its returns")
    gate.ok("aborts the process" in said, "--force: what remains is said", said)


def check_nothing_left(before):
    gate.wait_until(lambda: gate.all_ids("prog") <= before, "the clean-up")


gate.need_root()
programs = gate.all_ids("prog")
check_counts("left", LEFT, LEFT)
check_counts("returns", RETURNS, RETURNS)
check_callers()
check_others()
check_child()
check_refused()
check_nothing_left(programs)
gate.done()
