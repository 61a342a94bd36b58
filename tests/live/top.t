#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""`braid top` of programs in which one function alone runs: as a table for pipes, and on a terminal,
which is tmux: what it shows, what keys do, and that it is left as it was, however it ends."""

import os
import re
import shutil
import signal
import subprocess
import time

import gate

STANDS = os.path.join(gate.OUTPUT, "fixtures/native/stands")
SCRIPT = """\
def busy():
    sum(range(10 ** 15))
def outer():
    print("ready", flush=True)
    busy()
outer()
"""
COMMON = "-F", 999, "-i", 0.3


def python():
    file = gate.path("app.py")
    with open(file, "w", encoding="utf-8") as out:
        out.write(SCRIPT)
    process = gate.start("/usr/bin/python3", file)
    gate.wait_line(process, "ready")
    return process


def stands():
    process = gate.start(STANDS)
    return process, gate.wait_line(process, "ready")[-1].split()[1:]


def table(*args):
    """(header, titles, rows) of --once; a row is its words."""
    result = gate.braid("top", *COMMON, *args)
    gate.equal(result.status, 0, f"{args}: status", result)
    header, _, rest = result.out.partition("\n\n")
    titles, *rows = rest.splitlines()
    return result, header.splitlines(), titles.split(), [row.split() for row in rows]


# --- once ---

def check_once_python(target):
    _, header, titles, rows = table("--once", "-p", target.pid, "--frames", "script")
    gate.matches(rf"^last 0\.\d s of pid {target.pid} \(/usr/bin/python3 .*app\.py\)$", header[0],
                 "python: the target")
    gate.matches(r"^cpu, 999 Hz: \d+ samples/s, 0 lost, own CPU [\d.]+ %, [\d.]+ CPUs; "
                 r"python 3\.\d+\.\d+\S* \(walk\)$", header[1], "python: rates, and the runtime")
    gate.equal(header[2], "functions by self, frames: script", "python: what is shown")
    gate.equal(titles, ["Self%", "Self", "Total%", "Total", "Kind", "Function"], "python: titles")
    gate.equal([(row[0], row[-4 if "module" in row[-2] else -3:], len(row)) for row in rows[:1]],
               [("100.0%", ["python", "busy", "(app.py)"], len(rows[0]))], "python: busy is first")
    gate.equal(sorted(row[-2] for row in rows), ["<module>", "busy", "outer"],
               "python: its functions")
    _, _, titles, rows = table("--once", "-p", target.pid, "--sort", "script", "-n", 1)
    gate.equal(titles[:2], ["Script%", "Script"], "python: with native frames there is a column")
    gate.equal([rows[0][0], *rows[0][-3:]], ["100.0%", "python", "busy", "(app.py)"],
               "python: by script")
    gate.matches(r"^\(\d+ more\)$", " ".join(rows[1]), "python: -n 1")


def check_once_native(target, tids):
    result, header, _, rows = table("-p", target.pid, "--frames", "all")
    gate.equal(result.err, "standard output is not a terminal: one table of 0.3 s, as with --once\n",
               "native: a pipe is told")
    gate.ok("; " not in header[1], "native: no runtime", header)
    gate.equal(rows[0][-2:], ["native", "in_spin"], "native: in_spin is first")
    gate.equal([row[2 if row[1] == "0" else 3] for row in rows if row[-1] == "in_spin"],
               ["100.0%"], "native: and in all")
    _, _, _, rows = table("--once", "-p", target.pid, "--by", "thread")
    gate.equal([row[0] + " " + " ".join(row[-5:]) for row in rows],
               [f"100.0% running {target.pid} {tids[3]} spin (stands)",
                *[f"0.0% sleeping {target.pid} {tid} {name} (stands)" for tid, name in
                  ((tids[2], "epoll"), (tids[0], "one"), (target.pid, "stands"),
                   (tids[1], "two"))]], "by thread: one alone runs")
    _, _, _, rows = table("--once", "-p", target.pid, "--by", "thread", "-e", "wall", "--sort",
                          "name")
    gate.equal([row[3:] for row in rows],
               [[state, str(target.pid), tid, name, "(stands)"] for state, tid, name in
                (("sleeping", tids[2], "epoll"), ("sleeping", tids[0], "one"),
                 ("running", tids[3], "spin"), ("sleeping", str(target.pid), "stands"),
                 ("sleeping", tids[1], "two"))], "by thread, wall: those that wait, too")


def check_end():
    result, header, titles, rows = table("--once", "-i", "60", "--", "/bin/true")
    gate.equal((header[0].split()[-1], header[2].split(", ")[-1]), ("/bin/true", "ENDED"),
               "a command that ends: it is said", result)
    result = gate.braid("top", "--once", "--", "/bin/sh", "-c", "exit 3")
    gate.equal(result.err, "the command ended with status 3\n", "and with what status")


def check_misuse(pattern, *args):
    result = gate.braid("top", *args)
    gate.equal((result.status, result.out), (2, ""), f"{args}: status")
    gate.matches(pattern, result.err, f"{args}: why")


def check_wrong():
    own = str(os.getpid())
    check_misuse("-e takes cpu or wall, not 'lock': other events", "-e", "lock", "-p", own)
    check_misuse("--frames takes app, script, collapsed or all, not 'x'", "--frames", "x", "-p", own)
    check_misuse("--sort takes .*, not 'x'", "--sort", "x", "-p", own)
    check_misuse("--by takes function or thread, not 'x'", "--by", "x", "-p", own)
    check_misuse("-i takes a number from 0.1 to 3600, not '0'", "-i", "0", "-p", own)
    check_misuse("-n takes a number", "-n", "0", "-p", own)
    check_misuse("--window takes a number", "--window", "0", "-p", own)
    check_misuse(r"--window \(1 s\) is shorter than .*2 s", "--window", "1", "-i", "2", "-p", own)
    check_misuse("--once shows one interval", "--once", "--window", "9", "-p", own)
    check_misuse("either -p PID or -- COMMAND")


# --- on a terminal ---

class Terminal:
    """A shell in tmux, with a server of its own."""

    def __init__(self):
        self.start = ["tmux", "-S", gate.path("tmux"), "-f", "/dev/null"]
        self.tmux("new-session", "-d", "-x", "120", "-y", "24", "env PS1='$ ' /bin/sh")
        self.wait(r"^\$ *$")  # what comes before the prompt is written twice
        self.run("echo 'what was' there before")
        self.wait("^what was there before$")
        self.settings = self.tell("stty -g")

    def tmux(self, *words):
        return subprocess.run([*self.start, *map(str, words)], check=True, text=True,
                              capture_output=True).stdout

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def run(self, command):
        self.tmux("send-keys", "-l", command)
        self.keys("Enter")

    def tell(self, command):
        """What it writes."""
        file = gate.path("told")
        self.run(f"{command} >{file}.new; mv {file}.new {file}")
        gate.wait_until(lambda: os.path.exists(file), command)
        with open(file, encoding="utf-8") as told:
            text = told.read()
        os.unlink(file)
        return text

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def wait(self, *patterns):
        """For a screen that has them all."""
        text = None

        def look():
            nonlocal text
            text = self.screen()
            if all(re.search(p, text, re.M) for p in patterns):
                return text
            time.sleep(0.05)  # looking costs more than it does elsewhere
            return None
        try:
            return gate.wait_until(look, patterns)
        except TimeoutError as late:
            raise TimeoutError(f"{patterns} do not come to:\n{text}") from late

    def check_restored(self, name):
        self.wait("^what was there before$", r"\$ \Z|\$ *\n*\Z")
        gate.equal(self.tell("stty -g"), self.settings, f"{name}: settings as before")
        gate.equal(self.tmux("display", "-p", "#{alternate_on} #{cursor_flag}"), "0 1\n",
                   f"{name}: the screen and the cursor, too")

    def close(self):
        self.tmux("kill-server")


def functions(text):
    return re.findall(r"python  (\S+) \(app\.py\)", text)


def has(*names):
    """A pattern of rows with these functions, in this order: a footer may be drawn before them."""
    return "(?s)" + ".*".join(rf"  python  {re.escape(name)} \(app\.py\)" for name in names)


def check_keys(terminal, target):
    gate.ok(terminal.wait(r"  python  busy \(app\.py\)", "^functions by script, frames: collapsed$",
                          "^Script% .*Function", "^q quit  ") and True, "the table comes by itself")
    terminal.keys("f")
    terminal.wait("frames: script$")
    terminal.keys("4")
    text = terminal.wait("^functions by name, frames: script$", has("<module>", "busy", "outer"))
    gate.equal(functions(text), ["<module>", "busy", "outer"], "4: by name")
    terminal.keys("2")
    text = terminal.wait("^functions by self, frames: script$", has("busy", "outer"))
    gate.equal(functions(text)[0], "busy", "2: by self")
    terminal.keys("/", "^", "O", "U")
    text = terminal.wait(r"search: \^OU \(1 of 3\)$", r"^search: \^OU_$", has("outer"))
    gate.equal(functions(text), ["outer"], "/: a regular expression")
    terminal.keys("(", "Enter")
    terminal.wait(r"search: \^OU\( \(0 of 3\)$", "^.no name matches the search.$")
    terminal.keys("Escape")
    text = terminal.wait("frames: script$", has("busy", "outer"), has("<module>"))
    gate.equal(len(functions(text)), 3, "Escape: all again")
    terminal.keys("p")
    terminal.wait("frames: script, PAUSED$")
    terminal.keys("Tab")
    gate.ok(terminal.wait("^threads by share, PAUSED$", r"^100\.0% +\S+ \S+ +\w+ +"
                          rf"{target.pid} +{target.pid}  \S+ \(python3\)$"),
            "p, Tab: by thread")
    terminal.keys("Tab", "p")
    terminal.wait("frames: script$")
    terminal.keys("?")
    gate.ok(terminal.wait("^braid top: what", "^  q +quit$", "Any key"), "?: help")
    terminal.keys("q")
    gate.ok(terminal.wait("frames: script$"), "any key: back")


def check_resize(terminal):
    terminal.tmux("resize-window", "-x", 50, "-y", 10)
    text = terminal.wait("^ Self% Total%  Kind    Function$", "^q quit")
    lines = text.split("\n")
    gate.ok(all(len(line) <= 50 for line in lines) and len(lines) == 11 and
            lines[0].startswith("last ") and lines[0].endswith("~"), "resize: cut to the width",
            text)


def check_terminal(braid):
    target = python()
    terminal = Terminal()
    terminal.run(f"{braid} top {' '.join(map(str, COMMON))} --window 2 -p {target.pid}")
    check_keys(terminal, target)
    check_resize(terminal)
    target.kill()
    target.wait()
    text = terminal.wait("^the target has ended; ", "ENDED$", has("busy"))
    gate.ok("busy" in functions(text), "the end: what was there stays", text)
    terminal.keys("q")
    terminal.tmux("resize-window", "-x", 120, "-y", 24)
    terminal.check_restored("q")
    return terminal


def check_threads(terminal, braid, target, tids):
    """Those that wait have no samples, and are there; the window goes on without the one that ran."""
    terminal.run(f"{braid} top -F 999 -i 0.1 --window 0.2 --by thread --sort name -p {target.pid}")
    text = terminal.wait(r"^100\.0% .* spin \(stands\)$")
    gate.equal(re.findall(r"(?m)% +\S.* (\w+) +(\d+) +(\d+)  (\w+) \(stands\)$", text),
               [(state, str(target.pid), tid, name) for state, tid, name in
                (("sleeping", tids[2], "epoll"), ("sleeping", tids[0], "one"),
                 ("running", tids[3], "spin"), ("sleeping", str(target.pid), "stands"),
                 ("sleeping", tids[1], "two"))], "threads: those that wait, too")
    os.kill(target.pid, signal.SIGSTOP)
    gate.ok(terminal.wait(r"^  0\.0% +0  stopped .* spin \(stands\)$", r" 0\.00 CPUs"),
            "threads: what has stopped leaves the window")
    os.kill(target.pid, signal.SIGCONT)
    gate.ok(terminal.wait(r"^100\.0% .* spin \(stands\)$"), "threads: and comes back")
    terminal.keys("q")
    terminal.check_restored("threads")


WAITING = re.compile(r"(?m)^ *\S+% +(\S+) (m?s) +sleeping +\d+ +(\d+)  \w+ \(stands\)$")


def check_waits(terminal, braid, target, tids):
    """Waits that do not end count up to now: all as much, as all threads but one wait for good. One that
    ends counts no more for that, also while it, and the one that follows, are in the window."""
    terminal.run(f"{braid} top -e wall -i 0.2 --window 1 --by thread -p {target.pid}")
    waiting = sorted([str(target.pid), *tids[:3]])
    seen = set()

    def look():
        """(ms of main, those of each other thread) of a picture that was not there yet, and is not
        half drawn."""
        text = terminal.wait("^wall, 99 Hz: .* threads$")
        if terminal.wait("^wall, 99 Hz: .* threads$") != text:
            return None
        ms = {tid: float(number) * (1000 if unit == "s" else 1)
              for number, unit, tid in WAITING.findall(text)}
        if sorted(ms) != waiting or text in seen:
            return None
        seen.add(text)
        return ms.pop(str(target.pid)), set(ms.values())
    found = gate.wait_until(look, "four threads that wait")
    gate.equal({found[0]}, found[1], "waits: each as long as all others")
    for i in range(4):
        gate.ask(target, "eintr")
        main, others = gate.wait_until(look, "the next picture")
        gate.ok(len(others) == 1 and main <= max(others), f"waits: not twice, {i}", main, others)
    terminal.tmux("resize-window", "-x", 120, "-y", 60)
    terminal.keys("f", "Tab")
    gate.ok(terminal.wait(*(rf"  native +{function}$" for function in
                            ("take_both", "in_epoll", "obey"))), "waits: where is shown")
    terminal.keys("q")
    terminal.tmux("resize-window", "-x", 120, "-y", 24)
    terminal.check_restored("waits")


def check_signals(terminal, braid, target):
    """One that the session knows, and one that ends the process at once; of another terminal."""
    for number in signal.SIGTERM, signal.SIGQUIT:
        terminal.run(f"TERM=xterm NO_COLOR=1 {braid} top -p {target.pid} & echo $! "
                     f">{gate.path('pid')}; fg >/dev/null; echo status $?")
        terminal.wait("^q quit")
        with open(gate.path("pid"), encoding="utf-8") as file:
            os.kill(int(file.read()), number)
        terminal.check_restored(number.name)
    gate.matches(r"(?m)^status 0$.*^status 131$", terminal.screen(), "signals: status")


def check_dumb(terminal, braid, target):
    terminal.run(f"clear; TERM=dumb {braid} top -p {target.pid}; echo dumb: status $?")
    gate.matches(r"(?m)^braid: cannot draw on a terminal of the type 'dumb'. .*--once\ndumb: status 1$",
                 terminal.wait("^dumb: status [0-9]"), "a terminal that cannot is refused")


def maps_of(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        return maps.read()


def check_many_runtimes():
    """Six are shown by name, further ones are counted: none is left out in silence."""
    seconds = "600"
    java = "/usr/lib/jvm/java-17-openjdk-amd64/bin/java"
    gate.subprocess.run([java + "c", "-d", gate.tmp, "fixtures/java/idle/Idle.java"], check=True)
    programs = (["/usr/bin/python3", "-c", f"import time; time.sleep({seconds})"],
                ["/usr/bin/ruby", "-e", f"sleep {seconds}"], ["/usr/bin/perl", "-e", f"sleep {seconds}"],
                ["/usr/bin/php", "-r", f"sleep({seconds});"],
                ["/usr/bin/node", "-e", f"setTimeout(() => {{}}, {seconds}000)"],
                [os.path.join(gate.OUTPUT, "fixtures/go/busy")], [java, "-cp", gate.tmp, "Idle"])
    missing = [words[0] for words in programs if not os.path.exists(words[0])]
    if missing:
        gate.skip("many runtimes", f"there is no {missing[0]}")
        return
    targets = [gate.start(*words) for words in programs]
    for name in "libruby", "libjvm.so":
        gate.wait_until(lambda name=name: any(name in maps_of(target.pid) for target in targets), name)
    result = gate.braid("top", "--once", "-i", "0.3", "-p", ",".join(str(target.pid) for target in targets))
    shown = result.out.splitlines()[1].partition("; ")[2]
    gate.equal(shown.count(", "), 5, "many runtimes: six by name", result)
    gate.matches(r" and 1 more$", shown, "many runtimes: and the number of the others")
    for target in targets:
        target.kill()


gate.need_root()
process = python()
check_once_python(process)
process.kill()
process, threads = stands()
check_once_native(process, threads)
check_end()
check_many_runtimes()
check_wrong()
if not shutil.which("tmux"):
    gate.skip("on a terminal", "there is no tmux")
else:
    program = os.path.abspath(gate.BRAID)
    tty = check_terminal(program)
    check_threads(tty, program, process, threads)
    check_waits(tty, program, process, threads)
    check_signals(tty, program, process)
    check_dumb(tty, program, process)
    tty.close()
gate.done()
