#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Asking JVMs for their perf map, as jcmd does it (runtimes/jvm/jvm_attach.h): each JVM at hand, in
other namespaces, of other users, in other roots; those that will not or cannot answer; and that all
of them live on, undisturbed."""

import atexit
import glob
import os
import re
import shutil
import signal
import subprocess
import tempfile

import lib
import javas
import python_matrix

TOOL = os.path.join(lib.OUTPUT, "tests/tools/jvm_attach")
FACTS = os.path.join(lib.OUTPUT, "tests/tools/jvm_facts")
COMMAND = "Compiler.perfmap"
LONG_MS, SHORT_MS = 30000, 500  # what is answered; what is not
NOBODY, GROUP = 65534, 12345
METHODS = {"Attach.alpha(long)", "Attach.beta(long)"}
DUMP = "Full thread dump"


class Target:
    """The fixture in a JVM."""

    def __init__(self, java, *options, before=(), env=None, classes=None, directory=None):
        self.out = tempfile.mktemp(dir=lib.tmp)
        command = [*before, *java.command, "-Xbatch", "-Xmx64m", "-XX:+UseSerialGC",
                   *options, "-cp", classes or classes_for(java), "Attach"]
        with open(self.out, "wb") as out:
            self.process = lib.start(*command, stdin=subprocess.PIPE, stdout=out,
                                     stderr=subprocess.STDOUT, cwd=directory or shared,
                                     env={**java.environment(), **(env or {})})
        self.pid = self.process.pid

    def wait_ready(self):
        lib.wait_for(lambda: "READY\n" in self.said(), f"READY of {self.process.args}")
        return self

    def go_inside(self):
        """The JVM is the only child of the process that was started."""
        with open(f"/proc/{self.pid}/task/{self.pid}/children", encoding="ascii") as file:
            self.pid = int(file.read())
        return self

    def said(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.process.args} has ended: {self.process.returncode}")
        with open(self.out, encoding="utf-8", errors="replace") as file:
            return file.read()

    def lives(self):
        """It answers a line."""
        before = self.said().count("pong")
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        lib.wait_for(lambda: self.said().count("pong") > before, "an answer of the fixture")
        return True

    def ids(self):
        """Its own PID and its user."""
        with open(f"/proc/{self.pid}/status", encoding="utf-8") as file:
            status = file.read()
        return (int(re.search(r"^NSpid:.*\t(\d+)$", status, re.M)[1]),
                int(re.search(r"^Uid:\t\d+\t(\d+)", status, re.M)[1]))

    def in_tmp(self, name):
        """In its /tmp, by its own PID."""
        return f"/proc/{self.pid}/root/tmp/{name}".replace("PID", str(self.ids()[0]))

    def map(self):
        with open(self.in_tmp("perf-PID.map"), encoding="utf-8") as file:
            return file.read()

    def end(self):
        """As it likes to end: it removes its socket then. The map stays."""
        if os.path.exists(self.in_tmp("perf-PID.map")):
            os.unlink(self.in_tmp("perf-PID.map"))
        self.process.stdin.close()
        self.process.wait(timeout=lib.PATIENCE_S)
        self.process.stdin = None
        lib.stop(self.process)


def ask(target, command=COMMAND, timeout_ms=LONG_MS, pid=None, before=()):
    run = subprocess.run([*before, TOOL, str(pid or target.pid), command, str(timeout_ms)],
                         capture_output=True, text=True, timeout=3 * lib.PATIENCE_S, check=False)
    if run.stderr:
        raise RuntimeError(f"{run.args}: {run.stderr}")
    return run.stdout.strip()


def methods(text):
    """Names without the return type, of a perf map."""
    names = (re.fullmatch(r"0x[0-9a-f]+ 0x[0-9a-f]+ (.*)", line) for line in text.splitlines())
    return {name[1].rpartition(" ")[2] for name in names}


def check_map(target, name):
    """It is there, with the names, and new; and nothing else is."""
    found = methods(target.map())
    lib.ok(METHODS <= found, f"{name}: the map names the methods", len(found))
    owner = os.stat(target.in_tmp("perf-PID.map")).st_uid
    lib.equal(owner, target.ids()[1], f"{name}: it is of the JVM's user")
    check_clean(target, name)


def check_clean(target, name):
    lib.ok(not os.path.lexists(target.in_tmp(".attach_pidPID")), f"{name}: no file is left")
    lib.ok(target.lives(), f"{name}: the JVM lives")
    lib.ok(DUMP not in target.said(), f"{name}: and has printed no threads", target.said())


def check_ok(target, name, **options):
    file = target.in_tmp("perf-PID.map")
    if os.path.exists(file):
        os.unlink(file)
    lib.equal(ask(target, **options), "ok", f"{name}: asked")
    check_map(target, name)


# --- JVMs that answer ---

def check_plain(java):
    name = f"Java {java.label}"
    target = Target(java).wait_ready()
    check_ok(target, name)
    before = os.stat(target.in_tmp("perf-PID.map")).st_mtime_ns
    lib.equal(ask(target), "ok", f"{name}: asked again, now with a socket")
    after = os.stat(target.in_tmp("perf-PID.map")).st_mtime_ns
    lib.ok(after > before, f"{name}: the map is newer", before, after)
    tid = max(map(int, os.listdir(f"/proc/{target.pid}/task")))
    check_ok(target, f"{name}, by another thread's id", pid=tid)
    check_jcmd(java, target)
    lib.matches("^EIO .*refused Bogus: .*Unknown diagnostic command", ask(target, "Bogus"),
                f"{name}: the JVM's own words")
    os.unlink(target.in_tmp(".java_pidPID"))
    check_ok(target, f"{name}, when somebody has removed its socket")
    target.end()


def check_jcmd(java, target):
    jcmd = os.path.join(java.home, "bin/jcmd")
    if java.root or not os.path.exists(jcmd):
        lib.skip(f"Java {java.label}: as jcmd's", "no jcmd here")
        return
    ours = set(target.map().splitlines())
    os.unlink(target.in_tmp("perf-PID.map"))
    subprocess.run([jcmd, str(target.pid), COMMAND], check=True, stdout=subprocess.DEVNULL)
    theirs = set(target.map().splitlines())
    lib.ok(len(ours & theirs) > 0.9 * len(theirs), f"Java {java.label}: as jcmd's", len(ours),
           len(theirs), len(ours & theirs))
    lib.equal(*({line for line in lines if "Attach." in line} for lines in (ours, theirs)),
              f"Java {java.label}: the same methods")


def check_starting(java):
    """From its first instruction on: it must survive that."""
    for n in range(5):
        target = Target(java)
        lib.equal(ask(target), "ok", f"Java {java.label}, starting, {n}: asked")
        target.wait_ready()
        check_clean(target, f"Java {java.label}, starting, {n}")
        target.end()


def check_user(java):
    user = ("setpriv", f"--reuid={NOBODY}", f"--regid={GROUP}", "--clear-groups")
    target = Target(java, before=user).wait_ready()
    lib.equal(target.ids()[1], NOBODY, f"Java {java.label}, another user: is it")
    check_ok(target, f"Java {java.label}, another user")
    check_ok(target, f"Java {java.label}, that user asks", before=user)
    other = ("setpriv", "--reuid=4711", "--regid=4711", "--clear-groups")
    lib.matches("^EPERM .*root", ask(target, before=other), f"Java {java.label}, a third user asks")
    check_clean(target, f"Java {java.label}, a third user asks")
    target.end()


NEW_PIDS = ("--pid", "--fork", "--mount-proc", "--kill-child")


def check_namespaces(java):
    name = f"Java {java.label}, another"
    as_user = ("setpriv", f"--reuid={NOBODY}", f"--regid={GROUP}", "--clear-groups")
    check_inside(java, f"{name} mount namespace", ())
    check_inside(java, f"{name} PID and network namespace", ("--net", *NEW_PIDS))
    user = ("--user", "--map-root-user")
    run = subprocess.run([*as_user, "unshare", *user, "true"], stderr=subprocess.PIPE, check=False)
    if run.returncode:
        lib.skip(f"{name} user namespace", run.stderr.decode().strip())
    else:
        check_inside(java, f"{name} user namespace", (*user, *NEW_PIDS), as_user)


def check_inside(java, name, flags, before=()):
    """In a mount namespace, too. The classes are bound to where no other file system hides them."""
    script = f"mount --bind {shared} /mnt && mount -t tmpfs none /tmp && exec \"$@\""
    target = Target(java, before=(*before, "unshare", "--mount", *flags, "sh", "-ec", script, "sh"),
                    classes="/mnt", directory="/").wait_ready()
    if flags:
        target.go_inside()
    lib.ok(os.readlink(f"/proc/{target.pid}/ns/mnt") != os.readlink("/proc/self/ns/mnt"),
           f"{name}: is one")
    lib.equal(target.ids()[0], 1 if flags else target.pid, f"{name}: its own PID")
    outer = f"/tmp/perf-{target.ids()[0]}.map"
    existed = os.path.exists(outer)
    check_ok(target, name)
    lib.equal(os.path.exists(outer), existed, f"{name}: no map in this one")
    target.end()


def check_chroot(java):
    """A root of its own, with this system's programs."""
    root = os.path.join(lib.tmp, "root")
    for name in ("usr", "lib", "lib64", "bin", "etc", "proc", "tmp", "classes"):
        os.makedirs(os.path.join(root, name), exist_ok=True)
    script = (f"for d in usr lib lib64 bin etc proc; do mount --rbind /$d {root}/$d; done; "
              f"mount --bind {shared} {root}/classes; exec chroot {root} \"$@\"")
    target = Target(java, before=("unshare", "--mount", "sh", "-ec", script, "sh"),
                    classes="/classes").wait_ready()
    name = f"Java {java.label}, another root"
    lib.equal(os.readlink(f"/proc/{target.pid}/root"), root, f"{name}: is one")
    check_ok(target, name)
    lib.ok(os.path.exists(f"{root}/tmp/perf-{target.pid}.map"), f"{name}: the map is there")
    target.end()


# --- JVMs that do not ---

def check_no_signals(java):
    """-Xrs: SIGQUIT would kill it, but its socket is there from the start."""
    name = f"Java {java.label}, -Xrs"
    target = Target(java, "-Xrs").wait_ready()
    check_flags(target, name, {"DisableAttachMechanism": "0", "ReduceSignalUsage": "1"})
    check_ok(target, name)
    os.unlink(target.in_tmp(".java_pidPID"))
    lib.matches("^EOPNOTSUPP .*-Xrs", ask(target, timeout_ms=SHORT_MS), f"{name}, without socket")
    check_clean(target, f"{name}, without socket")
    target.end()


def check_flags(target, name, want):
    """As its memory has them (runtimes/jvm/jvm_flags.h)."""
    run = subprocess.run([FACTS, str(target.pid)], capture_output=True, text=True, check=True)
    found = dict(re.findall(r"^flag\t(\w+)\t(.)$", run.stdout, re.M))
    lib.equal(found, {**want, "NoSuchFlag": "?"}, f"{name}: its flags")


def check_disabled(java):
    disabled = "-XX:+DisableAttachMechanism"
    for how, options, env in (("option", [disabled], {}),
                              ("environment", [], {"JAVA_TOOL_OPTIONS": disabled})):
        target = Target(java, *options, env=env).wait_ready()
        name = f"Java {java.label}, disabled by {how}"
        lib.matches("^EOPNOTSUPP .*DisableAttachMechanism", ask(target), f"{name}: says so")
        check_clean(target, name)
        target.end()


def check_disabled_secretly(java):
    """By a file of options. It cannot be known that it will print its threads."""
    with open(os.path.join(shared, "options"), "w", encoding="ascii") as file:
        file.write("-XX:+DisableAttachMechanism\n")
    target = Target(java, "@" + os.path.join(shared, "options")).wait_ready()
    name = f"Java {java.label}, disabled by a file"
    check_flags(target, name, {"DisableAttachMechanism": "1", "ReduceSignalUsage": "0"})
    lib.matches("^EOPNOTSUPP .*DisableAttachMechanism", ask(target, timeout_ms=SHORT_MS),
                f"{name}: says so")
    lib.ok(not os.path.lexists(target.in_tmp(".attach_pidPID")), f"{name}: no file is left")
    lib.ok(target.lives(), f"{name}: the JVM lives")
    lib.equal(target.said().count(DUMP), 1, f"{name}: it was sent one SIGQUIT")
    check_killed(target, name)
    target.end()


def check_killed(target, name):
    """The asking process is killed while it waits."""
    trigger = target.in_tmp(".attach_pidPID")
    tool = lib.start(TOOL, target.pid, COMMAND, LONG_MS, stdout=subprocess.DEVNULL)
    lib.wait_for(lambda: os.path.lexists(trigger), "the file")
    with open(f"/proc/{tool.pid}/task/{tool.pid}/children", encoding="ascii") as file:
        helper = int(file.read())
    lib.stop(tool)
    lib.wait_for(lambda: lib.state_of(helper) in (None, "Z"), "the end of the helper")
    lib.ok(not os.path.lexists(trigger), f"{name}, killed while asking: no file is left")
    lib.ok(target.lives(), f"{name}, killed while asking: the JVM lives")


def check_stopped(java):
    target = Target(java).wait_ready()
    for what in "before it was ever asked", "later":
        name = f"Java {java.label}, stopped {what}"
        os.kill(target.pid, signal.SIGSTOP)
        lib.wait_for(lambda: lib.state_of(target.pid) == "T", "it to stop")
        lib.matches("^ETIMEDOUT .*stopped", ask(target, timeout_ms=SHORT_MS), f"{name}: says so")
        os.kill(target.pid, signal.SIGCONT)
        check_clean(target, name)
        check_ok(target, f"{name}, continued")
    target.end()


def check_no_place(java):
    """It cannot write its map. Java 17 does not tell."""
    target = Target(java).wait_ready()
    os.mkdir(target.in_tmp("perf-PID.map"))
    if java.version < (22,):
        lib.equal(ask(target), "ok", f"Java {java.label}, no map: Java 17 says that all is well")
    else:
        lib.matches("^EIO .*Failed to create", ask(target), f"Java {java.label}, no map: says so")
    os.rmdir(target.in_tmp("perf-PID.map"))
    check_ok(target, f"Java {java.label}, with a place for the map")
    target.end()


# --- what there is ---

def classes_for(java):
    """Where the JVM finds the fixture."""
    if not java.root:
        return shared
    if java.root not in copies:
        copies[java.root] = tempfile.mkdtemp(prefix="braid-live-", dir=java.root + "/tmp")
        atexit.register(shutil.rmtree, copies[java.root], ignore_errors=True)
        os.chmod(copies[java.root], 0o755)
        for file in glob.glob(shared + "/*.class"):
            shutil.copy(file, copies[java.root])
    return copies[java.root][len(java.root):]


if os.geteuid() != 0:
    lib.skip_all("not root")
if not shutil.which("javac"):
    lib.skip_all("no javac")
shared = tempfile.mkdtemp(prefix="braid-live-")  # every user can read it
atexit.register(shutil.rmtree, shared, ignore_errors=True)
os.chmod(shared, 0o755)
copies = {}
subprocess.run(["javac", "--release", "17", "-d", shared, "fixtures/java/Attach.java"], check=True)
TOOL = shutil.copy(TOOL, shared)  # for other users
found, skipped = javas.javas()
if not found:
    lib.skip_all("no JVM here")
for java in found:
    check_plain(java)
    check_stopped(java)
    check_disabled(java)
    check_no_signals(java)
    if java.root:
        continue
    check_starting(java)
    check_disabled_secretly(java)
    check_no_place(java)
    check_user(java)
    check_namespaces(java)
    check_chroot(java)
python_matrix.print_skipped(skipped)
lib.done()
