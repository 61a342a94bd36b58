#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Records tests/replay/corpus/ruby with the CRuby builds at hand: this machine's, those of the test
roots (scripts/test-roots), and those below $BRAID_RUBIES: VERSION/opt/ruby-VERSION/bin/ruby, built
with that prefix, or VERSION/usr/bin/rubyVERSION, a newer distribution's packages unpacked, which
run in the newest root.

usage: record_ruby.py [PATTERN...]"""

import os
import shutil
import subprocess
import tempfile

import corpus

VERSIONS = ("2.7", "3.0", "3.1", "3.2", "3.3", "3.4", "4.0")
ROOTS = {"2.7": "bullseye", "3.3": "trixie"}
NEWEST_ROOT = "forky"
RUBIES = os.environ.get("BRAID_RUBIES", "")

# What a version's layouts matter to; what one or two versions show as well as all.
EVERYWHERE = ("blocks", "exceptions", "fibers", "gc", "names", "threads")
SOMEWHERE = {
    "2.7": ("ends", "steps"),
    "3.0": ("ractors", "scheduler"),
    "3.1": ("c_methods", "deep", "ends", "evals", "native", "ractors", "scheduler", "steps"),
    "3.2": ("native",),
    "3.3": ("ractors", "steps"),
    "3.4": ("ends", "native", "scheduler"),
    "4.0": ("c_methods", "ractors", "scheduler", "steps"),
}
YJIT = ("3.1", "4.0")  # where it is there
EMBEDDED = "3.1"
MUSL = {"rb2.7": "2.7", "rb3.1": "3.1", "rb3.1static": "3.1", "rb3.3": "3.3"}  # scripts/test-musl
OF_MUSL = ("blocks", "exceptions", "names")  # without zlib
WITH_FIDDLE = ("gc", "native")
WITHOUT_FIDDLE = ("4.0",)  # where it is a gem


class Ruby:
    """An interpreter: its command and what corpus.record needs beside it."""

    def __init__(self, version, command, **where):
        self.version, self.command, self.where = version, command, where


def find(version):
    """The Ruby of this version, or None."""
    program = "/usr/bin/ruby" + version
    if version in ROOTS:
        root = corpus.root(ROOTS[version])
        return Ruby(version, [program], chroot=root) if root and \
            os.path.exists(root + program) else None
    if os.path.exists(program):
        return Ruby(version, [program])
    there = "%s/%s" % (RUBIES, version)
    name = "ruby-" + version
    if os.path.exists("%s/opt/%s/bin/ruby" % (there, name)):
        return Ruby(version, ["/opt/%s/bin/ruby" % name], binds={"%s/opt/%s" % (there, name): name})
    if os.path.exists(there + program) and corpus.root(NEWEST_ROOT):
        libraries = "/opt/%s/lib/x86_64-linux-gnu" % name
        return Ruby(version, ["/opt/%s/bin/ruby%s" % (name, version)],
                    binds={there + "/usr": name}, chroot=corpus.root(NEWEST_ROOT),
                    env={"LD_LIBRARY_PATH": libraries,
                         "RUBYLIB": "/opt/{0}/lib/ruby/{1}.0:{2}/ruby/{1}.0".format(
                             name, version, libraries)})
    return None


def record(ruby, name, script=None, options=(), **more):
    corpus.record("ruby/%s-%s" % (ruby.version, name),
                  ruby.command + ["--disable-gems", *options,
                                  "/opt/replay/ruby/%s.rb" % (script or name)],
                  **ruby.where, **more)


def record_all(ruby):
    for script in sorted(EVERYWHERE + SOMEWHERE[ruby.version]):
        if script not in WITH_FIDDLE or ruby.version not in WITHOUT_FIDDLE:
            record(ruby, script)
    if ruby.version in YJIT:
        record(ruby, "yjit", "jit", ["--yjit"])
    if ruby.version == EMBEDDED:
        record_embedded(ruby)


def record_embedded(ruby):
    """In a program that opens the library (fixtures/native/embed_ruby.c)."""
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(["gcc", "-O2", "-g", "-rdynamic", "-fdebug-prefix-map=%s=/opt" % corpus.TOP,
                        "fixtures/native/embed_ruby.c", "-o", directory + "/embed_ruby", "-ldl"],
                       cwd=corpus.TOP, check=True)
        corpus.record("ruby/%s-embedded" % ruby.version,
                      ["/opt/native/embed_ruby", "libruby-{0}.so.{0}".format(ruby.version),
                       "/opt/replay/ruby/embedded.rb"], binds={directory: "native"})


def record_musl():
    with tempfile.TemporaryDirectory() as work:
        for name, version in MUSL.items():
            directory = os.path.join(corpus.MUSL, name)
            label = version + "-musl" + ("-static" if name.endswith("static") else "")
            if not os.path.exists(directory + "/bin/ruby"):
                print("not here: %s (scripts/test-musl)" % directory)
                continue
            copy = corpus.moved(directory, "/opt/ruby/" + name, os.path.join(work, name),
                                shutil.ignore_patterns("*.a", "include", "share", "gems"))
            for script in OF_MUSL:
                record(Ruby(label, ["/opt/ruby/%s/bin/ruby" % name], binds={copy: "ruby/" + name}),
                       script)


def main():
    for version in VERSIONS:
        ruby = find(version)
        if ruby:
            record_all(ruby)
        else:
            print("not here: ruby %s" % version)
    record_musl()
    corpus.done()


if __name__ == "__main__":
    main()
