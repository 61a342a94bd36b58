#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Records the native part of the replay corpus: record_native.py [PATTERN...]

The programs of fixtures/replay/native, built in many ways, tell which of their functions are
called; of programs as distributions have them nothing is told, but that libdwfl finds the same
frames."""

import os
import shutil
import subprocess

import corpus

SOURCES = os.path.join(corpus.TOP, "fixtures/replay/native")
BUILT = os.path.join(corpus.OUTPUT, "fixtures/replay/native")
FLAGS = ["-O2", "-g", "-fomit-frame-pointer", "-ffile-prefix-map=%s=/opt/replay/native" % SOURCES]

# How calls.c is built: name, compiler, flags.
WAYS = [
    ("pie", "gcc", ["-fpie", "-pie"]),
    ("fixed", "gcc", ["-fno-pie", "-no-pie"]),
    ("static", "gcc", ["-static", "-g0", "-DWITHOUT_LINES"]),
    ("static-pie", "gcc", ["-static-pie", "-g0", "-DWITHOUT_LINES"]),
    ("pointers", "gcc", ["-fno-omit-frame-pointer"]),
    ("O0", "gcc", ["-O0"]),
    ("O3-avx2", "gcc", ["-O3", "-mavx2"]),
    ("debugframe", "gcc", ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]),
    ("cet", "gcc", ["-fcf-protection=full", "-Wl,-z,ibtplt"]),
    ("clang", "clang", []),
    ("lto", "gcc", ["-flto"]),
]

ENDLESS = "with recursive c(x) as (select 1 union all select x+1 from c where x<40000000) "
PROGRAMS = [  # name, program, command, stops
    ("sqlite", "sqlite3", ["sqlite3", ":memory:", ENDLESS + "select max(x||'a'), sum(x%7) from c"]),
    ("sqlite-sort", "sqlite3", ["sqlite3", ":memory:", ENDLESS.replace("40000000", "4000000") +
                                "select x from c order by sin(x) limit 1"]),
    ("bash", "bash", ["bash", "-c", "f() { for ((i = 0; i < 1000000; i++)); do x=${i/1/2}; done; }; "
                      "g() { eval f; }; g"]),
    ("perl", "perl", ["perl", "-e", "sub f { my $n = shift; return $n < 2 ? $n : f($n-1) + f($n-2) }"
                      " my @s = sort { f(12) <=> f(13) or $a <=> $b } 1..9 while 1"]),
    ("perl-regex", "perl", ["perl", "-e", "my $s = 'ab' x 3000; 1 while 1 + ($s =~ s/(a|b)+?c/x/r)"]),
    ("xz", "xz", ["sh", "-c", "cat /bin/* /lib/x86_64-linux-gnu/lib*.so* | exec xz -9e -T1 -c"]),
    ("git", "git", ["git", "diff", "--no-index", "--stat", "/usr/include", "/usr/lib/gcc"]),
    ("sort", "sort", ["sh", "-c", "od -An -v -tx1 /bin/* | exec sort -k3 -u"]),
    ("cc1", "cc1", ["gcc", "-O3", "-g", "-S", "-o", "/dev/null", "/opt/replay/native/calls.c"]),
    ("cc1plus", "cc1plus", ["g++", "-O2", "-S", "-o", "/dev/null", "/opt/replay/native/cxx.cc"]),
    ("ld", "ld", ["gcc", "-static", "-o", "/dev/null", "-xc", "/opt/replay/native/plt.c"]),
    ("openssl", "openssl", ["openssl", "genrsa", "8192"]),
    ("find", "find", ["find", "/usr", "-regex", ".*\\(a+b\\|c\\)*d$"]),
    ("gawk", "awk", ["awk", "BEGIN { while (1) { s = sprintf(\"%d\", rand() * 1e6); a[s]++; "
                      "gsub(/[0-9]+/, \"x\", s) } }"]),
]


def build(source, name, compiler, flags):
    """Compiles; None if this machine cannot."""
    first = open(os.path.join(SOURCES, source)).readline()
    own = first.split("build:")[1].split("*/")[0].split() if first.startswith("/* build:") else []
    out = os.path.join(BUILT, name)
    os.makedirs(BUILT, exist_ok=True)
    run = subprocess.run([compiler, *FLAGS, *flags, os.path.join(SOURCES, source), "-o", out, *own])
    return out if run.returncode == 0 else None


def fixture(name, source, compiler="gcc", flags=()):
    compiler = "g++" if source.endswith(".cc") and compiler == "gcc" else compiler
    if not shutil.which(compiler):
        print("not here: " + compiler)
    elif build(source, name, compiler, flags):
        corpus.record("native/" + name, ["/opt/native/" + name], binds={BUILT: "native"})


def program(name, comm, command, chroot=None, later=(4, 60000), steps=(2, 50)):
    has = shutil.which(command[0], path="/usr/bin:/bin") if not chroot else \
        os.path.exists(os.path.join(chroot, "usr/bin", command[0]))
    if not has:
        print("not here: %s (%s)" % (command[0], name))
        return
    corpus.record("native/" + name, command, chroot=chroot,
                  stops=["--of", comm, "--later", *map(str, later), "--steps", *map(str, steps)])


def main():
    for name, compiler, flags in WAYS:
        fixture("calls-" + name, "calls.c", compiler, flags)
    fixture("plt", "plt.c", flags=["-Wl,-z,lazy"])
    fixture("cxx", "cxx.cc", flags=["-g1", "-gz"])
    for source in ("signals.c", "threads.c", "jit.c", "asm.c"):
        fixture(source.split(".")[0], source)
    build("plugin.c", "plugin", "gcc", [])
    fixture("dlopen", "dlopen.c")
    for name, comm, command in PROGRAMS:
        program(name, comm, command)
    for release in ("bullseye", "trixie", "forky"):
        root = corpus.root(release)
        if not root:
            print("not here: Debian " + release)
            continue
        for name, comm, command in PROGRAMS:
            if name in ("bash", "perl", "perl-regex", "sort", "openssl", "find"):
                program("%s-%s" % (release, name), comm, command, chroot=root)
    corpus.done()


main()
