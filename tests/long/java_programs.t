#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Java programs that nobody wrote for these tests, recorded from their start: javac compiles
BeanShell, keytool makes keys. And others' view of a JVM: its own thread dump, and the samples of
its flight recorder."""

import collections
import glob
import itertools
import json
import os
import re
import signal
import subprocess
import tarfile

import java_matrix as matrix
import lib
import python_matrix

SOURCES = "/usr/src/bsh-src/bsh.tar.gz"  # Debian's bsh-src
JAVA = r" \([^;]*\)_\[j\]"


def have_java(folded):
    return [(frames, count) for frames, count in folded
            if any(re.search(JAVA + "$", frame) for frame in frames)]


def check_program(name, recording, outermost, begin=0.05):
    """Java frames begin with the program's main method or a thread's, none is without a name."""
    lib.ok(recording.sql("SELECT 1 FROM source WHERE runtime = 'jvm' AND source = 'walk'"),
           f"{name}: walked", recording.result.err)
    lib.check_complete(recording, 99, name, begin=begin)
    folded = recording.folded("--annotate")
    stacks = have_java(folded)
    total = sum(count for _, count in stacks)
    everything = sum(count for _, count in folded)
    lib.ok(total >= 100 and total >= 0.1 * everything, f"{name}: Java frames",
           f"{total} of {everything}")
    begins = collections.Counter()
    for frames, count in stacks:
        first = next(frame for frame in frames if re.search(JAVA + "$", frame))
        begins[first] += count
    good = sum(count for frame, count in begins.items() if re.match(outermost, frame))
    python_matrix.at_least(good, total, 98, f"{name}: from the first method",
                           begins.most_common(8))
    nameless = [(count, matrix.ends(frames)) for frames, count in stacks
                if re.search(matrix.NAMELESS, ";".join(frames))]
    count = sum(count for count, _ in nameless)
    lib.ok(count <= 0.005 * total, f"{name}: nothing without a name",
           f"{count} of {total}", *nameless[:5])
    return stacks


# --- javac ---

def sources():
    """The files that need no other library."""
    with tarfile.open(SOURCES) as archive:
        archive.extractall(lib.path("bsh"))
    found = (glob.glob(lib.path("bsh/**/src/**/*.java"), recursive=True)
             + glob.glob(lib.path("bsh/src/**/*.java"), recursive=True))
    return sorted(file for file in set(found)
                  if not re.search("/tests/|/bsf/|servlet|/Test|junit", file))


def check_javac(java, files):
    name = f"{java.label}: javac"
    output = lib.path(f"bsh-{java.version[0]}-{len(os.listdir(lib.tmp))}")
    recording = lib.record("--", os.path.join(java.home, "bin/javac"), "-nowarn", "-proc:none",
                           "-d", output, *files)
    classes = glob.glob(output + "/**/*.class", recursive=True)
    lib.ok(len(classes) >= 100, f"{name}: does its work", len(classes))
    stacks = check_program(name, recording, r"com\.sun\.tools\.javac\.Main\.main|"
                           r"java\.lang\.|java\.util\.|jdk\.internal\.|sun\.")
    main = r"com\.sun\.tools\.javac\.Main\.main" + JAVA + ".*com.sun.tools.javac"
    for pattern, least in ((main + r"\.main\.JavaCompiler\.compile" + JAVA, 0.6),
                           (main + r"\.parser\.JavacParser\.", 0.05),
                           (main + r"\.comp\.Attr\.visit\w+" + JAVA, 0.1),
                           (main + r"\.jvm\.Gen\.", 0.01)):
        lib.check_share(stacks, pattern, least, name)


def check_javacs(builds):
    with_javac = [java for java in builds
                  if not java.root and os.path.exists(java.home + "/bin/javac")]
    if not os.path.exists(SOURCES):
        lib.skip("javac", f"no {SOURCES}")
    elif not with_javac:
        lib.skip("javac", "none")
    else:
        files = sources()
        lib.ok(len(files) >= 100, "BeanShell's sources", len(files))
        for java in with_javac:
            check_javac(java, files)


# --- keytool, which a JRE has, too ---

def check_keytool(java):
    name = f"{java.label}: keytool"
    store = os.path.join(java.work, "store")
    keytool = [*java.command[:-1], os.path.join(java.home, "bin/keytool")]
    recording = lib.record("--", *keytool, "-genkeypair", "-alias", "a", "-keyalg", "RSA",
                           "-keysize", "4096", "-keystore", java.inside(store), "-storepass",
                           "password", "-dname", "CN=a")
    lib.ok(os.path.exists(store), f"{name}: does its work")
    os.unlink(store)
    stacks = check_program(name, recording, r"sun\.security\.tools\.keytool\.Main\.main|"
                           r"java\.lang\.|java\.util\.|jdk\.internal\.|sun\.", begin=0.15)
    lib.check_share(stacks, rf"keytool\.Main\.doGenKeyPair{JAVA};.*"
                    rf"sun\.security\.rsa\.RSAKeyPairGenerator\.generateKeyPair{JAVA};.*"
                    r"java\.math\.BigInteger\.", 0.1, name)


# --- the JVM's own view ---

def tool(builds, name):
    """Of the newest JDK: they understand what older ones say."""
    found = [os.path.join(java.home, "bin", name) for java in builds if not java.root]
    return next((file for file in reversed(found) if os.path.exists(file)), None)


def dumped(jcmd, pid):
    """The main thread's frames, outermost first."""
    run = subprocess.run([jcmd, str(pid), "Thread.print"], check=True, capture_output=True,
                         text=True, timeout=lib.PATIENCE_S)
    thread = re.search(r'^"main" .*?\n\n', run.stdout, re.M | re.S)[0]
    frames = re.findall(r"^\tat (?:[\w.]+/)?(?:[\w.@]+/)?([\w.$<>]+)\((\S+):(\d+)\)", thread, re.M)
    return tuple(reversed(frames))


def of_program(frames):
    """Without those of the fixtures' helpers, and what they call."""
    return tuple(itertools.takewhile(lambda frame: not frame[0].startswith("Fixture."), frames))


def check_dump(java, jcmd, script, *args):
    """All but what the innermost frame is at that moment."""
    name = f"{java.label}: {script}: as in the JVM's thread dump"
    target = matrix.Target(java, script, *args, options=matrix.WARM)
    target.start()
    target.process.send_signal(signal.SIGCONT)
    frames = dumped(jcmd, target.process.pid)
    outer = of_program(frames)
    lib.ok(len(outer) >= 10, f"{name}: frames", frames)
    recording = lib.record("-p", target.process.pid, "-d", 1)
    target.add(recording)
    lib.stop(target.process)
    same = target.count(lambda stack: of_program(matrix.java_frames(stack))[:-1] == outer[:-1])
    python_matrix.at_least(same, target.with_java(), 99, name, outer, *target.seen)


def flight_recorded(jfr, file):
    """{method: share} of the innermost frames."""
    run = subprocess.run([jfr, "print", "--json", "--events", "jdk.ExecutionSample", file],
                         check=True, capture_output=True, text=True)
    events = json.loads(run.stdout)["recording"]["events"]
    return shares(collections.Counter(
        event["values"]["stackTrace"]["frames"][0]["method"]["name"] for event in events
        if event["values"]["stackTrace"]["frames"][0]["method"]["type"]["name"] == "Shares"))


def shares(counts):
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()} | {"": total}


def check_flight_recorder(java, jfr):
    """Both see the same run."""
    name = f"{java.label}: as the flight recorder"
    file = os.path.join(java.work, "flight.jfr")
    flag = f"-XX:StartFlightRecording=filename={java.inside(file)},settings=profile"
    recording = lib.record("--", *java.arguments("Shares", 12, options=[flag]),
                           options=("-F", "499"))
    theirs = flight_recorded(jfr, file)
    os.unlink(file)
    ours = collections.Counter()
    for frames, count in recording.folded("--annotate"):
        leaf = [re.match(r"Shares\.(\w+) \(.*_\[j\]$", frame) for frame in frames][-1:]
        if leaf and leaf[0]:
            ours[leaf[0][1]] += count
    ours = shares(ours)
    lib.ok(theirs[""] >= 100 and ours[""] >= 400, f"{name}: samples", theirs, ours)
    for method, share in (("half", 0.5), ("third", 0.3), ("sixth", 0.15), ("rest", 0.05)):
        mine, other = ours.get(method, 0), theirs.get(method, 0)
        lib.ok(abs(mine - share) <= 0.05, f"{name}: {method}: {100 * share:g} %", ours)
        # Some 400 samples by the clock on the wall: beside other work it has seen 41 of the 50 %.
        lib.ok(abs(mine - other) <= 0.12, f"{name}: {method}: the same share", ours, theirs)


every_build, skipped = matrix.begin()
one_of_each = matrix.of_each_version(every_build)
check_javacs(every_build)
for build in one_of_each:
    check_keytool(build)
for program, check in ("jcmd", lambda *args: check_dump(*args, "Nest")), \
        ("jcmd", lambda *args: check_dump(*args, "Deep", 0, 40)), ("jfr", check_flight_recorder):
    found = tool(every_build, program)
    for build in one_of_each if found else ():
        check(build, found)
    if not found:
        lib.skip(program, "no JDK has it")
python_matrix.print_skipped(skipped)
lib.done()
