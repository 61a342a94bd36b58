# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares recorded stacks with the calls that truth_programs.py has generated. A stack is true if
it is the inner part of a possible one, without a hole; a complete one has to reach the root."""

import collections
import re

COMPLETE = 1  # SAMPLE_COMPLETE, bpf/shared.h
INFERRED = 3  # node.evidence
Frame = collections.namedtuple("Frame", "name image evidence")
Wrong = collections.namedtuple("Wrong", "kind at marked")  # kind: a row of the table; at: text

IMPOSSIBLE, MISSING, FALSE_COMPLETE = "impossible edge", "missing caller", "false complete"
HELPERS = {"many": "many", "structure": "structure"}  # a function, and the style that calls it
CLONE = re.compile(r"\.(constprop|isra|part|cold|lto_priv)\b.*$")


class Stack:
    """Frames from the innermost one outwards, read one after the other."""

    def __init__(self, frames):
        self.frames = frames
        self.at = 0
        self.marked = False  # an inferred frame was read: what comes outside may be wrong, and says so

    def peek(self):
        return self.frames[self.at] if self.at < len(self.frames) else None

    def take(self):
        frame = self.frames[self.at]
        self.at += 1
        self.marked |= frame.evidence == INFERRED
        return frame

    def take_while(self, condition):
        n = 0
        while self.peek() and condition(self.peek()):
            self.take()
            n += 1
        return n


class Failure(Exception):
    pass


class Truth:
    def __init__(self, nodes, is_libc=lambda image: image and "/libc" in image):
        self.nodes = nodes
        self.is_libc = is_libc
        self.children = collections.defaultdict(list)
        for number, node in nodes.items():
            self.children[node.parent].append((number, node))

    def ancestors(self, number):
        while number is not None:
            yield number
            number = self.nodes[number].parent

    def fail(self, stack, frame, wanted, number=None):
        """`number`: the function whose frame should have come."""
        found = re.fullmatch(r"t(\d+)", frame.name)
        skipped = number is not None and found and int(found[1]) in self.ancestors(number)
        raise Failure(Wrong(MISSING if skipped else IMPOSSIBLE,
                            f"{frame.name} where {wanted} should be", stack.marked or
                            frame.evidence == INFERRED))

    def expect(self, stack, name, number=None, take=True):
        """The next frame has this name; False where the stack is cut."""
        frame = stack.peek()
        if not frame:
            return False
        if frame.name != name:
            self.fail(stack, frame, name, number)
        if take:
            stack.take()
        return True

    def functions(self, stack, number, entered):
        """The frames of tN; `entered`: a frame of its callee was read, so that there are all."""
        node = self.nodes[number]
        n = stack.take_while(lambda frame: frame.name == f"t{number}")
        if n > node.repeats or (entered and n < node.repeats and stack.peek()):
            frame = stack.peek() or stack.frames[-1]
            raise Failure(Wrong(MISSING if n < node.repeats else IMPOSSIBLE,
                                f"{n} frames of t{number}, not {node.repeats}",
                                stack.marked or frame.evidence == INFERRED))

    def callers(self, stack, number):
        """All outside of tN, whose frames were read. True: the root was reached."""
        while True:
            node = self.nodes[number]
            if not stack.peek():
                return False
            if node.via == "root":
                return self.expect(stack, "run") and self.outside_run(stack)
            if node.via == "signal":
                return self.expect(stack, "on_signal") and self.trampoline(stack)
            if node.via == "switch":
                return self.coroutine(stack)
            if not getattr(self, "via_" + node.via)(stack, number):
                return False
            number = node.parent
            if not self.entered(stack, number):
                return False

    def entered(self, stack, number):
        """All frames of tN, whose callee's were read. False where the stack is cut."""
        if not self.expect(stack, f"t{number}", number, take=False):
            return False
        self.functions(stack, number, True)
        return True

    def via_call(self, stack, _):
        return True

    def via_sort(self, stack, number):
        if not self.expect(stack, f"compare_{number}", number):
            return False
        inner = stack.take_while(lambda frame: self.is_libc(frame.image))
        frame = stack.peek()
        if frame and not inner:
            self.fail(stack, frame, "qsort")
        stack.take_while(lambda frame: frame.name == f"sort_{number}")
        return True

    def via_jit(self, stack, number):
        if not self.expect(stack, f"jit_{number}", number):
            return False
        frame = stack.peek()
        if frame and frame.image:
            self.fail(stack, frame, "generated code", number)
        if frame:
            stack.take()
        return bool(frame) and self.expect(stack, "by_jit", number)

    def trampoline(self, stack):
        frame = stack.peek()
        if not frame:
            return False
        if not self.is_libc(frame.image):
            self.fail(stack, frame, "the signal trampoline")
        stack.take()
        return self.anywhere(stack)

    def coroutine(self, stack):
        name = stack.peek().name
        if name not in ("in_context", "in_own"):
            self.fail(stack, stack.peek(), "a coroutine's first function")
        stack.take()
        if name == "in_context":
            stack.take_while(lambda frame: self.is_libc(frame.image))
        if stack.peek():
            self.fail(stack, stack.peek(), "the end of a coroutine's stack")
        return True

    def outside_run(self, stack):
        frame = stack.peek()
        if not frame:
            return False
        if frame.name != "main" and not self.is_libc(frame.image):
            self.fail(stack, frame, "main, or a thread's start")
        at_main = frame.name == "main"
        stack.take()
        libc = stack.take_while(lambda frame: self.is_libc(frame.image))
        start = stack.take_while(lambda frame: frame.name == "_start")
        if stack.peek():
            self.fail(stack, stack.peek(), "the end of the stack")
        return start == 1 if at_main else libc >= 1

    def innermost(self, stack):
        """Frames inside of the first one of the tree or its roots, which must come from there."""
        frame = stack.peek()
        if frame.name == "__restore_rt":  # a handler returns to where it has interrupted
            stack.take()
            return
        if self.is_libc(frame.image):
            stack.take_while(lambda frame: self.is_libc(frame.image))
            frame = stack.peek()
            if frame and not re.fullmatch(r"sort_\d+|run|in_context|main|_start|on_signal|"
                                          r"compare_\d+|t\d+", frame.name):
                self.fail(stack, frame, "a caller of libc")
            if frame and frame.name.startswith("t") and not any(
                    node.via == "sort" for _, node in self.children[int(frame.name[1:])]):
                self.fail(stack, frame, "a caller of qsort")
        elif frame.name in HELPERS:
            stack.take()
            caller = stack.peek()
            if caller and not (re.fullmatch(r"t\d+", caller.name) and self.nodes[
                    int(caller.name[1:])].style == HELPERS[frame.name]):
                self.fail(stack, caller, f"a caller of {frame.name}")
        elif frame.name == "switch_to":
            stack.take()
            if stack.peek() and stack.peek().name not in ("run", "in_own"):
                self.fail(stack, stack.peek(), "a caller of switch_to")
        elif not frame.image:  # generated code
            stack.take()
            if stack.peek() and stack.peek().name != "by_jit":
                self.fail(stack, stack.peek(), "by_jit")
        elif frame.name.startswith("[") or frame.name.endswith("@plt"):
            stack.take()
            if stack.peek() and (not stack.peek().image or stack.peek().name.startswith("[")):
                self.fail(stack, stack.peek(), "a caller by the linkage table")
            called = re.fullmatch(r"t(\d+)@plt", frame.name)
            if called and stack.peek():
                self.calls_linked(stack, int(called[1]))

    def calls_linked(self, stack, number):
        """The next frame calls tN by way of the linkage table."""
        node = self.nodes[number]
        callers = {"call": (f"t{node.parent}",), "sort": (f"compare_{number}",),
                   "jit": (f"jit_{number}",), "root": ("run",), "signal": ("on_signal",),
                   "switch": ("in_context", "in_own")}[node.via]
        if stack.peek().name not in (*callers, f"t{number}"):
            self.fail(stack, stack.peek(), f"a caller of t{number}", node.parent)

    def anywhere(self, stack):
        """From a place where a thread was interrupted, outwards."""
        if not stack.peek():
            return False
        restores = stack.peek().name == "__restore_rt"
        self.innermost(stack)
        frame = stack.peek()
        if not frame:
            return False
        if restores:
            return self.anywhere(stack)
        name, _, number = frame.name.partition("_")
        if name in ("sort", "compare", "jit"):
            node = self.nodes[int(number)]
            if name == "sort":
                stack.take()
            elif not getattr(self, "via_" + node.via)(stack, int(number)):
                return False
            return self.entered(stack, node.parent) and self.callers(stack, node.parent)
        if frame.name == "by_jit":
            stack.take()
            frame = stack.peek()
            if frame and not (re.fullmatch(r"t\d+", frame.name) and any(
                    node.via == "jit" for _, node in self.children[int(frame.name[1:])])):
                self.fail(stack, frame, "a caller of by_jit")
        if not frame:
            return False
        if re.fullmatch(r"t\d+", frame.name):
            number = int(frame.name[1:])
            self.functions(stack, number, False)
            return self.callers(stack, number)
        if frame.name == "on_signal":
            stack.take()
            return self.trampoline(stack)
        if frame.name in ("in_context", "in_own"):
            return self.coroutine(stack)
        if frame.name == "run":
            stack.take()
            return self.outside_run(stack)
        if frame.name in ("main", "_start"):  # before or after the tree
            return True
        return self.fail(stack, frame, "a function of the program")

    def check(self, frames, complete):
        """None, or what is wrong. `frames`: innermost first, none of the kernel's."""
        frames = [frame._replace(name=CLONE.sub("", frame.name)) for frame in frames]
        in_program = any(re.fullmatch(r"t\d+|run|main|on_signal", frame.name) for frame in frames)
        stack = Stack(frames)
        if not frames or not in_program:
            return None  # the loader, a thread's start
        try:
            at_root = self.anywhere(stack)
        except Failure as failure:
            return failure.args[0]
        if complete and not at_root:
            return Wrong(FALSE_COMPLETE, f"ends at {frames[-1].name}", stack.marked)
        return None


def native_stacks(recording):
    """[([Frame], flags, count)] of all samples, innermost first, without the kernel's frames."""
    names = {frame: (kind, name, image) for frame, kind, name, image in recording.sql(
        "SELECT name.frame, name.kind, name.function, image.path FROM name "
        "JOIN frame ON frame.id = name.frame LEFT JOIN image ON image.id = frame.image "
        "WHERE level = 0")}
    nodes = {node: row for node, *row in recording.sql("SELECT id, parent, frame, evidence FROM node")}

    def chain(node):
        while node:
            parent, frame, evidence = nodes[node]
            kind, name, image = names[frame]
            if kind != "kernel":
                yield Frame(name, image, evidence)
            node = parent

    return [(list(chain(native)), flags, count) for native, flags, count in recording.sql(
        "SELECT native, flags, count(*) FROM sample GROUP BY native, flags")]
