#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""`braid calls` of Java: every call of a method and what called it, as arithmetic has them, for each
HotSpot, also over exceptions, full stacks, frames that are compiled while they run, and classes
that come and go; from the first call on, or of a running process."""

import collections
import os
import re
import subprocess

import javas
import lib
from calls_run import FIB, Calls, difference

FLAG, NO_INLINING = "-XX:+DTraceMethodProbes", "-XX:-Inline"
SOURCE = "fixtures/java/calls/Workload.java"

# What calls what how often.
EXACT = {
    "fib 20": {"run fib": 1, "fib fib": FIB[20] - 1},
    "mutual 300": {"run mutual": 1, "mutual isEven": 1, "isEven isOdd": 150, "isOdd isEven": 150},
    "deep 900": {"run deep": 1, "deep descend": 1, "descend descend": 900},
    "overloads 70": {
        "run overloads": 1, "overloads Shape.<init>": 1, "overloads Square.<init>": 1,
        "Square.<init> Shape.<init>": 1, "overloads Shape.take(int): int": 35,
        "overloads Square.take": 35, "Square.take Shape.take(int): int": 35,
        "overloads Shape.take(long): int": 70,
        "overloads Shape.take(java.lang.String[], int[][]): int": 70, "overloads Shape.get": 35,
        "overloads Square.get(): java.lang.Object": 35,
        "Square.get(): java.lang.Object Square.get(): java.lang.String": 35},
    "kinds 70": {
        "run kinds": 1, "kinds Plus.<init>": 35, "kinds Minus.<init>": 35, "kinds Step.twice": 70,
        "Step.twice Plus.step": 70, "Step.twice Minus.step": 70, "lambda$kinds assist": 70},
    "exceptions 70": {
        "run exceptions": 1, "exceptions land": 140, "land fall": 140, "land assist": 140,
        "fall fall": 70 * 10 + 70 * 2, "fall rise": 210, "rise Rise.<init>": 210,
        "exceptions passing": 70, "passing fall": 70, "passing assist": 70},
    "around 20000": {
        "run around": 1, "around loop": 1, "around assist": 1, "loop Plus.<init>": 1,
        "loop Odd.<init>": 1, "Odd.<init> Plus.<init>": 1, "loop through": 20000,
        "through Plus.step": 10000, "through Odd.step": 10000, "through assist": 20000},
    "threads 100": {"run threads": 1, "lambda$threads tick": 100, "tick assist": 100 * 100},
}
# Deeper than a shadow stack.
DEEPER = {"deep 3000": {"run deep": 1, "deep descend": 1, "descend descend": 3000},
          "fib 10": {"run fib": 1, "fib fib": FIB[10] - 1}}
LIBRARY = ("java.lang.Runtime.getRuntime", "java.lang.Runtime.availableProcessors")


def total(commands):
    """{"caller callee": calls} in all."""
    edges = collections.Counter()
    for expected in commands.values():
        edges.update(expected)
    return edges


def callees(edges):
    """{method: calls}"""
    counts = collections.Counter()
    for edge, calls in edges.items():
        counts[re.sub(r"^\S+(\): \S+)? ", "", edge)] += calls
    return counts


def short(label):
    """Without the class's name, and without the number that javac gives a lambda's body."""
    label = re.sub(r"^Workload[.$]", "", label)
    return re.sub(r"^(lambda\$\w+)\$\d+$", r"\1", label)


class Profile:
    """What `braid calls --format pprof` has written: [(short labels from the root on, calls)]."""

    def __init__(self, file):
        text = subprocess.run(["python3", "-B", "tests/tools/read_pprof.py", file], check=True,
                              stdout=subprocess.PIPE).stdout.decode()
        self.text = text
        self.stacks = [(stack.split(";"), int(calls)) for calls, stack in
                       re.findall(r"^stack (\d+) \d+ (.*)$", text, re.M)]

    def calls(self):
        counts = collections.Counter()
        for frames, calls in self.stacks:
            counts[frames[-1]] += calls
        return counts

    def edges(self):
        """Between the workload's own methods."""
        edges = collections.Counter()
        for frames, calls in self.stacks:
            caller, callee = ["", *frames][-2:]
            if all(re.match(r"Workload\b(?!.*\$\$Lambda)", label) for label in (caller, callee)):
                edges[f"{short(caller)} {short(callee)}"] += calls
        del edges["serve run"], edges["main serve"]
        return edges


class Workload:
    """A process that calls what it is asked to."""

    def __init__(self, java, *options):
        self.process = java.start("Workload", options=options, stdin=subprocess.PIPE)
        self.pid = self.process.pid

    def ask(self, command):
        self.process.stdin.write(f"{command}\n".encode())
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"PID {self.pid} has ended: {self.process.wait()}")
        return line.decode().strip()

    def stop(self):
        lib.stop(self.process)


def count(java, commands, name, *options):
    """(Profile, stderr, answers)"""
    workload = Workload(java, FLAG, *options)
    calls = Calls(java_pid(workload.pid), "-r", "jvm", "--format", "pprof")
    answers = [workload.ask(command) for command in commands]
    calls.end(name)
    workload.stop()
    return Profile(calls.file), calls.err, answers


def java_pid(pid):
    """Of the process itself, or of the only one below it: what enters a root may stay in between."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
        children = file.read().split()
    return java_pid(int(children[0])) if children else pid


def losses(err):
    return dict((what, int(n)) for n, what in re.findall(r"^ +(\d+)  (.*)$", err, re.M))


def check_losses(err, name):
    """None but what was under way when braid came: the writing and the reading of a line."""
    lost = losses(err)
    unmatched = lost.pop("returns from calls that were not seen", 0)
    lib.ok(not lost and unmatched <= 500, f"{name}: no losses", err)


def check_counts(java):
    name = f"{java.label}: counts"
    profile, err, _ = count(java, EXACT, name, NO_INLINING)
    lib.equal(difference(profile.edges(), total(EXACT)), [], f"{name}: as arithmetic has them", err)
    found = profile.calls()
    lib.equal([found[method] for method in LIBRARY], [70] * len(LIBRARY),
              f"{name}: in the library, also native", err)
    lib.equal(found["Workload.run"], len(EXACT), f"{name}: what calls them", err)
    lib.matches(rf"^pid \d+: jvm {re.escape('.'.join(map(str, java.version[:3])))}[^:]*: usdt\n",
                err, f"{name}: the source")
    check_losses(err, name)


def check_inlined(java):
    """Methods that exceptions leave may end late: all are counted, and that is told."""
    name = f"{java.label}: inlined"
    profile, err, _ = count(java, EXACT, name)
    lib.equal(difference(callees(profile.edges()), callees(total(EXACT))), [],
              f"{name}: as arithmetic has them", err)
    lib.matches(r"^pid \d+: jvm \S+: usdt: methods left by an exception may end too late[^\n]*"
                r"-XX:-Inline", err, f"{name}: what is told")
    commands = ["exceptions 300", "exceptions 300"]
    profile, err, _ = count(java, commands, name)
    want = {"exceptions": 2, "land": 1200, "passing": 600, "fall": 9000, "rise": 1800,
            "Rise.<init>": 1800, "assist": 1800}
    found = collections.Counter()
    for edge, calls in callees(profile.edges()).items():
        found[edge] += calls
    lib.equal(difference(found, want), [], f"{name}: over and over", err)
    deepest = max(len(frames) for frames, _ in profile.stacks)
    lib.ok(deepest < 40, f"{name}: dead calls do not pile up", deepest)


def check_deeper(java):
    name = f"{java.label}: deeper than a shadow stack"
    profile, err, _ = count(java, DEEPER, name, NO_INLINING)
    lib.equal(difference(callees(profile.edges()), callees(total(DEEPER))), [], name, err)
    check_losses(err, name)


def check_overflow(java):
    """What ends by StackOverflowError, counted by itself; calls after that are counted as ever."""
    for options in ([NO_INLINING], []):
        name = f"{java.label}: {' '.join(options) or 'inlined'}: stack overflow"
        profile, err, answers = count(java, ["overflow 1", "fib 11"], name, *options)
        found = callees(profile.edges())
        lib.equal(f"endless {found.pop('endless')}", answers[0], f"{name}: calls until then", err)
        lib.equal(difference(found, {"overflow": 1, "assist": 1, "fib": FIB[11]}), [],
                  f"{name}: calls after it", err)
        edges = profile.edges()
        lib.equal((edges["fib fib"], edges["run fib"]), (FIB[11] - 1, 1),
                  f"{name}: what calls them", err)


def check_virtual(java):
    """Virtual threads go on where others were: their methods are counted, whoever calls them."""
    if java.version < (21,):
        return
    name = f"{java.label}: virtual threads"
    profile, err, _ = count(java, ["virtual 50"], name, NO_INLINING)
    found = profile.calls()
    lib.equal([found["Workload.wander"], found["Workload.fib"]], [50, 50 * 10 * FIB[3]], name, err)


def check_classes(java):
    """Names whose memory others have had before."""
    name = f"{java.label}: classes that come and go"
    profile, err, _ = count(java, ["classes 60"], name, NO_INLINING)
    found = {method: calls for method, calls in profile.calls().items()
             if re.match(r"Workload\$Made\d+\.run$", method)}
    want = {f"Workload$Made{i:04d}.run": 10 for i in range(1, 61)}
    lib.equal(sum(found.values()), 600, f"{name}: calls", err)
    wrong = difference(found, want)
    lib.ok(len(wrong) <= 6, f"{name}: each under its name, but for memory used again at once",
           wrong, err)


def check_command(java):
    """Braid gives the flags itself; everything from the beginning on."""
    name = f"{java.label}: a command"
    if java.root:
        return  # what enters the root is the command; what that executes is not held at its start
    file = lib.path("command.out")
    run = subprocess.run([lib.BRAID, "calls", "-r", "jvm", "--format", "pprof", "-o", file, "--",
                          *java.arguments("Workload")], input=b"fib 20\nexceptions 70\n",
                         capture_output=True, env=java.environment(), timeout=lib.PATIENCE_S,
                         check=False)
    err = run.stderr.decode()
    lib.equal(run.returncode, 0, f"{name}: status", err)
    lib.equal(run.stdout, b"READY\n10946\n4900\n", f"{name}: its output is its own")
    lib.matches(rf"Picked up JAVA_TOOL_OPTIONS: \S*{re.escape(FLAG)} {NO_INLINING}\n", err,
                f"{name}: what the JVM says of it")
    profile = Profile(file)
    want = total({command: EXACT[command] for command in ("fib 20", "exceptions 70")})
    lib.equal(difference(profile.edges(), want), [], f"{name}: counts", err)
    found = profile.calls()
    lib.equal([found[f"Workload.{method}"] for method in ("main", "serve", "run", "<clinit>")],
              [1, 1, 2, 0], f"{name}: from the beginning on", err)
    main = [frames for frames, _ in profile.stacks if frames[-1] == "Workload.fib"]
    lib.ok(main and all(frames[:3] == ["Workload.main", "Workload.serve", "Workload.run"]
                        for frames in main), f"{name}: below what called it", main[:2], err)
    check_losses(err, name)


def check_dead(java):
    """Without the flag nothing fires: what would help is told at once."""
    sentence = (r"^pid \d+: jvm \S+: none: jvm: its probes fire only if Java is started with "
                r"-XX:\+DTraceMethodProbes, and this one was not[^\n]*`braid calls -- java[^\n]*"
                r"15 to 20 times slower")
    name = f"{java.label}: without the flag"
    workload = Workload(java)
    pid = java_pid(workload.pid)
    result = lib.braid("calls", "-r", "jvm", "-p", pid)
    lib.matches(sentence, result.err, f"{name}: why")
    lib.matches("cannot count calls: no runtime here", result.err, f"{name}: what that means")
    lib.equal((result.status, result.out), (1, ""), f"{name}: status", result)
    result = lib.braid("record", "-r", "jvm", "--source", "probes", "-d", "0.2", "-p", pid, "-o",
                       lib.path("dead.db"))
    lib.equal(result.status, 0, f"{name}: native frames are recorded", result)
    lib.matches(sentence, result.err, f"{name}: recording, why")
    workload.stop()
    name = f"{java.label}: a command that takes the flag away"
    log = lib.path("dead.err")
    with open(log, "wb") as file:
        braid = lib.start(lib.BRAID, "calls", "-r", "jvm", "--",
                          *java.arguments("Workload", options=["-XX:-DTraceMethodProbes"]),
                          env=java.environment(), stdin=subprocess.PIPE,
                          stdout=subprocess.DEVNULL, stderr=file)
    lib.wait_for(lambda: read(log).count("\n") > 1, "what braid says of the command")
    braid.communicate(timeout=lib.PATIENCE_S)
    lib.matches("(?m)" + sentence, read(log), f"{name}: why")
    lib.equal(braid.returncode, 1, f"{name}: status", read(log))


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def check_probes(java):
    """What `braid probes` says of the library, and of processes with it."""
    name = f"{java.label}: braid probes"
    old = java.version < (18,)
    remedy = (r"-> start Java with -XX:\+DTraceMethodProbes[^\n]*cannot be enabled later[^\n]*"
              r"15 to 20 times slower[^\n]*ExtendedDTraceProbes")
    remedy += " implies it" if old else "[^\n]* does not exist in this one"
    result = lib.braid("probes", java.library)
    lib.equal(result.status, 0, f"{name}: status", result.err)
    lib.matches("hotspot:method__entry fires only if Java is started with", result.out,
                f"{name}: the condition")
    lib.matches(remedy, result.out, f"{name}: the remedy")
    for options, pattern in (([], remedy), ([FLAG], "works    probe sites      hotspot:"
                                                    "method__entry and method__return fire")):
        process = java.start("Recursion", options=options)
        result = lib.braid("probes", "-p", java_pid(process.pid))
        lib.stop(process)
        lib.matches(pattern, result.out, f"{name}: of a process {' '.join(options)}", result.err)


def check_sampled(java):
    """`record --source probes` beside `--source walk`, of the same process at the same time."""
    name = f"{java.label}: record --source probes"
    for script in ("Recursion", "Natives"):
        process = java.start(script, options=[FLAG, NO_INLINING])
        seen, running = {}, {}
        for source, hz in (("walk", 1999), ("probes", 499)):
            running[source] = lib.start_braid("record", "-F", hz, "-d", 2, "--source", source, "-r",
                                              "jvm", "-o", lib.path(f"{script}-{source}.db"),
                                              "--max-overhead", "none", "-p",
                                              java_pid(process.pid))
        for source, braid in running.items():
            _, err = braid.communicate(timeout=lib.PATIENCE_S)
            lib.matches(rf"(?m:^)pid \d+: jvm \S+: {'usdt' if source == 'probes' else 'walk'}\b",
                        err.decode(), f"{name}: {script}: source {source}")
            seen[source] = own_stacks(lib.Recording(lib.path(f"{script}-{source}.db")), script)
        lib.stop(process)
        # Calls from before are missing at the outer end.
        walked = {stack[i:j] for stack in seen["walk"] for j in range(len(stack) + 1)
                  for i in range(j)}
        strange = {stack: n for stack, n in seen["probes"].items() if stack not in walked}
        samples = sum(seen["probes"].values())
        lib.ok(samples >= 50 and sum(strange.values()) <= 0.03 * samples + 2,
               f"{name}: {script}: stacks that the walk sees, too", samples, strange)


def own_stacks(recording, script):
    """{stack: samples} of the fixture's methods and the native functions among them."""
    stacks = collections.Counter()
    for frames, samples in recording.folded("--annotate"):
        names = [re.sub(r"( \(.*)?(_\[.\])$", r"\2", frame) for frame in frames
                 if re.match(rf"({script}|Fixture)\b.*_\[j\]$", frame)
                 or re.search(r"natives\.c\).*_\[n\]$", frame)]
        java = [i for i, frame in enumerate(names) if frame.endswith("_[j]")]
        if java and "dtrace_method" not in frames[-1]:
            stacks[tuple(names[java[0]:java[-1] + 1])] += samples
    return stacks


def check_environment():
    """The flags are appended to what the user has set, unless that is about them."""
    flags = re.escape(f"{FLAG} {NO_INLINING}")
    for value, pattern in ((None, flags), ("-Xmx1g", f"-Xmx1g {flags}"),
                           ("-XX:-DTraceMethodProbes", "-XX:-DTraceMethodProbes"),
                           ("-XX:+Inline", f"-XX:\\+Inline {re.escape(FLAG)}")):
        env = {name: text for name, text in os.environ.items() if name != "JAVA_TOOL_OPTIONS"}
        if value:
            env["JAVA_TOOL_OPTIONS"] = value
        result = lib.braid("calls", "-r", "jvm", "--", "sh", "-c", "echo $JAVA_TOOL_OPTIONS",
                           env=env)
        lib.matches(f"^{pattern}\n$", result.out, f"environment: behind {value}", result.err)
    result = lib.braid("record", "-o", lib.path("plain.db"), "--", "sh", "-c",
                       "echo x$JAVA_TOOL_OPTIONS", env=env)
    lib.equal(result.out, f"x{value}\n", "environment: not where no probes are wanted")
    result = lib.braid("calls", "-r", "python", "--", "sh", "-c", "echo x$JAVA_TOOL_OPTIONS",
                       env=env)
    lib.equal(result.out, f"x{value}\n", "environment: not without this runtime")


def main():
    lib.need_bpf()
    if not javas.compiler():
        lib.skip_all("no javac")
    subprocess.run([javas.compiler()[0], "--release", "17", "-g", "-encoding", "UTF-8", "-d",
                    javas.compiled(), SOURCE], check=True)
    found, skipped = javas.javas()
    check_environment()
    for java in found:
        print(f"# {java.label}")
        for check in (check_counts, check_inlined, check_deeper, check_overflow, check_virtual,
                      check_classes, check_command, check_dead, check_probes, check_sampled):
            check(java)
    for what, why, _ in skipped:
        lib.skip(what, why)
    if not found:
        lib.skip_all("no HotSpot here")
    lib.done()


main()
