#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""CRuby in special circumstances, every build at hand: compiled by YJIT, recursion deeper than
braid shows, mount namespaces, embedded in a program; versions that nobody knows."""

import copy
import re
import signal
import tempfile

import lib
import python_matrix
import ruby_matrix as matrix
import rubies

SHOWN = 1024  # RUNTIME_FRAMES_MAX, bpf/shared.h
DEEP = 9000
YJIT = ("--yjit", "--yjit-call-threshold=2")


def in_mount_namespace(ruby):
    """As a container runs it: at a path where there is nothing for others."""
    made = copy.copy(ruby)
    made.what = "mount namespace"
    place = tempfile.mkdtemp(prefix="mounted-", dir=lib.tmp)
    made.command = ["unshare", "--mount", "sh", "-c",
                    'mount --rbind "$0" "$1" && exec chroot "$@"', ruby.root, place,
                    *ruby.command[2:]]
    return made


def make_targets(builds):
    one_of_each = matrix.of_each_version(builds)
    for ruby in builds:
        if ruby in one_of_each:
            yield matrix.Target(ruby, "overflow.rb")
        if ruby in one_of_each and ruby.has_yjit:
            for script in "names.rb", "c_methods.rb", "exceptions.rb", "fibers.rb":
                yield matrix.Target(ruby, script, options=YJIT)
        if ruby.root:
            yield matrix.Target(in_mount_namespace(ruby), "blocks.rb")
        embedded = rubies.embedded(ruby) if ruby.is_library else None
        if embedded:
            yield matrix.Target(embedded, rubies.EMBEDDED)


def record_as_they_are(targets):
    """Without an oracle, once."""
    for target in targets:
        target.start()
    for target in targets:
        target.process.send_signal(signal.SIGCONT)
    pids = ",".join(str(target.process.pid) for target in targets)
    recording = lib.record("-p", pids, "-d", 3)
    for target in targets:
        target.add(recording)
    lib.stop(*(target.process for target in targets))
    return recording


def check_too_deep(builds):
    """What is cut is told: the innermost frames are there, in the stack and in its flags."""
    targets = [matrix.Target(ruby, "deep.rb", 0, DEEP) for ruby in builds]
    recording = record_as_they_are(targets)
    cut = re.search(r"(\d+) +runtime stacks cut", recording.result.err)
    total = sum(len(target.flags) for target in targets)
    lib.ok(cut and int(cut[1]) >= 0.8 * total, "deeper recursion: the summary counts",
           recording.result.err[-500:], total)
    for target in targets:
        flagged = sum(flags & 16 for flags in target.flags) // 16  # SAMPLE_RUNTIME_TRUNCATED
        matrix.at_least(flagged, target.total, 80, f"{target.name}: marked", target.flags[:5])
        frames = target.frames(max(target.stacks, key=target.stacks.get))
        lib.equal(len(frames), SHOWN, f"{target.name}: frames shown")
        lib.equal({frame[0] for frame in frames[:-1]}, {"Deep#descend"},
                  f"{target.name}: the innermost ones")


def check_unknown(builds):
    """Versions that cannot be walked: native frames, though there may be probes at C methods."""
    cases = [rubies.of_unknown_version(ruby) for ruby in builds if ruby.is_library]
    targets = [matrix.Target(ruby, "nest.rb") for ruby in cases]
    recording = record_as_they_are(targets)
    for target in targets:
        name = target.ruby.label
        lib.matches(rf"(^|\n)pid {target.process.pid}: ruby 3\.9\.\d+: none: CRuby 3.9.\d+: no walker",
                    recording.result.err, f"{name}: told by name")
        methods = target.count(lambda stack: any(file for _, file, _ in target.frames(stack)))
        lib.equal(methods, 0, f"{name}: no method in Ruby")
        lib.ok(target.total >= 20, f"{name}: native frames", target.total)
        python_matrix.check_complete(target)


lib.need_bpf()
found, skipped = rubies.rubies()
known = [ruby for ruby in found if matrix.is_known(ruby)]
if not known:
    lib.skip_all("no CRuby")
each_version = matrix.of_each_version(known)
every_target = list(make_targets(known))
python_matrix.record(every_target)
for one in every_target:
    matrix.check_target(one)
check_too_deep(each_version)
check_unknown(each_version)
python_matrix.print_skipped(skipped)
lib.done()
