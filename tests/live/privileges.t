#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""braid as another user with some capabilities: what these suffice for works, and what is missing is
said, with the capability that it takes. (docs/reference/privileges.md)"""

import os
import re
import shutil

import capabilities
import gate
from capabilities import NOBODY, as_user

PYTHON = "/usr/bin/python3.11"
RECORD = ("bpf", "perfmon")
NO_BPF = "braid: not permitted to load BPF programs: "
SPIN = "import os\nprint('ready', flush=True)\nwhile True: os.stat('/')\n"
WITHOUT_PERF_EVENTS = ("off-cpu", "wakeup", "lock", "syscall", "tracepoint:sched:sched_switch", "block-io")
COUNTERS = {"files with code that braid could not open", capabilities.FORBIDDEN}
# Its program lies in a file system that only it has mounted.
HIDE = 'mount -t tmpfs none "$1" && cp "$2" "$1/program" && exec "$1/program" -c "$3"'


def braid(caps, *args):
    return gate.run(*as_user(caps), PROGRAM, *args, cwd=ROOM)


def record(caps, target, *options):
    """(What it says, its recording.)"""
    file = os.path.join(ROOM, "out.db")
    result = braid(caps, "record", "-p", target.pid, "-d", "0.2", "-F", "2000", "-o", file,
                   *options)
    gate.equal(result.status, 0, f"record with {','.join(caps)}: status", result.err)
    return result.err, gate.Recording(file)


def spin(program=PYTHON, user=NOBODY):
    words = as_user(()) if user else []
    target = gate.start(*words, program, "-c", SPIN)
    gate.wait_line(target, "ready")
    return target


def end(target):
    """It uses a CPU that the next check needs."""
    target.kill()
    target.wait()


def check_refused():
    def lacks(what, tail=""):
        return (f"user {NOBODY} lacks {what}. Run as root (sudo), or grant the missing capabilities "
                f"(`braid doctor` explains how){tail}\n")

    target = spin()
    for caps, missing in ((), "CAP_BPF and CAP_PERFMON"), (("bpf",), "CAP_PERFMON"), (
            ("perfmon",), "CAP_BPF"), (("sys_ptrace", "syslog"), "CAP_BPF and CAP_PERFMON"):
        for command in "record", "calls":
            result = braid(caps, command, "-p", target.pid, "-d", "1")
            gate.equal(result, (1, "", NO_BPF + lacks(missing)), f"{command} with {caps}")
    tail = ". Use --no-attach to read the files only"
    gate.equal(braid((), "probes", "-p", target.pid), (1, "", NO_BPF + lacks(
        "CAP_BPF and CAP_PERFMON", tail).replace("\n", "") + "\n"), "probes without any")
    gate.equal(braid((), "bench", "-p", target.pid).err.splitlines()[-1] + "\n", NO_BPF + lacks(
        "CAP_BPF and CAP_PERFMON"), "bench without any")
    gate.equal(braid((), "probes", "-p", os.getpid()), (1, "", (
        "braid: not permitted to inspect another user's process: " + lacks(
            "CAP_SYS_PTRACE"))), "probes of another user's process")
    gate.equal(braid((), "probes", "--no-attach", "-p", target.pid).status, 0,
               "probes --no-attach of one's own needs none")
    end(target)


def check_namespace():
    result = gate.run("unshare", "--user", "--map-root-user", PROGRAM, "record", "-d", "1", "-o",
                      gate.path("never.db"), "-p", os.getpid())
    gate.equal(result, (1, "", NO_BPF + "that requires CAP_BPF and CAP_PERFMON in the initial "
                        "user namespace, and braid runs in another one (a rootless container). "
                        "Run braid outside of it\n"), "root of a user namespace")


def check_events(when, events):
    """None of these takes more."""
    target = spin()
    for event in events:
        result = braid(RECORD, "record", "-d", "0.1", "-o", "event.db", "-p", target.pid, "-e", event)
        gate.equal(result.status, 0, f"{when}: record -e {event}", result.err)
    end(target)


def check_paranoid(setting):
    """Where the kernel takes CAP_SYS_ADMIN for perf events: that is said, and it suffices."""
    target = spin()
    words = ("record", "-d", "0.1", "-o", os.path.join(ROOM, "paranoid.db"), "-p", target.pid)
    for event, what in ("cpu", "to sample all CPUs"), ("wall", "to sample all CPUs"), (
            "page-fault", "to count on all CPUs"), ("kprobe:vfs_getattr", (
                "to attach to functions of the kernel (tracepoints and syscall:NAME may work)")):
        result = braid(RECORD, *words, "-e", event)
        gate.equal((result.status, result.err.splitlines()[-1]), (1, (
            f"braid: not permitted {what}: kernel.perf_event_paranoid is {setting}, so that this kernel "
            "requires CAP_SYS_ADMIN. Use sysctl kernel.perf_event_paranoid=2, or run as root (sudo)")),
                   f"paranoid: record -e {event}")
    result = braid(("sys_admin",), *words)
    gate.equal(result.status, 0, "paranoid: record with CAP_SYS_ADMIN", result.err)
    end(target)
    check_events("paranoid", WITHOUT_PERF_EVENTS)


def kernel_symbols_are_hidden():
    text = gate.run(*as_user(RECORD), "sed", "-n", "/ [tT] /{p;q}", "/proc/kallsyms").out
    with open("/proc/sys/kernel/kptr_restrict", encoding="ascii") as file:
        return file.read() != "2\n" and text.startswith("0000000000000000 ")


def kernel_frames(recording):
    return {frame for frames, _ in recording.merged() for frame in frames if frame.endswith("_[k]")}


def may_be_bpf(frame):
    """Code that other tests load meanwhile has no name yet: it lies where modules do, and in none of them."""
    at = int(re.match(r"\[kernel\+0x([0-9a-f]+)\]", frame).group(1), 16)
    with open("/proc/modules", encoding="ascii") as modules:
        words = [line.split() for line in modules]
    return at >= 0xffffffffc0000000 and not any(int(base, 16) <= at < int(base, 16) + int(size)
                                                for _, size, _, _, _, base, *_ in words)


def check_kernel_symbols():
    if not kernel_symbols_are_hidden():
        gate.skip("kernel symbols", "everybody sees them, or nobody")
        return
    target = spin()
    line = f"kernel frames are addresses without names: user {NOBODY} lacks CAP_SYSLOG"
    text, recording = record(RECORD, target)
    frames = kernel_frames(recording)
    gate.ok(frames and all(re.fullmatch(r"\[kernel\+0x[0-9a-f]+\]_\[k\]", one) for one in frames),
            "without CAP_SYSLOG: kernel frames are addresses", frames)
    gate.equal(text.splitlines().count(line), 1, "without CAP_SYSLOG: says so once", text)
    gate.equal(recording.counters(), {"kernel addresses without a name: the kernel hides its symbols "
                                      "from braid": len(frames)},
               "without CAP_SYSLOG: and the recording, of how many")
    text, recording = record((*RECORD, "syslog"), target)
    frames = kernel_frames(recording)
    gate.ok(frames and not [one for one in frames if "[kernel+" in one and not may_be_bpf(one)],
            "with CAP_SYSLOG: kernel frames have names", frames)
    gate.ok(line not in text, "with CAP_SYSLOG: nothing to say", text)
    end(target)


def check_file(name, target, path, sets):
    """`sets`: [(capabilities, the one that is missing or None)]."""
    for caps, missing in sets:
        text, recording = record(caps, target)
        if capabilities.may_read_mappings(caps, target.pid):
            line = (f"1 file with code cannot be opened, so stacks end there: {path} of PID {target.pid}: "
                    f"user {NOBODY} lacks {missing}")
            counters = {"files with code that braid could not open": 1}
        else:
            line = capabilities.without_names(target.pid, os.path.basename(path))
            counters = {capabilities.FORBIDDEN: 1}
        what = f"{name}, with {','.join(caps)}"
        gate.equal([one for one in text.splitlines() if "stacks end there" in one],
                   [line] if missing else [], f"{what}: what is missing")
        gate.equal({key: count for key, count in recording.counters().items() if key in COUNTERS},
                   counters if missing else {}, f"{what}: in the recording")
        python = [frame for frames, _ in recording.merged() for frame in frames
                  if frame.endswith("_[py]")]
        gate.equal("<module> (<string>:3)_[py]" in python, not missing, f"{what}: frames",
                   text, set(python))
    end(target)


def check_targets():
    gone = os.path.join(ROOM, "gone")
    shutil.copy(PYTHON, gone)
    target = spin(gone)
    os.unlink(gone)
    check_file("deleted program", target, gone, [
        ((*RECORD, "sys_ptrace"), None), ((*RECORD, "checkpoint_restore"), None)])
    room = gate.path("hidden")
    os.mkdir(room)
    target = gate.start("unshare", "--mount", "--propagation", "private", "sh", "-c", HIDE, "sh",
                        room, PYTHON, SPIN)
    gate.wait_line(target, "ready")
    check_file("root's, in another mount namespace", target, room + "/program", [
        ((*RECORD, "checkpoint_restore"), "CAP_SYS_PTRACE"), ((*RECORD, "sys_ptrace"), None)])


def check_commands():
    """No more than is needed is asked for."""
    for caps in RECORD, ("sys_admin",):
        file = os.path.join(ROOM, "command.db")
        result = braid(caps, "record", "-o", file, "--", PYTHON, "-c", "sum(range(3000000))")
        gate.equal(result.status, 0, f"a command, with {','.join(caps)}: status", result.err)
        gate.matches(r"\npid \d+: python 3\.11\.\d+: walk\n", "\n" + result.err,
                     f"a command, with {','.join(caps)}: is walked")
    program = os.path.join(ROOM, "capable")
    shutil.copy(gate.BRAID, program)
    if gate.run("setcap", "cap_bpf,cap_perfmon+ep", program).status:
        gate.skip("file capabilities", "this file system has none")
        return
    result = gate.run(*as_user(())[:-1], program, "record", "-o", os.path.join(ROOM, "c.db"), "--",
                      PYTHON, "-c", "sum(range(3000000))", cwd=ROOM)
    gate.equal(result.status, 0, "file capabilities: status", result.err)
    gate.matches(r"python 3\.11\.\d+: walk\n", result.err, "file capabilities: is walked")


def check_probes():
    """Which capability probes take depends on the kernel; doctor has tried."""
    target = spin()
    lines = braid(RECORD, "doctor").out.splitlines()
    said = [line for line in lines if line[9:].startswith("probes ")]
    works = said[0].startswith("ok")
    if not works:
        gate.equal(said, [f"limited  probes           user {NOBODY} lacks CAP_SYS_ADMIN, without which "
                          "`calls`, `probes -p`, `bench`, `record --source probes` and, before "
                          "Linux 6.10, events of probes (docs/reference/privileges.md) do not work"],
                   "doctor: probes")
    result = braid(RECORD, "probes", "-p", target.pid)
    wanted = (0, "") if works else (1, (
        f"braid: not permitted to attach probes: user {NOBODY} lacks CAP_SYS_ADMIN. Run as root (sudo), "
        "or grant the missing capabilities (`braid doctor` explains how). Use --no-attach to read the files only\n"))
    gate.equal((result.status, result.err), wanted, "probes: as doctor says")
    result = braid(RECORD, "calls", "-p", target.pid, "-d", "0.1", "--max-overhead", "none")
    gate.equal(result.status, 0 if works else 1, "calls: as doctor says", result.err)
    gate.equal("lacks CAP_SYS_ADMIN" in result.err, not works, "calls: says what is missing",
               result.err)
    result = braid(("sys_admin",), "calls", "-p", target.pid, "-d", "0.1", "--max-overhead", "none")
    gate.equal(result.status, 0, "calls with CAP_SYS_ADMIN", result.err)
    end(target)


def check_doctor():
    for caps, privilege, possible in (
            ((), f"MISSING  privilege        user {NOBODY}, without capabilities: it lacks CAP_BPF and "
             "CAP_PERFMON, without which nothing can be recorded", False),
            (RECORD, f"ok       privilege        user {NOBODY}, with CAP_BPF and CAP_PERFMON", True),
            (("sys_admin",), f"ok       privilege        user {NOBODY}, with CAP_SYS_ADMIN", True)):
        result = braid(caps, "doctor")
        lines = result.out.splitlines()
        gate.equal((result.status, lines[1]), (0 if possible else 1, privilege),
                   f"doctor with {','.join(caps) or 'none'}: privilege")
        gate.equal(lines[-1], "recording is possible here" if possible else
                   "recording is not possible here", f"doctor with {','.join(caps)}: verdict")
        for name, capability, need in ("other users", "CAP_SYS_PTRACE", "sys_ptrace"), (
                "deleted files", "CAP_CHECKPOINT_RESTORE", "sys_admin"):
            line, = [one for one in lines if one[9:].startswith(name)]
            gate.equal(f"user {NOBODY} lacks {capability}" in line, need not in caps,
                       f"doctor with {','.join(caps) or 'none'}: {name}")


gate.need_root()
gate.need_program(PYTHON)
ROOM = capabilities.room("room")
PROGRAM = os.path.join(ROOM, "braid")
check_refused()
check_namespace()
capabilities.let_sample(check_paranoid)
check_events("with bpf,perfmon", ("cpu", "wall", "page-fault", *WITHOUT_PERF_EVENTS))
check_kernel_symbols()
check_targets()
check_commands()
check_probes()
check_doctor()
gate.done()
