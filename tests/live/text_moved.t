#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that have moved their code to memory without a file, or to another file, as huge pages for
code do, or all of themselves, as packed programs do: native frames and merged stacks are those of the
same program with its code where it was."""

import os
import signal
import subprocess

import gate

N = 20
MOVES = os.path.join(gate.OUTPUT, "fixtures/native/moves")
MARKS = gate.MARKS
PYTHON = "import os\ninput()\ndef g(): os.getppid()\ndef f(): g()\nfor _ in range(%d): f()\nopen(0).read()" % N
PHP = "fgets(STDIN); function g() { posix_getppid(); } function f() { g(); } for ($i = 0; $i < %d; $i++) f(); fgets(STDIN);" % N
PERL = "<STDIN>; sub g { getppid; 1 } sub f { g(); 1 } f() for 1..%d; <STDIN>" % N
RUBY = "gets; def g = Process.ppid; def f = g; %d.times { f }; gets" % N
NODE = "const fs = require('fs'); fs.readSync(0, Buffer.alloc(8)); function g() { return process.ppid } " \
       "function f() { g() } for (let i = 0; i < %d; i++) f(); fs.readSync(0, Buffer.alloc(8))" % N
HUGE = ("-d", "opcache.enable_cli=1", "-d", "opcache.huge_code_pages=1", "-d", "opcache.jit=disable")

# (title, command, what is moved, ways). The kernel reports no mremap: what a program does at once
# after it is not known in time, so that no test has it after the recording has begun.
PROGRAMS = (
    ("marks", (MARKS,), "", ("copy", "mremap", "memfd", "shared")),
    ("python", ("/usr/bin/python3.11", "-c", PYTHON), "", ("copy", "inside", "all")),
    ("php", ("/usr/bin/php8.2", "-n", "-d", "extension=posix", "-r", PHP), "", ("mremap", "all")),
    ("perl", ("/usr/bin/perl", "-e", PERL), "", ("memfd", "all")),
    ("ruby", ("/usr/bin/ruby3.1", "--disable-gems", "-e", RUBY), "libruby", ("copy",)),
)


def recording_of(title, command, env, later):
    """Recorded while it calls getppid; `later`: the code is moved after the recording has begun."""
    target = gate.start(*command, env=dict(os.environ, **env))
    file = gate.path(f"{title.replace(' ', '-')}.db")
    braid = gate.start(gate.BRAID, "record", "-e", "syscall:getppid", "-p", target.pid, "-o", file,
                       "--max-overhead", "none", stderr=subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
    if later:
        os.kill(target.pid, signal.SIGUSR1)
        gate.line_of(target)
    gate.say(target, f"here {N}")
    gate.wait_until(lambda: gate.Recording(file).count() >= N or braid.poll() is not None, "the samples' commit")
    target.stdin.close()
    gate.equal(target.wait(), 0, f"{title}: the target ends as it should")
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, f"{title}: status", said)
    return gate.Recording(file), said


def facts_of(title, command, env, later=False):
    recording, said = recording_of(title, command, env, later)
    samples = recording.samples()
    gate.equal(recording.count(), N, f"{title}: a sample for each call", said)
    gate.equal({sample.flags & 1 for sample in samples}, {1}, f"{title}: stacks are complete", said)
    # A JIT compiler's code is at another address each time.
    natives = [[place for place in sample.native if place[0]] for sample in samples]
    return natives, sorted(frames for frames, _ in recording.merged())


def without_natives(facts):
    return facts[0], [[frame for frame in frames if not frame.endswith("_[n]")] for frames in facts[1]]


def compare(name, got, want):
    gate.equal(got[0], want[0], f"{name}: native frames are the same")
    differ = [frame for stacks in (got[1], want[1]) for frame in set(sum(got[1], [])) ^ set(sum(want[1], []))
              if frame in sum(stacks, [])]
    gate.ok(got[1] == want[1], f"{name}: so are merged stacks", len(got[1]), len(want[1]), differ)


def check(title, command, moved, ways):
    gate.need_program(command[0])
    usual = facts_of(title, command, {})
    for way in ways:
        for later in (False,) if way in ("mremap", "all") else (False, True):
            env = {"LD_PRELOAD": MOVES, "MOVES": way, "MOVES_FILE": moved}
            name = f"{title} {way}" + (" later" if later else "")
            if later:
                env["MOVES_LATER"] = "1"
            got = facts_of(name, command, env, later)
            # Names that a runtime's tables have for functions are lost where it has changed these.
            if way == "all":
                compare(name, without_natives(got), without_natives(usual))
            else:
                compare(name, got, usual)


gate.need_root()
for program in PROGRAMS:
    check(*program)
script = gate.path("huge.php")
with open(script, "w", encoding="ascii") as out:
    out.write("<?php " + PHP)
usual = facts_of("php opcache", ("/usr/bin/php8.2", *HUGE[:2], *HUGE[4:], script), {})
huge = facts_of("php huge pages", ("/usr/bin/php8.2", *HUGE, script), {})
compare("php huge pages", huge, usual)
if os.path.exists("/usr/bin/node"):
    usual = facts_of("node", ("/usr/bin/node", "-e", NODE), {})
    huge = facts_of("node large pages", ("/usr/bin/node", "--use-largepages=on", "-e", NODE), {})
    compare("node large pages", huge, usual)
    # V8 maps its builtins a second time, near compiled code, which calls them there; on huge pages
    # the second one is a copy in anonymous memory.
    usual = facts_of("node sparkplug", ("/usr/bin/node", "--always-sparkplug", "-e", NODE), {})
    huge = facts_of("node sparkplug large pages", ("/usr/bin/node", "--use-largepages=on", "--always-sparkplug", "-e", NODE), {})
    compare("node sparkplug large pages", huge, usual)
gate.done()
