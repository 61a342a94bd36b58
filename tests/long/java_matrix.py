# SPDX-License-Identifier: GPL-2.0-or-later
"""Every JVM runs all fixtures, and some of them with other flags: their Java stacks with their
lines, as Java itself tells them, inside of the frames of libjvm and between those of C."""

import collections
import re

import lib
import python_matrix as matrix
import javas
from python_matrix import at_least, common, share

# Compiled before they are recorded, but for those that are recorded while they are compiled.
WARM = ("-Dfixture.warm=0.7",)
# Of which much is other work: threads that start, collections, classes that are loaded.
AMONG_OTHERS = {"Allocation", "Deopt", "Exceptions", "Threads", "Virtual"}
# Tested by java_more.t.
ELSEWHERE = {"Overflow", "Shares"}

FRAME = re.compile(r"(?:(.*) \(([^():]*)(?::(\d+))?\)|(.*))_\[j\]")
HIDDEN = re.compile(r"(\$\$Lambda(\$\d+)?|(?<=LambdaForm\$)\w+)([/+]0x[0-9a-f]+|[/+.]\d+)?")
# By the JDK at run time, and by javac.
NUMBERED = re.compile(r"((?:Method|Constructor)Accessor|\$Proxy|(?<=\.)lambda\$\w+\$)\d+(?![\w$])")
# Outside of the outermost Java frame; Debian's libjvm has no names of its own.
LIBJVM = r"(\[libjvm\.so\+0x[0-9a-f]+\]|[^;]*(JavaCalls|os::os_exception_wrapper)[^;]*)_\[[ni]\]$"
NAMELESS = r"(^|;)\[(un\w+|anon|freed|JVM code|JIT)[^;]*"
# A virtual thread's frames are being copied: those between are on no stack.
IN_MOTION = r"(^|;)(cont_thaw|cont_doYield|thaw<|freeze<)"
# Of a virtual thread's frames, those outside of this one may be missing between it and the carrier's:
# when it goes on, HotSpot copies only those onto the stack that run next.
RESUMED = "Virtual.run"
CARRIER = {"java.lang.Thread.run", "java.util.concurrent.ForkJoinWorkerThread.run"}

BETWEEN = r"([^;]*_\[[nik]\];|[^;.]*_\[j\];)*?"  # native frames and stubs


def between(*words):
    """A pattern of these frames in this order. "*NAME": a C function, by pattern; "...": any number
    of native frames and stubs."""
    pattern = ""
    for word in words:
        if word == "...":
            pattern += BETWEEN
        elif word.startswith("*"):
            pattern += rf"({word[1:]})( \([^;]*\))?_\[[ni]\];"
        else:
            pattern += rf"{word}( \([^;]*\))?_\[j\];"
    return pattern


CALLED = ("...", r"*\[libjvm\.so\+[^;]*|[^;]*JavaCalls[^;]*", "...")
NESTING = {
    "Natives": [
        between(r"Natives\.main", r"Natives\.burnInC", "*Java_Natives_burnInC", "*burn_in_c"),
        between(r"Natives\.main", r"Natives\.burnInMethod", "*Java_Natives_burnInMethod",
                "*burn_in_c"),
        between(r"Natives\.main", r"Natives\.locked", "*Java_Natives_locked", "*burn_in_c"),
        between(r"Natives\.main", r"Natives\.outer", r"Natives\.callBack",
                "*Java_Natives_callBack", "*in_c", *CALLED, r"Natives\$\$Lambda[^;]*",
                r"Natives\.lambda\$outer\$\d+", r"Natives\.callStatic", "*Java_Natives_callStatic",
                *CALLED, r"Natives\.inner", r"Fixture\.burn"),
        between(r"Natives\.construct", "*Java_Natives_construct", *CALLED, r"Natives\.<init>",
                r"Fixture\.burn"),
        between(*[*3 * (r"Natives\.turns", r"Natives\.callBack", "*Java_Natives_callBack", "*in_c",
                        *CALLED, r"Natives\$\$Lambda[^;]*"),
                  r"Natives\.turns", r"Natives\.callBack"]),
    ],
    "Virtual": [
        between(r"java\.util\.concurrent\.ForkJoinWorkerThread\.run") + r"([^;]*_\[j\];)*?"
        + between(r"jdk\.internal\.vm\.Continuation\.run") + r"([^;]*_\[j\];)*?"
        + between(r"Virtual\.run", *11 * [r"Virtual\.second"], r"Fixture\.burn"),
    ],
    "Deopt": [
        between(r"Deopt\.main", r"Deopt\.load", r"java\.lang\.[^;]*newInstance")
        + r"([^;]*_\[[jni]\];)*?" + between(*CALLED, r"Deopt\$Other\.<clinit>"),
    ],
}


def normal(label):
    """Without what is another at each run: numbers of classes made at run time."""
    return NUMBERED.sub(r"\1", HIDDEN.sub(lambda match: "$$Lambda" if match[2] or "Lambda" in match[1]
                                          else match[1], label))


def is_method(label):
    return "." in label


def java_frames(frames):
    """The Java frames of a folded stack with lines and annotations: (label, file, line); file and
    line empty if the line is unknown. Without stubs."""
    found = []
    for match in map(FRAME.fullmatch, frames):
        label = match and (match[1] or match[4])
        if label and is_method(label):
            found.append((normal(label), *((match[2], match[3]) if match[3] else ("", ""))))
    return tuple(found)


class Target(matrix.Target):
    """A fixture that a JVM runs, and what was seen of it."""

    @property
    def java(self):
        return self.python

    @property
    def want(self):
        return self._want

    @want.setter
    def want(self, told):
        self._want = {self.comparable(tuple((normal(label), *place) for label, *place in stack))
                      for stack in told}

    def comparable(self, frames):
        """Of a virtual thread the part that is there in any case."""
        labels = [label for label, _, _ in frames]
        if self.script == "Virtual" and RESUMED in labels:
            return frames[labels.index(RESUMED):]
        return frames

    def frames(self, stack):
        return self.comparable(java_frames(stack))

    @property
    def seen(self):
        return {self.frames(stack) for stack in self.stacks}

    def is_served(self):
        return (self.with_java() >= matrix.SAMPLES_MIN and not self.want - self.seen
                and not self.patterns_not_seen())

    def patterns_not_seen(self):
        return [pattern for pattern in NESTING.get(self.script, ())
                if not any(re.search(pattern, ";".join(stack) + ";") for stack in self.stacks)]

    def with_java(self):
        return self.count(java_frames)

    def outermost(self):
        """What threads begin with."""
        return CARRIER | {stack[0][0] for stack in self.java.oracle(*self.arguments)}

    def explained(self):
        """Samples whose frames are the outer ones of a known stack, but for what `burn` and the
        fixture's other helpers call."""
        known = {tuple(label for label, _, _ in stack[:n]) for stack in self.want
                 for n in range(len(stack) + 1)}

        def is_known(stack):
            labels = tuple(label for label, _, _ in self.frames(stack))
            return labels and any(labels[:len(labels) - n] in known
                                  for n in range(min(9, len(labels) + 1)))

        return self.count(is_known)


# --- checks ---

def check_target(target):
    name = target.name
    at_least(target.complete(), len(target.flags), 99, f"{name}: stacks complete",
             *incomplete(target)[:5])
    check_outermost(target)
    nameless = [stack for stack in target.stacks if re.search(NAMELESS, ";".join(stack))
                and not re.search(IN_MOTION, ";".join(stack))]
    count = sum(target.stacks[stack] for stack in nameless)
    # Code may be freed before it is named; stubs have moments in which nothing is to be known.
    lib.ok(count <= 0.002 * target.total + 2,
           f"{name}: nothing without a name", f"{count} of {target.total}",
           *map(ends, nameless[:5]))
    check_oracle(target)
    if target.script in NESTING:
        lib.equal(target.patterns_not_seen(), [], f"{name}: C and Java in turn", *common(target))


def ends(stack):
    """What is to be seen of a stack that is not as it should be."""
    return ";".join(stack[:4])[:200] + " ... " + ";".join(stack[-4:])[-250:]


def incomplete(target):
    """Those that begin like nothing else does."""
    begins = collections.Counter(stack[0] for stack in target.stacks.elements())
    return [f"{target.stacks[stack]} {ends(stack)}" for stack in target.stacks
            if begins[stack[0]] < 0.05 * target.total]


def check_outermost(target, before_main=r"$"):
    """Java frames begin with the thread's first method, which libjvm has called. `before_main`: and
    with these."""
    name = target.name
    with_java = {stack: count for stack, count in target.stacks.items() if java_frames(stack)}
    total = sum(with_java.values())
    at_least(total, target.total, 15 if target.script in AMONG_OTHERS else 40,
             f"{name}: Java frames", *common(target))  # others: compilers, collectors
    if target.script not in AMONG_OTHERS:
        wrong = [stack for stack in with_java
                 for first in [java_frames(stack)[0][0]]
                 if first not in target.outermost() and not re.match(before_main, first)]
        at_least(total - sum(with_java[stack] for stack in wrong), total, 99,
                 f"{name}: from a thread's first Java frame", *map(ends, wrong[:5]))
    outside = [stack for stack in with_java
               if not is_inside(stack) and not re.search(IN_MOTION, ";".join(stack))]
    at_least(total - sum(with_java[stack] for stack in outside), total, 99,
             f"{name}: inside of libjvm's frames", *map(ends, outside[:5]))


def is_inside(stack):
    """The frame that the outermost Java frame or stub is in."""
    first = next(i for i, frame in enumerate(stack) if frame.endswith("_[j]"))
    return first > 0 and re.match(LIBJVM, stack[first - 1])


def check_oracle(target):
    """Every stack of the oracle was seen, and little else: the target is now and then on its way
    from one to the next."""
    name = target.name
    lib.equal(target.want - target.seen, set(), f"{name}: every stack with its lines",
              *sorted(target.seen)[:10])
    total = target.with_java()
    hits = target.count(lambda stack: target.frames(stack) in target.want)
    others = sorted(target.seen - target.want)
    least = 10 if target.script in AMONG_OTHERS else 60
    at_least(hits, total, least, f"{name}: in most samples", *others[:5])
    if target.script not in AMONG_OTHERS:
        at_least(target.explained(), total, 95, f"{name}: the others begin as these", *others[:5])


def sources(recording, pid):
    """What braid says of a target: [(version, source)]."""
    return recording.sql("SELECT DISTINCT version, source.source FROM source "
                         "JOIN process ON process = process.id "
                         "WHERE runtime = 'jvm' AND pid = ?", pid)


def check_source(java, targets, recording):
    got = {source for target in targets for source in sources(recording, target.process.pid)}
    want = ".".join(map(str, java.version))
    lib.ok(len(got) == 1 and min(got)[0].startswith(want) and min(got)[1] == "walk",
           f"{java.label}: walked", got)
    return "/".join(sorted(source for _, source in got))


def row(java, source, targets):
    """As matrix.HEAD says."""
    samples = sum(len(target.flags) for target in targets)
    with_java = sum(target.with_java() for target in targets)
    first = sum(target.count(lambda stack, target=target: java_frames(stack)
                             and java_frames(stack)[0][0] in target.outermost())
                for target in targets)
    return (".".join(map(str, java.version)), java.found, java.what or "HotSpot", source,
            str(samples), f"{share(sum(target.complete() for target in targets), samples):.2f} %",
            f"{share(first, with_java):.2f} %",
            "{}/{}".format(sum(len(target.want & target.seen) for target in targets),
                           sum(len(target.want) for target in targets)))


def of_each_version(builds):
    """One of each; rather a distribution's."""
    best = {java.version[0]: java for java in sorted(builds, key=lambda java: bool(java.root))}
    return [best[version] for version in sorted(best)]


def check_all(builds, make_targets, rounds=matrix.ROUNDS_MAX):
    """Records the targets of one build after the other: together they would need much memory."""
    rows = []
    for java in builds:
        targets = list(make_targets(java))
        recordings = matrix.record(targets, rounds)
        rows.append(row(java, check_source(java, targets, recordings[0]), targets))
        at_least(sum(target.complete() for target in targets),
                 sum(len(target.flags) for target in targets), 99,
                 f"{java.label}: stacks complete")
        for target in targets:
            check_target(target)
    matrix.print_table(rows)


def begin():
    """(builds, skipped), or the end of the test."""
    lib.need_bpf()
    builds, skipped = javas.javas()
    if not builds:
        lib.skip_all("no HotSpot of 17 or later: " + "; ".join(skip.why for skip in skipped))
    return builds, skipped
