#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""What shells complete: the real ones, by the keys that a user presses. Of zsh and fish as far as they
are installed."""

import fcntl
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios

sys.path.insert(0, "tests")
from tap import done, equal, ok, skip

OUTPUT = os.path.abspath(os.environ.get("OUTPUT", "build"))
# A line and a Tab -> its last word then.
CASES = {
    "rep": "report",
    "record --dur": "--duration",
    "report --format spee": "speedscope",
    "report --format=spee": "--format=speedscope",
    "flame --frames scr": "script",
    "record --source pro": "probes",
    "dump --nonbl": "--nonblocking",
    "record -r ru": "ruby",
    "record -r python,ru": "python,ruby",
    "record --runtimes=python,ru": "--runtimes=python,ruby",
    "record -e page-f": "page-fault",
    "record -e cpu,page-f": "cpu,page-fault",
    "record -d 1 -o only": "only.db",
    "record --rotate 60 -o bi": "bin/",
    "record --metrics on": "only.db",
    "report only": "only.db",
    "push on": "only.db",
    "record -- zebra-t": "zebra-tool",
    "report --state=waiting,sto": "--state=waiting,stopped",
}
if os.geteuid() == 0:  # others are not told of tracepoints
    CASES["record -e cpu,tracepoint:sched:sched_swit"] = "cpu,tracepoint:sched:sched_switch"
NOT_THERE = ["xyz", "report --nonbl", "record --format spee", "doctor --dur"]


class Terminal:
    """A shell that reads keys, in the directory. What completes calls the program; what is entered only
    says its words."""

    def __init__(self, *command, ready):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execvp(command[0], command)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("4H", 50, 250, 0, 0))
        self.ready = ready
        self.text = ""

    def wait(self, pattern):
        while not re.search(pattern, self.text, re.S):
            self.text += os.read(self.fd, 4096).decode(errors="replace")
        found = re.search(pattern, self.text, re.S)
        self.text = self.text[found.end():]
        return found

    def run(self, line):
        os.write(self.fd, line.encode() + b"\r")
        self.wait(self.ready)

    def complete(self, line):
        os.write(self.fd, b"braid " + line.encode() + b"\t\r")
        return self.wait(r"<words:([^>]*)>")[1]

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def bash():
    shell = Terminal("bash", "--norc", "--noprofile", "-i", ready="[$#] $")
    shell.run(". ./bash; . ./function")
    return shell


def zsh():
    shell = Terminal("zsh", "-f", "-i", ready=r"[#%] (\x1b\[\?2004h)?$")
    shell.run(". ./function; fpath=($PWD/zsh $fpath); autoload -U compinit; compinit -u -D; "
              "unsetopt auto_remove_slash")
    return shell


def check_keys(name, start):
    shell = start()
    for line, want in CASES.items():
        words = (line.split(" ")[:-1] + [want])
        equal(shell.complete(line).rstrip(), " ".join(words), f"{name}: {line}")
    for line in NOT_THERE:
        equal(shell.complete(line).rstrip(), line, f"{name}: {line}: nothing")
    shell.end()


def check_fish():
    """It says what it would complete a line to."""
    def complete(line):
        said = subprocess.run(["fish", "-N", "-c", f"source fish; complete -C 'braid {line}'"],
                              capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        return [word.split("\t")[0] for word in said.stdout.splitlines()]
    for line, want in CASES.items():
        ok(want in complete(line), f"fish: {line}", complete(line))
    for line in NOT_THERE:
        equal(complete(line), [], f"fish: {line}: nothing")


directory = tempfile.mkdtemp(prefix="braid-test-")
for shell_name, path in ("bash", "bash"), ("zsh", "zsh/_braid"), ("fish", "fish"):
    made = subprocess.run(["scripts/completions", OUTPUT + "/braid", shell_name],
                          capture_output=True, text=True, check=False)
    equal((made.returncode, made.stderr), (0, ""), f"{shell_name}: is written")
    os.makedirs(os.path.dirname(os.path.join(directory, path)), exist_ok=True)
    with open(os.path.join(directory, path), "w", encoding="utf-8") as file:
        file.write(made.stdout)
os.chdir(directory)
os.mkdir("bin")
for path in "only.db", "bin/zebra-tool":
    with open(path, "w", encoding="ascii"):
        os.chmod(path, 0o755)
os.environ.update(PATH=f"{directory}/bin:{OUTPUT}:" + os.environ["PATH"], TERM="dumb",
                  HOME=directory, XDG_CONFIG_HOME=directory, LC_ALL="C.UTF-8")
with open("function", "w", encoding="utf-8") as file:
    file.write(f'braid() {{ if [ "$1" = events ]; then {OUTPUT}/braid events; else '
               'printf "<words:%s>" "$*"; fi; }\n')
signal.alarm(120)
try:
    check_keys("bash", bash)
    if shutil.which("zsh"):
        check_keys("zsh", zsh)
    else:
        skip("zsh", "it is not installed")
    if shutil.which("fish"):
        check_fish()
    else:
        skip("fish", "it is not installed")
finally:
    os.chdir("/")
    shutil.rmtree(directory)
done()
