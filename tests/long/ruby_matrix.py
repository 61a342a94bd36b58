# SPDX-License-Identifier: GPL-2.0-or-later
"""Every CRuby build of some versions runs all fixtures: their Ruby stacks with their lines, as Ruby
itself tells them, and the C frames between them. One recording has all builds."""

import re

import lib
import python_matrix as matrix
import ruby_stacks as stacks
import rubies
from python_matrix import at_least, common, share

OLDEST, NEWEST = (2, 7), (4, 1)  # versions that braid knows

# Of which much is other work: recursion, collections.
AMONG_OTHERS = {"overflow.rb", "gc_frames.rb"}
# Tested by ruby_more.t and ruby_start.t.
ELSEWHERE = {"overflow.rb", "forker.rb"}
# What a version's layouts matter to.
FEW = {"blocks.rb", "c_methods.rb", "fibers.rb", "gc_frames.rb", "names.rb"}

LOOP = r"(^|;)(rb_vm_exec|vm_exec|vm_exec_core)(\.cold)?( \([^;]*\))?_\[n\]"
C_METHOD = r"[^;]*(?<!\))_\[rb\]"  # a frame without a file
# Its function ends with a jump to the next method's.
WITHOUT_FUNCTION = r"Enumerator#each|\(garbage"
UNNAMED = r"\[[^;]*\]"  # what a stripped build shows: [file+0x...]


def between(*words):
    """A pattern of these frames in this order, each directly inside the one before. "*NAME": a
    native function, by pattern; "...": any number of native frames."""
    pattern = ""
    for word in words:
        if word == "...":
            pattern += r"([^;]*_\[[nik]\];)*"
        elif word.startswith("*"):
            pattern += rf"({word[1:]}|{UNNAMED})( \([^;]*\))?_\[[ni]\];"
        else:
            pattern += rf"{re.escape(word)}( \([^;]*\))?_\[rb\];"
    return pattern


def in_c(method, function, inner, *more):
    """A method in C calls a block or method. Its function may have jumped to another."""
    return between(method, "...", f"*{function}", "...", inner, "...", *more)


NESTING = {
    "c_methods.rb": [
        in_c("Hash#each", r"rb_hash_each_pair\w*", "block in CMethods#each_hash", "Object#burn"),
        in_c("String#gsub", r"rb_str_gsub\w*|str_gsub\w*", "block in CMethods#gsub"),
        in_c("Enumerable#inject", r"enum_inject\w*", "Range#each", r"*range_each\w*", "...",
             "block in CMethods#inject"),
        in_c("Kernel#dup", r"rb_obj_dup\w*", "Kernel#initialize_dup"),
        in_c("Array#sort", r"rb_ary_sort\w*", "Item#<=>", "Object#burn"),
        in_c("Marshal.dump", r"\w*marshal_dump\w*", "Item#marshal_dump"),
        in_c("Comparable#clamp", r"cmp_clamp\w*", "Item#<=>"),
    ],
    "native.rb": [
        between("Native#checksum", "...", "Zlib.crc32", "*[^;]+", "...", r"*crc32\w*"),
        between("Native#sort", "...", "Array#sort", r"*rb_ary_sort\w*", "...",
                r"*sort_[12]\w*|(ruby_)?qsort\w*"),
        between("Native#dump", "...", "Marshal.dump", "...", r"*w_object\w*",
                "...", "Native#_dump", "...", "Native#checksum", "...", "Zlib.crc32"),
        between("JSON::Ext::Generator::GeneratorMethods::Array#to_json", "*[^;]+", "...",
                "Native#to_json", "...", "Native#checksum", "...", "Zlib.crc32"),
        between("OpenSSL::KDF.pbkdf2_hmac", "*[^;]+", "...", r"*PKCS5_PBKDF2_HMAC\w*"),
    ],
    "threads.rb": [between("Threads#compress", "...", "Zlib::Deflate.deflate", "*[^;]+", "...",
                           "*deflate")],
    "gc_frames.rb": [
        rf"GcFrames#allocate \([^;]*\)_\[rb\];.*{re.escape(stacks.GC)}_\[rb\];[^;]*_\[[nik]\]",
        rf"GcFrames#collect \([^;]*\)_\[rb\];.*{re.escape(stacks.GC)}_\[rb\];[^;]*_\[[nik]\]",
        r"block in GcFrames\.finalizer",
    ],
    "embedded.rb": [
        r"run_script[^;]*_\[n\];.*<main>[^;]*_\[rb\];" + between("Object#outer", "...")
        + between("Kernel#call_back", "*call_back", "*in_c", "...", "block in Object#outer", "...",
                  "Kernel#call_inner", "*call_inner", "...", "Object#inner", "...", "Object#burn"),
    ],
}


class Target(matrix.Target):
    """A fixture that an interpreter runs, and what was seen of it."""

    @property
    def ruby(self):
        return self.python

    @property
    def want(self):
        return self._want

    @want.setter
    def want(self, told):
        self._want = {self.comparable(stack) for stack in told}

    def frames(self, stack):
        return self.comparable(stacks.shown(stack, self.ruby.version))

    def comparable(self, frames):
        """Code compiled by YJIT stores what line it is at only when it calls something."""
        if "--yjit" not in self.options or not frames:
            return frames
        label, file, _ = frames[-1]
        return (*frames[:-1], (label, file, ""))

    @property
    def seen(self):
        return {self.frames(stack) for stack in self.stacks}

    def is_served(self):
        return (len(self.flags) >= matrix.SAMPLES_MIN and not self.want - self.seen
                and not self.patterns_not_seen())

    def patterns_not_seen(self):
        return [pattern for pattern in NESTING.get(self.script, ()) if not self.shows(pattern)]

    def with_ruby(self):
        return self.count(self.frames)

    def to_the_outermost(self):
        first = {stack[0][0] for stack in self.want}
        return self.count(lambda stack: self.frames(stack)
                          and self.frames(stack)[0][0] in first)

    def explained(self):
        """Samples whose frames are the outer ones of a known stack, but for what `burn` and the
        fixture's other helpers call."""
        known = {tuple(label for label, _, _ in stack[:n]) for stack in self.want
                 for n in range(len(stack) + 1)}

        def is_known(stack):
            labels = tuple(label for label, _, _ in self.frames(stack))
            return any(labels[:len(labels) - n] in known for n in range(min(4, len(labels) + 1)))

        return self.count(is_known)


# --- checks ---

def check_target(target):
    name = target.name
    matrix.check_complete(target)
    at_least(target.with_ruby(), target.total, 70 if target.script == "threads.rb" else 98,
             f"{name}: Ruby frames", *common(target))  # Ruby's own timer thread has none
    if target.script != "overflow.rb":  # deeper than braid shows
        at_least(target.to_the_outermost(), target.with_ruby(), 99.5,
                 f"{name}: Ruby frames from the outermost one", *common(target))
    loops = target.count(lambda stack: re.search(LOOP, ";".join(stack)))
    lib.ok(loops <= 0.03 * target.total + 2, f"{name}: loops give way to what they run",
           f"{loops} of {target.total}", *common(target))
    unknown = [stack for stack in target.stacks if re.search(r"\[un\w+", ";".join(stack))]
    lib.ok(not unknown, f"{name}: nothing unknown", *(";".join(stack)[-450:] for stack in unknown))
    check_oracle(target)
    check_c_methods(target)
    check_nesting(target)


def check_oracle(target):
    """Every stack of the oracle was seen, and little else: the target is now and then on its way
    from one to the next."""
    name = target.name
    lib.equal(target.want - target.seen, set(), f"{name}: every stack with its lines",
              *sorted(target.seen)[:10])
    hits = target.count(lambda stack: target.frames(stack) in target.want)
    others = sorted(target.seen - target.want)
    at_least(hits, target.total, 10 if target.script in AMONG_OTHERS else 75,
             f"{name}: in most samples", *others[:5])
    if target.script not in AMONG_OTHERS:
        at_least(target.explained(), target.total, 95, f"{name}: the others begin as these",
                 *others[:5])


def check_c_methods(target):
    """What a C method calls is inside of its C function, not directly of its frame."""
    calls = missing = 0
    for stack, count in target.stacks.items():
        if stack[0].endswith("_[rb]"):
            continue  # of a fiber that is suspended, which has no native frames here
        for outer, inner in zip(stack, stack[1:]):
            if re.fullmatch(C_METHOD, outer) and not re.match(WITHOUT_FUNCTION, outer):
                calls += count
                missing += count * bool(re.search(r"(?<!collection\))_\[rb\]$", inner))
    # On its way into or out of a function, or to another fiber, it is seen now and then.
    lib.ok(missing <= 0.03 * calls + 0.005 * target.total + 2,
           f"{target.name}: C methods outside of their C functions",
           f"{missing} of {calls} are not", *common(target))


def check_nesting(target):
    if target.script in NESTING:
        lib.equal(target.patterns_not_seen(), [], f"{target.name}: C and Ruby in turn",
                  *common(target))


def sources(recording, pid):
    """What braid says of a target: [(version, source)]."""
    return recording.sql("SELECT DISTINCT version, source.source FROM source "
                         "JOIN process ON process = process.id "
                         "WHERE runtime = 'ruby' AND pid = ?", pid)


def check_source(ruby, targets, recording):
    got = {source for target in targets for source in sources(recording, target.process.pid)}
    want = {(".".join(map(str, ruby.version)), "walk")}
    lib.equal(got, want, f"{ruby.label}: walked")
    return "/".join(sorted(source for _, source in got))


# --- the table ---

def row(ruby, source, targets):
    """As matrix.HEAD says."""
    samples = sum(len(target.flags) for target in targets)
    return (".".join(map(str, ruby.version)), ruby.label.partition(" ")[2], ruby.kind, source,
            str(samples), f"{share(sum(target.complete() for target in targets), samples):.2f} %",
            "{:.2f} %".format(share(sum(target.to_the_outermost() for target in targets),
                                    sum(target.with_ruby() for target in targets))),
            "{}/{}".format(sum(len(target.want & target.seen) for target in targets),
                           sum(len(target.want) for target in targets)))


def is_known(ruby):
    return OLDEST <= ruby.version[:2] <= NEWEST


def of_each_version(builds):
    """One of each, that which runs most fixtures; rather a distribution's."""
    def rank(ruby):
        return len(ruby.scripts()), not ruby.found.startswith("built"), not ruby.what

    best = {ruby.version[:2]: ruby for ruby in sorted(builds, key=rank)}
    return [best[version] for version in sorted(best)]


def scripts(ruby, builds):
    """All for one build of each version, some for the others."""
    return [script for script in ruby.scripts() if script in FEW
            or ruby in of_each_version(builds) and script not in ELSEWHERE]


def run(groups, strip=()):
    """Every build that is here, and a stripped copy of one of each version in `strip`; by groups
    of versions, as python_matrix.run() does it."""
    lib.need_bpf()
    found, skipped = rubies.rubies()
    builds = [ruby for ruby in found if is_known(ruby)]
    if not builds:
        lib.skip_all("no CRuby that braid knows")
    with_symbols = {ruby.version[:2]: ruby for ruby in builds if ruby.has_symtab}
    builds += [rubies.stripped(with_symbols[version]) for version in strip
               if version in with_symbols]
    rows = []
    for first, last in groups:
        rows += check_group([ruby for ruby in builds if first <= ruby.version[:2] <= last])
    matrix.print_table(rows)
    matrix.print_skipped(skipped)
    lib.done()


def check_group(builds):
    """Rows of the table."""
    if not builds:
        return []
    targets = [Target(ruby, script) for ruby in builds for script in scripts(ruby, builds)]
    recordings = matrix.record(targets)
    rows = []
    for ruby in builds:
        own = [target for target in targets if target.ruby is ruby]
        rows.append(row(ruby, check_source(ruby, own, recordings[0]), own))
        at_least(sum(target.complete() for target in own), sum(len(target.flags) for target in own),
                 99.5, f"{ruby.label}: stacks complete")
        for target in own:
            check_target(target)
    return rows
