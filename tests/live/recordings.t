#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a recording goes, and what is there before it; and recordings that are none, or damaged: an
answer or one clear line, and nothing that braid did not make is changed."""

import os
import sqlite3

import gate

PAGE_BYTES = 4096


def read(file):
    with open(file, "rb") as content:
        return content.read()


def write(file, content):
    with open(file, "wb") as out:
        out.write(content)


def foreign_sqlite():
    file = gate.path("sqlite")
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE sample(x)")
    return read(file)


def check_refused(name, result, pattern):
    good = (result.status == 1 and len(result.err.splitlines()) == 1
            and result.err.startswith("braid: ") and gate.re.search(pattern, result.err))
    gate.ok(good, f"{name}: status 1, one line", result)


def record(file, hits, *options):
    """Of a target of its own."""
    target = gate.marked(gate.MARKS, trace=False)
    recorder = gate.recorder(hits, target, file=file, options=options)
    gate.ask(target, f"here {hits}")
    return gate.finish(recorder, hits)


def check_places():
    pid = os.getpid()
    for name, file, pattern in (
            ("no such directory", "/no/such/directory/x.db", "/no/such/directory/x.db.*No such"),
            ("a directory", gate.tmp, f"{gate.tmp} is a directory"),
            ("in /proc", "/proc/x.db", "cannot create /proc/x.db"),
            ("a device", "/dev/null", "/dev/null")):
        check_refused(name, gate.braid("record", "-p", pid, "-o", file), pattern)
    gate.ok(os.path.exists("/dev/null"), "a device: it is still there")


def check_over_files(sqlite):
    file = gate.path("foreign.db")
    for name, content in ("text", b"precious\n"), ("empty", b""), ("SQLite", sqlite):
        write(file, content)
        check_refused(f"over {name}", gate.braid("record", "-p", os.getpid(), "-o", file),
                      f"{file} exists.*--force")
        gate.equal(read(file), content, f"over {name}: intact")
    result = gate.braid("record", "--force", "-o", file, "--", "true")
    gate.equal(result.status, 0, "--force: status", result.err)
    gate.equal(gate.Recording(file).meta("target"), "true", "--force: replaced")


def check_over_recording():
    file = gate.path("again.db")
    record(file, 3)
    gate.equal(record(file, 2).count(), 2, "over a recording: the new one")
    gate.equal(gate.Recording(file + ".old").count(), 3, "over a recording: the old one, beside it")
    before = read(file)
    gone = gate.start("true")
    gone.wait()
    for words in ["-p", gone.pid], ["--", "/no/such/program"]:
        result = gate.braid("record", "-o", file, *words)
        gate.equal(result.status, 1, f"failed start over a recording, {words[0]}: status", result)
        gate.equal(read(file), before, f"failed start over a recording, {words[0]}: it is there")
    return file


def check_bad_files(content, sqlite):
    bad = {"missing": None, "empty": b"", "text": b"precious\n" * 1000, "foreign": sqlite,
           "header": content[:100], "truncated": content[:len(content) // 2],
           "zeroed": content[:PAGE_BYTES] + bytes(len(content) - PAGE_BYTES),
           "overwritten": content[:PAGE_BYTES] + b"\xff" * (len(content) - PAGE_BYTES)}
    page = gate.path("bad.html")
    for name, text in bad.items():
        file = gate.path(name + ".db")
        if text is not None:
            write(file, text)
        check_refused(f"report of a {name} file", gate.braid("report", file), file)
        check_refused(f"flame of a {name} file", gate.braid("flame", "-o", page, file), file)
        gate.ok(not os.path.exists(page), f"{name} file: no page")
        gate.ok(text is None or read(file) == text, f"{name} file: not written to")
    check_refused("report of a directory", gate.braid("report", gate.tmp), gate.tmp)


def check_damage(content):
    wrong = []
    file = gate.path("page.db")
    for begin in range(0, len(content), PAGE_BYTES):
        write(file, content[:begin + 200] + b"\xa5" * 300 + content[begin + 500:])
        result = gate.braid("report", file)
        if result.status not in (0, 1) or len(result.err.splitlines()) != result.status:
            wrong.append((begin, result))
    gate.equal(wrong, [], f"damage in any of {len(content) // PAGE_BYTES} pages: shown, or one line")


gate.need_root()
other = foreign_sqlite()
check_places()
check_over_files(other)
good_one = read(check_over_recording())
check_bad_files(good_one, other)
check_damage(good_one)
gate.done()
