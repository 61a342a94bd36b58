# SPDX-License-Identifier: GPL-2.0-or-later
"""Generated calls between script functions and C functions, and the one stack that each of them has.
Script function number N is sN, C function number N is cN. The calls form a tree, so a function's name
says which frames are outside of it. A check walks a merged stack along that path, frame by frame."""

import collections
import random
import re

IMPOSSIBLE, MISSING, FALSE_COMPLETE = "impossible edge", "missing caller", "false complete"
KINDS = (IMPOSSIBLE, MISSING, FALSE_COMPLETE)

# `via`: a key of the language's edges; `repeats`: how many frames of the function there are
Node = collections.namedtuple("Node", "letter parent via repeats children")
# A frame of a merged stack; `kind`: the letter of --annotate
Frame = collections.namedtuple("Frame", "name kind inferred")
Wrong = collections.namedtuple("Wrong", "kind at marked")

# In a path: frames of the runtime's own, which have no name of the tree. There may be none.
ANY = None
END = "(end)"  # in a path: a stack may end here, as nothing has called the function inside
IN_C = re.compile(r"c\d+$|enter_|back_|compare_|sort_|protected$")  # names of C functions
EDGES_IN_C = {"call": (), "sort": ("compare_{n}", ANY, "sort_{n}")}

C_HEAD = """
#include <stdlib.h>
#include <string.h>
#define FUNCTION __attribute__((noinline, visibility("default")))
static volatile long sink[8];
static inline __attribute__((always_inline)) void work(int n)
{ for (int i = 0; i < n; i++) sink[i & 7] += i; }
FUNCTION void enter_c(int number);
"""


def graph(seed, n, edges, least_c=0.4):
    """{number: Node}. `edges`: {"ss": {via: path}, "sc": .., "cs": .., "cc": ..}, from the parent's
    letter to the child's; `least_c`: the share of C functions."""
    rng = random.Random(seed)
    nodes = {0: Node("s", None, None, 1, [])}
    depth = {0: 0}
    for number in range(1, n):
        parent = rng.choice([k for k in nodes if depth[k] < 12][-10:])
        letter = "c" if rng.random() < least_c else "s"
        between = edges[nodes[parent].letter + letter]
        nodes[number] = Node(letter, parent, rng.choice(list(between)), rng.choice((1, 1, 1, 2, 3)),
                             [])
        nodes[parent].children.append(number)
        depth[number] = depth[parent] + 1
    return nodes


def c_source(nodes, glue, calls, linkage=""):
    """The C functions of the tree. `glue`: C that the runtime needs, with what calls back;
    `calls`: {via: how C calls script function {n}, {depth} frames deep}."""
    functions = [number for number, node in nodes.items() if node.letter == "c"]
    text = [C_HEAD, glue, *(f"FUNCTION void c{number}(int depth);" for number in functions)]
    for number in functions:
        node = nodes[number]
        inner = []
        for child in node.children:
            depth = nodes[child].repeats - 1
            if nodes[child].letter == "s":
                inner.append(calls[nodes[child].via].format(n=child, depth=depth))
            elif nodes[child].via == "sort":
                text.append(
                    f"FUNCTION int compare_{child}(const void *a, const void *b)\n"
                    f"{{ c{child}({depth}); return *(const int *)a - *(const int *)b; }}\n"
                    f"FUNCTION void sort_{child}(void)\n{{ int list[2] = {{ 2, 1 }}; "
                    f"qsort(list, 2, sizeof(int), compare_{child}); sink[0] += list[0]; }}")
                inner.append(f"sort_{child}();")
            else:
                inner.append(f"c{child}({depth});")
        calls_in = " ".join(inner)
        if node.repeats > 1:
            calls_in = f"if (depth) c{number}(depth - 1); else {{ {calls_in} }}"
        text.append(f"FUNCTION void c{number}(int depth)\n"
                    f"{{ work(90 + depth); {calls_in} work(60); }}")
    cases = " ".join(f"case {number}: c{number}({nodes[number].repeats - 1}); break;"
                     for number in functions)
    text.append(f"FUNCTION void enter_c(int number)\n{{ switch (number) {{ {cases} }} sink[1]++; }}")
    return "\n".join([*text, linkage, ""])


class Paths:
    """What is outside of each function. `root`: the path outside of s0; `of_own`: a pattern of all
    names that a path may have; `recursion`: the path between two frames of one script function."""

    def __init__(self, nodes, edges, root, recursion=()):
        self.nodes = nodes
        self.edges = {**edges, "cc": EDGES_IN_C}
        self.root = root
        self.recursion = recursion
        self.outside = {}  # number: path from that function's innermost frame to the root
        self.starts = collections.defaultdict(list)  # name: paths that begin with it
        for number in nodes:
            self._add(number)
        self._add_starts(root)

    def _between(self, number):
        node = self.nodes[number]
        if node.parent is None:
            return self.root
        names = self.edges[self.nodes[node.parent].letter + node.letter][node.via]
        return tuple(name and name.format(n=number, p=node.parent) for name in names)

    def _add(self, number):
        node = self.nodes[number]
        own = (f"{node.letter}{number}",)
        for _ in range(node.repeats - 1):
            own += (*(self.recursion if node.letter == "s" else ()), f"{node.letter}{number}")
        between = self._between(number)
        beyond = self.outside[node.parent] if node.parent is not None else ()
        self.outside[number] = own + between + beyond
        self._add_starts(own + between, beyond)

    def _add_starts(self, names, beyond=()):
        for i, name in enumerate(names):
            if name not in (ANY, END):
                self.starts[name].append(names[i:] + beyond)


def _may_lack(name, left, script_cut):
    """Whether a stack may go on without this function: its frames end further in. `left`: the frames
    that go on; `script_cut`: the recording says that the runtime's frames end too early."""
    if not IN_C.match(name):
        return script_cut and all(frame.kind in ("n", "i") for frame in left)
    return not any(frame.kind == "n" for frame in left)


class Check:
    """Compares stacks with paths. `ends`: what the outermost frame of a complete stack is called, or
    a function of its frames, and of END if it ends there, that says whether it may end so; `normal`:
    a frame's name as paths have it, or None for what is no part of the tree."""

    def __init__(self, paths, ends, normal):
        self.paths = paths
        self.ends = ends
        self.normal = normal

    def walk(self, names, path, script_cut):
        """(index of the frame that is wrong or None, whether the root was reached, or END, what
        should have been there). `names`: [(name or None, Frame)] innermost first, from the path's begin."""
        at = 0
        for i, name in enumerate(path):
            if name is ANY:
                while at < len(names) and names[at][0] is None:
                    at += 1
                continue
            if name == END:
                if at == len(names):
                    return None, END, name
                continue
            if at == len(names):
                return None, False, name
            if names[at][0] == name:
                at += 1
                continue
            if _may_lack(name, [frame for _, frame in names[at:]], script_cut):
                continue
            return at, False, path[i:]
        while at < len(names) and names[at][0] is None:
            at += 1
        return (at if at < len(names) else None), True, ("the end of the stack",)

    def may_end(self, frames, root):
        if callable(self.ends):
            return self.ends(frames, root)
        return re.fullmatch(self.ends, frames[-1].name)

    def check(self, frames, complete, script_cut):
        """None, or what is wrong. `frames`: innermost first, without the kernel's."""
        names = [(self.normal(frame), frame) for frame in frames]
        start = next((i for i, (name, _) in enumerate(names) if name is not None), None)
        marked = any(frame.inferred for frame in frames)
        if start is None:
            return None
        inner = names[start:]
        results = [self.walk(inner, path, script_cut) for path in self.paths.starts[inner[0][0]]]
        if not results:
            return Wrong(IMPOSSIBLE, f"{inner[0][0]} is in no path", marked)
        good = [result for result in results if result[0] is None]
        if not good:
            at, _, wanted = max(results, key=lambda result: result[0])
            found = inner[at][0] or inner[at][1].name
            kind = MISSING if found in wanted else IMPOSSIBLE
            return Wrong(kind, f"{found} where {wanted[0]} should be", marked)
        if complete and not marked and not any(
                self.may_end(frames, root) for _, root, _ in good if root):
            return Wrong(FALSE_COMPLETE, f"ends at {frames[-1].name}", marked)
        return None
