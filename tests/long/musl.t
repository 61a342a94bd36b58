#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""CPython, CRuby, Perl and PHP on musl, as scripts/test-musl has built them: how many stacks of a program that
nobody wrote for these tests reach the root, how many frames have a name, and what a dump says of
threads that want the interpreter's lock. Nothing is built here."""

import glob
import os
import re
import subprocess
import time

import lib
import pythons

MUSL = os.environ.get("BRAID_MUSL") or os.path.join(pythons.roots_directory(), "musl")
LEAST = 99.5  # % of the stacks
PYGMENTS = "/usr/lib/python3/dist-packages/pygments"
ASCIIDOCTOR = "/usr/share/rubygems-integration/all/gems/asciidoctor-*/lib"

PYTHON_THREADS = """
import threading
def spin():
    while True: sum(range(100))
for i in range(3): threading.Thread(target=spin, name="a thread with a long name %d" % i).start()
"""
RUBY_THREADS = """
def spin; loop { (1..100).sum { |i| i.to_s.size } }; end
3.times.map { |i| Thread.new { Thread.current.name = "a thread with a long name #{i}"; spin } }.each(&:join)
"""


def python_command(program):
    source = lib.path("large.h")
    largest = max(glob.glob("/usr/include/**/*.h", recursive=True), key=os.path.getsize)
    with open(largest, encoding="utf-8") as header, open(source, "w", encoding="utf-8") as to:
        to.write(header.read(400_000))
    link = lib.path("library")
    os.makedirs(link, exist_ok=True)
    if not os.path.exists(link + "/pygments"):
        os.symlink(PYGMENTS, link + "/pygments")
    return ["env", "PYTHONPATH=" + link, program, "-B", "-m", "pygments", "-l", "c", "-f", "html",
            "-o", "/dev/null", source]


def ruby_command(program):
    document = lib.path("document.adoc")
    with open(document, "w", encoding="utf-8") as file:
        for i in range(4000):
            file.write(f"== Section {i}\n\nSome *bold* `text` with a https://example.org/{i}[link] "
                       f"_here_.\n\n* item\n** item {i}\n\n|===\n|a |b\n|{i} |c\n|===\n\n")
    return [program, "--disable-gems", "-I", glob.glob(ASCIIDOCTOR)[0], "-e",
            "require 'asciidoctor'; Asciidoctor.convert_file ARGV[0], to_file: '/dev/null', safe: :unsafe",
            document]


def perl_command(program):
    document = lib.path("document.pod")
    with open(document, "w", encoding="utf-8") as file:
        for i in range(4000):
            file.write(f"=head1 Section {i}\n\nSome B<bold> C<text> with L<a link|https://example.org/{i}> "
                       f"I<here>.\n\n=over\n\n=item 1. item {i}\n\n=back\n\n")
    return [program, "-MPod::Man", "-e", "Pod::Man->new->parse_from_file(@ARGV)", document, "/dev/null"]


def check_program(name, runtime, command):
    recording = lib.record("--", *command)
    rows = recording.sql("SELECT flags FROM sample ORDER BY time_ns")
    flags = [row[0] for row in rows][len(rows) // 10:]
    complete = 100 * sum(flag & 1 for flag in flags) / max(len(flags), 1)
    frames = nameless = 0
    for stack, count in recording.folded("--annotate", "--frames", "all", "--runtime", runtime):
        own = [frame for frame in stack if not frame.endswith(("_[k]", "_[n]", "_[i]"))]
        frames += count * len(own)
        nameless += count * sum("[unknown" in frame for frame in own)
    named = 100 * (frames - nameless) / max(frames, 1)
    lib.ok(len(flags) >= 200 and complete >= LEAST, f"{name}: complete",
           f"{complete:.2f} % of {len(flags)}", recording.result.err)
    lib.ok(frames > len(flags) and named >= LEAST, f"{name}: named", f"{named:.2f} % of {frames}")
    print(f"# | {name} | {len(flags):,} | {complete:.2f} % | {frames:,} | {named:.2f} % |")


def check_threads(name, lock, command):
    """One thread has the lock; the others want it, and are told to wait for that one, without being
    stopped."""
    program = subprocess.Popen(command)
    held = waited = False
    named = set()
    for _ in range(200):
        said = [subprocess.run([lib.BRAID, "dump", "-p", str(program.pid), *options], capture_output=True,
                               text=True, check=False).stdout for options in ([], ["--nonblocking"])]
        dump = said[0] + said[1]
        held |= "holds " + lock in said[0]
        waited |= bool(re.search("waits for %s \\(held by [0-9]+" % lock, said[1]))
        named |= set(re.findall("a thread with a long name [012]", dump))
        if held and waited and len(named) == 3:
            break
        time.sleep(0.05)
    program.kill()
    program.wait()
    lib.ok(held and waited, f"{name}: {lock} is held, and waited for", dump)
    lib.ok(len(named) == 3, f"{name}: names of threads", dump)


lib.need_bpf()
found = 0
for directory in sorted(glob.glob(MUSL + "/*/bin")):
    name = os.path.basename(os.path.dirname(directory))
    pythons_here = glob.glob(directory + "/python3.*[0-9]")
    if pythons_here:
        found += 1
        if os.path.isdir(PYGMENTS):
            check_program(name, "python", python_command(pythons_here[0]))
        check_threads(name, "the GIL", [pythons_here[0], "-c", PYTHON_THREADS])
    elif os.path.exists(directory + "/ruby"):
        found += 1
        if glob.glob(ASCIIDOCTOR):
            check_program(name, "ruby", ruby_command(directory + "/ruby"))
        check_threads(name, "the GVL", [directory + "/ruby", "--disable-gems", "-e", RUBY_THREADS])
    elif os.path.exists(directory + "/perl"):
        found += 1
        check_program(name, "perl", perl_command(directory + "/perl"))
    elif os.path.exists(directory + "/php"):
        found += 1
        check_program(name, "php", [directory + "/php", "-n", os.path.dirname(directory) + "/bench.php"])
if not found:
    lib.skip("musl", f"nothing in {MUSL}: scripts/test-musl builds it")
lib.done()
