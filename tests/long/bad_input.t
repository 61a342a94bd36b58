#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Bad input: one clear line, exit 1 (or 2 for misuse, with argp's hint), nothing left behind."""

import glob
import os
import shutil
import sqlite3
import subprocess

import lib

NOBODY = 65534


def check_failure(name, result, pattern, left=()):
    """Exit 1 and one line; of the files in `left` none is there."""
    lib.equal(result.status, 1, f"{name}: status", result)
    lines = result.err.splitlines()
    lib.ok(len(lines) == 1 and lines[0].startswith("braid: "), f"{name}: one line", result.err)
    lib.matches(pattern, result.err, f"{name}: says what is wrong")
    lib.equal([file for file in left if os.path.lexists(file)], [], f"{name}: leaves no file")


def check_misuse(pattern, *args):
    name = " ".join(args) or "nothing"
    file = lib.path("misuse.db")
    result = lib.braid("record", "-o", file, *args)
    lib.equal(result.status, 2, f"{name}: status", result)
    lines = result.err.splitlines()
    lib.ok(1 <= len(lines) <= 2 and "braid" in lines[0] and not result.out, f"{name}: one line",
           result.err, result.out)
    lib.matches(pattern, result.err, f"{name}: says what is wrong")
    lib.ok(not os.path.exists(file), f"{name}: leaves no file")


def check_usage():
    pid = str(os.getpid())
    for args in (["-F", "0"], ["-F", "abc"], ["-F", "10001"], ["-F", "-5"], ["-F", ""],
                 ["-F", "nan"]):
        check_misuse("-F takes a number from 1 to 10000", *args, "-p", pid)
    for args in (["-d", "-1"], ["-d", "abc"], ["-d", "0"], ["-d", "1s"]):
        check_misuse("-d takes a number", *args, "-p", pid)
    for argument in ("abc", "", "0", "-1", "1,", ",1", "1,,2", "1x", "99999999999999999999"):
        check_misuse("-p takes process ids", "-p", argument)
    check_misuse("no runtime 'cobol'; there are: .*python", "-r", "cobol", "-p", pid)
    check_misuse("no runtime ''", "-r", "", "-p", pid)
    check_misuse("--source takes .*'magic'", "--source", "magic", "-p", pid)
    check_misuse("--unwind takes .*'magic'", "--unwind", "magic", "-p", pid)
    check_misuse("unrecognized option", "--no-such-option", "-p", pid)
    check_misuse("either -p PID or -- COMMAND")
    check_misuse("either -p PID or -- COMMAND", "-p", pid, "--", "true")
    for args in (["report", "--format", "tea"], ["report", "a", "b"], ["flame", "-o", "x.png"],
                 ["no-such-command"], ["report", "--pid", "x"]):
        result = lib.braid(*args)
        lib.equal(result.status, 2, f"{' '.join(args)}: status", result)
        lib.ok(1 <= len(result.err.splitlines()) <= 2, f"{' '.join(args)}: one line", result.err)


def check_target(name, pid, pattern):
    file = lib.path("target.db")
    result = lib.braid("record", "-p", pid, "-o", file)
    check_failure(name, result, pattern, [file, file + "-journal"])


def free_pid():
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def check_targets():
    pid = free_pid()
    check_target("no such PID", pid, f"PID {pid}$|no process with PID {pid}")
    good = lib.start("sleep", "100")
    check_target("one of two PIDs", f"{good.pid},{pid}", f"{pid}")
    lib.equal(lib.state_of(good.pid), "S", "one of two PIDs: the other goes on")
    lib.stop(good)
    threads = [p for p in (2, 3, 4) if os.path.exists(f"/proc/{p}")
               and lib.state_of(p) and not os.path.exists(f"/proc/{p}/exe")]
    if threads:
        check_target("kernel thread", threads[0], f"{threads[0]} .*kernel thread")
    else:
        lib.skip("kernel thread", "none to be seen here")
    zombie = lib.start("true")
    lib.wait_for(lambda: lib.state_of(zombie.pid) == "Z", "zombie")
    check_target("zombie", zombie.pid, f"{zombie.pid} .*zombie")


def check_ending_target():
    """Ends somewhere in braid's set-up, or shortly before or after."""
    wrong = []
    for i in range(12):
        target = lib.start("sleep", f"{0.02 * i:.2f}")
        result = lib.braid("record", "-p", target.pid, "-o", lib.path("race.db"))
        target.wait()
        errors = [line for line in result.err.splitlines() if line.startswith("braid: ")]
        if result.status not in (0, 1) or len(errors) != result.status:
            wrong.append(result)
    lib.equal(wrong, [], "PID that ends during set-up: recorded or refused")


def check_command():
    for command, reason in ((["/no/such/program"], "No such file"), (["/etc/passwd"], "denied")):
        file = lib.path("command.db")
        result = lib.braid("record", "-o", file, "--", *command)
        check_failure(" ".join(command), result, f"cannot run {command[0]}: .*{reason}",
                      [file, file + "-journal"])


def check_not_root():
    directory = lib.path("nobody")
    os.mkdir(directory)
    os.chown(directory, NOBODY, NOBODY)
    os.chmod(lib.tmp, 0o755)
    program = os.path.join(directory, "braid")
    shutil.copy(lib.BRAID, program)
    file = os.path.join(directory, "out.db")
    target = lib.start(lib.fixture("shares"), stdout=subprocess.DEVNULL)
    run = subprocess.run([program, "record", "-p", str(target.pid), "-o", file],
                         capture_output=True, user=NOBODY, group=NOBODY, extra_groups=[])
    lib.stop(target)
    result = lib.Result(run.returncode, "", run.stderr.decode())
    check_failure("not root", result, "root.*CAP_BPF", [file])


def in_namespace(script):
    """A shell script with mounts of its own; False: not possible here."""
    run = subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c",
                          "mount -t tmpfs -o size=1000k none \"$1\" || exit 99\n" + script, "sh",
                          lib.path("mount"), lib.BRAID, lib.fixture("shares")],
                         stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    unable = run.returncode == 99 or run.stderr.startswith(b"unshare:")
    return not unable and lib.Result(run.returncode, run.stdout.decode(), run.stderr.decode())


def check_no_btf():
    file = lib.path("nobtf.db")
    result = in_namespace(f"mount --move \"$1\" /sys/kernel/btf || exit 99\n"
                          f"\"$2\" record -o {file} -- true")
    if result:
        check_failure("no BTF", result, "no BTF.*Linux", [file])
    else:
        lib.skip("no BTF", "no mount namespaces here")


def check_full_disk():
    """The recording fills what is left of the disk; what was committed stays readable."""
    result = in_namespace('"$3" > /dev/null 2>&1 & target=$!\n'
                          '"$2" record -F 10000 -d 60 -o "$1/full.db" -p $target\n'
                          'status=$?\n'
                          'kill $target\n'
                          'timeout -s KILL 60 "$2" report --format folded "$1/full.db"\n'
                          'echo "report $? record $status" ')
    if not result:
        lib.skip("full disk", "no mount namespaces here")
        return
    lib.matches("report 0 record 1\n$", result.out, "full disk: status 1, readable", result.err)
    lib.matches("main;burn_[abc]", result.out, "full disk: what was recorded until then is there")
    errors = [line for line in result.err.splitlines() if line.startswith("braid: ")]
    lib.equal(len(errors), 1, "full disk: one line", result.err)
    lib.matches(r"full.*full\.db|full\.db.*full|No space left", " ".join(errors),
                "full disk: says what is wrong")


def check_output():
    target = lib.start_ready(lib.fixture("shares"))
    record = ["record", "-p", target.pid, "-d", "0.2", "-o"]
    check_failure("no such directory", lib.braid(*record, "/no/such/directory/x.db"),
                  "/no/such/directory/x.db.*No such file")
    check_failure("output is a directory", lib.braid(*record, lib.tmp), f"{lib.tmp} is a directory")
    check_failure("output in /proc", lib.braid(*record, "/proc/x.db"), "cannot create /proc/x.db")
    check_failure("output is a device", lib.braid(*record, "/dev/null"), "/dev/null")
    lib.ok(os.path.exists("/dev/null"), "output is a device: it is still there")

    foreign = lib.path("foreign.db")
    for content in (b"precious\n", b"", make_sqlite()):
        with open(foreign, "wb") as file:
            file.write(content)
        kind = {b"": "empty file", b"precious\n": "text"}.get(content, "foreign SQLite")
        result = lib.braid(*record, foreign)
        check_failure(f"output is {kind}", result, f"{foreign} exists.*--force")
        with open(foreign, "rb") as file:
            lib.ok(file.read() == content, f"output is {kind}: intact")
    result = lib.braid(*record, foreign, "--force")
    lib.equal(result.status, 0, "output with --force: status", result.err)
    lib.ok(lib.Recording(foreign).samples() > 0, "output with --force: replaced")

    first = lib.Recording(foreign).meta("target"), lib.Recording(foreign).samples()
    result = lib.braid(*record, foreign)
    lib.equal(result.status, 0, "output is a recording: status", result.err)
    old = lib.Recording(foreign + ".old")
    lib.equal((old.meta("target"), old.samples()), first, "output is a recording: moved to .old")
    lib.ok(lib.Recording(foreign).samples() > 0, "output is a recording: recorded")

    before = open(foreign, "rb").read()
    result = lib.braid("record", "-p", free_pid(), "-o", foreign)
    lib.equal(result.status, 1, "failed start over a recording: status", result.err)
    lib.ok(os.path.exists(foreign) and open(foreign, "rb").read() == before,
           "failed start over a recording: it is still there")
    result = lib.braid("record", "-o", foreign, "--", "/no/such/program")
    lib.equal(result.status, 1, "failed command over a recording: status", result.err)
    lib.ok(os.path.exists(foreign) and open(foreign, "rb").read() == before,
           "failed command over a recording: it is still there")
    lib.stop(target)


def make_sqlite():
    file = lib.path("sqlite")
    if not os.path.exists(file):
        database = sqlite3.connect(file)
        database.execute("CREATE TABLE sample(x)")
        database.commit()
        database.close()
    with open(file, "rb") as content:
        return content.read()


def check_reports():
    good = lib.path("good.db")
    result = lib.braid("record", "-F", 999, "-o", good, "--", lib.fixture("shares"), "0.5")
    lib.equal(result.status, 0, "a good recording: status", result.err)
    with open(good, "rb") as file:
        content = file.read()
    middle = len(content) // 2
    bad = {
        "missing": None,
        "empty": b"",
        "text": b"precious\n" * 1000,
        "foreign": make_sqlite(),
        "header only": content[:100],
        "truncated": content[:middle],
        "zeroed": content[:4096] + bytes(len(content) - 4096),
        "overwritten": content[:4096] + b"\xff" * (len(content) - 4096),
    }
    for kind, text in bad.items():
        file = lib.path(kind + ".db")
        if text is not None:
            with open(file, "wb") as out:
                out.write(text)
        for command in ["report", file], ["flame", "-o", lib.path("bad.html"), file]:
            name = f"{command[0]} of a {kind} file"
            result = lib.braid(*command)
            check_failure(name, result, file, [lib.path("bad.html")])
        lib.ok(text is None or open(file, "rb").read() == text, f"{kind} file: not written to")
    check_failure("report of a directory", lib.braid("report", lib.tmp), lib.tmp)
    # Damage anywhere: an answer or one line, never a crash.
    wrong = []
    for page in range(0, len(content), 4096):
        file = lib.path("page.db")
        with open(file, "wb") as out:
            out.write(content[:page + 200] + b"\xa5" * 300 + content[page + 500:])
        result = lib.braid("report", file)
        if result.status not in (0, 1) or len(result.err.splitlines()) != result.status:
            wrong.append((page, result.status, result.err))
    lib.equal(wrong, [], "a damaged page: shown, or one line")


def check_nothing_left():
    """No probe: all of this test's braids have ended, so that no descriptor is open."""
    own = [pid for pid in glob.glob("/proc/[0-9]*") if lib.read_link(pid + "/exe") == lib.BRAID
           and parent(pid) == os.getpid()]
    lib.equal(own, [], "no braid is left")


def parent(directory):
    try:
        with open(directory + "/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0


lib.need_bpf()
os.mkdir(lib.path("mount"))
check_usage()
check_targets()
check_ending_target()
check_command()
check_not_root()
check_no_btf()
check_full_disk()
check_output()
check_reports()
check_nothing_left()
lib.done()
