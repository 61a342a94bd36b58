#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Children: one that hits and ends at once, each of many, one that executes another program, and many
that execute one and end at once; all with exact stacks, whatever of it is still there when braid comes
to look."""

import gate

FORKS = 6
SPAWNS = 20


def check_forks():
    target = gate.marked(gate.MARKS)
    recorder = gate.recorder(4 * FORKS + 1, target)
    children = [int(gate.ask(target, "fork 4").split()[1]) for _ in range(FORKS)]
    gate.ask(target, "here 1")
    recording = gate.finish(recorder, 4 * FORKS + 1)
    samples = recording.samples()
    gate.equal([sample.pid for sample in samples],
               [pid for pid in children for _ in range(4)] + [target.pid],
               "fork: four of each child, one of the parent, in their order")
    gate.equal([gate.state_of(pid) for pid in children], [None] * FORKS,
               "fork: the children have ended")
    gate.check_native("fork", samples, gate.Maps(target.pid), gate.traces())
    of_children = [stack for stack in recording.merged() if len(stack[0]) == len(gate.HERE)
                   and "from_child" in stack[0][-3]]
    gate.check_merged("fork", of_children, [
        *gate.TO_OBEY, gate.marks("obey", "from_child(k);"),
        gate.marks("from_child", "/* from_child */"), *gate.hit()], 4 * FORKS)
    gate.check_merged("fork, parent", recording.merged("--pid", target.pid), gate.HERE, 1)
    gate.equal(sorted(pid for pid, in recording.sql("SELECT pid FROM process")),
               sorted([target.pid, *children]), "fork: these processes and no other")
    gate.equal(set(recording.sql("SELECT parent_pid FROM process WHERE pid != ?", target.pid)),
               {(target.pid,)}, "fork: whose children they are")
    gate.check_clean("fork", recording)


def check_exec():
    """Without randomized addresses the breakpoint, which stays where it is, is in the marker again.
    The first hits come while nothing is known yet of the new program's mappings."""
    target = gate.marked("setarch", "-R", gate.MARKS, trace=False)
    recorder = gate.recorder(7, target)
    gate.ask(target, "here 2")
    pid = int(gate.ask(target, "fork-exec").split()[1])
    gate.equal(gate.ask(target, "here 5"), "done 0", "exec: the new program obeys")
    recording = gate.finish(recorder, 7)
    gate.check_merged("exec, before", recording.merged("--pid", target.pid), gate.HERE, 2)
    gate.check_merged("exec", recording.merged("--pid", pid), gate.HERE, 5)
    samples = recording.samples()
    gate.equal([sample.native for sample in samples[2:]], [samples[0].native] * 5,
               "exec: the same native frames")
    gate.say(target, "end")
    gate.equal(gate.line_of(target), f"done {pid}", "exec: the child has ended, the parent goes on")


def check_spawned():
    """They are gone before their mappings can be read: tables are found by the files that are mapped,
    which their parent maps as well, so that from the first of them on nothing is lost or repaired."""
    target = gate.marked("setarch", "-R", gate.MARKS, trace=False)
    recorder = gate.recorder(2 * SPAWNS + 1, target)
    gate.ask(target, "here 1")
    children = [int(gate.ask(target, "spawn 2").split()[1]) for _ in range(SPAWNS)]
    recording = gate.finish(recorder, 2 * SPAWNS + 1)
    gate.equal([sample.pid for sample in recording.samples()],
               [target.pid, *(pid for pid in children for _ in range(2))],
               "spawned: two samples of each child, in their order")
    gate.check_merged("spawned", [stack for stack in recording.merged()
                                  if "from_child" in stack[0][-3]], [
        *gate.TO_MAIN, gate.marks("main", "/* spawned */"),
        gate.marks("from_child", "/* from_child */"), *gate.hit()], 2 * SPAWNS)
    gate.equal(recording.sql("SELECT DISTINCT name, command FROM process WHERE pid != ?", target.pid),
               [("exe", "marks 2")], "spawned: what they executed")
    gate.check_clean("spawned", recording)


gate.need_root()
check_forks()
check_exec()
check_spawned()
gate.done()
