#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""A program with privileges of its own, capabilities or the setuid bit, shows everybody his own
processes only, and reads and writes what its user may read and write. (docs/reference/privileges.md)"""

import atexit
import os
import shutil
import signal

import gate
import waiting

NOBODY, OTHER = 65534, 65533
AS_USER = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
CAPS = "cap_bpf,cap_perfmon,cap_sys_admin,cap_sys_ptrace,cap_checkpoint_restore,cap_dac_read_search+ep"
NOWHERE = ("--to", "otlp://127.0.0.1:9", "--give-up", "0.01")


def ticks(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return sum(map(int, file.read().rpartition(")")[2].split()[11:13]))


def forbidden(name, words, why="Permission denied"):
    result = gate.run(*AS_USER, PROGRAM, *words, cwd=ROOM)
    gate.equal(result.status, 1, f"{name}: status", result)
    gate.matches(why, result.err, f"{name}: why")


def check_others(kind):
    for words in (("record", "-d", "0.1", "-o", "x.db", "-p"), ("top", "--once", "-p"), ("dump", "-p"),
                  ("calls", "-d", "0.1", "-p"), ("probes", "-p"), ("probes", "--no-attach", "-p"),
                  ("bench", "-d", "1", "-p"), ("events", "-p")):
        forbidden(f"{kind}: {words[0]} of another user's", (*words, other.pid),
                  f"process {other.pid} does not belong to user {NOBODY}")
    for words in ("-a",), ("--user", str(OTHER)), ("--name", "sleep"):
        forbidden(f"{kind}: record {words[0]}", ("record", "-d", "0.1", "-o", "x.db", *words),
                  "the user's own processes")
    gate.ok(not os.path.exists(os.path.join(ROOM, "x.db")), f"{kind}: nothing is left")


def check_files(kind):
    """`secret` is root's, in a directory that is, too."""
    run = gate.run(*AS_USER, PROGRAM, "record", "-d", "0.1", "-o", "own.db", "-p", own.pid, cwd=ROOM)
    gate.equal(run.status, 0, f"{kind}: one's own", run.err)
    gate.equal(os.stat(os.path.join(ROOM, "own.db")).st_uid, NOBODY, f"{kind}: the file is the user's")
    secret = gate.path("secret.db")
    shutil.copy(os.path.join(ROOM, "own.db"), secret)
    os.chmod(secret, 0o600)
    for words in (("report", secret), ("flame", secret, "-o", "x.html"), ("push", secret, *NOWHERE),
                  ("dump", "--core", secret), ("probes", secret),
                  ("push", "own.db", *NOWHERE, "--token-file", secret)):
        forbidden(f"{kind}: {words[0]} reads what its user may read", words)
    place = gate.path("place")
    for words in (("record", "-d", "0.1", "-o", place, "-p", own.pid),
                  ("record", "-d", "0.1", "-o", place, "--rotate", "1", "--keep", "2", "-p", own.pid),
                  ("record", "-d", "0.1", "-o", "x.db", "--metrics", place, "-p", own.pid),
                  ("report", "own.db", "-o", place), ("push", "own.db", *NOWHERE, "--state", place)):
        forbidden(f"{kind}: {words[0]} writes where its user may write", words)
        gate.equal(os.path.exists(place), False, f"{kind}: {words[0]}: nothing is there")
    run = gate.run(*AS_USER, PROGRAM, "record", "-o", "command.db", "--", "cat", "/proc/self/status",
                   cwd=ROOM)
    ids = [line.split()[1:] for line in run.out.splitlines() if line.startswith(("Uid:", "Gid:"))]
    gate.equal((run.status, ids), (0, [[str(NOBODY)] * 4] * 2), f"{kind}: a command is the user's", run)
    held = [line.split()[1] for line in run.out.splitlines() if line.startswith(("CapPrm", "CapAmb"))]
    gate.equal(held, ["0" * 16] * 2, f"{kind}: ... without capabilities")


def check_child(kind):
    """What the user's process has started as somebody else, before braid came."""
    shell = gate.start(*AS_USER, "sh", "-c", '"$0" /dev/zero & echo $!; wait', SETUID)
    child = int(gate.line_of(shell))
    atexit.register(os.kill, child, signal.SIGKILL)
    gate.wait_until(lambda: os.stat(f"/proc/{child}").st_uid == OTHER, "the child is another's")
    braid = gate.start(*AS_USER, PROGRAM, "record", "-F", "999", "-o", "child.db", "-p", shell.pid,
                       cwd=ROOM, stderr=gate.subprocess.DEVNULL)
    gate.wait_until(lambda: os.path.exists(os.path.join(ROOM, "child.db")), "the first commit")
    begin = ticks(child)
    gate.wait_until(lambda: ticks(child) > begin + 30, "the child runs")
    braid.send_signal(signal.SIGINT)
    gate.equal(braid.wait(), 0, f"{kind}: a process with another's child: status")
    recording = gate.Recording(os.path.join(ROOM, "child.db"))
    gate.equal(recording.one("SELECT count(*) FROM sample JOIN thread ON thread = thread.id "
                               f"WHERE tid = {child}"), 0, f"{kind}: another's child is not shown")
    os.unlink(os.path.join(ROOM, "child.db"))


# As root wakes a child of its own, which is the user's: the first word is how often.
WAKES = """if True:
    import ctypes, os, sys
    r, w = os.pipe()
    answered, answer = os.pipe()
    child = os.fork()
    if not child:
        os.setgroups([]); os.setgid(int(sys.argv[1])); os.setuid(int(sys.argv[1]))
        ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE
        os.close(w)
        os.write(answer, b"x")
        while os.read(r, 1):
            os.write(answer, b"x")
        os._exit(0)
    os.read(answered, 1)
    print("ready", child, flush=True)
    for line in sys.stdin:
        for _ in range(int(line)):
            os.write(w, b"x")
            os.read(answered, 1)
        print("done", flush=True)
"""


def check_waker(kind):
    """Another user's process that wakes the user's own: nothing is shown of it."""
    pair = gate.start("/usr/bin/python3", "-c", WAKES, NOBODY)
    child = gate.wait_line(pair, "ready")[-1].split()[1]
    for words, is_shown in (AS_USER, False), ([], True):
        file = os.path.join(ROOM, "waker.db")
        braid = gate.start(*words, PROGRAM if words else gate.BRAID, "record", "-e", "wakeup,off-cpu",
                           "--max-overhead", "none", "-o", file, "-p", child, cwd=ROOM,
                           stderr=gate.subprocess.DEVNULL)
        gate.wait_until(lambda braid=braid, file=file: braid.poll() is not None or (
            os.path.exists(file) and waiting.is_in_loop(braid.pid)), "the loop")
        gate.ask(pair, "20")
        braid.send_signal(signal.SIGINT)
        gate.equal(braid.wait(), 0, f"{kind}: a waker: status")
        recording = gate.Recording(file)
        waker = recording.one("SELECT count(*) FROM sample JOIN thread ON thread = thread.id "
                              f"WHERE tid = {pair.pid}")
        gate.ok(bool(waker) == is_shown and recording.count() >= 20,
                f"{kind}: a waker that is another's is {'shown to root' if is_shown else 'not shown'}", waker)
        os.unlink(file)
    pair.stdin.close()
    pair.wait()


gate.need_root()
os.chmod(gate.tmp, 0o755)
ROOM = gate.path("room")
os.mkdir(ROOM)
os.chown(ROOM, NOBODY, NOBODY)
os.environ["XDG_CACHE_HOME"] = os.path.join(ROOM, "cache")
PROGRAM, SETUID = gate.path("braid"), gate.path("another")
shutil.copy("/usr/bin/sha256sum", SETUID)
os.chown(SETUID, OTHER, OTHER)
os.chmod(SETUID, 0o4755)
other = gate.start("setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", "sleep", "1000")
own = gate.start(*AS_USER, "sleep", "1000")
gate.wait_until(lambda: os.stat(f"/proc/{other.pid}").st_uid == OTHER and
                os.stat(f"/proc/{own.pid}").st_uid == NOBODY, "the users")
for what in "capabilities", "setuid":
    shutil.copy(gate.BRAID, PROGRAM)
    if what == "setuid":
        os.chmod(PROGRAM, 0o6755)
    elif gate.run("setcap", CAPS, PROGRAM).status:
        gate.skip("file capabilities", "this file system has none")
        continue
    check_others(what)
    check_files(what)
    check_child(what)
    check_waker(what)
    os.unlink(PROGRAM)
other.kill()
own.kill()
gate.done()
