#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""braid dump of a program in C: each thread's stack, frame by frame, what it waits for, and that the
program does not notice."""

import os
import shutil
import signal
import subprocess
import time

import dumps
import gate
from gate import equal, matches, ok

STANDS = os.path.join(gate.OUTPUT, "fixtures/native/stands")
SOURCE = "fixtures/native/stands.c"
NOBODY = 65534


class Stands:
    """The program, once all of its threads stand."""

    def __init__(self, *before):
        self.process = gate.start(*before, STANDS)
        self.pid = self.process.pid
        self.begun_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        self.one, self.two, self.epoll, self.spin = map(
            int, gate.wait_line(self.process, "ready")[-1].split()[1:])
        for tid in self.one, self.two, self.epoll, self.pid:
            dumps.stands(self.pid, tid)

    def ask(self, what):
        return gate.ask(self.process, what)


def own_frames(thread):
    """Those of the program itself: libc's depend on its debug file."""
    with open(SOURCE, encoding="utf-8") as file:
        text = file.read()
    return [(frame["function"], frame.get("line")) for frame in thread.frames
            if frame["kind"] == "native" and f" {frame['function']}(" in text.replace("*", " ")
            and frame.get("file", "").endswith("stands.c")]


def at(function):
    return function, gate.line(SOURCE, f"/* {function} */")


def check_all(name, stands, dump, kernel):
    equal((dump.result.status, dump.result.err), (0, ""), f"{name}: status")
    equal(sorted(dump.threads), sorted([stands.pid, stands.one, stands.two, stands.epoll,
                                        stands.spin]), f"{name}: all threads")
    for tid, other in (stands.one, stands.two), (stands.two, stands.one):
        thread = dump.threads[tid]
        equal(own_frames(thread), [at("take_both"), at("in_deadlock")], f"{name}: deadlock: frames")
        equal((thread.state, thread.call(), thread.read), ("sleeping", "futex", "still"),
              f"{name}: deadlock: state")
        equal((thread.stands_to(), thread.said.get("deadlock")),
              (("waits", "a mutex", other), min(stands.one, stands.two)), f"{name}: deadlock: holder")
    epoll = dump.threads[stands.epoll]
    equal(own_frames(epoll), [at("in_epoll")], f"{name}: epoll: frames")
    equal((epoll.state, epoll.call(), epoll.read, epoll.stands_to()),
          ("sleeping", "epoll_wait", "still", None), f"{name}: epoll: state")
    main = dump.threads[stands.pid]
    equal(own_frames(main), [at("obey"), at("main")], f"{name}: main: frames")
    equal((main.call(), main.read), ("read", "still"), f"{name}: main: state")
    still = [thread for tid, thread in dump.threads.items() if tid != stands.spin]
    equal([bool(thread.functions("kernel")) for thread in still], [kernel] * 4,
          f"{name}: the kernel's frames, if they may be seen")
    if kernel:
        ok("do_epoll_wait" in epoll.functions("kernel"), f"{name}: epoll: the kernel's function")
    ok(all(thread.complete for thread in still), f"{name}: complete")


# As such a root braid neither loads programs into the kernel nor sees what only CAP_SYS_ADMIN may see.
UNPRIVILEGED = ["setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin"]


def check_spin(name, stands, dump, read):
    spin = dump.threads[stands.spin]
    equal([function for function, _ in own_frames(spin)], ["in_spin"], f"{name}: spin: frames")
    equal((spin.read, spin.complete, spin.call()), (read, True, None), f"{name}: spin")


def check_times(name, stands, dump, before_ns, after_ns):
    """Not longer than since the program began, and at least since all were seen to stand. The
    kernel's clock of a CPU is some microseconds behind."""
    for tid in stands.one, stands.two, stands.epoll:
        waited = dump.threads[tid].said.get("waited_ns", 0)
        ok(before_ns - stands.seen_ns - 1000000 <= waited <= after_ns - stands.begun_ns + 1000000,
           f"{name}: it has waited for as long as it has", waited)


def check_live():
    stands = Stands()
    stands.seen_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    before_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    dump = dumps.dump("-p", stands.pid)
    check_all("root", stands, dump, True)
    check_spin("root", stands, dump, "sampled")
    if os.path.exists("/proc/self/sched"):
        check_times("root", stands, dump, before_ns, time.clock_gettime_ns(time.CLOCK_MONOTONIC))
    dump = dumps.dump("-p", stands.pid, "--nonblocking")
    check_all("--nonblocking", stands, dump, True)
    spin = dump.threads[stands.spin]
    ok(spin.read in ("torn", "twice") and not spin.frames, "--nonblocking: nothing of what runs")
    equal(stands.ask("eintr"), "0", "no wait was interrupted")
    before = int(stands.ask("count"))
    gate.wait_until(lambda: int(stands.ask("count")) > before, "the count")
    ok(True, "the thread that was read runs on")
    dump = dumps.Dump(gate.run(*UNPRIVILEGED, gate.BRAID, "dump", "--json", "-p", stands.pid))
    check_spin("unprivileged", stands, dump, "stopped")
    equal(stands.ask("eintr"), "0", "unprivileged: no wait was interrupted")
    text = gate.braid("dump", "-p", stands.pid).out
    matches(rf'\nDeadlock: {min(stands.one, stands.two)} "one" waits for a mutex at 0x[0-9a-f]+ '
            rf'\(held by {max(stands.one, stands.two)} "two"\), which waits for a mutex at 0x[0-9a-f]+ '
            rf'\(held by {min(stands.one, stands.two)} "one"\)\n'
            if stands.one < stands.two else r"\nDeadlock: ", text, "the deadlock, for people")
    matches(rf'\nThread {stands.epoll} "epoll" sleeping in epoll_wait \([^)]+\)\n', text,
            "a thread, for people")
    matches(r"\n5 threads, none stopped\n$", text, "what it cost")
    text = gate.run(*UNPRIVILEGED, gate.BRAID, "dump", "-p", stands.pid).out
    matches(r"\n5 threads, 1 stopped for at most \d+ (us|ms)\n$", text, "what a stop cost")
    return stands


def check_gdb(stands):
    """Each thread's functions are those that gdb finds."""
    out = gate.run("gdb", "-p", stands.pid, "-batch", "-nx", "-ex", "set print frame-arguments none",
                   "-ex", "thread apply all bt").out
    dump = dumps.dump("-p", stands.pid)
    for block in out.split("\nThread ")[1:]:
        tid = int(block.split("LWP ")[1].split(")")[0])
        names = [line.split(" (")[0].split()[-1] for line in block.splitlines()
                 if line.startswith("#")]
        own = {"take_both", "in_deadlock", "in_epoll", "obey", "main"}
        if tid != stands.spin:
            equal([name for name in dump.threads[tid].functions("native") if name in own],
                  [name for name in names if name in own], "the functions that gdb finds")


def thread_state(pid, tid):
    with open(f"/proc/{pid}/task/{tid}/stat", encoding="utf-8") as file:
        return file.read().rpartition(")")[2].split()[0]


def check_killed():
    """A thread is held while braid reads a page of its stack that never comes: SIGKILL of braid lets
    it run on."""
    stands = Stands()
    if stands.ask("uffd") != "yes":
        gate.skip("killed", "no userfaultfd for memory that others read")
        return
    braid = gate.start(*UNPRIVILEGED, gate.BRAID, "dump", "-p", stands.pid)
    gate.wait_until(lambda: thread_state(stands.pid, stands.spin) == "t", "the stop")
    before = stands.ask("count")
    equal(stands.ask("count"), before, "killed: the thread is held")
    braid.send_signal(signal.SIGKILL)
    equal(braid.wait(), -signal.SIGKILL, "killed: braid is")
    gate.wait_until(lambda: stands.ask("count") != before, "the count")
    ok(True, "killed: the thread runs on")
    equal(stands.ask("eintr"), "0", "killed: nobody else has noticed")


def copy_for_nobody():
    """braid where another user can execute it."""
    os.chmod(gate.tmp, 0o755)
    copy = gate.path("braid")
    shutil.copy(gate.BRAID, copy)
    return copy


AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


def check_nobody(root_owned):
    """One's own processes take no privilege at all."""
    if gate.run("cat", "/proc/sys/kernel/yama/ptrace_scope").out.strip() not in ("", "0"):
        gate.skip("nobody", "Yama does not let users trace their processes")
        return
    braid = copy_for_nobody()
    stands = Stands(*AS_NOBODY)
    dump = dumps.Dump(gate.run(*AS_NOBODY, braid, "dump", "--json", "-p", stands.pid))
    check_all("nobody", stands, dump, False)
    check_spin("nobody", stands, dump, "stopped")
    equal(stands.ask("eintr"), "0", "nobody: no wait was interrupted")
    result = gate.run(*AS_NOBODY, braid, "dump", "-p", root_owned)
    equal((result.status, result.out), (1, ""), "another user's process: status")
    matches(rf"^braid: not permitted to look into PID {root_owned} \(stands\): user {NOBODY} lacks "
            r"CAP_SYS_PTRACE\. ", result.err, "another user's process: says what is missing")


def check_children():
    script = f"exec 3<&0; {STANDS} <&3 & wait"
    shell = gate.start("sh", "-c", script)
    gate.wait_line(shell, "ready")
    dump = dumps.dump("-p", shell.pid)
    equal([process["command"] for process in dump.processes], [f"sh -c {script}", STANDS],
          "children: shown, too")
    equal(len(dumps.dump("-p", shell.pid, "--no-children").processes), 1, "children: --no-children")
    child = dump.processes[1]["pid"]
    equal([process["pid"] for process in
           dumps.dump("-p", f"{child},{os.getpid()}", "--no-children").processes],
          [child, os.getpid()], "several processes, in the order given")
    os.kill(child, signal.SIGKILL)


gate.need_root()
live = check_live()
if shutil.which("gdb"):
    check_gdb(live)
check_killed()
check_nobody(live.pid)
check_children()
gate.done()
