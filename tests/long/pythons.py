# SPDX-License-Identifier: GPL-2.0-or-later
"""The CPython builds at hand: in PATH, of pyenv, in /opt, those that were built for tests
(scripts/test-pythons), in the test roots (scripts/test-roots), and stripped copies and virtual environments that a test makes of them."""

import ast
import atexit
import collections
import copy
import glob
import os
import re
import shutil
import struct
import subprocess
import tempfile

import lib

NAME = re.compile(r"python3\.\d+t?(-pie)?$")
ROOTS = ("bullseye", "trixie", "forky")  # as in scripts/test-roots

# Run by the interpreter itself. What is mapped tells a libpython from a static build.
FACTS = """
import os, sys, sysconfig
try:
    import ctypes, sqlite3, zlib
except ImportError as error:
    sys.exit("no module: %s" % error)
mapped = []
if os.path.exists("/proc/self/maps"):
    with open("/proc/self/maps") as maps:
        mapped = [line.split()[-1] for line in maps if "/libpython3." in line]
print((tuple(sys.version_info[:3]), sys.version_info[3], mapped[:1],
       os.path.realpath(sys.executable), bool(sysconfig.get_config_var("Py_GIL_DISABLED"))))
"""


def original_environment(name):
    """The value that the test was started with: lib changes some."""
    with open("/proc/self/environ", encoding="utf-8", errors="replace") as file:
        values = dict(entry.partition("=")[::2] for entry in file.read().split("\0"))
    return values.get(name)


def roots_directory():
    cache = original_environment("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return original_environment("BRAID_TEST_ROOTS") or os.path.join(cache, "braid-tests")


class Python:
    """One interpreter. `command` runs it; `root` is where its "/" is; `work` is a directory of the
    test in there."""

    def __init__(self, found, program, root="", env=None):
        self.found, self.program, self.root = found, program, root
        self.env = env or {}
        self.stripped = False
        self.flags = ["-B"]
        self.work, self.scripts = lib.tmp, "fixtures/python"
        self.command = [program]
        if root:
            self.command = ["chroot", root, program]
            self.work = work_directory(root)
            self.scripts = os.path.join(self.inside(self.work), "python")
        self._ask()

    def _ask(self):
        run = subprocess.run([*self.command, "-c", FACTS], env=self.environment(), check=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             universal_newlines=True)
        self.version, self.level, mapped, binary, self.free_threaded = ast.literal_eval(run.stdout)
        self.is_library = bool(mapped)
        self.binary = self.root + (mapped[0] if mapped else binary)
        notes = subprocess.run(["readelf", "-n", self.binary], capture_output=True, check=False)
        self.dtrace = b"Provider: python" in notes.stdout

    @property
    def label(self):
        text = f"{'.'.join(map(str, self.version))} {self.found}"
        return text + (", stripped" if self.stripped else "")

    @property
    def kind(self):
        words = ["libpython" if self.is_library else "static"]
        words += ["dtrace"] * self.dtrace + ["free-threaded"] * self.free_threaded
        return " ".join(words)

    def environment(self):
        return {**os.environ, **self.env}

    def inside(self, path):
        """A path of ours as it is for the interpreter."""
        return path[len(self.root):] if self.root else path

    def script(self, name):
        return os.path.join(self.scripts, name)

    def arguments(self, script, *args, options=()):
        return [*self.command, *self.flags, *options, self.script(script), *map(str, args)]

    def start(self, script, *args, options=()):
        # Behind braid: a machine with few CPUs runs many of them.
        return lib.start_ready("nice", "-n", "5", *self.arguments(script, *args, options=options),
                               env=self.environment())

    def oracle(self, script, *args):
        """The stacks that the interpreter sees in its own frames: tuples of
        (function, file, line)."""
        file = tempfile.mktemp(prefix="oracle-", dir=self.work)
        command = self.arguments(script, *args, "--oracle", self.inside(file))
        run = subprocess.run(command, env=self.environment(), timeout=lib.PATIENCE_S,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        if run.returncode:
            raise RuntimeError(f"{command}: {run.stderr.decode(errors='replace')[-500:]}")
        return read_oracle(file)


def read_oracle(file):
    with open(file, encoding="utf-8") as lines:
        stacks = lines.read().split("\n\n")[:-1]
    return [tuple(tuple(line.split("\t")) for line in stack.split("\n")) for stack in stacks]


def work_directory(root):
    """One in the root, with the fixtures."""
    work = tempfile.mkdtemp(prefix="braid-live-", dir=os.path.join(root, "tmp"))
    atexit.register(shutil.rmtree, work, ignore_errors=True)
    os.chmod(work, 0o755)
    shutil.copytree("fixtures/python", os.path.join(work, "python"))
    return work


# --- those that are made of others ---

def with_library(python, found, make):
    """The program with another libpython: make(new path, path of the one that it has)."""
    directory = tempfile.mkdtemp(prefix="library-", dir=lib.tmp)
    library = os.path.join(directory, os.path.basename(python.binary))
    make(library, python.binary)
    return Python(found, python.program, env={"LD_LIBRARY_PATH": directory})


def stripped(python):
    """With a libpython that has no symbols but the dynamic ones, nor a build ID to find others."""
    def strip(new, old):
        subprocess.run(["strip", "--strip-all", "--remove-section=.note.gnu.build-id", "-o", new,
                        old], check=True)

    made = with_library(python, python.found, strip)
    made.stripped = True
    return made


def patched(python, found, words):
    """With a libpython in which words are others, words(path) -> [(file offset, struct format,
    value)], and that has no build ID, lest it is taken for the original."""
    def patch(new, old):
        subprocess.run(["objcopy", "--remove-section=.note.gnu.build-id", old, new], check=True)
        os.chmod(new, 0o755)
        for offset, form, value in words(new):
            with open(new, "r+b") as file:
                file.seek(offset)
                file.write(struct.pack(form, value))

    return with_library(python, found, patch)


def file_offset(binary, symbol):
    """Where in a file an exported symbol's bytes are; None: there is no such symbol."""
    address = None
    for line in output("readelf", "-W", "--dyn-syms", binary).splitlines():
        words = line.split()
        if len(words) > 7 and words[7].partition("@")[0] == symbol:
            address = int(words[1], 16)
    for line in output("readelf", "-lW", binary).splitlines() if address else ():
        words = line.split()
        if words[:1] == ["LOAD"]:
            offset, start, _, size = (int(word, 16) for word in words[1:5])
            if start <= address < start + size:
                return address - start + offset
    return None


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode()


def embedded(python, library=None):
    """A program that runs scripts by a libpython that it opens (fixtures/native/embed.c)."""
    made = copy.copy(python)
    program = lib.fixture("embed")
    if python.root:
        program = shutil.copy(program, python.work)
    made.found = "embedded " + python.found
    made.flags = []
    made.command = [*python.command[:-1], python.inside(program),
                    library or python.inside(python.binary)]
    made.env = {**python.env, "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONHOME": os.path.dirname(os.path.dirname(python.program))}
    return made


def in_mount_namespace(python):
    """As a container runs it: at a path where there is nothing for others."""
    made = copy.copy(python)
    made.found = "mount namespace, " + python.found
    place = tempfile.mkdtemp(prefix="mounted-", dir=lib.tmp)
    made.command = ["unshare", "--mount", "sh", "-c",
                    'mount --rbind "$0" "$1" && exec chroot "$@"',
                    python.root, place, python.program]
    return made


def virtual_environment(python):
    directory = tempfile.mkdtemp(prefix="venv-", dir=lib.tmp)
    subprocess.run([*python.command, "-m", "venv", "--without-pip", directory], check=True)
    return Python("venv of " + python.found, os.path.join(directory, "bin/python"))


# --- discovery ---

Skipped = collections.namedtuple("Skipped", "what why ours")  # ours: this machine could run it


def candidates():
    """[(how found, program, root)]"""
    for version in sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*"))):
        yield from (("pyenv", program, "") for program in programs(version + "/bin"))
    for directory in sorted(glob.glob("/opt/*/bin")):
        yield from (("/opt", program, "") for program in programs(directory))
    for directory in [*os.environ["PATH"].split(":"), "/usr/bin"]:
        if "/shims" not in directory:  # pyenv's scripts
            yield from (("PATH", program, "") for program in programs(directory))
    for build in sorted(glob.glob(os.path.join(roots_directory(), "pythons/*/bin"))):
        name = os.path.basename(os.path.dirname(build))
        yield from (("built " + name, program, "") for program in programs(build))
    for name in ROOTS if os.geteuid() == 0 else ():
        root = os.path.join(roots_directory(), name)
        for program in programs(root + "/usr/bin"):
            yield name, program[len(root):], root


def programs(directory):
    return [os.path.join(directory, name) for name in sorted(os.listdir(directory))
            if NAME.match(name)] if os.path.isdir(directory) else []


def pythons():
    """([Python], [Skipped]): every build once, in the order of the versions."""
    found, skipped, seen = [], [], set()
    for how, program, root in candidates():
        binary = os.path.realpath(root + program)
        if binary in seen:
            continue
        seen.add(binary)
        try:
            found.append(Python(how + (" -pie" if program.endswith("-pie") else ""), program, root))
        except subprocess.CalledProcessError as error:
            skipped.append(Skipped(f"{how} {program}", error.stderr.strip()[-200:], False))
    for name in ROOTS:
        if os.geteuid():
            skipped.append(Skipped(f"root {name}", "not root", False))
        elif not os.path.isdir(os.path.join(roots_directory(), name)):
            skipped.append(Skipped(f"root {name}", *why_no_root(name)))
    return sorted(found, key=lambda python: python.version), skipped


def why_no_root(name):
    try:
        with open(os.path.join(roots_directory(), name + ".why"), encoding="utf-8") as file:
            return file.read().strip(), False
    except OSError:
        return "scripts/test-roots has not made it", True
