#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian 12's Ruby: one exact stack of C and Ruby frames, with classes and lines; blocks, methods in C
that call Ruby, and those that they call."""

import json

import gate

RUBY = "/usr/bin/ruby3.1"
SCRIPT = "fixtures/ruby/marked/marked.rb"
HITS = 6

gate.need_root()
gate.need_program(RUBY)
target = gate.marked(RUBY, SCRIPT)
recorder = gate.recorder(HITS, target)
gate.equal(recorder.said[0].rpartition(".")[0], f"source {target.pid} ruby 3.1",
           "the runtime is told")
gate.equal(recorder.said[0].rpartition(" ")[2], "walk", "and where frames come from")
stacks = json.loads(gate.ask(target, str(HITS)))
recording = gate.finish(recorder, HITS)

# What the interpreter says. Its labels lack the class before 3.4.
owners = {"<main>": "<main>", "outer": "Object#outer", "compare": "Item.compare",
          "each": "Array#each", "block in compare": "block in Item.compare", ">": "Comparable#>",
          "<=>": "Item#<=>", "times": "Integer#times", "block in <=>": "block in Item#<=>",
          "leaf": "Item#leaf"}
gate.equal(stacks, [stacks[0]] * HITS, "the interpreter sees the same at each hit")
gate.equal([label for label, _ in stacks[0]], list(owners), "the interpreter's own stack")
lines = dict(stacks[0])


def loop(*labels):
    """A loop of the interpreter is shown as the frames that it runs. Here it consists of
    rb_vm_exec, vm_exec_core, and vm_sendish: each of them is called by the one before."""
    return [gate.Frame(f"{owners[label]} (marked.rb:{lines[label]})_[rb]", natives=0 if i else 3)
            for i, label in enumerate(labels)]


def method(name):
    """A method in C: vm_call_cfunc_with_frame, the method, and then its function."""
    return [None, gate.Frame(f"{name}_[rb]")]


seen = gate.traces()
gate.check_native("ruby", recording.samples(), gate.Maps(target.pid), seen)
gate.check_merged("ruby", recording.merged(), [
    *gate.TO_MAIN, None,  # main
    "ruby_run_node_[n]", None,  # rb_ec_exec_node
    *loop("<main>", "outer", "compare"),
    *method("Array#each"), "rb_ary_each_[n]", "rb_yield_[n]",
    *loop("block in compare"),
    *method("Comparable#>"), "Comparable#>_[n]", "rb_funcallv_[n]",  # cmp_gt
    *loop("<=>"),
    *method("Integer#times"), "Integer#times_[n]", None,  # int_dotimes, rb_yield_1
    *loop("block in <=>", "leaf"),
    *method("Process.ppid"), "Process.ppid_[n]",  # proc_get_ppid
    *gate.hit()], HITS, natives=len(seen[0][1]))
gate.equal(recording.sql("SELECT runtime, source FROM source"), [("ruby", "walk")],
           "the source is recorded")
gate.check_clean("ruby", recording)
gate.done()
