#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Wrong use, and targets that cannot be recorded: one clear line, status 1 (2 for misuse, with argp's
hint), and nothing is left behind."""

import os
import shutil

import gate

NOBODY = 65534
FILE = gate.path("misuse.db")


def check_misuse(pattern, *args, command="record"):
    words = [command, *(["-o", FILE] if command == "record" else []), *args]
    result = gate.braid(*words)
    lines = result.err.splitlines()
    good = (result.status == 2 and 1 <= len(lines) <= 2 and "braid" in lines[0] and not result.out
            and gate.re.search(pattern, result.err) and not os.path.exists(FILE))
    gate.ok(good, f"{' '.join([command, *args])}: status 2, a line, no file", result)


def comm(pid):
    with open(f"/proc/{pid}/comm", encoding="utf-8") as text:
        return text.read().rstrip()


def check_usage():
    own = str(os.getpid())
    for number in "0", "abc", "10001", "-5", "", "nan":
        check_misuse("-F takes a number from 1 to 10000", "-F", number, "-p", own)
    for number in "-1", "abc", "0", "1s":
        check_misuse("-d takes a number", "-d", number, "-p", own)
    for pids in "abc", "", "0", "-1", "1,", ",1", "1,,2", "1x", "99999999999999999999":
        check_misuse("-p takes process ids", "-p", pids)
    check_misuse("no runtime 'cobol'; there are: .*python", "-r", "cobol", "-p", own)
    check_misuse("no runtime ''", "-r", "", "-p", own)
    check_misuse("--source takes .*'magic'", "--source", "magic", "-p", own)
    check_misuse("--unwind takes .*'magic'", "--unwind", "magic", "-p", own)
    check_misuse("-o takes the name of a file", "-o", "", "-p", own)
    check_misuse("unrecognized option", "--no-such-option", "-p", own)
    check_misuse("either -p PID or -- COMMAND")
    check_misuse("either -p PID or -- COMMAND", "-p", own, "--", "true")
    check_misuse("tea", "--format", "tea", command="report")
    check_misuse("--by takes .*'tea'", "--by", "tea", command="flame")
    check_misuse("--state takes .*,tea'", "--state", "running,tea", command="report")
    check_misuse("--idle takes .*'tea'", "--idle", "tea", command="flame")
    check_misuse("--histogram", "--histogram", "--format", "tree", command="report")
    check_misuse("", "a", "b", command="report")
    check_misuse("x.png", "-o", "x.png", command="flame")
    check_misuse("x", "--pid", "x", command="report")
    for option in "--event", "--thread", "--container", "--cgroup", "--runtime", "--not-thread", "-o", "--diff", "--disassemble":
        check_misuse(f"{option} is empty", option, "", command="report")
    check_misuse("the name of the recording is empty", "", command="report")
    check_misuse("--core is empty", "--core", "", command="dump")
    check_misuse("-o is empty", "-o", "", "-p", own, command="calls")
    check_misuse("--host is empty", "--to", "otlp://localhost", "--host", "", "x.db", command="push")
    for number in " 1", "0x10", "1e400", "inf", "nan":
        check_misuse("-d takes a number", "-d", number, "-p", own)
        check_misuse("--rows .or all. takes a number", "--rows", number, command="report")
    check_misuse("require --from-db URL", "--token-file", "x", command="report")
    check_misuse("cannot write a recording to standard output. Name a file", "-o", "-", "-p", own)
    check_misuse("the name of the command after -- is empty", "--", "")
    for option in "--name", "--user", "--cgroup", "--container":
        check_misuse(f"{option} is given twice", option, "a", option, "b")
    check_misuse("the command after -- is missing", "--", command="bench")
    check_misuse("-d requires -p, -r or a command", "-d", "1", command="bench")
    check_misuse("no command 'no-such-command'", command="no-such-command")
    for word, event in ("memory", "alloc"), ("heap", "alloc"), ("offcpu", "off-cpu"), ("mutex", "lock"):
        check_misuse(f"no command '{word}': did you mean braid record -e {event} -p PID", command=word)
        check_misuse(f"did you mean -e {event} -p PID. The command {word} is run by -- {word}", word)
    name = "one-of-many"
    shutil.copy("/bin/sleep", gate.path(name))
    target = gate.start(gate.path(name), "60")
    gate.wait_until(lambda: comm(target.pid) == name, "the program's name")
    check_misuse(f"did you mean -p {target.pid}. To start {name} once more, write -- {name}", name)
    check_misuse(f"no command '{name}'. For braid record: did you mean -p {target.pid}", command=name)
    others = [gate.start(gate.path(name), "60") for _ in range(3)]
    for other in others:
        gate.wait_until(lambda: comm(other.pid) == name, "the program's name")
    check_misuse(f"4 processes run {name}: did you mean --name {name}. To start", name)
    for other in target, *others:
        other.kill()
        other.wait()


def check_scopes():
    """Which of all processes: what makes no sense, and what is not there."""
    own = str(os.getpid())
    check_misuse("select among all processes: they cannot be used with -p", "-a", "-p", own)
    check_misuse("select among all processes: they cannot be used with -- COMMAND", "--user", "root", "--", "true")
    check_misuse("--no-children requires -p", "-a", "--no-children")
    for name, pattern, *words in (
            ("cgroup", "there is no cgroup /no/such: neither a directory", "--cgroup", "/no/such"),
            ("container", "there is no container 'no-such'", "--container", "no-such"),
            ("empty container", "requires an id or a name", "--container", ""),
            ("both", "--cgroup and --container both select a cgroup", "--cgroup", "/", "--container", "x"),
            ("user", "there is no user 'no-such'", "--user", "no-such"),
            ("number", "there is no user '-1'", "--user", "-1"),
            ("no cgroup's path", "--cgroup requires a path", "--cgroup", ""),
            ("no name", "--name requires .*\\. Use -a for all", "--name", ""),
            ("name", "--name requires an extended regular expression, not '\\[': ", "--name", "[")):
        check_failure(name, pattern, gate.braid("record", *words, "-d", "1", "-o", FILE))


def check_old_cgroups():
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        old = [line.split()[4] for line in mounts if " - cgroup " in line]
    if old:
        check_failure("version 1", "it belongs to a cgroup hierarchy of version 1",
                      gate.braid("record", "--cgroup", old[0], "-d", "1", "-o", FILE))


def check_failure(name, pattern, result):
    gate.equal(result.status, 1, f"{name}: status", result)
    gate.ok(len(result.err.splitlines()) == 1 and result.err.startswith("braid: "),
            f"{name}: one line", result.err)
    gate.matches(pattern, result.err, f"{name}: says what is wrong")
    gate.equal([file for file in os.listdir(gate.tmp) if file.startswith("misuse")], [],
               f"{name}: no file")


def check_target(name, pids, pattern):
    check_failure(name, pattern, gate.braid("record", "-p", pids, "-o", FILE))


def check_files():
    """Names that lead to something else than is needed."""
    text, fifo, own = gate.path("text"), gate.path("fifo"), str(os.getpid())
    with open(text, "w", encoding="ascii") as file:
        file.write("text")
    os.mkfifo(fifo)
    for name, pattern, *words in (
            ("a FIFO for the recording", "and is not a regular file. Choose another one with -o",
             "record", "-p", own, "-o", fifo),
            ("a directory for the recording", "it is a directory. Choose a file with -o",
             "record", "-p", own, "-o", gate.tmp),
            ("a file for the socket", "cannot listen to .*: it exists and is not a socket. Choose another path",
             "record", "-p", own, "-o", FILE, "--metrics", f"unix:{text}"),
            ("a directory for the socket", "cannot listen to /: Is a directory",
             "record", "-p", own, "-o", FILE, "--metrics", "unix:/"),
            ("probe in a text", "text: not an ELF file",
             "record", "-r", "native", "--no-children", "-p", own, "-o", FILE, "-e", f"uprobe:{text}:main"),
            ("probe in a FIFO", "fifo: not a regular file",
             "record", "-r", "native", "--no-children", "-p", own, "-o", FILE, "-e", f"uprobe:{fifo}:main"),
            ("push of a FIFO", "is not a braid recording", "push", fifo, "--to", "otlp://127.0.0.1:1"),
            ("push of a device", "is not a braid recording",
             "push", "/dev/null", "--to", "otlp://127.0.0.1:1")):
        check_failure(name, pattern, gate.braid(*words))
    with open(text, encoding="ascii") as file:
        gate.equal(file.read(), "text", "the file is as it was")


def check_twice():
    """-p given twice and -r given twice are about all that was named."""
    first, second = (gate.start("sleep", "600") for _ in range(2))
    result = gate.braid("dump", "--json", "-p", first.pid, "-p", second.pid)
    gate.equal({process["pid"] for process in gate.json.loads(result.out)["processes"]},
               {first.pid, second.pid}, "-p twice: both processes")
    result = gate.braid("record", "-r", "python", "-r", "ruby", "--no-children", "-p", os.getpid(), "-d", "0.1", "-o", FILE)
    gate.matches(f"pid {os.getpid()}: python", result.err, "-r twice: the first one, too")
    os.unlink(FILE)
    gone = gate.start("true")
    gone.wait()
    check_failure("record -p twice", f"{gone.pid}",
                  gate.braid("record", "-p", gone.pid, "-p", first.pid, "-o", FILE))


def check_server():
    """A command that waits for a server says so, with the reason."""
    result = gate.braid("report", "--timeout", "2", "--from-db", "clickhouse://127.0.0.1:1/braid")
    lines = result.err.splitlines()
    gate.equal(result.status, 1, "no server: status", result)
    gate.matches("127.0.0.1.*; next attempt in", lines[0], "no server: says what it waits for")
    gate.matches("gave up after", lines[-1], "no server: says at last that it gives up")


def kernel_thread():
    """One of the first processes is; none in a container."""
    for pid in range(2, 100):
        try:
            with open(f"/proc/{pid}/status", encoding="utf-8") as status:
                if "\nVmSize:" not in status.read() and gate.state_of(pid) != "Z":
                    return pid
        except OSError:
            pass
    return None


def check_targets():
    gone = gate.start("true")
    gone.wait()
    check_target("no such PID", gone.pid, f"PID {gone.pid}$|no process with PID {gone.pid}")
    good = gate.marked(gate.MARKS, trace=False)
    check_target("one of two PIDs", f"{good.pid},{gone.pid}", f"{gone.pid}")
    gate.equal(gate.ask(good, "here 1"), "done 0", "one of two PIDs: the other goes on")
    if kernel_thread():
        check_target("kernel thread", kernel_thread(), "kernel thread")
    zombie = gate.start("true")
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    check_target("zombie", zombie.pid, f"{zombie.pid} .*zombie")


def check_no_function():
    """Of the option of sessions that has samples taken at a function."""
    target = gate.marked(gate.MARKS, trace=False)
    for symbol in gate.MARKS + ":no_such_function", "no-such-file:main":
        result = gate.run(gate.RECORD_AT, "-p", target.pid, "-n", 1, "-o", FILE, symbol)
        file, name = symbol.rsplit(":", 1)
        gate.equal(result, (1, "", f"record_at: PID {target.pid} has no function {name} in a file "
                                   f"{file}\n"), f"no {os.path.basename(symbol)}")
    gate.ok(not os.path.exists(FILE), "no function: no file")


def check_not_root():
    directory = gate.path("nobody")
    os.mkdir(directory)
    os.chown(directory, NOBODY, NOBODY)
    os.chmod(gate.tmp, 0o755)
    program = os.path.join(directory, "braid")
    shutil.copy(gate.BRAID, program)
    file = os.path.join(directory, "out.db")
    result = gate.run(program, "record", "-p", os.getpid(), "-o", file, user=NOBODY, group=NOBODY,
                      extra_groups=[])
    check_failure("not root", f"user {NOBODY} lacks CAP_BPF and CAP_PERFMON. Run as root", result)
    gate.equal(os.listdir(directory), ["braid"], "not root: leaves nothing")


def check_no_btf():
    shell = 'mount -t tmpfs none /sys/kernel/btf && exec "$@"'
    result = gate.run("unshare", "--mount", "--propagation", "private", "sh", "-c", shell, "sh",
                      gate.BRAID, "record", "-o", FILE, "--", "true")
    check_failure("no BTF", "no BTF.*Linux", result)


gate.need_root()
check_usage()
check_scopes()
check_old_cgroups()
check_targets()
check_no_function()
check_files()
check_twice()
check_server()
check_not_root()
check_no_btf()
gate.done()
