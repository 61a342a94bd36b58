#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of compiled code from perf maps and jitdump files: of a program that makes code and says
when (fixtures/native/jitmap.c), and of compilers at hand: CPython's trampolines (-X perf), PHP's JIT,
Ruby's YJIT. Files that are not to be trusted are not read."""

import atexit
import glob
import os
import re
import shutil
import signal
import sqlite3
import subprocess

import lib
import pythons
import rubies

STACK = r"^_start;.*;main;run;outer code;between;leaf \d+$"


written = []  # maps that processes leave behind


@atexit.register
def remove_maps():
    for file in written:
        if os.path.lexists(file):
            os.unlink(file)


class Jit:
    """fixtures/native/jitmap.c, and when it did what: {N: [first, last nanosecond]}."""

    def __init__(self, mode, *args, before=()):
        self.process = lib.start(*before, lib.fixture("jitmap"), 0, mode, *args,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        written.append(f"/tmp/perf-{self.process.pid}.map")
        self.phases = {}
        if self.process.stdout.readline() != b"READY\n":
            raise RuntimeError(f"jitmap {mode} is not ready")
        self.read()

    def read(self):
        what, number, time = self.process.stdout.readline().split()
        self.phases.setdefault(int(number), []).append(int(time))
        return what

    def next(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        self.read()
        self.read()

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=lib.PATIENCE_S)


def committed(file, query, *values):
    """The query's answer in a recording that is still being written, or None."""
    try:
        with sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=0.05) as database:
            return database.execute(query, values).fetchone()[0]
    except sqlite3.Error:
        return None


def run_phases(jit, file, n, named=False):
    """Each phase until there are enough samples of it."""
    for number in range(n):
        begin = jit.phases[number][0]
        lib.wait_for(lambda: (committed(file, "SELECT count(*) FROM sample WHERE time_ns > ?",
                                        begin) or 0) >= 100, f"samples of phase {number}")
        if named:
            lib.wait_for(lambda: committed(file, "SELECT count(*) FROM function WHERE name = ?",
                                           f"leaf {number}"), f"the name of leaf {number}")
        if number < n - 1:
            jit.next()


def record_phases(mode, n, *args):
    """(the program, the recording) of n phases, and of its end."""
    jit = Jit(mode, *args)
    file = lib.path(mode + ".db")
    process = lib.start_braid("record", "-p", jit.process.pid, "-F", 999, "-o", file)
    run_phases(jit, file, n, named=mode == "rewritten")
    jit.end()
    error = process.communicate(timeout=lib.PATIENCE_S)[1].decode()
    lib.equal(process.returncode, 0, f"{mode}: status", error)
    return jit, lib.Recording(file, lib.Result(process.returncode, "", error))


def leaves(recording):
    """[(time, name, line)] of the samples that were taken in a leaf's own code, if it has a name.
    One in some ten thousand is taken in the few instructions of [outer code], a page's 0x100."""
    return [(time, name, line) for time, name, line in recording.sql("""
        SELECT sample.time_ns, function.name, location.line FROM sample
          JOIN node ON node.id = sample.native
          JOIN frame ON frame.id = node.frame AND frame.image IS NULL AND frame.kind = 1
                    AND frame.address & 0xfff >= 0x200
          JOIN location ON location.frame = frame.id
          JOIN function ON function.id = location.function""")]


# --- where and when ---

def check_map():
    jit = Jit("map")
    recording = lib.record("-p", jit.process.pid, "-d", 1)
    native = lib.record("-p", jit.process.pid, "-d", 0.5, options=("-F", "999", "-r", "native"))
    none = lib.record("-p", jit.process.pid, "-d", 0.5, options=("-F", "999", "--source", "none"))
    lib.stop(jit.process)
    stacks = recording.folded()
    lib.check_share(stacks, STACK, 0.95, "perf map")
    lib.check_complete(recording, 99, "perf map")
    annotated = recording.folded("--annotate")
    lib.check_share(annotated, r"run_\[n\];outer code_\[j\];between_\[n\];leaf 0_\[j\]$", 0.95,
                    "perf map: kinds")
    lib.matches(rf"(^|\n)pid {jit.process.pid}: jit: map\n", recording.result.err,
                "perf map: it is told")
    lib.equal(recording.sql("SELECT runtime, source FROM source"), [("jit", "map")],
              "perf map: and recorded")
    lib.equal(recording.meta("jit_places"), recording.meta("jit_places_named"),
              "perf map: all code has a name")
    lib.equal(recording.meta("jit_symbols"), "2", "perf map: symbols")
    for name, other in ("-r native", native), ("--source none", none):
        lib.check_share(other.folded(), r";run;\[anon\+0x[0-9a-f]+\];between;\[anon\+0x[0-9a-f]+\]$",
                        0.95, f"{name}: no names")
        lib.equal(other.sql("SELECT * FROM source"), [], f"{name}: no word of them")
        lib.equal(other.meta("jit_symbols"), "0", f"{name}: the map is not read")


def check_not_opened():
    """A runtime that is not wanted costs nothing: the file is not even opened."""
    jit = Jit("map")
    name = f"/tmp/perf-{jit.process.pid}.map"

    def has_open(*options):
        file = lib.path("-".join(("opened", *options)) + ".db")
        process = lib.start_braid("record", "-p", jit.process.pid, "-F", 999, "-o", file, *options)
        lib.wait_for(lambda: (committed(file, "SELECT count(*) FROM sample") or 0) >= 100,
                     "samples")
        links = [lib.read_link(link) for link in glob.glob(f"/proc/{process.pid}/fd/*")]
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=lib.PATIENCE_S)
        return name in links

    lib.ok(has_open(), "the map is open while recording")
    lib.ok(has_open("-r", "jit"), "-r jit: so it is")
    lib.ok(not has_open("-r", "native"), "-r native: it is not")
    lib.ok(not has_open("-r", "python"), "-r python: nor there, as no Python is in the process")
    lib.stop(jit.process)


def check_reuse():
    """One address, four leaves. A sample is processed after it was taken, and braid looks at the map
    before that: what is in it by then may be too new for the sample, but never too old."""
    jit, recording = record_phases("map", 4)
    right, early, wrong = 0, 0, []
    for time, name, _ in leaves(recording):
        for number, span in jit.phases.items():
            if span[0] <= time <= span[-1] or number == 3 and time > span[0]:
                right += name == f"leaf {number}"
                early += name == f"leaf {number + 1}"
                if name not in (f"leaf {number}", f"leaf {number + 1}"):
                    wrong.append((number, name))
    lib.equal(wrong, [], "perf map, one address used again: no sample under an old name")
    lib.ok(right >= 4 * early and right >= 300, "perf map, one address used again: names",
           f"{right} right, {early} early")
    places = recording.one("SELECT count(DISTINCT frame.id) FROM frame JOIN location ON location.frame = frame.id "
                           "JOIN function ON function.id = location.function "
                           "WHERE function.name LIKE 'leaf%'")
    lib.ok(places >= 4, "perf map, one address used again: a frame for each code", places)


def check_rewritten():
    jit, recording = record_phases("rewritten", 3)
    names = {}
    for time, name, _ in leaves(recording):
        for number, span in jit.phases.items():
            if span[0] <= time <= span[-1] or number == 2 and time > span[0]:
                names.setdefault(number, []).append(name)
    for number, found in names.items():
        # It is read anew once a second only: until then the old name holds, or else what is in it
        # counts from the last look on.
        good = [name for name in found if abs(int(name.split()[1]) - number) <= 1]
        lib.equal(len(good), len(found), f"map written anew: leaf {number}", set(found))
        lib.ok(f"leaf {number}" in found, f"map written anew: leaf {number} is seen", set(found))
    lib.equal(sorted(names), [0, 1, 2], "map written anew: three leaves")


def check_jitdump():
    """Times are those of the file: each sample has the code of its nanosecond. Leaves of odd numbers
    are moved ones, under their old names."""
    os.mkdir(lib.path("dumps"))
    jit, recording = record_phases("jitdump", 5, lib.path("dumps"))
    right, wrong = 0, []
    for time, name, line in leaves(recording):
        for number, span in jit.phases.items():
            if span[0] <= time <= span[-1] or number == 4 and time > span[0]:
                want = number - number % 2
                good = (name, line) == (f"leaf {want}", 100 + want)
                right += good
                if not good:
                    wrong.append((number, name, line))
    lib.equal(wrong[:5], [], "jitdump: names and lines to the nanosecond", len(wrong))
    lib.ok(right >= 400, "jitdump: samples", right)
    lib.check_share(recording.folded("--lines"), r";outer code \(jitmap\.source:10\);between"
                    r"[^;]*;leaf [024] \(jitmap\.source:10[024]\)$", 0.9, "jitdump: files and lines")
    lib.equal(recording.meta("jit_places"), recording.meta("jit_places_named"),
              "jitdump: all code has a name")


def check_deleted():
    """A jitdump file is read where it is mapped, whatever has become of its name."""
    jit = Jit("jitdump", lib.path("dumps"))
    os.unlink(lib.path(f"dumps/jit-{jit.process.pid}.dump"))
    recording = lib.record("-p", jit.process.pid, "-d", 0.7)
    lib.stop(jit.process)
    lib.check_share(recording.folded(), r";outer code \(jitmap\.source\);between;leaf 0 "
                    r"\(jitmap\.source\)$", 0.9, "jitdump that was deleted")


def check_late():
    """The map is written by the very end of the process."""
    jit = Jit("late")
    file = lib.path("late.db")
    process = lib.start_braid("record", "-p", jit.process.pid, "-F", 999, "-o", file)
    run_phases(jit, file, 1)
    shown = {name for _, name, _ in leaves(lib.Recording(file))}
    lib.ok(shown and all(name.startswith("[anon+") for name in shown),
           "late map: until then the place is shown", shown)
    jit.end()
    process.communicate(timeout=lib.PATIENCE_S)
    recording = lib.Recording(file)
    lib.check_share(recording.folded(), STACK, 0.95, "late map: names came with the end")
    os.unlink(f"/tmp/perf-{jit.process.pid}.map")


def check_forked():
    recording = lib.record("--", lib.fixture("jitmap"), 0.7, "forked")
    lib.check_share(recording.folded(), STACK, 0.9, "forked: code of the parent, by its map")


def check_killed():
    """What a recorder that is killed leaves behind has names for code, too."""
    jit = Jit("map")
    file = lib.path("killed.db")
    process = lib.start_braid("record", "-p", jit.process.pid, "-F", 999, "-o", file)
    run_phases(jit, file, 1)
    process.kill()
    process.communicate()
    lib.stop(jit.process)
    recording = lib.Recording(file)
    lib.check_share(recording.folded(), STACK, 0.95, "braid killed: names")


# --- trust ---

def check_refused():
    """Whatever is there instead of a map of the process's own."""
    jit = Jit("map")
    name = f"/tmp/perf-{jit.process.pid}.map"
    with open(name, "rb") as file:
        text = file.read()

    def shows(what, reason, make):
        if os.path.lexists(name):
            os.unlink(name)
        make()
        recording = lib.record("-p", jit.process.pid, "-d", 0.5)
        lib.check_share(recording.folded(), r"\[anon\+0x[0-9a-f]+\]$", 0.95, f"{what}: no names")
        lib.matches(rf"pid {jit.process.pid}: jit: none: [^\n]*{re.escape(name)}[^\n]*{reason}",
                    recording.result.err, f"{what}: told why")

    def copy(uid):
        with open(name, "wb") as file:
            file.write(text)
        os.chown(name, uid, uid)

    with open(lib.path("a map"), "wb") as file:
        file.write(text)
    shows("another user's map", "user 4711", lambda: copy(4711))
    shows("link", "link", lambda: os.symlink(lib.path("a map"), name))
    shows("FIFO", "regular", lambda: os.mkfifo(name))
    shows("directory", "regular", lambda: os.mkdir(name))
    os.rmdir(name)
    copy(0)
    recording = lib.record("-p", jit.process.pid, "-d", 0.5)
    lib.check_share(recording.folded(), STACK, 0.9, "the real one, again")
    lib.stop(jit.process)
    os.unlink(name)


def check_hostile():
    """Lines of all kinds, and names that are no text, between those of the code."""
    jit = Jit("map")
    name = f"/tmp/perf-{jit.process.pid}.map"
    with open(name, "rb") as file:
        lines = file.read().splitlines(keepends=True)
    with open(name, "wb") as file:
        file.write(b"\0\xff\n" * 1000 + b"zz 10 x\n7f0000000000 0 empty\n"
                   b"ffffffff81000000 1000 kernel\n1 ffffffffffffffff all\n")
        file.write(lines[0])
        file.write(lines[1].rstrip() + b";\x1b[31m\xff<script>\n" + b"x" * 1000000 + b"\n")
    recording = lib.record("-p", jit.process.pid, "-d", 0.7)
    lib.stop(jit.process)
    os.unlink(name)
    lib.check_share(recording.folded(), r";outer code;between;leaf 0:\?\[31m\?<script>$", 0.9,
                    "hostile map: names are made harmless")
    lib.matches(r"not understood", "\n".join(key for key, in recording.sql("SELECT name FROM counter")),
                "hostile map: what is no line is counted")
    flame = lib.path("hostile.html")
    lib.equal(lib.braid("flame", "-o", flame, recording.file).status, 0, "hostile map: flame graph")
    with open(flame, encoding="utf-8") as file:
        lib.ok("<script>$" not in file.read() and "leaf 0;" not in file.read(),
               "hostile map: no markup of its")


def check_namespaces():
    """A process with another /tmp and another PID of its own."""
    if subprocess.run(["unshare", "-mpf", "--mount-proc", "true"], capture_output=True).returncode:
        lib.skip("namespaces", "unshare does not work here")
        return
    # The program itself may be in the /tmp that is covered.
    script = 'exec 3<"$0" && mount -t tmpfs none /tmp && exec /proc/self/fd/3 0 map'
    outer = lib.start("unshare", "-mpf", "--mount-proc", "sh", "-c", script, lib.fixture("jitmap"),
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if outer.stdout.readline() != b"READY\n":
        raise RuntimeError("jitmap in namespaces is not ready")
    with open(f"/proc/{outer.pid}/task/{outer.pid}/children", encoding="ascii") as file:
        pid = int(file.read().split()[0])
    recording = lib.record("-p", pid, "-d", 1)
    lib.ok(not os.path.exists(f"/tmp/perf-{pid}.map") and not os.path.exists("/tmp/perf-1.map"),
           "namespaces: no map out here")
    os.kill(pid, signal.SIGKILL)
    lib.stop(outer)
    lib.check_share(recording.folded(), r";main;run;outer code;between;leaf 0$", 0.95,
                    "namespaces: names")


# --- compilers ---

def perf_pythons():
    """One of each version from 3.12 on that can write a map."""
    found, _ = pythons.pythons()
    versions = {python.version[:2]: python for python in found
                if python.version >= (3, 12) and not python.free_threaded}
    return [python for python in versions.values() if subprocess.run(
        [*python.command, "-X", "perf", "-c", ""], capture_output=True,
        env=python.environment()).returncode == 0]


def check_python(python):
    """Trampolines have names now: they must not stand beside the functions that they run."""
    target = python.start("nest_sorted.py", options=("-X", "perf"))
    written.append(f"{python.root}/tmp/perf-{target.pid}.map")
    walked = lib.record("-p", target.pid, "-d", 1.5)
    mapped = lib.record("-p", target.pid, "-d", 1, options=("-F", "999", "--source", "map"))
    lib.stop(target)
    label = f"-X perf: {python.label}"
    stacks = walked.folded("--annotate")
    doubled = {frames[i] for frames, _ in stacks for i in range(len(frames) - 1)
               if frames[i].endswith("_[py]") and frames[i] == frames[i + 1]}
    lib.equal(doubled, set(), f"{label}: no frame twice")
    beside = lib.share_of(stacks, r"(^|;)(\[anon|py::)|_\[j\](;|$)")
    lib.ok(beside < 0.01, f"{label}: no trampoline", beside)
    lib.check_share(stacks, r"outer \(nest_sorted.py\)_\[py\];.*outer_key \(nest_sorted.py\)"
                    r"_\[py\];.*inner_key \(nest_sorted.py\)_\[py\](;|$)", 0.9, label)
    with_vm = walked.folded("--annotate", "--keep-vm")
    lib.check_share(with_vm, r"inner_key \(nest_sorted.py\)_\[py\];[^;]*_\[n\];"
                    r"inner_key \(nest_sorted.py\)_\[py\]", 0.8, f"{label}, --keep-vm: both")
    lib.check_complete(walked, 99, label)
    lib.check_share(mapped.folded("--annotate"), r"outer \(nest_sorted.py\)_\[py\];.*"
                    r"inner_key \(nest_sorted.py\)_\[py\]", 0.9, f"{label}, --source map")
    lib.equal(mapped.one("SELECT count(*) FROM sample WHERE runtime IS NOT NULL"), 0,
              f"{label}, --source map: no walker")
    lib.matches(rf"pid {target.pid}: python 3\.\d+\.\d+: map", mapped.result.err,
                f"{label}, --source map: told")


def find_php():
    """Command lines of PHP with its JIT."""
    options = ["-d", "zend_extension=opcache.so", "-d", "opcache.enable_cli=1",
               "-d", "opcache.jit_buffer_size=16M", "-d", "opcache.file_update_protection=0"]
    places = [("", program) for program in [shutil.which("php")] if program]
    for root in glob.glob(os.path.join(pythons.roots_directory(), "*")):
        if os.path.lexists(root + "/usr/bin/php"):  # a link that leads astray out here
            places.append((root, "/usr/bin/php"))
    for root, program in places:
        command = [*(["chroot", root] if root else []), program]
        for extra in options[2:], options:  # some have opcache in already
            test = subprocess.run([*command, *extra, "-d", "opcache.jit=function", "-r",
                                   "echo opcache_get_status()['jit']['on'];"], capture_output=True)
            if test.stdout.strip() == b"1":
                yield root, [*command, *extra]
                break


PHP = """<?php
function leaf(int $n): float { $s = 0.0; for ($i = 0; $i < $n; $i++) { $s = $s * 0.5 + $i; }
    return $s; }
class Work { function run(int $n): float { return leaf($n); } }
$work = new Work; echo "READY\\n"; while (true) { $work->run(100000); }
"""


def check_php(root, command):
    script = os.path.join(root + "/tmp" if root else lib.tmp, "braid-jit.php")
    with open(script, "w", encoding="ascii") as file:
        file.write(PHP)
    # opcache.jit_debug: 16 writes a perf map, 32 a jitdump file
    for debug, told in (16, "perf map"), (32, "jitdump"):
        target = lib.start_ready(*command, "-d", "opcache.jit=function", "-d",
                                 f"opcache.jit_debug={debug}", script[len(root):])
        recording = lib.record("-r", "jit", "-p", target.pid, "-d", 1)
        lib.stop(target)
        for left in glob.glob(f"{root}/tmp/perf-{target.pid}.map") + glob.glob(
                f"{root}/tmp/jit-{target.pid}.dump"):
            os.unlink(left)
        # Without PHP's walker, which has frames of its own for it.
        lib.check_share(recording.folded("--annotate"), r"(^|;)JIT\$leaf_\[j\]", 0.8,
                        f"PHP {root[-8:]}, {told}")
    os.unlink(script)


def check_yjit(ruby):
    """YJIT's map (Ruby 3.3 and later) names what else is [JIT]."""
    script = lib.path("yjit.rb")
    with open(script, "w", encoding="ascii") as file:
        file.write("def leaf(n) = (i = 0; i += 1 while i < n; i)\n"
                   "STDOUT.puts('READY'); STDOUT.flush\nloop { leaf(100_000) }\n")
    target = lib.start_ready(*ruby.command, "--yjit", "--yjit-call-threshold=1",
                             "--yjit-perf=map", script, env=ruby.environment())
    recording = lib.record("-p", target.pid, "-d", 1)
    lib.stop(target)
    lib.check_share(recording.folded("--annotate"), r"leaf[^;]*_\[j\](;|$)", 0.8,
                    f"YJIT: {ruby.label}")


def check_compilers():
    found = perf_pythons()
    for python in found:
        check_python(python)
    if not found:
        lib.skip("-X perf", "no CPython 3.12 or later that supports it")
    php = list(find_php())
    for root, command in php:
        check_php(root, command)
    if not php:
        lib.skip("PHP", "there is none with a JIT compiler")
    yjit = [ruby for ruby in rubies.rubies()[0]
            if ruby.has_yjit and ruby.version >= (3, 3) and not ruby.root]
    for ruby in yjit:
        check_yjit(ruby)
    if not yjit:
        lib.skip("YJIT", "no Ruby 3.3 or later that has it")


lib.need_bpf()
check_map()
check_not_opened()
check_reuse()
check_rewritten()
check_jitdump()
check_deleted()
check_late()
check_forked()
check_killed()
check_refused()
check_hostile()
check_namespaces()
check_compilers()
lib.done()
