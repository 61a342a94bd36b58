#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""`braid calls` of Ruby: every call of a method, as arithmetic and a TracePoint have it, for each
CRuby build that has probes, also over exceptions, throws, fibers and threads."""

import ast
import collections
import os
import re
import shutil
import subprocess
import tempfile

import lib
import rubies
from calls_run import FIB, Calls, called, difference, read_table

SCRIPT = "calls/workload.rb"
FILE = "workload.rb"

# What is called how often, by arithmetic; methods in Ruby.
EXACT = {
    "fib 20": {"fib": FIB[20]},
    "blocks 70": {"blocks": 1, "yielding": 70, "assist": 140},
    "returns 70": {"returns": 1, "first_of": 70, "assist": 70},
    "breaks 70": {"breaks": 1, "yielding": 70},
    "exceptions 70": {"exceptions": 1, "fall": 70 * (10 + 4), "rise": 2 * 70, "assist": 3 * 70},
    "throws 70": {"throws": 1, "throwing": 6 * 70},
    "objects 70": {"objects": 1, "Tool.make": 70, "Tool#use": 3 * 70, "Tool#defined": 70,
                   "Tool#method_missing": 70, "Helper.help": 70},
    "deep 900": {"deep": 1, "descend": 901},
    "fibers 70": {"fibers": 1, "walk": 2, "step": 2 * 70, "assist": 2 * 70 + 2 * 71},
    "enumerators 70": {"enumerators": 1, "produce": 2, "assist": 2 * 70},
    "abandons 70": {"abandons": 1, "abandon": 2 * 70, "step": 2 * 70},
    "threads 100": {"threads": 1, "tick": 100 * 50, "assist": 100 * 50},
}
# Deeper than a shadow stack.
DEEPER = {"deep 3000": {"deep": 1, "descend": 3001}, "fib 10": {"fib": FIB[10]}}
# Ends that Ruby tells nothing of.
UNTOLD = {"overflows 3": {"overflows": 1, "assist": 3}, "fib 11": {"fib": FIB[11]}}
# Of methods in C those that the workload calls to talk to us, and those that only a TracePoint is
# told: when Ruby raises, and where an instruction stands for the method.
TALK = re.compile(
    r"Integer#(\+|-|<|succ)$|Exception[#.](backtrace|exception)$|IO[#.]|TracePoint|Symbol#|Module#|"
    r"Kernel[#.](puts|gets|send|class|is_a\?|lambda|__method__)|Thread\.|BasicObject#|Class#new|"
    r"Array#(inspect|\[\]|each)|Integer#(to_s|inspect|times)|String#(split|to_|inspect)|"
    r"Object#(send|is_a)|.*#(respond_to|inspect|to_s|hash)")


def owner(name):
    """A label without a class is of a method at the top, which is an object's."""
    return name if re.search(r"[.#]", name) else f"Object#{name}"


def total(commands):
    counts = collections.Counter()
    for expected in commands.values():
        for name, calls in expected.items():
            name = "Helper#assist" if name == "assist" else owner(name)
            counts[name, FILE] += calls
    counts["Object#serve", FILE] = len(commands)
    return counts


class Workload:
    """A process that calls what it is asked to, started with braid's hook."""

    def __init__(self, ruby, hook=True):
        share = os.path.join(lib.OUTPUT, "share/braid")
        if ruby.root:
            share = ruby.inside(shutil.copytree(share, os.path.join(ruby.work, "share"),
                                                dirs_exist_ok=True))
        environment = ruby.environment()
        if hook:
            environment.update(RUBYLIB=":".join(filter(None, [environment.get("RUBYLIB"), share])),
                               RUBYOPT="-rbraid_hook")
        self.process = lib.start_ready("nice", "-n", "5", *ruby.arguments(SCRIPT), env=environment,
                                       stdin=subprocess.PIPE)
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


def traces_c(ruby):
    """3.0 and 3.1 crash when their methods in C are traced."""
    return not (3, 0) <= ruby.version < (3, 2)


def count(ruby, commands, name):
    workload = Workload(ruby)
    calls = Calls(workload.pid, "-r", "ruby")
    for command in commands:
        workload.ask(command)
    rows = read_table(calls.end(name).decode())
    workload.stop()
    return rows, calls.err


def losses(err):
    return re.findall(r"^ +(\d+)  (.*)$", err, re.M)


def check_counts(ruby):
    name = f"{ruby.label}: counts"
    rows, err = count(ruby, EXACT, name)
    lib.equal(difference(called(rows, FILE), total(EXACT)), [], f"{name}: as arithmetic has them",
              err)
    unmatched = [int(n) for n, what in losses(err) if "not seen" in what]
    lib.ok(sum(unmatched) <= 2, f"{name}: each return is that of a call, but those of gets", err)
    lib.matches(rf"^pid \d+: ruby {re.escape('.'.join(map(str, ruby.version)))}: usdt", err,
                f"{name}: the source")
    lib.equal("left out" in err, not traces_c(ruby), f"{name}: what is told of methods in C", err)


def check_oracle(ruby):
    """The workload's own methods, and those in C, against a TracePoint."""
    name = f"{ruby.label}: a TracePoint"
    commands = [*EXACT, "c_methods 70"]
    commands.remove("threads 100")  # it sees its own thread only
    commands.remove("abandons 70")  # it sees less: not the calls in fibers
    commands.remove("fibers 70")
    commands.remove("enumerators 70")
    oracle = collections.Counter()
    profiled = Workload(ruby, hook=False)
    for command in commands:
        for method, calls in ast.literal_eval(profiled.ask("traced " + command)):
            oracle[method] += calls
    profiled.stop()
    rows, err = count(ruby, commands, name)
    got = collections.Counter()
    for row in rows:
        got[row.name] += row.calls
    files = {row.name: row.file for row in rows}
    mine = {method: calls for method, calls in oracle.items() if files.get(method) == FILE}
    lib.ok(len(mine) > 15, f"{name}: sees methods in Ruby", mine)
    lib.equal(difference({method: got[method] for method in mine}, mine), [],
              f"{name}: methods in Ruby", err)
    if not traces_c(ruby):
        lib.equal([row.name for row in rows if not row.file], [], f"{name}: no methods in C")
        return
    native = {method: calls for method, calls in oracle.items()
              if method not in mine and not TALK.match(method)
              and not (files.get(method) or "").startswith("<internal")}
    lib.ok(len(native) > 8, f"{name}: sees methods in C", native)
    lib.equal(difference({method: got[method] for method in native}, native), [],
              f"{name}: methods in C", err)


def check_deeper(ruby):
    name = f"{ruby.label}: deeper than a shadow stack"
    rows, err = count(ruby, DEEPER, name)
    lib.equal(difference(called(rows, FILE), total(DEEPER)), [], name, err)


def check_untold(ruby):
    """What ends by SystemStackError ends untold: the calls after that are counted nonetheless."""
    name = f"{ruby.label}: stack overflow"
    rows, err = count(ruby, UNTOLD, name)
    got = called(rows, FILE)
    lib.ok(got.pop(("Object#overflow", FILE), 0) > 3000, f"{name}: calls until then", rows)
    lib.equal(difference(got, total(UNTOLD)), [], name, err)


def check_forks(ruby):
    """A child's probes are there some time after its begin."""
    name = f"{ruby.label}: fork"
    rows, err = count(ruby, ["forks 3", "fib 10"], name)
    calls = called(rows, FILE)
    lib.ok(FIB[10] <= calls["Object#fib", FILE] <= FIB[10] + 3 * FIB[3] and
           calls["Object#forks", FILE] == 1, name, calls, err)


def check_command(ruby):
    """Braid makes the hook itself; everything from the beginning on."""
    name = f"{ruby.label}: a command"
    if ruby.root:
        return
    file = lib.path("command.out")
    run = subprocess.run([lib.BRAID, "calls", "-r", "ruby", "-o", file, "--",
                          *ruby.arguments(SCRIPT)], input=b"fib 20\nexceptions 70\n",
                         capture_output=True, env={**ruby.environment(), "RUBYOPT": "-W0"},
                         timeout=lib.PATIENCE_S, check=False)
    lib.equal(run.returncode, 0, f"{name}: status", run.stderr)
    lib.equal(run.stdout, b"READY\nInteger\nInteger\n", f"{name}: its output is its own")
    with open(file, encoding="utf-8") as text:
        got = called(read_table(text.read()), FILE)
    want = total({command: EXACT[command] for command in ("fib 20", "exceptions 70")})
    lib.equal(difference({key: got.get(key, 0) for key in want}, want), [], f"{name}: counts",
              run.stderr)
    lib.equal(got["Object#serve", FILE], 2, f"{name}: from the beginning on")


def check_no_hook(ruby):
    """Methods in Ruby do not fire: what would help is told."""
    name = f"{ruby.label}: without a hook"
    workload = Workload(ruby, hook=False)
    result = lib.braid("calls", "-r", "ruby", "-p", workload.pid, "-d", "0.5")
    workload.stop()
    lib.matches(r"TracePoint\.new\(:call, :return\) \{\}\.enable.*`braid calls -- COMMAND`",
                result.err, f"{name}: the remedy")
    lib.equal(result.status, 0 if traces_c(ruby) else 1, f"{name}: status", result)


def is_refused(ruby):
    """The compiler may have made several ways from the interpreter loop to a probe, with stack
    frames that differ: then there is no telling which call a return is of."""
    name = f"{ruby.label}: refused"
    workload = Workload(ruby)
    result = lib.braid("calls", "-r", "ruby", "-p", workload.pid, "-d", "0.1")
    workload.stop()
    if ": none: " not in result.err:
        return False
    lib.matches(": none: ruby: cannot determine the distance from the interpreter loop's stack frame",
                result.err, f"{name}: why")
    lib.equal(result.status, 1, f"{name}: status")
    return True


def check_hook():
    """The hook leaves alone what has no probes, and what is no Ruby."""
    hook = r"-r/\S*/share/braid/braid_hook\.rb"
    result = lib.braid("calls", "--", "sh", "-c", "echo $RUBYOPT; echo x$RUBYLIB")
    lib.matches(rf"^{hook}\nx\n", result.out, "hook: in the environment")
    for value in ("-W1", "-W1 -ruri"):
        result = lib.braid("calls", "--", "sh", "-c", "echo $RUBYOPT",
                           env={**os.environ, "RUBYOPT": value})
        lib.matches(rf"^{value} {hook}\n$", result.out, f"hook: behind {value}")
    result = lib.braid("calls", "--", "chroot", "/", "sh", "-c", "echo x$RUBYOPT")
    lib.equal(result.out, "x\n", "hook: not for another root")
    result = lib.braid("record", "-o", lib.path("plain.db"), "--", "sh", "-c", "echo x$RUBYOPT")
    lib.equal(result.out, "x\n", "hook: not where no probes are wanted")


def check_long_names(ruby):
    """Classes whose names differ late, with methods on the same line of files of their own."""
    directory = tempfile.mkdtemp(prefix="names-", dir=lib.tmp)
    within = "::".join(["Integrations" + "x" * 50, "Subscriptions" + "y" * 60])
    main = [f"module {within.split('::')[0]}; module {within.split('::')[1]}; end; end"]
    for name in ("Create", "Destroy"):
        with open(os.path.join(directory, f"{name}.rb"), "w", encoding="utf-8") as file:
            file.write(f"class {within}::{name}\n  def call; end\nend\n")
        main.append(f"require_relative '{name}'")
    main.append(f"a = {within}::Create.new\nb = {within}::Destroy.new\n2000.times {{ a.call; b.call }}")
    script = os.path.join(directory, "main.rb")
    with open(script, "w", encoding="utf-8") as file:
        file.write("\n".join(main))
    result = lib.braid("calls", "--rows", "100", "--", *ruby.command, script,
                       env=ruby.environment())
    calls = re.findall(r"(\d+) +ruby +\S+::(Create|Destroy)#call ", result.out)
    lib.equal(sorted(calls), [("2000", "Create"), ("2000", "Destroy")],
              f"{ruby.label}: classes with long names", result.out, result.err)


def main():
    lib.need_bpf()
    found, skipped = rubies.rubies()
    check_hook()
    for ruby in found:
        if not ruby.dtrace:
            print(f"# {ruby.label}: built without probes")
            continue
        print(f"# {ruby.label}: {ruby.kind}")
        if is_refused(ruby):
            continue
        if not ruby.root:
            check_long_names(ruby)
        for check in (check_counts, check_oracle, check_deeper, check_untold, check_forks,
                      check_command, check_no_hook):
            check(ruby)
    for what, why, _ in skipped:
        lib.skip(what, why)
    if not any(ruby.dtrace for ruby in found):
        lib.skip_all("no Ruby with probes here")
    lib.done()


main()
