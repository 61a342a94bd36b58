#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""-- COMMAND: nothing that a child could inherit is changed, what a library's constructor does is
recorded and keeps nobody from ending, and programs that are executed later are ready at once."""

import glob
import os
import re
import signal
import time

import gate

LIBRARY = os.path.join(gate.OUTPUT, "fixtures/native/constructor")
PYTHON = "/usr/bin/python3"
TRUE = "/bin/true"
UNREAD = "stacks cut: mappings of the process not read yet"
EARLY = "runtime stacks missing: taken before the interpreter was known"


def constructing(what):
    return dict(os.environ, LD_PRELOAD=LIBRARY, CONSTRUCTED="true", CONSTRUCTOR=what)


def check_fork():
    """A breakpoint at the entry point would end the child."""
    result = gate.braid("record", "-o", gate.path("fork.db"), "--", TRUE, env=constructing("fork"))
    gate.equal(result.status, 0, "fork: status", result.err)
    gate.matches(r"(^|\n)child: exit 0\n", result.err, "fork: the child lives to its own end")


def check_calls():
    """Those within the constructor are counted, in a library that is named by its end alone."""
    file = gate.path("calls.db")
    result = gate.braid("record", "-e", "uprobe:constructor:constructor_call", "--max-overhead",
                        "none", "-o", file, "--", TRUE, env=constructing("call"))
    gate.equal(result.status, 0, "calls: status", result.err)
    recording = gate.Recording(file)
    gate.equal((recording.count(), recording.meta("samples_complete")), (50, "50"),
               "calls: all, with complete stacks")


def spinning(*options):
    file = gate.path("spin.db")
    braid = gate.start(gate.BRAID, "record", *options, "-o", file, "--", TRUE,
                       env=constructing("spin"), stderr=gate.subprocess.DEVNULL)
    return braid, int(gate.line_of(braid)), gate.Recording(file)


def check_still_spins(name, braid, pid):
    """braid has ended before the constructor, and left it alone."""
    gate.equal(braid.wait(), 0, f"{name}: status")
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        status = dict(line.split(":\t", 1) for line in file.read().splitlines())
    gate.equal((status["State"][0], status["TracerPid"]), ("R", "0"),
               f"{name}: the constructor goes on")
    os.kill(pid, signal.SIGKILL)


def check_spin():
    braid, pid, recording = spinning("-d", "1", "-F", "499")
    check_still_spins("-d", braid, pid)
    gate.equal(recording.meta("duration_s"), "1.000", "-d: the time runs from the exec on")
    samples, complete = (int(recording.meta(key)) for key in ("samples", "samples_complete"))
    unread = recording.counters().get(UNREAD, 0)  # of a slow machine, while the linker maps
    gate.ok(complete > unread, "-d: there are samples")
    gate.equal(complete + unread, samples, "-d: their stacks end where the program begins")
    spins = [frames for frames, _ in recording.merged() if "constructor_spin" in " ".join(frames)]
    gate.ok(spins, "-d: they are of the constructor")
    braid, pid, recording = spinning()
    braid.send_signal(signal.SIGINT)
    check_still_spins("SIGINT", braid, pid)


def before():
    """How the shell that starts braid may have been left by whoever has started that."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGCHLD])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    os.nice(3)


# Fields that fork and exec leave as they were. TracerPid is no such field: a program is held while its
# libraries are mapped, and who is held when depends on the machine's load.
INHERITED = re.compile(r"(Umask|Uid|Gid|Groups|NoNewPrivs|Seccomp\w*|Speculation\w+|Cpus_allowed|"
                       r"SigBlk|SigIgn|SigCgt|SigPnd|ShdPnd|Cap\w+|THP_enabled|Threads):")


def with_and_without(words):
    """The output of the words as a command of braid's, and of the words alone."""
    return [gate.run(*prefix, *words, preexec_fn=before).out.splitlines()
            for prefix in ([gate.BRAID, "record", "-o", gate.path("same.db"), "--"], [])]


def check_same():
    lines = [[line for line in out if INHERITED.match(line)]
             for out in with_and_without(["cat", "/proc/self/status"])]
    gate.ok(len(lines[1]) > 15, "status: there is an answer", lines[1])
    gate.equal(len(lines[0]), len(lines[1]), "status: as many lines")
    for ours, alone in zip(*lines):
        gate.equal(ours, alone, f"status: {alone.split(':')[0]} is as without braid")
    for words in (["cat", "/proc/self/limits"],
                  ["cat", "/proc/self/cgroup", "/proc/self/oom_score_adj", "/proc/self/personality",
                   "/proc/self/timerslack_ns"],
                  ["ls", "/proc/self/fd"], ["env"], ["nice"], ["pwd"]):
        ours, alone = with_and_without(words)
        gate.ok(alone, f"{' '.join(words)}: there is an answer")
        gate.equal(ours, alone, f"{' '.join(words)}: as without braid")


def check_launched():
    """Python is walked from its first bytecode on."""
    code = "import time; t = time.process_time()\nwhile time.process_time() < t + 0.3: pass"
    for launcher in (["env"], ["sh", "-c", 'exec "$@"', "-"], ["timeout", "60"],
                     ["nice", "env", "setsid"], ["sh", "-c", 'cd "$(dirname /)"; "$@"; :', "-"],
                     ["sh", "-c", 'sleep 3.5; "$@"; :', "-"]):
        name = " ".join(launcher)
        file = gate.path("launched.db")
        result = gate.braid("record", "-F", "999", "-o", file, "--", *launcher, PYTHON, "-c", code)
        gate.equal(result.status, 0, f"{name}: status", result.err)
        recording = gate.Recording(file)
        stacks = [(" ".join(frames), count) for frames, count in recording.merged()]
        executing = sum(count for frames, count in stacks if "execve" in frames)
        gate.ok(recording.counters().get(EARLY, 0) <= executing,
                f"{name}: no sample without Python but of the exec itself", recording.counters())
        gate.ok(any("<module>" in frames for frames, _ in stacks), f"{name}: Python's frames are there")


def check_tracer():
    """A command that traces its children can: directly, behind a shell, and behind a launcher."""
    traces = os.path.join(gate.OUTPUT, "fixtures/native/traces")
    for words in ([traces, TRUE], ["sh", "-c", '"$@"; :', "-", traces, TRUE],
                  ["env", traces, "env", TRUE]):
        result = gate.braid("record", "-o", gate.path("traces.db"), "--", *words)
        name = " ".join(os.path.basename(word) for word in words)
        gate.equal((result.status, result.out), (0, "traced\n"), f"{name}: as without braid",
                   result.err)


def check_killed():
    """braid is killed anywhere: the command is gone, or it runs on."""
    for i in range(8):
        word = f"30.{os.getpid()}{i}"
        braid = gate.start(gate.BRAID, "record", "-o", gate.path("killed.db"), "--", "sh", "-c",
                           f"exec sleep {word}", stderr=gate.subprocess.DEVNULL)
        time.sleep(0.04 * i)
        braid.kill()
        braid.wait()
        left = []
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(path, encoding="utf-8", errors="replace") as file:
                    words = file.read().split("\0")
                with open(os.path.dirname(path) + "/status", encoding="utf-8") as file:
                    status = dict(line.split(":\t", 1) for line in file.read().splitlines())
            except OSError:
                continue
            if word in " ".join(words):
                left.append((status["State"][0], status["TracerPid"]))
                os.kill(int(status["Pid"]), signal.SIGKILL)
        gate.equal([state for state in left if state[0] in "Tt" or state[1] != "0"], [],
                   f"killed after {40 * i} ms: nothing is stopped or traced")


def check_failures():
    """What cannot be executed, or ends at once."""
    text = gate.path("text")
    with open(text, "w", encoding="utf-8") as file:
        file.write("neither a program nor a script\n")
    os.chmod(text, 0o755)
    loader = gate.path("no-loader")
    with open(TRUE, "rb") as file:
        program = file.read()
    with open(loader, "wb") as file:
        file.write(program.replace(b"/lib64/ld-linux", b"/lib64/no-linux"))
    os.chmod(loader, 0o755)
    for words, reason in ([loader], "No such file"), ([gate.tmp], "denied"):
        result = gate.braid("record", "-o", gate.path("none.db"), "--", *words)
        gate.equal(result.status, 1, f"{words[0]}: status", result)
        gate.matches(rf"^braid: cannot run {words[0]}: .*{reason}[^\n]*\n$", result.err,
                     f"{words[0]}: one line")
    result = gate.braid("record", "-o", gate.path("text.db"), "--", text)
    gate.equal(result.status, 0, "a text: sh runs it, as execvp has it", result.err)


gate.need_root()
check_fork()
check_calls()
check_spin()
check_same()
if os.path.exists(PYTHON):
    check_launched()
else:
    gate.skip("launchers", f"there is no {PYTHON}")
check_tracer()
check_killed()
check_failures()
gate.done()
