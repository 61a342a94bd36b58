# SPDX-License-Identifier: GPL-2.0-or-later
"""The CRuby builds at hand: in PATH, of rbenv, in /opt, made for these tests in ~/.cache, in the
test roots (scripts/test-roots), and copies that a test makes of them."""

import atexit
import copy
import glob
import os
import re
import shutil
import subprocess
import tempfile

import lib
import ruby_stacks
from pythons import Skipped, file_offset, original_environment, roots_directory, why_no_root

NAME = re.compile(r"ruby(\d\.\d)?$")
ROOTS = ("bullseye", "trixie")  # as in scripts/test-roots; those with a Ruby
HELPERS = {"fixture.rb", "loaded.rb", "required.rb"}
EMBEDDED = "embedded.rb"
UNLISTED = {"mixed.rb"}

# Run by the interpreter itself, one fact a line.
FACTS = """
def binary # without a library of Ruby's own, and without /proc, as the case may be
  files = File.readlines('/proc/self/maps').map { |line| line.split[5].to_s }
  files.grep(%r{/libruby[^/]*\\.so})[0] || files.grep(%r{/ruby[^/]*$})[0]
rescue SystemCallError
  require 'rbconfig'
  config = RbConfig::CONFIG
  return RbConfig.ruby if config['ENABLE_SHARED'] != 'yes'

  config.values_at('archlibdir', 'libdir').compact
        .map { |place| File.join(place, config['LIBRUBY_SO']) }.find { |file| File.exist?(file) }
end

def missing?(name)
  !require(name)
rescue LoadError
  true
end

puts RUBY_ENGINE, RUBY_VERSION, binary
puts %w[digest json openssl zlib].select { |name| missing?(name) }.join(' ')
"""


class Ruby:
    """One interpreter. `program` is as it is in its `root`; `work` is a directory of the test in
    there."""

    def __init__(self, found, program, root=""):
        self.found, self.root = found, root
        self.env = {}  # beside the test's own
        self.what = ""  # how it differs from the one that was found
        self.work, self.directory = lib.tmp, "fixtures/ruby"
        self.command = [program, "--disable-gems"]
        if root:
            self.command = ["chroot", root, *self.command]
            self.work = work_directory(root)
            self.directory = os.path.join(self.inside(self.work), "ruby")
        self._ask()

    def _ask(self):
        run = subprocess.run([*self.command, "-e", FACTS], env=self.environment(), check=True,
                             capture_output=True, text=True)
        self.engine, version, binary, missing = run.stdout.split("\n")[:4]
        self.version = tuple(int(number) for number in version.split("."))
        self.binary = os.path.realpath(self.root + binary)
        self.is_library = "/libruby" in self.binary
        self.missing = set(missing.split())
        jit = subprocess.run([*self.command, "--yjit", "-e", "exit RubyVM::YJIT.enabled?"],
                             env=self.environment(), capture_output=True, check=False)
        self.has_yjit = jit.returncode == 0
        notes = subprocess.run(["readelf", "-n", self.binary], capture_output=True, check=False)
        self.dtrace = b"Provider: ruby" in notes.stdout
        sections = subprocess.run(["readelf", "-SW", self.binary], capture_output=True, check=False)
        self.has_symtab = b" .symtab " in sections.stdout

    @property
    def label(self):
        text = f"{'.'.join(map(str, self.version))} {self.found}"
        return text + (", " + self.what if self.what else "")

    @property
    def kind(self):
        words = ["libruby" if self.is_library else "static"]
        return " ".join(words + ["symtab"] * self.has_symtab + ["dtrace"] * self.dtrace
                        + ["yjit"] * self.has_yjit)

    def environment(self):
        return {**os.environ, **self.env}

    def inside(self, path):
        """A path of ours as it is for the interpreter."""
        return path[len(self.root):] if self.root else path

    def scripts(self):
        """The fixtures that it can run by itself."""
        names = set(map(os.path.basename, glob.glob("fixtures/ruby/*.rb")))
        names -= HELPERS | UNLISTED | {EMBEDDED}
        if self.version < (3, 0):
            names.discard("ractors.rb")
        return sorted(name for name in names if not self.missing & required_by(name))

    def arguments(self, script, *args, options=()):
        return [*self.command, *options, os.path.join(self.directory, script), *map(str, args)]

    def start(self, script, *args, options=()):
        # Behind braid: a machine with few CPUs runs many of them.
        return lib.start_ready("nice", "-n", "5", *self.arguments(script, *args, options=options),
                               env=self.environment())

    def said(self, script, *args):
        """The stacks that the interpreter tells of the fixture."""
        file = tempfile.mktemp(prefix="oracle-", dir=self.work)
        command = self.arguments(script, *args, "--oracle", self.inside(file))
        run = subprocess.run(command, env=self.environment(), timeout=lib.PATIENCE_S,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        if run.returncode:
            raise RuntimeError(f"{command}: {run.stderr.decode(errors='replace')[-500:]}")
        return ruby_stacks.read_oracle(file)

    def oracle(self, script, *args):
        """The same, with classes, as braid should show them."""
        promised = ruby_stacks.promised(script)
        want = {ruby_stacks.with_classes(stack, promised, self.version)
                for stack in self.said(script, *args)}
        if None in want:
            raise RuntimeError(f"{script}: not all its stacks: run tests/long/ruby_fixtures.t")
        return want


def required_by(script):
    with open(f"fixtures/ruby/{script}", encoding="utf-8") as file:
        return set(re.findall(r"^require '(\w+)'$", file.read(), re.M))


def work_directory(root):
    """One in the root, with the fixtures."""
    work = tempfile.mkdtemp(prefix="braid-live-", dir=os.path.join(root, "tmp"))
    atexit.register(shutil.rmtree, work, ignore_errors=True)
    os.chmod(work, 0o755)
    shutil.copytree("fixtures/ruby", os.path.join(work, "ruby"))
    return work


# --- those that are made of others ---

def stripped(ruby):
    """With no symbols but the dynamic ones, nor a build ID to find others."""
    def strip(new):
        subprocess.run(["strip", "--strip-all", "--remove-section=.note.gnu.build-id", "-o", new,
                        ruby.binary], check=True)

    return with_binary(ruby, "stripped", strip)


def of_unknown_version(ruby):
    """One that says to be 3.9. It has no build ID, lest it is taken for the original."""
    def patch(new):
        subprocess.run(["objcopy", "--remove-section=.note.gnu.build-id", ruby.binary, new],
                       check=True)
        os.chmod(new, 0o755)
        with open(new, "r+b") as file:
            file.seek(file_offset(new, "ruby_version"))
            file.write(b"3.9")

    return with_binary(ruby, "says 3.9", patch)


def with_binary(ruby, what, make):
    """A copy whose program or libruby make(new path) has made."""
    directory = tempfile.mkdtemp(prefix="ruby-", dir=ruby.work)
    os.chmod(directory, 0o755)
    new = os.path.join(directory, os.path.basename(ruby.binary))
    make(new)
    made = copy.copy(ruby)
    made.what, made.binary, made.has_symtab = what, new, False
    if ruby.is_library:
        soname = re.search(r"SONAME.*\[(.*)\]", read_elf("-d", ruby.binary))[1]
        if soname != os.path.basename(new):
            os.symlink(os.path.basename(new), os.path.join(directory, soname))
        made.env = {**ruby.env, "LD_LIBRARY_PATH": ruby.inside(directory)}
    else:
        made.command = [ruby.inside(new) if word == ruby.inside(ruby.binary) else word
                        for word in ruby.command]
        # It finds its library beside itself.
        made.env = {**ruby.env, "RUBYLIB": ":".join(load_path(ruby))}
    return made


def read_elf(*args):
    return subprocess.run(["readelf", "-W", *args], check=True, capture_output=True,
                          text=True).stdout


def load_path(ruby):
    run = subprocess.run([*ruby.command, "-e", "puts $LOAD_PATH"], check=True, capture_output=True,
                         text=True, env=ruby.environment())
    return run.stdout.split()


def embedded(ruby):
    """A program that runs scripts by a libruby that it opens (fixtures/native/embed_ruby.c); None
    if that cannot run there."""
    made = copy.copy(ruby)
    program = lib.fixture("embed_ruby")
    if ruby.root:
        program = shutil.copy(program, ruby.work)
    made.what = "embedded"
    made.command = [*ruby.command[:-2], ruby.inside(program), ruby.inside(ruby.binary)]
    made.env = {**ruby.env, "RUBYLIB": ":".join(load_path(ruby))}
    try:
        made.said(EMBEDDED)
    except RuntimeError as error:
        print(f"# {ruby.label}: not embedded: {str(error)[-200:]!r}")  # an older libc
        return None
    return made


# --- discovery ---

def candidates():
    """[(how found, program, root)]"""
    cache = original_environment("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    roots = [(name, os.path.join(roots_directory(), name)) for name in ROOTS]
    for how, pattern in (("rbenv", "~/.rbenv/versions/*"), ("~/.rubies", "~/.rubies/*"),
                         ("/opt", "/opt/*"), ("/opt", "/opt/rubies/*"),
                         ("built", cache + "/braid-rubies/*")):
        for directory in sorted(glob.glob(os.path.expanduser(pattern))):
            name = f"{how} {os.path.basename(directory)}"
            if os.path.isdir(directory + "/usr/bin"):
                roots.append((name, directory))
            else:
                yield from ((name, program, "") for program in programs(directory + "/bin"))
    for directory in [*os.environ["PATH"].split(":"), "/usr/bin"]:
        if "/shims" not in directory:  # rbenv's scripts
            yield from (("PATH", program, "") for program in programs(directory))
    for name, root in roots if os.geteuid() == 0 else ():
        for program in programs(root + "/usr/bin"):
            yield name, program[len(root):], root


def programs(directory):
    return [os.path.join(directory, name) for name in sorted(os.listdir(directory))
            if NAME.match(name)] if os.path.isdir(directory) else []


def rubies():
    """([Ruby], [Skipped]): every build once, in the order of the versions."""
    found, skipped, seen = [], [], set()
    for how, program, root in candidates():
        binary = os.path.realpath(root + program)  # links in there are relative
        if binary in seen:
            continue
        seen.add(binary)
        try:
            ruby = Ruby(how, program, root)
        except (subprocess.CalledProcessError, OSError, ValueError) as error:
            why = (getattr(error, "stderr", None) or str(error)).strip()[-200:]
            skipped.append(Skipped(f"{how} {program}", why, False))
            continue
        if ruby.engine == "ruby":
            found.append(ruby)
        else:
            skipped.append(Skipped(f"{how} {program}", f"is {ruby.engine}", False))
    for name in ROOTS:
        if os.geteuid():
            skipped.append(Skipped(f"root {name}", "not root", False))
        elif not os.path.isdir(os.path.join(roots_directory(), name)):
            skipped.append(Skipped(f"root {name}", *why_no_root(name)))
    return sorted(found, key=lambda ruby: ruby.version), skipped
