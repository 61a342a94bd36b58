#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""A process whose first thread has ended is alive: recorded by PID, as a child, by name and cgroup and
among all, and dumped, in C and in Python; until the others have ended, too."""

import os
import signal

import dumps
import gate
import scopes

NATIVE = [os.path.join(gate.OUTPUT, "fixtures/native/first_ended")]
PYTHON = ["/usr/bin/python3", "fixtures/python/first_ended/first_ended.py"]


def check_recording(name, target, pid, words, python):
    recorder = scopes.Recorder(own, *words, "--verbose")  # each process is told
    for _ in range(3):
        gate.equal(gate.ask(target, "here 2"), "done", f"{name}: the target works")
        if python:  # whose walker may be loaded with the first sample
            recorder.wait_said(f"pid {pid}: python")
    recording = recorder.finish(name)
    gate.equal(scopes.counts(recording), {pid: 6}, f"{name}: a sample of each hit")
    losses = scopes.losses(recording)
    early = losses.pop(scopes.EARLY, 0) if python else 0
    gate.equal(losses, {}, f"{name}: nothing is lost")
    kind = "_[py]" if python else ""
    stacks = [([frame.split(" (")[0] for frame in frames if frame.endswith(kind)], number)
              for frames, number in recording.merged()]
    right = sum(number for functions, number in stacks
                if [function for function in functions if function in ("obey", "at_work")]
                == ["obey", "at_work"])
    gate.ok(right == 6 - early and early < 6, f"{name}: their stacks", stacks, early)
    names = recording.sql("SELECT command FROM process WHERE pid = ?", pid)
    gate.equal(names, [(" ".join(PYTHON if python else NATIVE),)], f"{name}: the command line")


def check_dump(name, target, pid, python):
    for option in [], ["--nonblocking"]:
        dump = dumps.dump("-p", pid, *option)
        gate.equal((dump.result.status, dump.result.err), (0, ""), f"{name}: dump {option}: status")
        functions = [thread.functions("python" if python else "native")
                     for thread in dump.threads.values()]
        gate.equal([any(function == "obey" for function in one) for one in functions], [True],
                   f"{name}: dump {option}: the thread that lives")
        gate.equal([thread.complete for thread in dump.threads.values()], [True],
                   f"{name}: dump {option}: complete")
    gate.ok(pid not in dump.threads, f"{name}: not the one that has ended")
    gate.equal(dump.processes[0]["command"], " ".join(PYTHON if python else NATIVE),
               f"{name}: dump: the command line")
    top = gate.braid("top", "--once", "-i", "0.1", "-p", pid)
    gate.equal(top.status, 0, f"{name}: top", top.err)


def check_scopes(name, command, python):
    target = scopes.obeying(own, *command)
    pid = target.pid
    check_recording(f"{name}: -p", target, pid, ["-p", str(pid)], python)
    check_recording(f"{name}: -a", target, pid, ["-a"], python)
    check_recording(f"{name}: --name", target, pid,
                    ["--name", "python3" if python else "first_ended"], python)
    cgroup = scopes.Cgroup(f"/braid-{os.getpid()}-{python}")
    cgroup.take(target)
    check_recording(f"{name}: --cgroup", target, pid, ["--cgroup", cgroup.path], python)
    check_dump(name, target, pid, python)
    check_end(name, target, pid)


def check_end(name, target, pid):
    """It ends for good while it is recorded: so does the recording. It is not dumped as a zombie."""
    recorder = scopes.Recorder(own, "-p", str(pid))
    gate.equal(gate.ask(target, "here 1"), "done", f"{name}: end: the target works")
    gate.say(target, "end")
    gate.wait_until(lambda: recorder.process.poll() is not None, "the recording's end")
    gate.equal(recorder.process.returncode, 0, f"{name}: end: status", *recorder.said)
    gate.equal(scopes.counts(gate.Recording(recorder.file)), {pid: 1}, f"{name}: end: the sample")
    result = gate.braid("dump", "-p", pid)
    gate.equal(result.status, 1, f"{name}: end: no dump")
    gate.matches(rf"zombie|no process with PID {pid}", result.err, f"{name}: end: the sentence")
    target.wait()


def check_child(name, command, python):
    """Below a process that is named, and among those that a command starts."""
    shell = gate.start("sh", "-c", f"exec 3<&0; {' '.join(command)} <&3 & wait",
                       env=dict(os.environ, LD_PRELOAD=own))
    gate.wait_line(shell, "ready")
    with open(f"/proc/{shell.pid}/task/{shell.pid}/children", encoding="ascii") as file:
        child = int(file.read())
    check_recording(f"{name}: a child", shell, child, ["-p", str(shell.pid)], python)
    dump = dumps.dump("-p", shell.pid)
    gate.equal([process["pid"] for process in dump.processes], [shell.pid, child],
               f"{name}: a child is dumped")
    os.kill(child, signal.SIGKILL)


RELIEVE = """if True:
    import os, sys, threading
    def execute():
        os.read(0, 3)
        os.execv(sys.argv[1], sys.argv[1:])
    thread = threading.Thread(target=execute)
    thread.start()
    print("ready", flush=True)
    thread.join()
"""


def check_relieved():
    """Another thread executes a program, and has the first one's number from then on."""
    target = scopes.obeying(own, PYTHON[0], "-c", RELIEVE, gate.MARKS)
    recorder = scopes.Recorder(own, "-p", str(target.pid))
    gate.say(target, "go")
    gate.wait_line(target, "ready")

    def is_seen():
        gate.ask(target, "here 1")
        return recorder.samples() > 0
    gate.wait_until(is_seen, "a sample of the new program")
    early = recorder.samples()
    gate.equal(gate.ask(target, "here 500"), "done 0", "relieved: the target works")
    recording = recorder.finish("relieved")
    found = scopes.counts(recording).get(target.pid, 0)
    gate.ok(found >= early + 500, "relieved: each later hit is a sample", found, early)


def check_namespace(name, command, python):
    """In a PID namespace, where the ids are others, and with a /proc of its own."""
    unshare = gate.start("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--mount-proc",
                         "--kill-child", *command, env=dict(os.environ, LD_PRELOAD=own), stderr=gate.subprocess.DEVNULL)
    gate.wait_line(unshare, "ready")
    with open(f"/proc/{unshare.pid}/task/{unshare.pid}/children", encoding="ascii") as file:
        pid = int(file.read())
    gate.wait_until(lambda: gate.state_of(pid) == "Z", "the first thread's end")
    check_recording(f"{name}: in a PID namespace", unshare, pid, ["-p", str(pid)], python)
    check_dump(f"{name}: in a PID namespace", unshare, pid, python)
    os.kill(pid, signal.SIGKILL)


gate.need_root()
own = scopes.marker()
check_scopes("C", NATIVE, False)
check_scopes("Python", PYTHON, True)
check_child("C", NATIVE, False)
check_child("Python", PYTHON, True)
check_relieved()
check_namespace("C", NATIVE, False)
check_namespace("Python", PYTHON, True)
gate.done()
