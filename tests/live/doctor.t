#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""The systemd unit's capabilities, less one at a time: what doctor says of it, row by row, is what
`record` then does with targets of each kind. (docs/reference/privileges.md)"""

import os
import re
import shutil
import signal

import capabilities
import gate
import waiting
from capabilities import NOBODY, OTHER, as_user

PYTHON = "/usr/bin/python3.11"
CALLS = 20
# Answers each line of its input, after so many calls.
STAT = f"""if True:
    import os, sys
    def calls():
        for _ in range({CALLS}):
            os.stat("/")
    print("ready", flush=True)
    for line in sys.stdin:
        calls()
        print("done", flush=True)
"""
# Its program lies in a file system that only it has mounted.
HIDE = ('mount -t tmpfs none "$1" && chmod 755 "$1" && cp "$2" "$1/program" && '
        f'exec {" ".join(as_user((), OTHER))} "$1/program" -c "$3"')

# One link for many places in one process, which takes CAP_PERFMON only.
MULTI = tuple(map(int, os.uname().release.split(".")[:2])) >= (6, 10)
NO_PROBES = ("CAP_SYS_ADMIN", "`calls`, `probes -p`, `bench`, `record --source probes` and, before "
             "Linux 6.10, events of probes (docs/reference/privileges.md) do not work")
IN_CONTAINERS = ("code that only processes of other users can see (in containers) has no names, and "
                 "stacks end there")
# Before Linux 6.15 or so.
OF_OTHERS = "code of other users' processes has no names on this kernel, and stacks end there"
# What a row says without its capability; of those that do without the others.
ROWS = {"sys_ptrace": ("other users", "CAP_SYS_PTRACE", None),
        "dac_read_search": ("unreadable files", "CAP_DAC_READ_SEARCH",
                            "only exported functions of files that this user may not read have names"),
        "checkpoint_restore": ("deleted files", "CAP_CHECKPOINT_RESTORE",
                               "only exported functions of deleted or replaced files have names"),
        "syslog": ("kernel symbols", "CAP_SYSLOG", "kernel frames are addresses")}
REFUSED = {"bpf": ("ring buffer", "BPF loops", "user registers", "BPF programs"),
           "perfmon": ("perf events", "BPF loops", "user registers", "BPF programs")}
NEEDS = {"own": None, "other": None, "hidden": "sys_ptrace", "unreadable": "dac_read_search",
         "deleted": "checkpoint_restore"}
BY_MEMORY = ("dac_read_search", "checkpoint_restore")  # without them a process's memory has the code


def braid(caps, *words):
    return gate.run(*as_user(caps, forever=True), PROGRAM, *words, cwd=ROOM)


def doctor(caps):
    """(Its status, {row: (state, what it says, the remedy or None)}, its verdict.)"""
    result = braid(caps, "doctor")
    *lines, verdict = result.out.splitlines()
    rows = {}
    for i, line in enumerate(lines):
        if not line.startswith(" "):
            remedy = lines[i + 1].strip() if lines[i + 1:] and lines[i + 1].startswith(" ") else None
            rows[line[9:25].rstrip()] = (line[:8].rstrip(), line[26:], remedy)
    return result.status, rows, verdict


def lacks(capability, without):
    return f"user {NOBODY} lacks {capability}, without which {without}"


def hidden_without(caps, file, pattern):
    """Is such a line what `caps` leave of it?"""
    return bool(re.search(pattern, gate.run(*as_user(caps), "cat", file).out, re.M))


def start_targets():
    """{kind: (process, its program)}; each kind takes another capability."""
    own, deleted, unreadable = (os.path.join(ROOM, name) for name in ("own", "deleted", "unreadable"))
    hidden = gate.path("hidden")
    os.mkdir(hidden)
    for copy in deleted, unreadable:
        shutil.copy(PYTHON, copy)
    os.chmod(unreadable, 0o711)
    targets = {"own": (gate.start(*as_user(()), PYTHON, "-c", STAT), PYTHON),
               "other": (gate.start(*as_user((), OTHER), PYTHON, "-c", STAT), PYTHON),
               "hidden": (gate.start("unshare", "--mount", "--propagation", "private", "sh", "-c",
                                     HIDE, "sh", hidden, PYTHON, STAT), hidden + "/program"),
               "unreadable": (gate.start(*as_user(()), unreadable, "-c", STAT), unreadable),
               "deleted": (gate.start(*as_user(()), deleted, "-c", STAT), deleted)}
    for process, _ in targets.values():
        gate.wait_line(process, "ready")
    os.unlink(deleted)
    return targets


def record(caps, targets):
    """Of CALLS system calls of each, and of its wait for input, which the kernel has frames of."""
    file = os.path.join(ROOM, f"{len(gate.running.processes)}.db")
    braid_ = gate.start(*as_user(caps, forever=True), PROGRAM, "record", "-e",
                        "syscall:newfstatat,off-cpu", "--max-overhead", "none", "-o", file, "-p", ",".join(str(process.pid) for process, _ in targets.values()),
                        cwd=ROOM, stderr=gate.subprocess.PIPE)
    gate.wait_until(lambda: braid_.poll() is not None or
                    (os.path.exists(file) and waiting.is_in_loop(braid_.pid)), "the loop")
    for process, _ in targets.values():
        gate.ask(process, "go")
    braid_.send_signal(signal.SIGINT)
    said = braid_.stderr.read().decode()
    return braid_.wait(), said, gate.Recording(file)


def is_named(recording, pid):
    """Of the stacks of its calls: have they the function that does them? (Each answer once.)"""
    stacks = recording.merged("--event", "syscall:newfstatat", "--pid", str(pid))
    return {any(frame.startswith("calls (") for frame in frames) for frames, _ in stacks}


def check_recorded(name, less, caps, targets):
    """With what recording takes at least."""
    status, said, recording = record(caps, targets)
    gate.equal(status, 0, f"{name}: record", said)
    gate.equal({kind: is_named(recording, process.pid) for kind, (process, _) in targets.items()},
               {kind: {NEEDS[kind] != less or not less or less in BY_MEMORY} for kind in targets},
               f"{name}: record: have stacks their functions", said)
    files = re.findall(r"^(\d+) files? with code cannot be opened, so stacks end there: (.*)$", said, re.M)
    # Where mappings cannot be read, no file is known of.
    hidden = less == "sys_ptrace" and PTRACE == OF_OTHERS
    known = less and not hidden and less not in BY_MEMORY
    gate.equal(files, [("1", f"{program} of PID {process.pid}: user {NOBODY} lacks {ROWS[less][1]}")
                       for kind, (process, program) in targets.items() if known and NEEDS[kind] == less],
               f"{name}: record: which file it cannot open, and why")
    gate.equal((re.findall("^code of .*", said, re.M), recording.counters().get(capabilities.FORBIDDEN)),
               ([capabilities.without_names(targets["other"][0].pid, "python3.11", " and others")], 2)
               if hidden else ([], None), f"{name}: record: whose mappings it may not read, and why")
    if not SYMBOLS:
        return
    kernel = {frame for frames, _ in recording.merged("--event", "off-cpu", "--idle", "show")
              for frame in frames if frame.endswith("_[k]")}
    gate.ok(kernel, f"{name}: record: has frames of the kernel")
    gate.equal({bool(re.match(r"\[kernel\+0x", frame)) for frame in kernel}, {less == "syslog"},
               f"{name}: record: are they addresses", kernel)
    gate.equal(said.count(f"kernel frames are addresses without names: user {NOBODY} lacks CAP_SYSLOG"),
               int(less == "syslog"), f"{name}: record: says why")


def check_refused(name, capability, caps, targets):
    why = (f"user {NOBODY} lacks {capability}. Run as root (sudo), or grant the missing capabilities "
           "(`braid doctor` explains how)")
    for words in ("-p", targets["own"][0].pid), ("-a", "-d", "1"), ("--", "true"):
        result = braid(caps, "record", "-o", "never.db", *words)
        gate.equal(result, (1, "", f"braid: not permitted to load BPF programs: {why}\n"),
                   f"{name}: record {words[0]}")
    gate.ok(not os.path.exists(os.path.join(ROOM, "never.db")), f"{name}: record: no file")


def check_row(name, row, got, state, said, remedy):
    gate.equal(got[:2], (state, said), f"{name}: doctor: {row}")
    gate.matches(remedy, got[2] or "", f"{name}: doctor: {row}: the remedy")


def check_one(less, targets):
    name = f"less {less}" if less else "as the unit"
    caps = [cap for cap in ALL if cap != less]
    status, rows, verdict = doctor(caps)
    wrong = {row for row, (state, *_) in rows.items() if state not in ("ok", "runtime")}
    refused = REFUSED.get(less)
    gate.equal((status, verdict), (1, "recording is not possible here") if refused else
               (0, "recording is possible here"), f"{name}: doctor: verdict")
    expected = set(LIMITS)
    if refused:
        capability = "CAP_" + less.upper()
        expected |= {"privilege", *refused}
        gate.ok(rows["privilege"][0] == "MISSING" and rows["privilege"][1].endswith(
            f": it lacks {capability}, without which nothing can be recorded"),
                f"{name}: doctor: privilege", rows["privilege"])
        for row in refused:
            what = {"perf events": "to sample all CPUs", "ring buffer": "to create BPF maps"}.get(
                row, "to load BPF programs")
            gate.equal(rows[row][:2], ("MISSING", f"not permitted {what}: user {NOBODY} lacks {capability}"
                                       ". Run as root (sudo), or grant the missing capabilities "
                                       "(`braid doctor` explains how)"),
                       f"{name}: doctor: {row}")
    elif less and (less != "syslog" or SYMBOLS):
        row, capability, without = ROWS[less]
        expected.add(row)
        check_row(name, row, rows[row], "limited", lacks(capability, without or PTRACE),
                  r"run as root \(sudo\), or add this capability")
    gate.equal(wrong, expected, f"{name}: doctor: nothing else is missing")
    if refused:
        check_refused(name, capability, caps, targets)
    else:
        check_recorded(name, less, caps, targets)


def check_probes(targets):
    """What a service does without, where it does."""
    _, rows, _ = doctor(ALL)
    if "probes" not in LIMITS:
        gate.skip("probes", "this kernel lets CAP_PERFMON attach them")
        return
    gate.equal(rows["probes"][:2], ("limited", lacks(*NO_PROBES)), "as the unit: doctor: probes")
    gate.equal(rows["BPF statistics"][:2], ("limited", lacks(
        "CAP_SYS_ADMIN", "--max-overhead limits no probes")), "as the unit: doctor: statistics")
    pid = targets["own"][0].pid
    why = (f"user {NOBODY} lacks CAP_SYS_ADMIN. Run as root (sudo), or grant the missing capabilities "
           "(`braid doctor` explains how)")
    for event in ("uprobe:libc.so.6:malloc", "uretprobe:libc.so.6:malloc", "lock:pthread", "lock-order",
                  "outstanding:malloc", f"usdt:{PYTHON}:python:gc__start"):
        result = braid(ALL, "record", "-o", "never.db", "-d", "0.1", "-p", pid, "-e", event)
        if MULTI:
            gate.equal(result.status, 0, f"as the unit: record -e {event}", result.err)
        else:
            gate.equal((result.status, result.err.splitlines()[-1]),
                       (1, f"braid: not permitted to attach probes: {why}"), f"as the unit: record -e {event}")
    result = braid(ALL, "record", "-o", "alloc.db", "-d", "0.1", "-p", pid, "-e", "alloc:malloc")
    limit = "alloc:malloc: the limit of --max-overhead is not enforced: not permitted to read the kernel's BPF statistics: " + why
    gate.ok(result.err.count(limit + "\n") == (not result.status) and
            (not result.status or why in result.err), "as the unit: record -e alloc:malloc", result)


def check_paranoid(setting):
    """What kernels say that take CAP_SYS_ADMIN for perf events while this setting is so high."""
    why = (f"not permitted to sample all CPUs: kernel.perf_event_paranoid is {setting}, so that this "
           "kernel requires CAP_SYS_ADMIN. Use sysctl kernel.perf_event_paranoid=2, or run as root (sudo)")
    status, rows, verdict = doctor(ALL)
    check_row("paranoid", "perf events", rows["perf events"], "MISSING", why,
              r"sysctl kernel\.perf_event_paranoid=2")
    gate.equal(rows["BPF programs"][:2], ("MISSING", why), "paranoid: doctor: BPF programs")
    gate.equal((status, verdict), (1, "recording is not possible here"), "paranoid: doctor: verdict")
    result = braid(ALL, "record", "-o", "never.db", "-d", "0.1", "-a")
    gate.equal(result, (1, "", f"braid: {why}\n"), "paranoid: record -a")


gate.need_root()
gate.need_program(PYTHON)
ROOM = capabilities.room("room")
PROGRAM = os.path.join(ROOM, "braid")
ALL = capabilities.of_unit()
gate.equal(set(ALL), {*ROWS, *REFUSED}, "the unit: each capability has its row")
# With kptr_restrict 2 nobody sees them, and with 0 perhaps everybody.
SYMBOLS = (hidden_without(("bpf", "perfmon"), "/proc/kallsyms", "^0{16} [tT] ") and
           not hidden_without(ALL, "/proc/kallsyms", "^0{16} [tT] "))
capabilities.let_sample(check_paranoid)
LIMITS = {row for row, (state, *_) in doctor(ALL)[1].items() if state == "limited"}
gate.ok(LIMITS <= {"probes", "BPF statistics"}, "as the unit: nothing but probes is limited", LIMITS)
TARGETS = start_targets()
PTRACE = (IN_CONTAINERS if capabilities.may_read_mappings(("bpf", "perfmon"), TARGETS["other"][0].pid)
          else OF_OTHERS)
if PTRACE == OF_OTHERS:
    NEEDS["other"] = "sys_ptrace"
for one in (None, *ALL):
    check_one(one, TARGETS)
check_probes(TARGETS)
gate.done()
