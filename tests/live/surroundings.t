#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""braid where something is missing or other than usual: standard streams, a /proc of its own, hidden
processes; and commands whose privileges are not braid's."""

import os
import re
import shutil

import capabilities
import gate

NOBODY = 65534
IDS = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
CAPS = [*IDS, "--inh-caps", "-all,+bpf,+perfmon", "--ambient-caps", "-all,+bpf,+perfmon"]


def shell(script, *args, words=(), **options):
    """In an own mount namespace; $0: braid."""
    return gate.run(*words, "unshare", "--mount", "--propagation", "private", "sh", "-c", script,
                    PROGRAM, *args, cwd=ROOM, **options)


def check_streams():
    """A file that is opened next must not become standard output."""
    file = os.path.join(ROOM, "closed.db")
    target = gate.marked(gate.MARKS, trace=False)
    recorder = gate.recorder(3, target, file=file)
    gate.ask(target, "here 3")
    gate.finish(recorder, 3)
    script = {"report": f'"$0" report --format folded -o out.html {file}',
              "flame": f'"$0" flame -o out.html {file}'}
    for name in script:
        gate.run("sh", "-c", script[name], PROGRAM, cwd=ROOM)
        with open(os.path.join(ROOM, "out.html"), encoding="utf-8") as out:
            want = out.read()
        os.unlink(os.path.join(ROOM, "out.html"))
        gate.run("sh", "-c", script[name] + " <&- >&- 2>&-", PROGRAM, cwd=ROOM)
        with open(os.path.join(ROOM, "out.html"), encoding="utf-8") as out:
            gate.equal(out.read(), want, f"{name}: the same with all streams closed")
        os.unlink(os.path.join(ROOM, "out.html"))
    fds = ('"$0" record -o out.db -- sh -c \'for i in 0 1 2; do readlink /proc/$$/fd/$i; done '
           '>fds\' <&- >&- 2>&-')
    gate.equal(gate.run("sh", "-c", fds, PROGRAM, cwd=ROOM).status, 0, "record: all streams closed")
    with open(os.path.join(ROOM, "fds"), encoding="utf-8") as out:
        gate.equal(out.read().splitlines(), ["/dev/null", os.path.join(ROOM, "fds"), "/dev/null"],
                   "record: nothing of braid's takes their places in the command")
    for command in "doctor", "--help", "--version", f"probes {gate.MARKS}":
        for to, why in (">/dev/full", "No space left on device"), (">&-", "Bad file descriptor"):
            result = gate.run("sh", "-c", f'"$0" {command} {to}', PROGRAM)
            gate.equal(result, (1, "", f"braid: cannot write to standard output: {why}\n"),
                       f"{command} {to}: fails")
    gate.equal(gate.run("sh", "-c", '"$0" doctor | true', PROGRAM).err, "", "doctor | true: no word")


def check_proc():
    """PIDs of another PID namespace's /proc are not braid's."""
    said = ("braid: cannot use /proc: it belongs to another PID namespace, whose PIDs differ. Mount "
            "braid's own (mount -t proc proc /proc), or run braid outside\n")
    for name, command in (("record -p", "record -o never.db -p $$"), ("probes", "probes -p $$"),
                          ("record --", "record -o never.db -- true"),
                          ("record -a", "record -o never.db -a -d 1")):
        result = gate.run("unshare", "--pid", "--fork", "sh", "-c", f'"$0" {command}; exit $?',
                          PROGRAM, cwd=ROOM)
        gate.equal(result, (1, "", said), f"another namespace's /proc: {name}")
    gate.ok(not os.path.exists(os.path.join(ROOM, "never.db")), "another namespace's /proc: no file")
    result = shell("umount -l /proc && \"$0\" record -o never.db -- true")
    gate.equal(result, (1, "", "braid: cannot read /proc/self: No such file or directory (is /proc "
                               "mounted?)\n"), "no /proc")


def check_clocks():
    result = gate.run("unshare", "--time", "--monotonic", "1000", "--fork", PROGRAM, "record", "-o",
                      "never.db", "--", "true", cwd=ROOM)
    gate.equal(result, (1, "", "braid: cannot record: braid is in a time namespace of its own, whose "
                               "clocks differ from those of samples. Run it outside\n"), "clocks of a time namespace")


def check_inside():
    """In a PID namespace with its own /proc, PIDs are those that are seen there."""
    file = os.path.join(ROOM, "inside.db")
    result = gate.run("unshare", "--pid", "--fork", "--mount-proc", "sh", "-c",
                      '"$0" & pid=$!; "$1" record -o "$2" -d 0.3 -p $pid; kill $pid; echo $pid',
                      BUSY, PROGRAM, file)
    gate.matches(r"\A\d+ samples|: \d+ samples (=|in) ", result.err, "inside: records")
    pids = {sample.pid for sample in gate.Recording(file).samples()}
    gate.equal(pids, {int(result.out.splitlines()[-1])}, "inside: PIDs are those of inside")
    stacks = {";".join(frames) for frames, _ in gate.Recording(file).merged()}
    gate.ok(stacks and all(stack.count(";recurse ") == 50 for stack in stacks),
            "inside: stacks are complete", stacks)


def check_hidden():
    target = gate.start(BUSY)
    script = 'mount -t proc -o hidepid=2 proc /proc && exec "$@"'
    result = shell(script, *CAPS, PROGRAM, "record", "-o", "never.db", "-p", target.pid)
    gate.equal(result, (1, "", f"braid: PID {target.pid} exists but is not visible in "
                               "/proc: /proc is mounted with hidepid (run with "
                               "CAP_SYS_PTRACE), or the process is in another PID namespace\n"), "hidepid")


def check_setuid():
    """The kernel gives a command that is traced nothing; it must get what it gets without braid."""
    program = os.path.join(ROOM, "id")
    shutil.copy("/usr/bin/id", program)
    os.chmod(program, 0o4755)
    alone = gate.run(*CAPS, program, "-u").out
    if alone != "0\n":
        gate.skip("setuid", "this file system does not let programs do that")
        return
    for name in program, "id":
        env = dict(os.environ, PATH=ROOM + ":" + os.environ["PATH"])
        result = gate.run(*CAPS, PROGRAM, "record", "-o", "setuid.db", "--", name, "-u", cwd=ROOM,
                          env=env)
        gate.equal((result.status, result.out), (0, alone),
                   f"setuid, {os.path.basename(os.path.dirname(name)) or 'by PATH'}: as without",
                   result.err)
    os.chmod(program, 0o4711)
    shutil.copy(BUSY, os.path.join(ROOM, "unreadable"))
    program = os.path.join(ROOM, "unreadable")
    os.chmod(program, 0o711)
    for caps, missing in ("", True), (",+dac_read_search", False):
        words = [word + caps if str(word).startswith("-all,") else word for word in CAPS]
        result = gate.run(*words, PROGRAM, "record", "-F", "999", "-o", "unreadable.db", "--", program,
                          "0.2", cwd=ROOM)
        found = re.findall(r"cannot be opened.*: (\S+) of PID \d+: (.*)", result.err)
        gate.equal(found, [(program, f"user {NOBODY} lacks CAP_DAC_READ_SEARCH")] if missing else [],
                   f"not readable{caps}: what is missing", result.err)


def check_lockdown():
    """As the kernel tells it; it cannot be switched back."""
    file = "/sys/kernel/security/lockdown"
    for mode, said in (("none integrity [confidentiality]",
                        "MISSING  lockdown         confidentiality: BPF programs may not read the "
                        "kernel's memory"),
                       ("none [integrity] confidentiality",
                        "ok       lockdown         integrity, which does not limit braid"),
                       ("[none] integrity confidentiality", "ok       lockdown         none")):
        result = shell(f"mount -t tmpfs none /sys/kernel/security && echo '{mode}' >{file} && "
                       '"$0" doctor')
        lines = [line for line in result.out.splitlines() if line[9:].startswith("lockdown")]
        gate.equal(lines, [said], f"doctor: lockdown, {mode}")
        gate.equal(result.status, int(said.startswith("MISSING")), f"doctor: lockdown, {mode}: status")


gate.need_root()
os.chmod(gate.tmp, 0o755)
ROOM = gate.path("room")
os.mkdir(ROOM)
os.chown(ROOM, NOBODY, NOBODY)
PROGRAM = os.path.join(ROOM, "braid")
BUSY = os.path.join(ROOM, "busy")
shutil.copy(gate.BRAID, PROGRAM)
shutil.copy(os.path.join(gate.OUTPUT, "fixtures/native/recurse"), BUSY)
os.environ["XDG_CACHE_HOME"] = os.path.join(ROOM, "cache")
capabilities.let_sample()
check_streams()
check_proc()
check_clocks()
check_inside()
check_hidden()
check_setuid()
check_lockdown()
gate.done()
