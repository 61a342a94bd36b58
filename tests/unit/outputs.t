#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Files that commands write without privilege: names that nobody has given never cost a file, and what
is made of a recording is no more open than the recording."""

import os
import stat
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap  # noqa: E402

OUTPUT = os.path.abspath(os.environ.get("OUTPUT", "build"))
WORK = tempfile.TemporaryDirectory()
os.chdir(WORK.name)
BRAID = OUTPUT + "/braid"
EXPORTS = "table tree json markdown folded pprof speedscope firefox otlp chrome perf dot".split()
PRECIOUS = "precious\n"


def braid(*words, mask=0, **options):
    result = subprocess.run([BRAID, *words], capture_output=True, check=False, umask=mask, **options)
    return result.returncode, result.stderr.decode()


def mode(path):
    return oct(stat.S_IMODE(os.stat(path).st_mode))


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def check_names():
    write("victim", PRECIOUS)
    os.symlink("victim", "braid.html")
    for force in [], ["--force"]:
        status, err = braid("flame", *force)
        tap.equal((status, err, read("victim")),
                  (1, "braid: cannot write braid.html: a symbolic link has that name. Name the output "
                      "with -o\n", PRECIOUS), f"a link, {force}: not followed")
    os.unlink("braid.html")
    write("braid.html", "<!DOCTYPE html>\n<html lang=\"en\">\n<title>mine</title>\n")
    before = read("braid.html")
    status, err = braid("flame")
    tap.equal((status, "was not written by braid" in err, read("braid.html")), (1, True, before),
              "another page: stays", err)
    tap.equal(braid("flame", "--force"), (0, ""), "another page: replaced if forced")
    page = read("braid.html")
    tap.ok("id=\"profile\"" in page, "by braid's")
    tap.equal(braid("flame"), (0, ""), "braid's own page: replaced")
    tap.equal(read("braid.html"), page, "by the same")
    os.unlink("braid.html.old")
    write("braid.html", page + "<!-- first -->\n")
    for number in "first", "second":
        tap.equal((braid("flame"), read("braid.html")), ((0, ""), page), f"over the {number} page")
        tap.ok(read("braid.html.old").endswith(f"<!-- {number} -->\n"), "which is kept as .old")
        write("braid.html", page + "<!-- second -->\n")
    write("braid.html.old", PRECIOUS)
    status, err = braid("flame")
    tap.equal((status, "cannot keep braid.html as braid.html.old" in err, read("braid.html.old")),
              (1, True, PRECIOUS), "another file has that name: both stay", err)
    tap.ok("second" in read("braid.html"), "also the page")
    os.unlink("braid.html.old")
    write("given.html", PRECIOUS)
    tap.equal(braid("flame", "-o", "given.html"), (0, ""), "a name that is given: replaced")
    os.symlink("victim", "link.html")
    tap.equal(braid("flame", "-o", "link.html"), (0, ""), "a link of one's own that is given: followed")
    tap.equal((os.readlink("link.html"), "id=\"profile\"" in read("victim")), ("victim", True),
              "the link stays")
    tap.equal(braid("flame", "-o", "picture.svg"), (0, ""), "a picture")
    tap.ok("<!-- generator: braid -->" in read("picture.svg")[:100], "is marked, too")


def check_modes():
    for name in "braid.html", "given.html", "picture.svg":
        os.unlink(name)
    for recording, want in (0o600, "0o600"), (0o640, "0o640"), (0o644, "0o644"), (0o400, "0o600"):
        os.chmod("braid.db", recording)
        got = {}
        for name in EXPORTS:
            tap.equal(braid("report", "--format", name, "-o", "export"), (0, ""), f"{name}: status")
            got[name] = mode("export")
            os.unlink("export")
        for name in "braid.html", "picture.svg":
            braid("flame", "-o", name)
            got[name] = mode(name)
            os.unlink(name)
        tap.equal(got, dict.fromkeys(got, want), f"of a recording with mode {recording:o}")
    os.chmod("braid.db", 0o644)
    braid("flame", mask=0o077)
    tap.equal(mode("braid.html"), "0o600", "the umask counts as well")
    os.chmod("braid.db", 0o600)
    write("export", PRECIOUS)
    os.chmod("export", 0o666)
    braid("report", "-o", "export")
    tap.equal(mode("export"), "0o600", "a file that is replaced becomes no more open than the recording")
    subprocess.run(["cp", "braid.db", "open.db"], check=True)
    os.chmod("open.db", 0o644)
    braid("flame", "-o", "diff.html", "--diff", "braid.db", "open.db")
    tap.equal(mode("diff.html"), "0o600", "of two recordings: the one that is less open counts")


def check_streams():
    expected = subprocess.run([BRAID, "report", "--format", "folded"], stdout=subprocess.PIPE,
                              check=True).stdout
    tap.ok(expected, "to standard output")
    tap.equal(braid("report", "--format", "folded", "-o", "/dev/null"), (0, ""), "to /dev/null")
    tap.ok(stat.S_ISCHR(os.stat("/dev/null").st_mode), "which is still a device")
    for name in "/dev/stdout", "/proc/self/fd/1", "/dev/fd/1":
        result = subprocess.run([BRAID, "report", "--format", "folded", "-o", name],
                                stdout=subprocess.PIPE, check=False)
        tap.equal((result.returncode, result.stdout), (0, expected), f"to {name}, a pipe")
    with open("appended", "wb") as out:
        out.write(b"before\n")
        out.flush()
        result = subprocess.run([BRAID, "report", "--format", "folded", "-o", "/dev/stdout"], stdout=out,
                                check=False)
    with open("appended", "rb") as text:
        tap.equal((result.returncode, text.read()), (0, b"before\n" + expected),
                  "to /dev/stdout, a file: written on")
    result = subprocess.run(["bash", "-c", f"{BRAID} report --format folded -o >(cat >through; echo >done)"
                             " && for i in $(seq 1000); do test -e done && break; sleep 0.01; done"],
                            check=False)
    with open("through", "rb") as text:
        tap.equal((result.returncode, text.read()), (0, expected), "to a process substitution")


subprocess.run([OUTPUT + "/tests/tools/mksamples", "braid.db"], check=True, text=True,
               input="cpu samples 1 running - - 42:app 42:app n:main;n:f\n".replace(" ", "\t"))
check_names()
check_modes()
check_streams()
tap.done()
