# SPDX-License-Identifier: GPL-2.0-or-later
"""The HotSpot JVMs at hand: in PATH, in /usr/lib/jvm, of sdkman, in /opt, in the test roots
(scripts/test-roots); what they run, compiled once; and copies that a test makes of them."""

import atexit
import copy
import glob
import os
import re
import shutil
import subprocess
import tempfile

import lib
from pythons import Skipped, roots_directory, why_no_root

ROOTS = ("trixie", "forky")  # as in scripts/test-roots; those with a JVM
JVMS = "/usr/lib/jvm"
# Not by themselves: what they share, other tests' and the demo's.
HELPERS = {"Fixture", "Attach", "Mixed", "Monitors", "Steps", "Tables"}
FIXTURES = sorted({name[:-5] for name in os.listdir("fixtures/java") if name.endswith(".java")}
                  - HELPERS)
SINCE = {"Virtual": 21}
COLLECTORS = ("Serial", "Parallel", "G1", "Z", "Shenandoah")
# Java, and what loads it, looks for itself in /proc.
CHROOT = ["unshare", "--mount", "sh", "-c", 'mount --bind /proc "$0/proc" && exec chroot "$0" "$@"']


class Java:
    """One JVM. `home` is as it is in its `root`; `work` is a directory of the test in there, with
    the fixtures."""

    def __init__(self, found, home, root=""):
        self.found, self.home, self.root = found, home, root
        self.what = ""  # how it differs from the one that was found
        self.env = {}  # beside the test's own
        self.command = [os.path.join(home, "bin/java")]
        if root:
            self.command = [*CHROOT, root, *self.command]
        self._ask()
        self.work = work_directory(root) if root else compiled()
        self.oracles = {}

    def _ask(self):
        """Without its flags of JAVA_TOOL_OPTIONS and the like, which it would tell about."""
        run = self.run("-XX:+PrintFlagsFinal", "-XshowSettings:properties", "-version")
        settings = dict(re.findall(r"^ +(java\.[\w.]+) = (.*)$", run.stderr, re.M))
        self.version = tuple(int(number) for number in
                             re.findall(r"\d+", settings["java.version"].partition("-")[0]))
        self.vm = settings["java.vm.name"]
        self.flags = dict(re.findall(r"^ *\S+ (\w+) +:?= (\S*)", run.stdout, re.M))

    @property
    def is_hotspot(self):
        return "Server VM" in self.vm and "OpenJ9" not in self.vm

    @property
    def label(self):
        text = f"{'.'.join(map(str, self.version))} {self.found}"
        return text + (", " + self.what if self.what else "")

    @property
    def library(self):
        """As it is for us."""
        return os.path.realpath(self.root + self.home) + "/lib/server/libjvm.so"

    def collectors(self):
        return [name for name in COLLECTORS if f"Use{name}GC" in self.flags]

    def environment(self):
        return {**{name: value for name, value in os.environ.items()
                   if not re.match(r"(JAVA_TOOL|_JAVA|JDK_JAVA)_OPTIONS$", name)}, **self.env}

    def inside(self, path):
        """A path of ours as it is for the JVM."""
        return path[len(self.root):] if self.root else path

    def run(self, *args):
        return subprocess.run([*self.command, *args], env=self.environment(), check=True,
                              capture_output=True, text=True, timeout=3 * lib.PATIENCE_S)

    def scripts(self):
        """The fixtures that it can run."""
        return [name for name in FIXTURES if SINCE.get(name, 0) <= self.version[0]]

    def arguments(self, name, *args, options=()):
        classes = self.inside(self.work)
        common = ["-Xmx256m", "-XX:-PrintWarnings", "-Xlog:disable", "-cp", classes,
                  f"-Dfixture.natives={classes}/libnatives.so"]
        if self.version[0] >= 22:
            common.append("--enable-native-access=ALL-UNNAMED")
        return [*self.command, *common, *options, name, *map(str, args)]

    def start(self, name, *args, options=(), **more):
        """Behind braid: a machine with few CPUs runs many of them."""
        return lib.start_ready("nice", "-n", "5", *self.arguments(name, *args, options=options),
                               env=self.environment(), **more)

    def oracle(self, name, *args):
        """The stacks that the JVM sees in its own frames: tuples of (label, file, line)."""
        key = (name, *args)
        if key not in self.oracles:
            file = tempfile.mktemp(prefix="oracle-", dir=self.work)
            command = self.arguments(name, *args, "--oracle", self.inside(file),
                                     options=["-Xss64m"] if name == "Deep" else [])
            run = subprocess.run(command, env=self.environment(), timeout=3 * lib.PATIENCE_S,
                                 capture_output=True, check=False)
            if run.returncode:
                raise RuntimeError(f"{command}: {run.stderr.decode(errors='replace')[-500:]}")
            self.oracles[key] = read_oracle(file)
        return self.oracles[key]


def read_oracle(file):
    """Each different stack once."""
    with open(file, encoding="utf-8") as lines:
        stacks = lines.read().split("\n\n")[:-1]
    return {tuple(tuple(line.split("\t")) for line in stack.split("\n")) for stack in stacks}


# --- what they run ---

_compiled = []


def compiler():
    """(javac, the directory of jni.h), or None."""
    for javac in [shutil.which("javac"), *sorted(glob.glob(JVMS + "/*/bin/javac"))]:
        if javac:
            include = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(javac))),
                                   "include")
            if os.path.exists(include + "/jni.h"):
                return javac, include
    return None


def compiled():
    """The directory with the fixtures' classes and their native library."""
    if not _compiled:
        directory = os.path.join(lib.tmp, "java")
        os.mkdir(directory)
        javac, include = compiler()
        sources = [f"fixtures/java/{name}.java" for name in ["Fixture", *FIXTURES]]
        subprocess.run([javac, "--release", "17", "-g", "-encoding", "UTF-8", "-d", directory,
                        *sources], check=True)
        subprocess.run(["cc", "-O2", "-g", "-shared", "-fPIC", "-fomit-frame-pointer",
                        "-I", include, "-I", include + "/linux", "fixtures/java/natives.c",
                        "-o", directory + "/libnatives.so"], check=True)
        _compiled.append(directory)
    return _compiled[0]


def work_directory(root):
    """One in the root, with the fixtures."""
    work = tempfile.mkdtemp(prefix="braid-live-", dir=os.path.join(root, "tmp"))
    atexit.register(shutil.rmtree, work, ignore_errors=True)
    os.chmod(work, 0o755)
    shutil.copytree(compiled(), work, dirs_exist_ok=True)
    return work


# --- those that are made of others ---

def with_library(java, what, change):
    """A copy whose libjvm.so change(its path) has changed. It has no build ID, lest it is taken for
    the original."""
    place = java.root + "/tmp" if java.root else lib.tmp
    home = tempfile.mkdtemp(prefix="jvm-", dir=place)
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    os.chmod(home, 0o755)
    original = os.path.realpath(java.root + java.home)
    subprocess.run(["cp", "-as", original + "/.", home], check=True)
    # What it finds itself by cannot be a link.
    for name in "bin/java", "lib/libjli.so", "lib/libjava.so", "lib/server/libjvm.so":
        os.unlink(os.path.join(home, name))
        shutil.copy2(os.path.join(original, name), os.path.join(home, name))
    library = os.path.join(home, "lib/server/libjvm.so")
    subprocess.run(["objcopy", "--remove-section=.note.gnu.build-id", library], check=True)
    change(library)
    made = copy.copy(java)
    made.what, made.home, made.oracles = what, java.inside(home), {}
    made.command = [*java.command[:-1], made.home + "/bin/java"]
    return made


# --- discovery ---

def candidates():
    """[(how found, home, root)]"""
    program = shutil.which("java")
    if program:
        yield "PATH", os.path.dirname(os.path.dirname(os.path.realpath(program))), ""
    for how, pattern in ((JVMS, JVMS + "/*"), ("/opt", "/opt/*"),
                         ("sdkman", "~/.sdkman/candidates/java/*")):
        for home in sorted(glob.glob(os.path.expanduser(pattern))):
            yield how, home, ""
    for name in ROOTS if os.geteuid() == 0 else ():
        root = os.path.join(roots_directory(), name)
        for home in sorted(glob.glob(root + JVMS + "/*")):
            yield name, home[len(root):], root


def javas():
    """([Java], [Skipped]): every JVM once, in the order of the versions."""
    found, skipped, seen = [], [], set()
    if not compiler():
        return [], [Skipped("JVMs", "no javac with jni.h", False)]
    for how, home, root in candidates():
        real = os.path.realpath(root + home)
        if real in seen or not os.path.exists(real + "/bin/java"):
            continue
        seen.add(real)
        try:
            java = Java(how, home, root)
        except (subprocess.SubprocessError, OSError, KeyError) as error:
            why = (getattr(error, "stderr", None) or repr(error)).strip()[-200:]
            skipped.append(Skipped(f"{how} {home}", why, False))
            continue
        if java.is_hotspot and java.version >= (17,):
            found.append(java)
        else:
            skipped.append(Skipped(f"{how} {home}", f"is {java.vm} {java.version}", False))
    for name in ROOTS:
        if os.geteuid():
            skipped.append(Skipped(f"root {name}", "not root", False))
        elif not glob.glob(os.path.join(roots_directory(), name) + JVMS + "/*"):
            skipped.append(Skipped(f"root {name}'s JVMs", *why_no_root(name)))
    return sorted(found, key=lambda java: java.version), skipped
