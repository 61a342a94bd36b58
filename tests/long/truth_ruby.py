# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs of truth_runtimes.t in Ruby, with the C functions in an extension."""

import os
import re
import shutil
import subprocess

import truth_graph
from truth_graph import ANY, END

NAME = "Ruby"
SHARED = "RUBY_MN_THREADS" in os.environ.get("TRUTH_RUBY", "")  # its threads begin like fibers
COMMAND = os.environ.get("TRUTH_RUBY", "ruby").split()
BLOCK = "block in Object#s{p}"
EDGES = {
    "ss": {"call": (), "each": (BLOCK, ANY), "times": (BLOCK, ANY), "map": (BLOCK, ANY),
           "sort": (BLOCK, ANY), "hash": (BLOCK, ANY), "lambda": (BLOCK, ANY), "send": (ANY,),
           "init": ("K_{n}#initialize", ANY), "missing": ("K_{n}#method_missing", ANY),
           "compare": ("K_{n}#<=>", ANY), "defined": ("d_{n}", ANY), "method": (ANY,),
           "rescue": ("rescue in Object#s{p}",),
           "yield": (BLOCK, "Object#y_{n}"), "eval": (BLOCK, ANY),
           "fiber": (BLOCK, ANY), "again": (BLOCK, ANY), "transfer": (BLOCK, ANY, END),
           "next": (BLOCK, ANY), "lazy": (BLOCK, ANY), "task": (BLOCK, ANY)},
    "sc": {"method": ("enter_c", "enter_method", ANY), "block": (
        "enter_c", "enter_method", ANY, BLOCK, ANY)},
    "cs": {"funcall": (ANY, "back_funcall"), "yield": ("block in Object#f_{n}", ANY, "back_yield"),
           "protect": (ANY, "protected", ANY, "back_protect")},
}
ROOT = ("Object#run", ANY)
RECURSION = ()
THREAD_ENTRIES = r"_start|_*clone3?|\[libc\.so\.6\+.*\]"  # the last: clone3 of another root's libc
# Methods in which a fiber waits for another one. Its native frames are on a stack of their own.
WAITS = {"Fiber#resume", "Enumerator#next"}


def ENDS(frames, root):
    """A thread's entry, or a fiber's, which nothing has called or for which another one waits."""
    outside = len(frames)
    while outside and frames[outside - 1].kind != "n":
        outside -= 1
    is_fiber = frames[outside - 1].name.startswith("[libruby")
    if root == END:
        return is_fiber and outside == len(frames)
    if outside == len(frames):
        return bool(re.fullmatch(THREAD_ENTRIES, frames[-1].name)) or SHARED and is_fiber
    return is_fiber and frames[outside].name in WAITS


# Ruby's headers may be missing: its functions are declared here.
GLUE = """
typedef unsigned long value;
extern value rb_funcall(value, value, int, ...), rb_intern(const char *), rb_protect(value (*)(value), value, int *);
extern value rb_proc_call(value, value), rb_ary_new(void), rb_ary_push(value, value), rb_ary_entry(value, long);
extern value rb_block_call(value, value, int, const value *, value (*)(value, value, int, const value *, value), value);
extern void rb_define_global_function(const char *, value (*)(), int);
extern int snprintf(char *, unsigned long, const char *, ...);
extern value rb_cObject;
static value top;
static value name_of(const char *prefix, int number)
{ char name[16]; snprintf(name, sizeof(name), "%s%d", prefix, number); return rb_intern(name); }
#define NUMBER(n) ((value)(n) * 2 + 1)
FUNCTION void back_funcall(int number, int depth)
{ rb_funcall(top, name_of("s", number), 1, NUMBER(depth)); work(40); }
FUNCTION void back_yield(int number, int depth)
{ (void)depth; value proc = rb_funcall(top, name_of("f_", number), 0), none = rb_ary_new();
  work(30); rb_proc_call(proc, none); work(40); }
FUNCTION value protected(value packed)
{ int *words = (int *)packed; rb_funcall(top, name_of("s", words[0]), 1, NUMBER(words[1])); work(30); return 1; }
FUNCTION void back_protect(int number, int depth)
{ int words[2] = { number, depth }, state; rb_protect(protected, (value)words, &state); work(40); }
FUNCTION value enter_method(value self, value number)
{ top = self; enter_c((int)(number >> 1)); return number; }
"""
INIT = ("__attribute__((visibility(\"default\"))) void Init_libtruth(void)\n"
        "{ rb_define_global_function(\"enter_method\", (value (*)())enter_method, 1); }\n")
C_CALLS = {via: f"back_{via}({{n}}, {{depth}});" for via in EDGES["cs"]}

CALLS = {
    "call": "s{n}({depth})", "each": "[1].each {{ |_| s{n}({depth}) }}",
    "times": "1.times {{ s{n}({depth}) }}", "map": "[1].map {{ |_| s{n}({depth}) }}",
    "sort": "[2, 1].sort {{ |a, b| s{n}({depth}); a <=> b }}",
    "hash": "Hash.new {{ |h, k| s{n}({depth}); 1 }}[x]", "lambda": "lambda {{ s{n}({depth}) }}.call",
    "send": "send(:s{n}, {depth})", "init": "K_{n}.new", "missing": "K_{n}.new.nothing",
    "compare": "[K_{n}.new, K_{n}.new].sort", "defined": "d_{n}()", "method": "method(:s{n}).call({depth})",
    "rescue": "begin\nraise TypeError\nrescue TypeError\ns{n}({depth})\nend",
    "yield": "y_{n} {{ s{n}({depth}) }}", "eval": "instance_eval {{ s{n}({depth}) }}",
    "fiber": "Fiber.new {{ s{n}({depth}) }}.resume",
    "again": "f = Fiber.new {{ Fiber.yield; s{n}({depth}); Fiber.yield; s{n}({depth}) }}\nf.resume; f.resume; f.resume",
    "transfer": "Fiber.new {{ s{n}({depth}) }}.transfer",
    "next": "e = Enumerator.new {{ |y| y << s{n}({depth}); y << s{n}({depth}) }}\ne.next; e.next",
    "lazy": "(1..2).lazy.map {{ |_| s{n}({depth}) }}.next",
    "task": "Tasks.run {{ s{n}({depth}) }}",
}
# A scheduler of tasks: each is a fiber, and waits for the others now and then.
TASKS = """class Tasks
def self.run(&work)
ready = [Fiber.new { Fiber.yield; work.call }, Fiber.new { Fiber.yield }]
while (fiber = ready.shift)
fiber.resume
ready.push(fiber) if fiber.alive?
end
end
end"""

ENTRIES = {
    "init": "class K_{n}\ndef initialize\n@x = 1\ns{n}({depth})\n@x += 1\nend\nend\n",
    "missing": "class K_{n}\ndef method_missing(name)\ns{n}({depth})\n1 + 1\nend\nend\n",
    "compare": "class K_{n}\ndef <=>(other)\ns{n}({depth})\n0 + 1\nend\nend\n",
    "defined": "define_method(:d_{n}) {{ s{n}({depth}); 1 }}\n",
    "yield": "def y_{n}\nyield\n1 + 1\nend\n",
}
C_ENTRIES = {"method": "enter_method({n})", "block": "[1].each {{ |_| enter_method({n}) }}"}
FROM_C = {"yield": "def f_{n}\n$f_{n} ||= proc {{ s{n}({depth}); 1 }}\nend\n"}


def _function(number, nodes):
    node = nodes[number]
    lines = [f"def s{number}(depth)", "x = depth", "i = 0", "while i < 9", "x += i * i", "i += 1", "end"]
    if node.repeats > 1:
        lines += ["if depth > 0", f"s{number}(depth - 1)", "else"]
    entries = []
    for child in node.children:
        via, depth = nodes[child].via, nodes[child].repeats - 1
        calls = CALLS if nodes[child].letter == "s" else C_ENTRIES
        lines.append(calls[via].format(n=child, depth=depth))
        if nodes[child].letter == "s":
            entries.append(ENTRIES.get(via, "").format(n=child, depth=depth))
    if node.repeats > 1:
        lines.append("end")
    if node.parent is not None and nodes[node.parent].letter == "c":
        entries.append(FROM_C.get(node.via, "").format(n=number, depth=node.repeats - 1))
    return "\n".join([*lines, "i = 0", "while i < 6", "x -= i", "i += 1", "end", "x", "end", *entries])


def missing():
    return None if shutil.which(COMMAND[0]) else COMMAND[0]


def build(place, nodes, compiler):
    """The command that runs the program until it is killed."""
    with open(f"{place}/lib.c", "w", encoding="utf-8") as file:
        file.write(truth_graph.c_source(nodes, GLUE, C_CALLS, INIT))
    subprocess.run([*compiler, "-shared", "-fPIC", f"{place}/lib.c", "-o", f"{place}/libtruth.so"],
                   check=True)
    text = ["require 'fiber'", f'require "{place}/libtruth.so"', TASKS,
            *(_function(number, nodes) for number, node in nodes.items() if node.letter == "s"),
            "def run", "s0(0) while true", "end", "Thread.new { run }", "puts 'READY'", "STDOUT.flush",
            "run", ""]
    with open(f"{place}/program.rb", "w", encoding="utf-8") as file:
        file.write("\n".join(text))
    return [*COMMAND, f"{place}/program.rb"]


def normal(name):
    return name.removeprefix("Object#") if name.startswith(("Object#s", "Object#d_")) else name
