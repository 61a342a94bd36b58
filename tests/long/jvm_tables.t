#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""What is read from a JVM's memory (tests/tools/jvm_facts.c), in each JVM at hand: the code cache
and its methods against what the JVM tells of them itself (Compiler.codecache, .codelist, .perfmap),
lines and bytecode indices against javap, inlining against -XX:+PrintInlining, stubs against
-XX:+PrintStubCode; and JVMs that are only just starting."""

import atexit
import bisect
import collections
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile

import lib
import javas
import python_matrix

TOOL = os.path.join(lib.OUTPUT, "tests/tools/jvm_facts")
CHAIN = ("outer", "middle", "inner", "leaf")
COMMON = ["-Xbatch", "-Xmx64m", "-XX:+UnlockDiagnosticVMOptions", "-XX:+PrintCompilation",
          "-XX:+PrintInlining", "-XX:+PrintStubCode", "-XX:-MethodFlushing",
          "-XX:CompileCommand=quiet",
          *(f"-XX:CompileCommand=inline,Tables::{name}" for name in ("middle", "inner")),
          *(f"-XX:CompileCommand=dontinline,Tables::{name}" for name in ("all", "outer", "leaf"))]
KINDS = {
    "tiers": [],
    "C1": ["-XX:TieredStopAtLevel=1"],
    "C2, one heap": ["-XX:-TieredCompilation", "-XX:-SegmentedCodeCache",
                     "-XX:+DebugNonSafepoints"],
}
# Of -XX:+PrintInlining: what became part of the caller.
INLINED = re.compile(r"(inline|force inline|accessor)\b")
Scope = collections.namedtuple("Scope", "method bci line")


# --- the JVMs ---

class Target:
    def __init__(self, java, options):
        self.log = tempfile.mktemp(dir=lib.tmp)
        with open(self.log, "wb") as log:
            self.process = lib.start(*java.command, *COMMON, *options, "-cp", classes_for(java),
                                     "Tables", stdin=subprocess.PIPE, stdout=log,
                                     stderr=subprocess.STDOUT, env=java.environment())
        self.pid = self.process.pid

    def wait_ready(self):
        lib.wait_for(lambda: "READY\n" in self.said(), f"READY of {self.process.args}")
        return self

    def said(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.process.args} has ended: {self.process.returncode}")
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def own_pid(self):
        with open(f"/proc/{self.pid}/status", encoding="utf-8") as file:
            return int(re.search(r"^NSpid:.*\t(\d+)$", file.read(), re.M)[1])

    def ask(self, command):
        """As jcmd does."""
        pid = self.own_pid()
        path = f"/proc/{self.pid}/root/tmp/.java_pid{pid}"
        if not os.path.exists(path):
            sign = f"/proc/{self.pid}/cwd/.attach_pid{pid}"
            with open(sign, "wb"):
                os.kill(self.pid, signal.SIGQUIT)
                lib.wait_for(lambda: os.path.exists(path), "the JVM's socket")
            os.unlink(sign)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            connection.sendall(b"1\0jcmd\0" + command.encode() + b"\0\0\0")
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        status, _, text = answer.decode().partition("\n")
        if status != "0":
            raise RuntimeError(f"{command}: {answer!r}")
        return text

    def perf_map(self):
        """{start: (size, name)}"""
        self.ask("Compiler.perfmap")
        name = f"/proc/{self.pid}/root/tmp/perf-{self.own_pid()}.map"
        with open(name, encoding="utf-8") as file:
            lines = [line.rstrip("\n").split(" ", 2) for line in file]
        os.unlink(name)
        return {int(start, 16): (int(size, 16), text) for start, size, text in lines}

    def code_list(self):
        """{(compile id, nmethod, code, method)}"""
        form = re.compile(r"(\d+) -?\d+ -?\d+ (.+) \[0x([0-9a-f]+), 0x([0-9a-f]+) - 0x[0-9a-f]+\]")
        found = form.findall(self.ask("Compiler.codelist"))
        return {(int(number), int(start, 16), int(code, 16), plain_name(method))
                for number, method, start, code in found}

    def end(self):
        lib.stop(self.process)


def plain_name(text):
    """Without the signature and without the addresses of hidden classes."""
    return re.sub(r"/0x[0-9a-f]+", "", text[:text.index("(")])


def compile_fixture():
    directory = os.path.join(lib.tmp, "tables")
    os.mkdir(directory)
    javac = javas.compiler()[0]
    subprocess.run([javac, "--release", "17", "-g", "-d", directory, "fixtures/java/Tables.java"],
                   check=True)
    return directory, os.path.join(os.path.dirname(os.path.realpath(javac)), "javap")


_copies = {}


def classes_for(java):
    """As the JVM sees them."""
    if java.root not in _copies:
        _copies[java.root] = classes
        if java.root:
            copy = tempfile.mkdtemp(prefix="braid-live-", dir=java.root + "/tmp")
            atexit.register(shutil.rmtree, copy, ignore_errors=True)
            os.chmod(copy, 0o755)
            _copies[java.root] = shutil.copytree(classes, copy, dirs_exist_ok=True)
    return java.inside(_copies[java.root])


# --- what the tool tells ---

class Facts:
    def __init__(self, pid):
        run = subprocess.run([TOOL, str(pid), "scopes"], capture_output=True, text=True,
                             check=False)
        self.output = run.stdout
        self.heaps, self.stubs, self.blobs, self.nmethods, self.lines = [], [], {}, {}, {}
        self.files, self.scopes, self.other = {}, collections.defaultdict(list), []
        for line in run.stdout.splitlines():
            self.add(*line.split("\t"))

    def add(self, kind, *words):
        if kind in ("version", "interpreter"):
            setattr(self, kind, words)
        elif kind == "heap":
            self.heaps.append(tuple(int(word, 16) for word in words[:2]))
        elif kind == "blob":
            address, code, _ = (int(word, 16) for word in words[:3])
            self.blobs[address] = (code, words[3])
        elif kind == "nmethod":
            self.last = int(words[0], 16)
            self.nmethods[self.last] = (int(words[1]), words[2])
            self.files[words[2]] = words[3]
        elif kind == "lines":
            self.lines[words[0]] = [tuple(map(int, pair.split(":"))) for pair in words[1].split()]
        elif kind == "scopes":
            self.scopes[self.last].append([Scope(method, int(bci), int(line)) for method, bci, line
                                           in (re.match(r"(.*)@(-?\d+):(\d+)$", word).groups()
                                               for word in words[1:])])
        elif kind == "stub":
            self.stubs.append((int(words[0], 16), int(words[1], 16), words[2]))
        elif kind not in ("offsets", "names", "flag"):
            self.other.append((kind, *words))

    def code_list(self):
        return {(number, address, self.blobs[address][0], name)
                for address, (number, name) in self.nmethods.items()}


# --- what javap tells ---

class Source:
    """Of the fixture's methods, {method: [(bci, line)]} and {method: [(bci, callee)]}."""

    def __init__(self, javap, directory):
        self.lines, self.calls = collections.defaultdict(list), collections.defaultdict(list)
        for name in ("Tables", "Tables$Inner"):
            text = subprocess.run([javap, "-c", "-l", "-p", "-cp", directory, name],
                                  capture_output=True, text=True, check=True).stdout
            self.read(name, text)

    def read(self, name, text):
        method = None
        for line in text.splitlines():
            head = re.match(r"  (?:[\w$.<>\[\] ]+ )?([\w$.]+)\(.*\)[^()]*;$", line)
            if head:
                method = f"{name}." + ("<init>" if head[1] == name else head[1])
            elif line == "  static {};":
                method = f"{name}.<clinit>"
            entry = re.match(r"      line (\d+): (\d+)$", line)
            if entry:
                self.lines[method].append((int(entry[2]), int(entry[1])))
            call = re.match(r" +(\d+): invoke\w+ .*// Method (\w+):", line)
            if call:
                self.calls[method].append((int(call[1]), call[2]))

    def changes(self, method):
        """As the tool tells them."""
        table = sorted(self.lines[method])
        return [entry for before, entry in zip([(0, 0), *table], table) if before[1] != entry[1]]

    def line(self, method, bci):
        table = sorted(self.lines[method])
        return table[bisect.bisect_right(table, (bci, 1 << 16)) - 1][1]

    def chains(self):
        """Where the last of CHAIN is called from, innermost first."""
        def scope(caller, callee, bci):
            method = "Tables." + caller
            assert (bci, callee) in self.calls[method]
            return Scope(method, bci, self.line(method, bci))

        outside = [scope(caller, callee, bci) for caller, callee in zip(CHAIN, CHAIN[1:-1])
                   for bci, name in self.calls["Tables." + caller] if name == callee]
        return [[scope(*CHAIN[-2:], bci), *reversed(outside)]
                for bci, name in self.calls["Tables." + CHAIN[-2]] if name == CHAIN[-1]]


# --- what the JVM prints ---

def inlinings(log):
    """{compile id: {((bci, method), ...) from the outermost on}}; the header of a compilation is
    followed by its tree."""
    found, number, path = {}, None, []
    for line in log.splitlines():
        head = re.match(r" *\d+ +(\d+) [ %sbn!]{5}(?: +\d)? +\S+::\S+ (?:@ \d+ )?\(\d+ bytes\)$",
                        line)
        if head:
            number, path = int(head[1]), []
            found[number] = set()
        node = re.match(r"[ !s]{15,}?( +)@ (\d+) +(\S+)::(\S+) \(\d+ bytes\) +(.*)", line)
        if node and number is not None:
            depth = line.index("@")
            path = [entry for entry in path if entry[0] < depth]
            path.append((depth, int(node[2]), re.sub(r"/0x[0-9a-f]+", "", node[3]) + "." + node[4]))
            if INLINED.match(node[5]):
                found[number].add(tuple(entry[1:] for entry in path))
    return found


def stubs(log):
    """[(start, end, name)]"""
    form = re.compile(r"^StubRoutines::(?:Stub Generator (\S+)_stub|(.*)) "
                      r"\[0x([0-9a-f]+), 0x([0-9a-f]+)\]", re.M)
    return [(int(start, 16), int(end, 16), new or old)
            for new, old, start, end in form.findall(log)]


# --- checks ---

def check_code_cache(target, label):
    """Between two answers of the JVM, which may compile meanwhile."""
    maps, lists = [target.perf_map()], [target.code_list()]
    facts = Facts(target.pid)
    lists.append(target.code_list())
    maps.append(target.perf_map())
    bounds = re.findall(r"bounds \[0x([0-9a-f]+), 0x[0-9a-f]+, 0x([0-9a-f]+)\]",
                        target.ask("Compiler.codecache"))
    lib.equal(sorted(facts.heaps), sorted((int(low, 16), int(high, 16)) for low, high in bounds),
              f"{label}: {len(facts.heaps)} code heaps", facts.output[:2000])
    found = facts.code_list()
    lib.ok(lists[0] & lists[1] <= found <= lists[0] | lists[1] and len(found) > 20,
           f"{label}: {len(found)} compiled methods", (lists[0] & lists[1]) - found,
           found - (lists[0] | lists[1]))
    codes = {code for _, _, code, _ in lists[0] | lists[1]}
    before, after = ({(start, name) for start, (_, name) in perf_map.items() if start not in codes}
                     for perf_map in maps)
    others = {(code, name) for address, (code, name) in facts.blobs.items()
              if address not in facts.nmethods}
    lib.ok(before & after <= others <= before | after and len(others) > 100,
           f"{label}: {len(others)} other blobs", (before & after) - others,
           others - (before | after))
    start, end = (int(word, 16) for word in facts.interpreter)
    lib.equal([(start, (end - start, "Interpreter"))],
              [entry for entry in maps[1].items() if entry[1][1] == "Interpreter"],
              f"{label}: the interpreter's code")
    lib.equal(facts.other, [], f"{label}: nothing is unreadable, and nothing stale is taken")
    return facts


def check_lines(facts, label):
    mine = {name: lines for name, lines in facts.lines.items() if name in source.lines}
    lib.equal(mine, {name: source.changes(name) for name in mine},
              f"{label}: the lines of {len(mine)} methods")
    wanted = {f"Tables.{name}" for name in ("jumps", "wide", "choose", "guarded", "leaf", "outer")}
    lib.ok(wanted <= mine.keys(), f"{label}: with those that matter", wanted - mine.keys())
    lib.equal({facts.files[name] for name in mine}, {"Tables.java"}, f"{label}: their file")


def check_scopes(facts, trees, label):
    """Two compilers may print at the same time, one's tree behind the other's header; but not while
    the fixture waits for its own methods."""
    wrong, garbled, n, deepest = [], [], 0, 0
    anywhere = set().union(*trees.values())
    for address, (number, name) in facts.nmethods.items():
        for chain in facts.scopes[address] if number in trees else ():
            path = tuple((outer.bci, inner.method)
                         for inner, outer in zip(chain[-2::-1], chain[:0:-1]))
            known = trees[number] if name.startswith("Tables.") else anywhere
            if chain[-1].method != name or path and path not in known:
                (wrong if known is not anywhere else garbled).append((number, name, path))
            wrong += [(number, scope) for scope in chain if scope.method in source.lines
                      and scope.bci >= 0 and scope.line != source.line(scope.method, scope.bci)]
            n += len(path)
            deepest = max(deepest, len(path))
    lib.ok(len(garbled) <= 0.05 * n, f"{label}: those of the JDK's own methods", *garbled[:10])
    lib.ok(not wrong and n > 20 and deepest > 1,
           f"{label}: {n} inlined scopes, up to {deepest} deep, as the compiler says", *wrong[:10])
    chains = [chain for address, (_, name) in facts.nmethods.items() if name == "Tables.outer"
              for chain in facts.scopes[address]]
    missing = [chain for chain in source.chains() if chain not in chains]
    lib.ok(not missing, f"{label}: the scopes of a call in an inlined method", *missing,
           "among", *chains)


def check_names(facts, label):
    names = {scope.method for chains in facts.scopes.values() for chain in chains
             for scope in chain}
    hidden = {name for name in names if "$$Lambda" in name}
    lib.ok(hidden and not any(re.search(r"[/+]|0x", name) for name in names),
           f"{label}: {len(names)} readable names, {len(hidden)} of hidden classes", names)


def check_stubs(facts, wanted, label):
    """HotSpot has several names for some of them; those that it prints once, and that the tool
    knows too, must be at the same place. Their entries need not be at their very beginning."""
    def name_at(pc):
        return next((name for start, end, name in facts.stubs if start <= pc <= end), None)

    known = {name for _, _, name in facts.stubs}
    counts = collections.Counter(name for _, _, name in wanted)
    wanted = [((start + end) // 2, end - 1, name) for start, end, name in wanted]
    torn = [(name, name_at(middle), name_at(last)) for middle, last, name in wanted
            if name_at(middle) is None or name_at(middle) != name_at(last)]
    common = [(last, name.replace(" ", "_")) for _, last, name in wanted if counts[name] == 1]
    common = [(last, name) for last, name in common if name in known]
    wrong = [(name, name_at(last)) for last, name in common if name_at(last) != name]
    lib.ok(len(common) > 30 and not torn and not wrong,
           f"{label}: {len(wanted)} stubs, {len(common)} of them with the JVM's own names",
           torn, wrong)


def check_start(java):
    """From its first moment on the answer is "not yet", until it is all there."""
    process = lib.start(*java.command, "-cp", classes_for(java), "Tables", stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE, env=java.environment())
    answers = []

    def look():
        """What does not change any more, or why there is nothing yet."""
        run = subprocess.run([TOOL, str(process.pid)], capture_output=True, text=True, check=False)
        if run.returncode:
            return run.stdout.split("\t")[1] if run.returncode == 1 else run
        return re.findall(r"^(?:version|offsets|interpreter|heap)\t.*", run.stdout, re.M)

    def is_there():
        answers.append(look())
        return isinstance(answers[-1], list)

    lib.wait_for(is_there, "a JVM that can be read")
    process.stdout.readline()
    answers.append(look())
    lib.equal(answers[-2], answers[-1], f"{java.label}: complete as soon as it can be read")
    early = answers[:-2]
    lib.ok(all(answer in ("ENOENT", "EAGAIN") for answer in early),
           f"{java.label}: {len(early)} looks before that", *early)
    lib.stop(process)


def check(java):
    check_start(java)
    for kind, options in KINDS.items():
        label = f"{java.label}, {kind}"
        target = Target(java, options).wait_ready()
        log = target.said()
        facts = check_code_cache(target, label)
        target.end()
        check_lines(facts, label)
        check_scopes(facts, inlinings(log), label)
        if kind == "tiers":
            lib.ok(facts.version[0].startswith(".".join(map(str, java.version))),
                   f"{label}: version", facts.version)
            check_names(facts, label)
            check_stubs(facts, stubs(log), label)


found, skipped = javas.javas()
if not found:
    lib.skip_all("no JVM")
classes, javap = compile_fixture()
source = Source(javap, classes)
for one in found:
    check(one)
python_matrix.print_skipped(skipped)
lib.done()
