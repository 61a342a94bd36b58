# SPDX-License-Identifier: GPL-2.0-or-later
"""Every CPython build of some versions runs all fixtures: their Python stacks with their lines, as
the interpreter itself tells them, and the C frames between them. One recording has all builds."""

import collections
import glob
import multiprocessing.pool
import os
import re
import signal
import sys

import lib
import pythons

OLDEST, NEWEST = (3, 6), (3, 15)  # versions that braid knows

# Recordings go on, of the targets that need it, until each has so many samples and all its stacks.
SAMPLES_MIN = 150
ROUNDS_MAX = 6
ROUND_S = 8

NOT_ALONE = {"fixture.py", "imported.py", "embedded.py"}


def has_oracle(path):
    """Others tell other tests something else."""
    with open(path, encoding="utf-8") as script:
        return "fixture" in script.read()


SCRIPTS = sorted(set(map(os.path.basename, filter(has_oracle, glob.glob("fixtures/python/*.py")))) -
                 NOT_ALONE)
# Tested by python_more.t.
ELSEWHERE = {"deep.py", "subinterpreters.py"}
# No list of stacks; or one of which much is other work: threads that start, collections.
UNLISTED = {"mixed.py", "exec_reuse.py"}
NAMES_MIN = 5  # that exec_reuse.py is seen to go through
AMONG_OTHERS = {"exceptions.py", "finishing_threads.py", "gc_frames.py"}

C = r"([^;]*_\[[nik]\];)"  # a frame that is no Python frame


def between(*words):
    """A stack that has these Python frames and C functions (patterns behind a *) in this order,
    and no other Python frames in between."""
    pattern = ""
    for word in words:
        if word == MAYBE:
            pattern += f"{C}*"
        elif word.startswith("*"):
            pattern += rf"{C}*({word[1:]})( \([^;]*\))?_\[[ni]\];{C}*"
        else:
            pattern += rf"{re.escape(word)} \([^;]*\)_\[py\];"
    return pattern


ANY = r"*[^;]+"  # some C function
MAYBE = ""  # C functions or none
UNNAMED = r"\[[^;]*\]"  # what a stripped build shows: [file+0x...]
SORT = rf"*(list_sort\w*|builtin_sorted|{UNNAMED})"
REDUCE = rf"*(_?functools_reduce\w*|{UNNAMED})"
RE_SUB = rf"*(pattern_subx\w*|{UNNAMED})"
FINALIZE = rf"*(slot_tp_finalize|subtype_dealloc|PyObject_CallFinalizer\w*|{UNNAMED})"
FFI_CALL = rf"*(ffi_call[^;]*|{UNNAMED})"
SQLITE_STEP = "*sqlite3_step"
SQLITE_RUN = rf"*(sqlite3VdbeExec|{UNNAMED})"
QSORT = "*(__GI_)?(__)?qsort(_r)?"
IMPORT = rf"*(PyImport_ImportModuleLevelObject|{UNNAMED})"
THREAD = ("Thread._bootstrap", "Thread._bootstrap_inner", MAYBE, "Thread.run", MAYBE)
# Names of functions that are exported, or in .symtab.
NESTING = {
    "nest_sorted.py": [between("<module>", "outer", SORT, "outer_key", SORT, "inner_key")],
    "nest_resub.py": [
        between("<module>", "outer", RE_SUB, "replace_digit", RE_SUB, "replace_letter"),
    ],
    "nest_reduce.py": [
        between("outer", REDUCE, "add", "burn"),
        between("add", REDUCE, "add_inner", "burn"),
        between("outer", REDUCE, rf"*(filter_next|filter\.__next__|{UNNAMED})", "keep", "burn"),
    ],
    "nest_sqlite.py": [
        between("Database.doubled", SQLITE_STEP, SQLITE_RUN, "double"),
        between("Database.ordered", SQLITE_STEP, SQLITE_RUN, "compare"),
    ],
    "nest_ctypes.py": [
        between("<module>", "outer", FFI_CALL, QSORT, ANY, "compare_nested",
                FFI_CALL, QSORT, ANY, "compare"),
    ],
    "nest_del.py": [
        between("<module>", "drop", FINALIZE, "Held.__del__"),
        between("<module>", "collect", FINALIZE, "Cycle.__del__", ANY, "Held.__del__"),
    ],
    "nest_import.py": [
        between("<module>", "outer", ANY, "importing_key", IMPORT, ANY, "_find_and_load",
                "_find_and_load_unlocked"),
        between("_call_with_frames_removed", ANY, "<module>", ANY, "Body", "burn"),
    ],
    "gc_frames.py": [
        between("allocate", ANY, FINALIZE, "Cycle.__del__"),
        between("allocate", ANY, "callback"),
    ],
    "signals.py": [
        between("in_python", ANY, "handler"),
        between("in_c", "*deflate"),
    ],
    "exceptions.py": [between("fall", "fall", "fall", "burn")],
    "embedded.py": [
        between("*run_script", "<module>", "outer", "*call_back", "*in_c", "called_back",
                "*run_text", "<module>", "inner"),
    ],
    # Threads that have let the GIL go.
    "threads_c.py": [
        between(*THREAD, "worker", "compress", "*deflate"),
        between("worker", "hash_password", r"*(PKCS5_PBKDF2_HMAC|crc32\w*)"),
        between("worker", "query", SQLITE_STEP, SQLITE_RUN),
    ],
}

# Without the GIL a collection finalizes what is in a cycle in another order.
NESTING_FREE = {
    "nest_del.py": [
        between("<module>", "drop", FINALIZE, "Held.__del__"),
        between("<module>", "collect", FINALIZE, "Held.__del__"),
    ],
}


def nesting(target):
    """The patterns of its script."""
    free = NESTING_FREE if target.python.free_threaded else {}
    return free.get(target.script) or NESTING.get(target.script, [])


def loosened(pattern, target):
    """Before 3.11, and with trampolines, each Python function has an interpreter loop of its own,
    which gives way to it, and C functions that lead there."""
    if target.python.version >= (3, 11) and not target.options:
        return pattern
    return pattern.replace(r"_\[py\];", rf"_\[py\];{C}*")


def python_frames(frames):
    """The Python frames of a folded stack with lines and annotations: (function, file, line)."""
    found = (re.fullmatch(r"(.*) \((.*):(\d+)\)_\[py\]", frame) for frame in frames)
    return tuple(match.groups() for match in found if match)


class Target:
    """A fixture that an interpreter runs, and what was seen of it."""

    def __init__(self, python, script, *args, options=()):
        self.python, self.script = python, script
        self.arguments = (script, *args)
        self.options = options
        self.name = " ".join(map(str, (python.label, *options, script, *args)))
        self.want = set()
        self.process = None
        self.stacks = collections.Counter()
        self.flags = []
        self.names = []  # of innermost functions, in time

    def ask_oracle(self):
        self.want = set(self.python.oracle(*self.arguments))

    def start(self):
        """Until it is its turn it leaves the CPUs to others."""
        self.process = self.python.start(*self.arguments, options=self.options)
        self.process.send_signal(signal.SIGSTOP)

    @property
    def seen(self):
        return {python_frames(stack) for stack in self.stacks}

    def add(self, recording):
        for frames, count in recording.folded("--pid", self.process.pid, "--lines", "--annotate"):
            self.stacks[tuple(frames)] += count
        self.flags += [flags for flags, in recording.sql("""
            SELECT flags FROM sample JOIN thread ON thread = thread.id
              JOIN process ON process = process.id WHERE pid = ?""", self.process.pid)]
        if self.script == "exec_reuse.py":
            self.names += recording.sql("""
                SELECT DISTINCT sample.id, function FROM sample
                  JOIN thread ON thread = thread.id JOIN process ON process = process.id
                  JOIN stack ON stack.leaf = sample.runtime
                 WHERE pid = ? AND function LIKE 'phase%' ORDER BY time_ns""", self.process.pid)

    def is_served(self):
        missing = () if self.script in UNLISTED else self.want - self.seen
        named = {name for _, name in self.names}
        return len(self.flags) >= SAMPLES_MIN and not missing and (
            self.script != "exec_reuse.py" or len(named) >= NAMES_MIN)

    def count(self, condition):
        return sum(count for stack, count in self.stacks.items() if condition(stack))

    def shows(self, pattern):
        """Stack by stack: patterns are slow where they do not match."""
        return any(re.search(pattern, ";".join(stack) + ";") for stack in self.stacks)

    @property
    def total(self):
        return sum(self.stacks.values())

    def complete(self):
        return sum(flags & 1 for flags in self.flags)  # SAMPLE_COMPLETE, bpf/shared.h

    def with_python(self):
        return self.count(python_frames)

    def to_the_outermost(self):
        first = {("<module>", self.script), ("Thread._bootstrap", "threading.py")}
        return self.count(lambda stack: python_frames(stack)[:1]
                          and python_frames(stack)[0][:2] in first)


def record(targets, rounds=ROUNDS_MAX):
    """Starts all, records them at once, goes on with those of which too little was seen yet, and
    stops them. What was seen in any round counts."""
    recordings = []
    left = list(targets)
    with multiprocessing.pool.ThreadPool(os.cpu_count()) as pool:
        pool.map(Target.ask_oracle, targets)
        for target in targets:  # by this thread, which they do not outlive
            target.start()
        while left and len(recordings) < rounds:
            recordings.append(record_once(left))
            pool.map(lambda target: target.add(recordings[-1]), left)
            lib.stop(*(target.process for target in left if target.is_served()))
            left = [target for target in left if not target.is_served()]
    lib.stop(*(target.process for target in left))
    return recordings


def record_once(targets):
    for target in targets:
        target.process.send_signal(signal.SIGCONT)
    pids = ",".join(str(target.process.pid) for target in targets)
    recording = lib.record("-p", pids, "-d", ROUND_S)
    for target in targets:
        target.process.send_signal(signal.SIGSTOP)
    return recording


# --- checks ---

def share(part, total):
    return 100 * part / max(total, 1)


def at_least(part, total, least, name, *details):
    """One sample more does not matter where there are few."""
    lib.ok(total and share(part + 1, total) >= least, f"{name}: at least {least} %",
           f"{part} of {total}", *details)


def common(target):
    return (f"{count} {';'.join(stack)[-450:]}" for stack, count in target.stacks.most_common(5))


def check_complete(target):
    at_least(target.complete(), len(target.flags), 99.5, f"{target.name}: stacks complete")


def check_target(target):
    name = target.name
    check_complete(target)
    at_least(target.with_python(), target.total, 75 if target.script in AMONG_OTHERS else 97,
             f"{name}: Python frames", *common(target))  # threads start and end in C
    at_least(target.to_the_outermost(), target.with_python(), 99,
             f"{name}: Python frames from the outermost one", *common(target))
    loops = target.count(lambda stack: any(
        re.match(r"_PyEval_EvalFrameDefault[^;]*_\[n\]$", frame) for frame in stack))
    # One that was just entered, or is about to be left, has no frame: a loop for each call up to
    # 3.10 is often seen so.
    share = 0.03 if target.python.version < (3, 11) else 0.01
    lib.ok(loops <= share * target.total + 3, f"{name}: loops give way to what they run",
           f"{loops} of {target.total}", *common(target))
    if target.script not in UNLISTED:
        check_oracle(target)
    check_nesting(target)
    if target.script == "exec_reuse.py":
        check_reused_memory(target)


def check_oracle(target):
    """Every stack of the oracle was seen, and little else: the target is now and then on its way
    from one to the next."""
    lib.equal(target.want - target.seen, set(), f"{target.name}: every stack with its lines",
              *sorted(target.seen)[:10])
    hits = target.count(lambda stack: python_frames(stack) in target.want)
    others = sorted(target.seen - target.want)
    least = 10 if target.script in AMONG_OTHERS else 75
    if target.script == "subinterpreters.py" and target.python.version < (3, 8):
        least = 30  # many are made
    at_least(hits, target.total, least, f"{target.name}: in most samples", *others[:5])


def check_nesting(target):
    for pattern in nesting(target):
        lib.ok(target.shows(loosened(pattern, target)),
               f"{target.name}: C and Python in turn", pattern, *common(target))


def check_reused_memory(target):
    """Functions phase_0, phase_1, ... run once each, at the same addresses."""
    name = target.name
    numbers = [int(function.rpartition("_")[2]) for _, function in target.names]
    lib.ok(len(numbers) >= 100, f"{name}: samples", len(numbers))
    lib.equal(numbers, sorted(numbers), f"{name}: no name comes back")
    lib.ok(len(set(numbers)) >= NAMES_MIN, f"{name}: new names at the same address", set(numbers))


def sources(recording, pid):
    """What braid says of a target: [(version, source)]."""
    return recording.sql("SELECT DISTINCT version, source.source FROM source "
                         "JOIN process ON process = process.id "
                         "WHERE runtime = 'python' AND pid = ?", pid)


def check_source(python, targets, recording):
    got = {source for target in targets for source in sources(recording, target.process.pid)}
    want = ".".join(map(str, python.version))
    lib.ok(len(got) == 1 and min(got) in ((want, "walk"), (want.rpartition(".")[0], "walk")),
           f"{python.label}: walked", got)
    return "/".join(sorted(source for _, source in got))


# --- the table ---

HEAD = ("version", "found", "build", "source", "samples", "complete", "outermost", "stacks")


def row(python, source, targets):
    listed = [target for target in targets if target.script not in UNLISTED]
    samples = sum(len(target.flags) for target in targets)
    return (".".join(map(str, python.version)), python.found + ", stripped" * python.stripped,
            python.kind, source, str(samples),
            f"{share(sum(target.complete() for target in targets), samples):.2f} %",
            "{:.2f} %".format(share(sum(target.to_the_outermost() for target in targets),
                                    sum(target.with_python() for target in targets))),
            "{}/{}".format(sum(len(target.want & target.seen) for target in listed),
                           sum(len(target.want) for target in listed)))


def print_table(rows):
    widths = [max(map(len, column)) for column in zip(HEAD, *rows)]
    for cells in (HEAD, *rows):
        print("#", "  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip(),
              file=sys.stderr)  # prove shows it


def is_known(python):
    return OLDEST <= python.version[:2] <= NEWEST and python.level == "final"


def print_skipped(skipped):
    for skip in skipped:
        print(f"# skipped: {skip.what}: {skip.why}", file=sys.stderr)
        if os.environ.get("BRAID_NO_SKIP"):
            lib.ok(not skip.ours, f"{skip.what} is there", skip.why)


def run(groups, strip=()):
    """Every build that is here, and stripped copies of builds of libpython. Those of one group of
    versions, (first, last), are recorded together: so many processes can run at once."""
    lib.need_bpf()
    found, skipped = pythons.pythons()
    builds = [python for python in found if is_known(python)]
    if not builds:
        lib.skip_all("no CPython that braid knows")
    builds += [pythons.stripped(python) for python in builds
               if python.version[:2] in strip and python.is_library]
    rows = []
    for first, last in groups:
        rows += check_group([python for python in builds if first <= python.version[:2] <= last])
    print_table(rows)
    print_skipped(skipped)
    lib.done()


def check_group(builds):
    """Rows of the table."""
    if not builds:
        return []
    targets = [Target(python, script) for python in builds for script in SCRIPTS
               if script not in ELSEWHERE]
    recordings = record(targets)
    rows = []
    for python in builds:
        own = [target for target in targets if target.python is python]
        rows.append(row(python, check_source(python, own, recordings[0]), own))
        at_least(sum(target.complete() for target in own), sum(len(target.flags) for target in own),
                 99.5, f"{python.label}: stacks complete")
        for target in own:
            check_target(target)
    return rows
