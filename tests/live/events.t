#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Events: every occurrence is one sample with its own stack, also where a tick interrupts the program
of a uprobe, and where the programs of several threads alternate on one CPU; frames of a runtime are
there whatever triggered; what cannot be attached is refused in a sentence."""

import collections
import json
import os
import signal

import gate

HITS = 20000
THREADS = 4
PYTHON = "/usr/bin/python3.11"
SCRIPT = "fixtures/python/marked/marked.py"
UPROBE = f"uprobe:{gate.MARKER}:braid_marker"


def record(target, events, *options):
    """braid, once it samples."""
    file = gate.path(f"{len(os.listdir(gate.tmp))}.db")
    braid = gate.start(gate.BRAID, "record", "-e", events, "--max-overhead", "none", *options,
                       "-p", target.pid, "-o", file,
                       stderr=gate.subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
    braid.file = file
    return braid


def finish(name, braid):
    """The recording, while the target goes on."""
    braid.send_signal(signal.SIGINT)
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, f"{name}: status", said)
    return gate.Recording(braid.file)


def events_of(recording):
    """[name of the event] of the samples in the order of Recording.samples."""
    return [name for name, in recording.sql(
        "SELECT event.name FROM sample JOIN event ON event.id = event "
        "ORDER BY time_ns, sample.id")]


def check_lost(name, recording):
    """While the kernel handles a trap, a tick may find registers that are half set up: cut stacks
    of the event cpu say nothing."""
    gate.equal([text for text in recording.counters() if text.startswith("samples lost")], [],
               f"{name}: no sample is lost")


def at_kernel(frames, functions):
    """Where the kernel's frames begin, if one of the functions is among them; else 0."""
    if not any(frame == function + "_[k]" for frame in frames for function in functions):
        return 0
    return next(at for at, frame in enumerate(frames) if frame.endswith("_[k]"))


def check_tick_in_uprobe():
    """The thread is in the uprobe's program most of the time."""
    target = gate.marked(gate.MARKS, trace=False)
    braid = record(target, f"cpu,{UPROBE}", "-F", "9999")
    gate.ask(target, f"here {HITS}")
    recording = finish("ticks", braid)
    samples = recording.samples()
    events = events_of(recording)
    hits = [sample.native for sample, event in zip(samples, events) if event == UPROBE]
    ticks = events.count("cpu")
    gate.equal(len(hits), HITS, "ticks: as many samples of the uprobe as calls")
    gate.equal(len(set(map(tuple, hits))), 1, "ticks: all have one stack")
    gate.equal(len(hits) + ticks, len(samples), "ticks: each sample is of one of the events")
    gate.check_merged("ticks", recording.merged("--event", UPROBE), gate.HERE, HITS)
    # One of these functions runs the uprobe's program, on top of the call's own stack: the second one
    # for a link of several places. The kernel calls it by a pointer, so that no compiler inlines it.
    runs = "uprobe_dispatcher", "uprobe_multi_link_handler"
    inside = [frames[:at] for frames, at in ((frames, at_kernel(frames, runs)) for frames, _
                                             in recording.merged("--event", "cpu")) if at]
    gate.ok(inside, "ticks: some came while the uprobe's program ran")
    call, = recording.merged("--event", UPROBE)
    gate.equal([frames for frames in inside if frames != call[0]], [],
               "ticks: and have the stack of the call, too")
    check_lost("ticks", recording)


def check_threads_on_a_cpu():
    target = gate.marked(gate.MARKS)
    os.sched_setaffinity(target.pid, {min(os.sched_getaffinity(0))})
    braid = record(target, UPROBE)
    gate.ask(target, f"threads {THREADS} {HITS // THREADS}")
    maps = gate.Maps(target.pid)
    recording = finish("threads", braid)
    samples = recording.samples()
    hits = collections.Counter(sample.tid for sample in samples)
    gate.equal(sorted(hits.values()), [HITS // THREADS] * THREADS,
               "threads: as many samples of each as it made calls")
    gate.check_native("threads", samples, maps, gate.traces())
    check_lost("threads", recording)


def check_period():
    target = gate.marked(gate.MARKS, trace=False)
    braid = record(target, UPROBE, "-c", "100")
    gate.ask(target, f"here {HITS}")
    recording = finish("period", braid)
    gate.equal(recording.count(), HITS // 100, "-c 100: every hundredth is sampled")
    gate.equal(recording.sql("SELECT DISTINCT weight FROM sample"), [(100,)],
               "-c 100: and stands for a hundred")


def check_python(name, events, within):
    """Python's own frames, at the call of the marker."""
    target = gate.marked(PYTHON, "-B", SCRIPT, trace=False)
    braid = record(target, events)
    stacks = json.loads(gate.ask(target, "6"))
    recording = finish(name, braid)
    merged = [(frames, count) for frames, count in recording.merged()
              if any(frame.startswith("getppid (") for frame in frames)]
    gate.equal(sum(count for _, count in merged), 6, f"{name}: as many samples as calls")
    for frames, _ in merged:
        gate.equal([frame.split(" ")[0].rpartition(".")[2] for frame in frames
                    if frame.endswith("_[py]")], [name for name, _ in stacks[0]],
                   f"{name}: the interpreter's own stack", *frames)
        gate.ok(any(frame.startswith(within) for frame in frames), f"{name}: in {within}", *frames)


def check_refused():
    target = gate.marked(gate.MARKS, trace=False)
    before = gate.all_ids("prog")
    for events, status, words in [
            ("cpuu", 2, "there is no event 'cpuu': did you mean cpu?"),
            ("cpu,cpu", 2, "the event cpu is given twice"),
            (",".join(f"tracepoint:x:t{number}" for number in range(17)), 2, "at most 16 events"),
            ("tracepoint:syscalls:sys_enter_raed", 2, "there is no system call 'raed'"),
            ("uprobe:libc.so.6:0x", 2, "neither a symbol nor an offset"),
            ("tracepoint:sched:sched_swich", 1,
             "no tracepoint sched_swich: did you mean sched_switch?"),
            (f"cpu,uprobe:{gate.MARKER}:nobody", 1, "has no symbol nobody"),
            ("cpu,uprobe:nobody.so:nobody", 1, "no target has mapped a file nobody.so")]:
        file = gate.path("refused.db")
        result = gate.braid("record", "-e", events, "-p", target.pid, "-d", "1", "-o", file)
        gate.equal(result.status, status, f"{events}: status", result.err)
        gate.ok(words in result.err, f"{events}: says why", result.err)
        gate.ok(not os.path.exists(file), f"{events}: there is no recording")
    result = gate.braid("record", "-e", UPROBE, "-F", "99", "-p", target.pid, "-o", file)
    gate.equal(result.status, 2, "-F without an event that comes by the clock: status")
    gate.wait_until(lambda: gate.all_ids("prog") <= before, "the clean-up")
    gate.ok(True, "no program is left")
    gate.say(target, "end")


def check_killed():
    target = gate.marked(gate.MARKS, trace=False)
    braid = record(target, f"cpu,tracepoint:raw_syscalls:sys_enter,{UPROBE}")
    ids = gate.ids_of(braid.pid)
    braid.kill()
    braid.wait()
    gate.check_gone("killed with three events", ids)
    gate.equal(gate.ask(target, "here 3"), "done 0", "killed: the target goes on")
    gate.say(target, "end")


gate.need_root()
check_tick_in_uprobe()
check_threads_on_a_cpu()
check_period()
if os.path.exists(PYTHON):
    check_python("uprobe", UPROBE, "braid_marker")
    check_python("tracepoint", "tracepoint:raw_syscalls:sys_enter", "do_syscall_64")
check_refused()
check_killed()
gate.done()
