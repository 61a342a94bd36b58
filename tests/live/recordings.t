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
            ("a directory", gate.tmp, f"cannot write {gate.tmp}: it is a directory"),
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
    record(file, 1)
    os.chmod(file, 0o644)
    before, older = read(file), read(file + ".old")
    gone = gate.start("true")
    gone.wait()
    for words in ["-p", gone.pid], ["--", "/no/such/program"]:
        result = gate.braid("record", "-o", file, *words)
        gate.equal(result.status, 1, f"failed start over a recording, {words[0]}: status", result)
        gate.equal((read(file), read(file + ".old")), (before, older),
                   f"failed start over a recording, {words[0]}: it is there, and the older one")
    write(file + ".old", b"precious\n")
    check_refused("a foreign FILE.old", gate.braid("record", "-o", file, "--", "true"),
                  f"cannot move the old recording to {file}.old")
    gate.equal((read(file), read(file + ".old")), (before, b"precious\n"),
               "a foreign FILE.old: intact")
    os.unlink(file + ".old")
    gate.equal(record(file, 2).count(), 2, "over a recording that all may read: the new one")
    gate.equal(os.stat(file).st_mode & 0o777, 0o600, "is for its owner only")
    gate.equal(sorted(name for name in os.listdir(gate.tmp) if name.startswith((".", "again"))),
               ["again.db", "again.db.old"], "over a recording: nothing else is left")
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


def check_outputs(recording):
    """What -o names: tests/unit/t_output_file.c has the rules; here is that each command keeps them."""
    before = read(recording)
    for words in (["report", "-o", recording, recording], ["flame", "-o", "x.html", recording],
                  ["calls", "-o", recording, "--", "true"], ["bench", "-o", recording]):
        where = os.path.join(gate.tmp, words[2])
        if words[0] == "flame":
            write(where, before)
            words[2] = where
        check_refused(f"{words[0]} -o RECORDING", gate.braid(*words), "is a recording; --force")
        gate.equal(read(where), before, f"{words[0]} -o RECORDING: intact")
    null = gate.path("null.svg")
    os.symlink("/dev/null", null)
    for words in ["report", "-o", "/dev/null"], ["flame", "-o", null]:
        gate.equal(gate.braid(*words, recording).status, 0, f"{words[0]} -o a device")
    gate.ok(os.path.exists("/dev/null") and not os.path.isfile("/dev/null"), "it is still a device")


def check_damage(content):
    wrong = []
    file = gate.path("page.db")
    for begin in range(0, len(content), PAGE_BYTES):
        write(file, content[:begin + 200] + b"\xa5" * 300 + content[begin + 500:])
        result = gate.braid("report", file)
        if result.status not in (0, 1) or len(result.err.splitlines()) != result.status:
            wrong.append((begin, result))
    gate.equal(wrong, [], f"damage in any of {len(content) // PAGE_BYTES} pages: shown, or one line")


def check_events(content):
    """Of several events a report is of one, which it names unless it is cpu."""
    file = gate.path("events.db")
    write(file, content)
    samples = gate.Recording(file).count()
    with sqlite3.connect(file) as database:
        database.execute("INSERT INTO event VALUES(2, 'faults', 'bytes')")
        database.execute("INSERT INTO sample(id, time_ns, event, thread, cpu, native, runtime, flags,"
                         " value, weight, total) SELECT id + 1000, time_ns, 2, thread, cpu, native,"
                         " runtime, flags, 1024, 1, 1024 FROM sample")
    database.close()
    result = gate.braid("report", file)
    gate.equal(result.err, f"other events in {file}: faults (--event)\n", "events: which others")
    gate.ok(f"\n{samples} samples, " in result.out, "events: cpu", result)
    result = gate.braid("report", "--event", "faults", file)
    gate.equal(result.err, "", "--event: no note")
    gate.ok(f"\nevent faults: {samples}.00 KiB in {samples} samples" in result.out,
            "--event: its name and unit", result)
    result = gate.braid("report", "--format", "folded", "--event", "faults", file)
    folded = sum(int(text.split()[-1]) for text in result.out.splitlines())
    gate.equal(folded, 1024 * samples, "--event: folded in its unit")
    check_refused("--event: none", gate.braid("flame", "--event", "fault", file),
                  "has no event fault. It has cpu, faults")


gate.need_root()
other = foreign_sqlite()
check_places()
check_over_files(other)
good_one = read(check_over_recording())
check_bad_files(good_one, other)
check_events(good_one)
check_damage(good_one)
check_outputs(gate.path("again.db"))
gate.done()
