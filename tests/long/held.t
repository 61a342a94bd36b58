#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""One program that nobody wrote for these tests under each interpreter at hand: how many of its
stacks reach the root, and how many frames of the runtime have a name. docs/runtimes/versions.md has the
table that this prints."""

import glob
import os
import shutil
import subprocess

import lib
import pythons

LEAST = 99.5  # % of the stacks

PYGMENTS = "/usr/lib/python3/dist-packages/pygments"
GO_SOURCES = "/usr/lib/go*/src/net/http"
PERL_SOURCES = "/usr/share/perl/5.*/**/*.pm"


def first_files(pattern, size):
    """So many bytes of files, in their order."""
    found = []
    for name in sorted(glob.glob(pattern, recursive=True)):
        if size > 0 and os.path.isfile(name):
            size -= os.path.getsize(name)
            found.append(name)
    return found


def version_of(command, *options):
    run = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    words = (run.stdout or run.stderr).replace("v", " ").replace("go", " ").replace("+", " ").split()
    return next((word for word in words if word[0].isdigit() and "." in word), "?")


def beside(directory):
    """Directories with another version each: their programs, by name."""
    return sorted(glob.glob(os.path.join(directory, "*", "bin")))


def python_builds():
    """(program, what its version does not say of it)"""
    yield "/usr/bin/python3", ""
    for directory in beside("/root/.pyenv/versions"):
        yield os.path.join(directory, "python3"), ""
    for directory in beside(os.path.join(pythons.roots_directory(), "pythons")):
        build = os.path.basename(os.path.dirname(directory))  # "3.14t", "3.14-jit"
        yield os.path.join(directory, "python3"), build.lstrip("0123456789.")


def python_programs():
    if not os.path.isdir(PYGMENTS):
        return
    source = lib.path("large.h")
    with open(max(glob.glob("/usr/include/**/*.h", recursive=True), key=os.path.getsize),
              encoding="utf-8") as header, open(source, "w", encoding="utf-8") as to:
        to.write(header.read(400_000) * 4)
    for python, kind in python_builds():
        if os.path.exists(python) and not version_of([python], "-V").startswith("2"):
            version = version_of([python], "-V") + kind
            library = lib.path("library-" + version)
            os.makedirs(library, exist_ok=True)
            if not os.path.exists(library + "/pygments"):
                shutil.copytree(PYGMENTS, library + "/pygments")
            yield ("python", version, "pygmentize",
                   ["env", "PYTHONPATH=" + library, python, "-B", "-m", "pygments", "-l", "c",
                    "-f", "html", "-o", "/dev/null", source])


def ruby_programs():
    document = lib.path("document.adoc")
    with open(document, "w", encoding="utf-8") as file:
        for i in range(8000):
            file.write(f"== Section {i}\n\nSome *bold* `text` with a https://example.org/{i}[link] "
                       f"_here_.\n\n* item\n** item {i}\n\n|===\n|a |b\n|{i} |c\n|===\n\n")
    if shutil.which("asciidoctor"):
        yield ("ruby", version_of(["/usr/bin/ruby"], "-v"), "asciidoctor",
               ["/usr/bin/ruby", shutil.which("asciidoctor"), "-o", "/dev/null", document])


def java_programs():
    archive, directory = "/usr/src/bsh-src/bsh.tar.gz", lib.path("bsh")
    if shutil.which("javac") and os.path.exists(archive):
        os.makedirs(directory + "/out")
        subprocess.run(["tar", "-xzf", archive, "-C", directory], check=True)
        files = [name for name in sorted(glob.glob(directory + "/**/*.java", recursive=True))
                 if "/util/" not in name and "/classpath/" not in name]
        yield ("jvm", version_of(["java"], "-version"), "javac",
               ["javac", "-nowarn", "-encoding", "latin1", "-proc:none", "-Xmaxerrs", "10000", "-d",
                directory + "/out", *files])


def perl_programs():
    files = first_files(PERL_SOURCES, 6_000_000)
    if files and shutil.which("pod2html"):
        texts = lib.path("all.pod")
        with open(texts, "wb") as to:
            for name in files:
                with open(name, "rb") as source:
                    to.write(source.read().replace(b"__END__", b"") + b"\n\n=cut\n\n")
        yield ("perl", version_of(["perl"], "-e", "printf '%vd', $^V"), "pod2man",
               ["perl", shutil.which("pod2man"), "--errors=none", texts, "/dev/null"])


def php_programs():
    sources = "/usr/share/php/PHP/CodeSniffer"
    if shutil.which("phpcs") and os.path.isdir(sources):
        for name, options in (("phpcs", []), ("phpcs, with the JIT", [
                "-d", "opcache.enable_cli=1", "-d", "opcache.jit_buffer_size=64M",
                "-d", "opcache.jit=tracing"])):
            yield ("php", version_of(["php"], "-v").split("-")[0], name,
                   ["php", *options, shutil.which("phpcs"), "--standard=PSR12", "--report=summary",
                    sources, "--runtime-set", "ignore_errors_on_exit", "1", "--runtime-set",
                    "ignore_warnings_on_exit", "1"])


def node_programs():
    directory = lib.path("typescript")
    os.makedirs(directory)
    if not shutil.which("npm") or subprocess.run(
            ["npm", "install", "--silent", "--prefix", directory, "typescript@5"],
            capture_output=True, check=False).returncode:
        return
    source = lib.path("checked.ts")
    with open(source, "w", encoding="utf-8") as file:
        file.write("export const all = [1, 2, 3].map(x => x * 2).filter(Boolean);\n")
    nodes = ["/usr/bin/node", *(os.path.join(place, "node") for place in
                                beside(os.path.join(pythons.roots_directory(), "nodes")))]
    for node in nodes:
        if os.path.exists(node):
            yield ("node", version_of([node], "-v"), "tsc",
                   [node, directory + "/node_modules/typescript/lib/tsc.js", "--noEmit",
                    "--lib", "es2022,dom", source])


def go_programs():
    places = glob.glob(GO_SOURCES)
    if places and shutil.which("gofmt"):
        sources = os.path.dirname(os.path.dirname(places[0]))
        yield ("go", version_of(["go"], "version"), "gofmt",
               ["gofmt", "-l", "-s", sources + "/go", sources + "/net", sources + "/crypto"])


def check(runtime, version, program, command):
    name = f"{runtime} {version}: {program}"
    recording = lib.record("--", *command)
    begun = 0.1  # before: tables of a file that is met for the first time, names of a new program
    rows = recording.sql("SELECT flags FROM sample ORDER BY time_ns")
    flags = [row[0] for row in rows][int(begun * len(rows)):]
    complete = 100 * sum(flag & 1 for flag in flags) / max(len(flags), 1)
    frames = nameless = 0
    for stack, count in recording.folded("--annotate", "--frames", "all", "--runtime", runtime):
        for frame in stack:
            if frame.endswith(("_[k]", "_[n]", "_[i]")):
                continue
            frames += count
            nameless += count * ("[unknown" in frame)
    named = 100 * (frames - nameless) / max(frames, 1)
    lib.ok(len(flags) >= 500 and complete >= LEAST, f"{name}: complete",
           f"{complete:.2f} % of {len(flags)}", recording.result.err)
    lib.ok(frames > len(flags) and named >= LEAST, f"{name}: named", f"{named:.2f} % of {frames}")
    table.append(f"| {runtime} {version} | {program} | {len(flags):,} | {complete:.2f} % | "
                 f"{frames:,} | {named:.2f} % |")


lib.need_bpf()
table = []
for programs in (python_programs, ruby_programs, java_programs, perl_programs, php_programs,
                 node_programs, go_programs):
    found = list(programs())
    for one in found:
        check(*one)
    if not found:
        lib.skip(programs.__name__, "no such program here")
print("# | runtime | program | samples | complete | frames of the runtime | named |")
print("# |---|---|---|---|---|---|")
for row in table:
    print("# " + row)
lib.done()
