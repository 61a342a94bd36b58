#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""-- COMMAND: what it does is recorded from its first instruction on, with its libraries, and braid
tells how it ended."""

import os
import re
import signal

import gate


def with_marker():
    return dict(os.environ, LD_PRELOAD=gate.MARKER, MARKER_TRACE=gate.path("trace"))


def check_hits():
    """The hits come at once: all of it was ready before the program's own first instruction."""
    target = gate.recorder(6, gate.MARKS, env=with_marker())
    gate.say(target, "here 6")
    said = gate.wait_line(target, "recorded 6")
    pid = int(re.search(r"\bready (\d+)\n", "\n".join(said) + "\n").group(1))
    maps = gate.Maps(pid)
    recording = gate.finish(target, 6)
    samples = recording.samples()
    gate.equal([(sample.pid, sample.tid) for sample in samples], [(pid, pid)] * 6,
               "command: whose they are")
    # The marker is in braid itself, too, and in what helps it.
    gate.check_native("command", samples, maps,
                      [trace for trace in gate.traces() if trace[0] == pid])
    gate.check_merged("command", recording.merged(), gate.HERE, 6)
    gate.check_clean("command", recording)
    gate.equal(recording.sql("SELECT name FROM process"), [("marks",)], "command: its process")
    gate.equal(recording.meta("target"), gate.MARKS, "command: it is the target")
    gate.say(target, "end")


def check_executed_again():
    """Another program, before the first had come to its own code: that is waited for instead."""
    again = os.path.join(gate.OUTPUT, "fixtures/native/again")
    target = gate.recorder(3, gate.MARKS, env=dict(with_marker(), EXECUTED_AGAIN="marks",
                                                   LD_PRELOAD=f"{gate.MARKER}:{again}"))
    gate.say(target, "here 3\nend")
    gate.check_merged("executed again", gate.finish(target, 3).merged(), gate.HERE, 3)


def check_end():
    """The recorder ends with the command, whatever it waits for."""
    target = gate.recorder(1000, gate.MARKS, env=with_marker())
    gate.say(target, "here 3\nend")
    recording = gate.finish(target, 3)
    gate.check_merged("end of the command", recording.merged(), gate.HERE, 3)


def check_statuses():
    file = gate.path("ended.db")
    result = gate.braid("record", "-o", file, "--", "sh", "-c", "exit 3")
    gate.equal(result.status, 0, "braid's status is its own", result.err)
    gate.matches("ended with status 3", result.err, "the command's status is told")
    result = gate.braid("record", "-o", file, "--", "sh", "-c", "kill -SEGV $$")
    gate.equal(result.status, 0, "command killed by a signal: braid's status", result.err)
    gate.matches("signal 11", result.err, "command killed by a signal: told")
    # A tick of the clock in the midst of the exec is one of braid's own child.
    gate.equal(gate.Recording(file).sql("SELECT name FROM process WHERE name != 'braid'"),
               [("sh",)], "a command too short for a sample has a process in the recording")


def check_summary():
    """It speaks of what was there."""
    result = gate.braid("record", "-v", "-F", "999", "-o", gate.path("native.db"), "--", "sh", "-c",
                        "for i in 1 2 3 4 5 6 7 8 9; do /bin/true; done")
    gate.equal(result.status, 0, "summary: status", result.err)
    gate.matches(r"\nframes: \d+ kernel, \d+ native\n", result.err, "summary: no other runtimes")
    gate.ok("compiled code" not in result.err, "summary: no compiled code", result.err)


def check_signal(number):
    """The command outlives braid, as it would the shell that started it. On a slow machine its start alone
    is twenty samples at the usual rate, with which the summary does not say what the process has used."""
    name = signal.Signals(number).name
    file = gate.path(f"{name}.db")
    with open(gate.path("stderr"), "wb") as stderr:
        braid = gate.start(gate.BRAID, "record", "-F", "1", "-o", file, "--", gate.MARKS, stderr=stderr)
    pid = int(gate.wait_line(braid, "ready")[-1].split()[1])
    ids = gate.ids_of(braid.pid)
    braid.send_signal(number)
    gate.equal(braid.wait(), 0, f"{name}: status")
    with open(gate.path("stderr"), encoding="utf-8") as stderr:
        error = stderr.read()
    gate.check_gone(name, ids)
    gate.matches(rf"continues as PID {pid}\n", error, f"{name}: that the command goes on is told")
    gate.matches(r"\n\S+: \d+ samples (= [\d.]+ ms CPU )?in [\d.]+ s.*\nthe process has "
                 r"(used \d+\.\d\d s of CPU in that time with )?1 thread(; now in \w+ \(1\))?: try -e wall, ", error, f"{name}: summary")
    gate.ok("\r" not in error and " lost, own CPU" not in error, f"{name}: no status line", error)
    gate.equal(gate.ask(braid, "here 1"), "done 0", f"{name}: the command does go on")
    gate.say(braid, "end")
    gate.equal(gate.Recording(file).sql("PRAGMA integrity_check"), [("ok",)],
               f"{name}: the recording is whole")


def check_stopped():
    """Ctrl-Z stops braid and the command, which are one job; afterwards the recording goes on. While braid
    alone is stopped, the command is not."""
    braid = gate.recorder(4, gate.MARKS, env=with_marker(), process_group=0)
    pid = int(gate.wait_line(braid, "ready ")[-1].split()[1])
    gate.say(braid, "here 1")
    gate.wait_line(braid, "done 0")
    os.killpg(braid.pid, signal.SIGTSTP)
    # "t": by the tracer, which follows what the command executes in its first moments.
    gate.wait_until(lambda: gate.state_of(braid.pid) == "T" and gate.state_of(pid) in "Tt", "both to stop")
    gate.ok(True, "Ctrl-Z: braid and the command stop")
    os.killpg(braid.pid, signal.SIGCONT)
    gate.say(braid, "here 1")
    gate.wait_line(braid, "done 0")
    gate.ok(True, "Ctrl-Z: both go on")
    os.kill(braid.pid, signal.SIGTSTP)
    gate.wait_until(lambda: gate.state_of(braid.pid) == "T", "braid to stop")
    gate.say(braid, "here 2")
    gate.wait_line(braid, "done 0")
    gate.ok(True, "braid alone stopped: the command goes on")
    os.kill(braid.pid, signal.SIGCONT)
    recording = gate.finish(braid, 4)
    gate.check_merged("Ctrl-Z", recording.merged(), gate.HERE, 4)
    gate.say(braid, "end")


def check_no_command():
    for words, reason in (["/no/such/program"], "No such file"), (["/etc/passwd"], "denied"):
        file = gate.path("none.db")
        result = gate.braid("record", "-o", file, "--", *words)
        gate.equal(result.status, 1, f"{words[0]}: status", result)
        gate.matches(rf"^braid: cannot run {words[0]}: .*{reason}[^\n]*\n$", result.err,
                     f"{words[0]}: one line")
        gate.equal([name for name in os.listdir(gate.tmp) if name.startswith("none")], [],
                   f"{words[0]}: no file")


def check_not_begun():
    """Where a recording cannot begin, at whatever point, the command does not run, and is no more.
    (What it would write to is at its end when nobody has it open.)"""
    mark = gate.path("mark")
    command = ["--", "sh", "-c", f"echo > {mark}"]
    record = [gate.BRAID, "record", *command]
    for name, words in (
            ("before it is forked", ["setpriv", "--bounding-set=-all", "--inh-caps=-all",
                                     "--reuid=65534", "--clear-groups", *record]),
            ("before its exec", [gate.BRAID, "record", "-o", gate.path("no/such.db"), *command]),
            ("after its exec", [gate.RECORD_AT, "-n", "1", "-o", gate.path("none.db"),
                                "libc.so.6:there_is_none", *command])):
        result = gate.run(*words)
        gate.equal(result.status, 1, f"{name}: status", result.err)
        gate.ok(not os.path.exists(mark), f"{name}: the command has not run")
        gate.ok(not os.path.exists(gate.path("none.db")), f"{name}: no recording")


gate.need_root()
check_hits()
check_executed_again()
check_end()
check_statuses()
check_summary()
check_signal(signal.SIGINT)
check_signal(signal.SIGTERM)
check_signal(signal.SIGHUP)
check_stopped()
check_no_command()
check_not_begun()
gate.done()
