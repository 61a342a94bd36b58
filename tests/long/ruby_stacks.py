# SPDX-License-Identifier: GPL-2.0-or-later
"""Stacks of Ruby frames from three sources: what a fixture's first comment promises, with classes;
what Ruby says (`Thread::Backtrace::Location`), with lines; and what braid shows. See
fixtures/ruby/fixture.rb. All frames here are (label, file, line), of text, outermost first."""

import re

LABELS_HAVE_CLASSES = (3, 4)  # since then; and no frames of rescue and ensure
# Of what calls itself 4.0: Class#new has no frame of its own where it calls an `initialize` in
# Ruby; and braid does not find in what module a refinement is.
NEW_IS_INLINED = (3, 5)
GC = "(garbage collection)"

PREFIX = re.compile(r"((?:(?:rescue|ensure|block(?: \(\d+ levels\))?) in )*)(.*)")
# Of Class#method, Class.method, #<Class>#method.
OWNER = re.compile(r"(#<.*>[#.]|[\w:]+?[#.])(?=.)")
MODULE = re.compile(r"(?<=^#<refinement:String)@\w+")
CLAUSE = re.compile(r"(rescue|ensure) in ")


class Promised:
    """One frame in a fixture's comment."""

    def __init__(self, text):
        text, _, ruby_calls_it = text.partition("[") if text[-1] == "]" else (text, "", "")
        if text.endswith("#"):  # Vector#[]
            text, ruby_calls_it = text + "[]", ""
        self.is_c = text.endswith("*")
        self.label = text.removesuffix("*")
        self.ruby_calls_it = ruby_calls_it.removesuffix("]")

    def as_ruby_says(self, version):
        return as_ruby_says(self.ruby_calls_it or self.label, version)


def as_ruby_says(label, version):
    prefix, rest = PREFIX.fullmatch(label).groups()
    owner = OWNER.match(rest)
    if owner and (version < LABELS_HAVE_CLASSES or owner[0].startswith("#<")):
        rest = rest[owner.end():]
    return prefix + rest


def promised(script):
    """The stacks in a fixture's comment."""
    with open(f"fixtures/ruby/{script}", encoding="utf-8") as file:
        comment = re.match(r"(#.*\n)*", file.read())[0]
    text = re.sub(r"\n# +> ", " > ", comment.partition("# Stacks:\n")[2])
    stacks = []
    for line in text.splitlines():
        frames = []
        for frame in line.removeprefix("#").strip().split(" > "):
            frame, _, times = frame.partition(" (")
            if times and not times.endswith(" times)"):  # block (2 levels) in ...
                frame, times = f"{frame} ({times}", ""
            frames += int(times.partition(" ")[0] or 1) * [Promised(frame)]
        stacks.append(frames)
    return stacks


def without_clauses(frames):
    """As Ruby does since 3.4: a rescue clause's frame has its method's label and hides it."""
    kept = []
    for label, file, line in frames:
        if CLAUSE.match(label):
            kept.pop()
            label = CLAUSE.sub("", label, count=1)
        kept.append((label, file, line))
    return kept


def as_shown(stack, version):
    """A promised stack: [(label, whether it is a C method, label that Ruby says)]."""
    if version >= NEW_IS_INLINED:
        stack = [frame for frame, inner in zip(stack, stack[1:])
                 if frame.label != "Class#new" or inner.is_c] + stack[-1:]
    frames = [(frame.label if version < NEW_IS_INLINED else MODULE.sub("", frame.label),
               frame.is_c, frame.as_ruby_says(version)) for frame in stack]
    if version < LABELS_HAVE_CLASSES:
        return frames
    return [(label, is_c, CLAUSE.sub("", says))
            for label, is_c, says in without_clauses(frames)]


def with_classes(said, stacks, version):
    """What braid should show of a stack that Ruby has told, or None if it is none of the promised
    ones."""
    labels = [as_ruby_says(label, version) for label, _, _ in said]  # C methods are by witness
    for stack in stacks:
        frames = as_shown(stack, version)
        if [says for _, _, says in frames] == labels:
            return tuple((label, "", "") if is_c else (label, file, line)
                         for (label, is_c, _), (_, file, line) in zip(frames, said))
    return None


def shown(frames, version):
    """The Ruby frames of a folded stack with lines and annotations, in the same form."""
    found = []
    for frame in frames:
        match = re.fullmatch(r"(?:(.*) \((.*):(\d+)\)|(.*))_\[rb\]", frame)
        if not match or match[4] == GC:
            continue
        label, file, line = match[1] or match[4], match[2] or "", match[3] or ""
        if file.startswith("<internal:"):
            file = line = ""
        found.append((label, re.sub(r"^\(eval at .*\)$", "(eval)", file), line))
    return tuple(without_clauses(found) if version >= LABELS_HAVE_CLASSES else found)


def read_oracle(file):
    """What a fixture wrote with --oracle: each different stack once."""
    with open(file, encoding="utf-8") as lines:
        stacks = lines.read().split("\n\n")[:-1]
    return {tuple(tuple(re.sub(r"^\(eval at .*\)$", "(eval)", word) for word in line.split("\t"))
                  for line in stack.split("\n")) for stack in stacks}
