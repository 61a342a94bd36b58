#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""`record --source probes` beside `--source walk`, at once and on the same processes: the same
stacks in the same shares, of CPython builds whose probes see every call. Attached to running
programs, so that their outermost calls are from before. Other builds say why they have none, and
their native frames are recorded."""

import collections
import math
import os
import re

import lib
import python_matrix as matrix
import pythons

SCRIPTS = ("recursion.py", "generators.py", "exceptions.py", "signals.py", "threads_c.py",
           "asyncio_chain.py", "nest_sorted.py", "nest_reduce.py")
SAMPLES_MIN = 400
ROUNDS_MAX = 6
ROUND_S = 6
HZ = {"walk": 1999, "probes": 499}  # all that there is to see, and what is compared with it
FLAGGED = 16 | 32  # SAMPLE_RUNTIME_TRUNCATED, SAMPLE_RUNTIME_BROKEN, bpf/shared.h
COMMON = 0.02  # share of a stack that is compared


class Seen:
    """What one source has seen of a process."""

    def __init__(self):
        self.python = collections.Counter()  # tuples of (function, file)
        self.merged = collections.Counter()  # folded, up to the innermost Python frame
        self.flagged = self.early = self.loops = self.total = 0

    def add(self, recording, pid):
        stacks = dict.fromkeys((None,), ())
        for leaf, function, file in recording.sql("""
                SELECT leaf, function, file FROM stack WHERE leaf IN
                  (SELECT runtime FROM sample JOIN thread ON thread = thread.id
                     JOIN process ON process = process.id WHERE pid = ?)
                 ORDER BY leaf, depth DESC""", pid):
            frame = function, os.path.basename(file or "")
            stacks[leaf] = stacks.get(leaf, ()) + (frame,)
        is_whole = False
        for leaf, flags in recording.sql("""
                SELECT runtime, flags FROM sample JOIN thread ON thread = thread.id
                  JOIN process ON process = process.id WHERE pid = ? ORDER BY time_ns""", pid):
            self.total += 1
            if not flags & FLAGGED:
                is_whole = True
                self.python[stacks[leaf]] += 1
            elif is_whole:
                self.flagged += 1
            else:  # its calls from before the probes are not known yet
                self.early += 1
        for frames, count in recording.folded("--pid", pid, "--annotate"):
            while frames and not frames[-1].endswith("_[py]"):
                frames = frames[:-1]
            self.merged[tuple(frames)] += count
            self.loops += count * any(re.match(r"_PyEval_EvalFrameDefault[^;]*_\[n\]$", frame)
                                      for frame in frames)


class Target:
    def __init__(self, python, script):
        self.name = f"{python.label} {script}"
        # Where threads start all the time there is more to see.
        self.wanted = SAMPLES_MIN * (3 if script in matrix.AMONG_OTHERS else 1)
        self.process = python.start(script)
        self.walk, self.probes = Seen(), Seen()

    def is_served(self):
        return min(self.walk.total, self.probes.total) >= self.wanted


def record_both(targets):
    """[walk, probes]: recordings that begin and end at nearly the same time."""
    pids = ",".join(str(target.process.pid) for target in targets)
    running = []
    for source in "walk", "probes":
        file = lib.path(f"{len(os.listdir(lib.tmp))}-{source}.db")
        log = open(file + ".err", "wb")  # closed with the program
        running.append((file, lib.start_braid("record", "-F", HZ[source], "-d", ROUND_S, "--source",
                                              source, "--max-overhead", "none", "-o", file, "-p",
                                              pids, stderr=log)))
    for file, process in running:
        process.wait(timeout=180)
        with open(file + ".err", encoding="utf-8") as log:
            yield lib.Recording(file, lib.Result(process.returncode, "", log.read()))


def same_share(stack, one, other):
    """Within what chance makes of it; rounds of work are as long as many samples."""
    n, m = sum(one.values()), sum(other.values())
    p, q = one[stack] / n, other[stack] / m
    return abs(p - q) <= 0.02 + 5 * math.sqrt(p * (1 - p) / n + q * (1 - q) / m)


def text(stack, seen):
    frames = [frame if isinstance(frame, str) else " ".join(frame) for frame in stack]
    return f"{seen[stack]} {';'.join(frames)[-450:]}"


def check_within(some, others, least, name):
    """The share of samples whose stack the other source has seen, too, or the beginning of one: it
    may have missed the moment before or after an innermost call. There are far fewer samples by
    probes, which miss more."""
    total = sum(some.values())
    known = {stack[:n] for stack in others for n in range(len(stack) + 1)}
    # What was seen once is no proof of anything, if what called it was seen.
    strange = sorted((stack for stack in some.keys() - known
                      if some[stack] > 1 or stack[:-1] not in known), key=some.get)[::-1]
    matrix.at_least(total - sum(map(some.get, strange)), total, least, name,
                    *(text(stack, some) for stack in strange[:6]))


def check(target):
    name, walk, probes = target.name, target.walk, target.probes
    matrix.at_least(probes.total - probes.flagged, probes.total, 98,
                    f"{name}: few samples are flagged", f"walk: {walk.flagged} of {walk.total}")
    matrix.at_least(probes.total - probes.early, probes.total, 80,
                    f"{name}: calls from before are found soon")
    check_within(probes.python, walk.python, 99.5, f"{name}: stacks that the walk sees, too")
    check_within(walk.python, probes.python, 97, f"{name}: stacks that probes see, too")
    check_within(probes.merged, walk.merged, 98, f"{name}: with C frames in the same places")
    check_within(walk.merged, probes.merged, 95, f"{name}: and the other way round")
    common = [stack for stack in walk.python.keys() | probes.python.keys()
              if max(walk.python[stack] / sum(walk.python.values()),
                     probes.python[stack] / sum(probes.python.values())) >= COMMON]
    different = [stack for stack in common if not same_share(stack, walk.python, probes.python)]
    lib.equal([(walk.python[stack], probes.python[stack], stack[-3:]) for stack in different], [],
              f"{name}: in the same shares", walk.total, probes.total)
    lib.ok(probes.loops <= 0.01 * probes.total + 3, f"{name}: loops give way to what they run",
           f"{probes.loops} of {probes.total}")


def check_python(python, source):
    targets = [Target(python, script) for script in SCRIPTS]
    left = targets
    for _ in range(ROUNDS_MAX):
        walk, probes = record_both(left)
        for target in left:
            pid = target.process.pid
            lib.matches(rf"(^|\n)pid {pid}: python [^\n]*: {source}\b", probes.result.err,
                        f"{target.name}: source")
            target.walk.add(walk, pid)
            target.probes.add(probes, pid)
        left = [target for target in left if not target.is_served()]
        if not left:
            break
    lib.stop(*(target.process for target in targets))
    for target in targets:
        check(target)
    return (python, source, sum(target.probes.total for target in targets),
            sum(target.probes.flagged + target.probes.early for target in targets),
            sum(sum(count for stack, count in target.probes.python.items()
                    if stack in target.walk.python) for target in targets))


def record_probes(python):
    process = python.start("nest_sorted.py")
    recording = lib.record("-p", process.pid, "-d", 1, "--source", "probes", "--max-overhead",
                           "none")
    lib.stop(process)
    return process.pid, recording


def check_refused(python):
    name = f"{python.label}: refused"
    pid, recording = record_probes(python)
    lib.equal(recording.result.status, 0, f"{name}: status", recording.result.err)
    lib.matches(rf"(^|\n)pid {pid}: python {python.version[0]}\.{python.version[1]}[^\n]*: "
                r"none: [^\n]*(no probes|function__entry fires only while)", recording.result.err,
                f"{name}: why")
    folded = recording.folded("--annotate")
    lib.ok(not any(frame.endswith("_[py]") for frames, _ in folded for frame in frames),
           f"{name}: no Python frames")
    lib.check_complete(recording, 99, name)


def check_partial(python):
    """Where calls from before the probes cannot be found, no stack is said to be whole."""
    name = f"{python.label}: without calls from before"
    pid, recording = record_probes(python)
    lib.matches(rf"(^|\n)pid {pid}: python [^\n]*: usdt\b", recording.result.err,
                f"{name}: source")
    lib.equal(recording.one(f"SELECT count(*) FROM sample WHERE NOT flags & {FLAGGED}"), 0,
              f"{name}: flagged")
    lib.check_share(recording.folded(), r"outer_key \(nest_sorted.py\);.*inner_key", 0.2, name)


def check_unknown(python):
    """Without a word of sources: what no walker is for is left to its probes, whose programs are
    loaded only then."""
    name = f"{python.label} that says it is 3.5"
    program = os.path.join(python.work, "python3.5")
    said = ".".join(map(str, python.version)).encode() + b"\0"
    with open(python.binary, "rb") as file:
        code = file.read()
    lib.equal(code.count(said), 1, f"{name}: made")
    with open(program, "wb") as file:
        file.write(code.replace(said, b"3.5" + said[3:]))
    os.chmod(program, 0o755)
    command = [*python.command[:-1], python.inside(program), *python.flags]
    process = lib.start_ready("nice", "-n", "5", *command, python.script("recursion.py"), "0", "20",
                              env={**python.environment(), "PYTHONHOME": "/usr"})
    recording = lib.record("-p", process.pid, "-d", 1, "--max-overhead", "none")
    lib.stop(process)
    lib.matches(rf"(^|\n)pid {process.pid}: python 3\.5\.\d+: usdt\b", recording.result.err,
                f"{name}: source")
    lib.check_share(recording.folded(), r"outer \(recursion\.py\)(;_PyFunction_Vectorcall;descend "
                    r"\(recursion\.py\)){20}(;|$)(?!.*descend)", 0.9, name)
    lib.check_complete(recording, 99, name)


def source_of(python):
    if (3, 11) <= python.version < (3, 15):
        return None
    return "usdt" if python.dtrace else "uprobe" if python.version < (3, 11) else None


lib.need_bpf()
found, skipped = pythons.pythons()
if not any(map(source_of, found)):
    lib.skip_all("no CPython with probes at all its calls")
rows = []
for one in found:
    if not source_of(one):
        check_refused(one)
    elif one.version < (3, 11):
        rows.append(check_python(one, source_of(one)))
        if one.dtrace and not one.is_library and one.version < (3, 10):
            check_unknown(one)
    else:
        check_partial(one)
for row_python, row_source, samples, flagged, same in rows:
    print(f"# {row_python.label}: {row_source}: {samples} samples, {flagged} flagged, "
          f"{matrix.share(same, samples - flagged):.2f} % of the others as walked")
for skip in skipped:
    lib.skip(skip.what, skip.why) if not skip.ours else lib.ok(
        not os.environ.get("BRAID_NO_SKIP"), f"{skip.what} is there", skip.why)
lib.done()
