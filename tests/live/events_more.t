#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults, filters, returns, USDT probes, system calls and intervals: so many occurrences, so many
samples, each with the stack of the function that had it happen, and a value within what the
program's own clock says; what this machine lacks is refused with what to use instead."""

import os
import signal

import gate

OCCURS = os.path.join(gate.OUTPUT, "fixtures/native/occurs")
N = 100
SYSCALLS = "tracepoint:raw_syscalls:sys_enter"
GETPGID = 121


def record(target, events, *options):
    """braid, once it samples."""
    file = gate.path(f"{len(os.listdir(gate.tmp))}.db")
    braid = gate.start(gate.BRAID, "record", "-e", events, "--max-overhead", "none", *options,
                       "-p", target.pid, "-o", file, stderr=gate.subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "the first commit")
    braid.file = file
    return braid


def finish(name, braid):
    """The recording, and what the summary said; the target goes on."""
    braid.send_signal(signal.SIGINT)
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, f"{name}: status", said)
    return gate.Recording(braid.file)


def start():
    target = gate.start(OCCURS)
    gate.wait_line(target, "ready")
    return target


def recorded(name, events, *lines, options=()):
    """The recording of what the lines say, and the fixture's answers."""
    target = start()
    braid = record(target, ",".join(events), *options)
    answers = [gate.ask(target, line) for line in lines]
    recording = finish(name, braid)
    gate.equal([text for text in recording.counters() if "lost" in text or "not seen" in text], [],
               f"{name}: nothing is lost")
    gate.say(target, "end")
    target.wait()
    return recording, answers


def stacks(recording, event, function):
    """The merged stacks with that function."""
    return [(frames, count) for frames, count in recording.merged("--event", event)
            if any(frame.startswith(function + " (") for frame in frames)]


def innermost(frames):
    """Without the kernel's."""
    return [frame for frame in frames if not frame.endswith("_[k]")]


def check_faults():
    recording, _ = recorded("faults", ["page-fault", "minor-fault", "major-fault"], f"touch {N}")
    for event in "page-fault", "minor-fault":
        found = stacks(recording, event, "in_touch")
        gate.equal(sum(count for _, count in found), N, f"{event}: one for each new page")
        gate.equal({frame.split(" ")[0] for frames, _ in found for frame in innermost(frames)[-1:]},
                   {"in_touch"}, f"{event}: in the function that touches it")
        gate.equal({frame.split(" ")[0] for frames, _ in found for frame in innermost(frames)[-3:-1]},
                   {"main", "obey"}, f"{event}: under those that called it")
    gate.equal(stacks(recording, "major-fault", "in_touch"), [], "major-fault: none is for nothing")
    addresses = [address for address, in recording.sql(
        "SELECT object FROM sample JOIN event ON event.id = event WHERE event.name = 'page-fault' "
        "ORDER BY time_ns, sample.id")]
    runs = [1]
    for one, next_one in zip(addresses, addresses[1:]):
        runs.append(runs[-1] + 1 if next_one - one == 4096 else 1)
    gate.ok(max(runs) >= N, "page-fault: with the address, page by page", addresses)


def check_major_faults():
    recording, answers = recorded("major faults", ["major-fault"], f"file {gate.path('pages')} 20")
    n = int(answers[0].split()[1])
    if not n:
        gate.skip("major-fault", "files here are in memory")
        return
    found = [(frames, count) for frames, count in recording.merged("--event", "major-fault")
             if any(frame.startswith("in_file (") for frame in frames)]
    gate.equal(sum(count for _, count in found), n, "major-fault: as many as getrusage has counted")
    gate.equal({innermost(frames)[-1].split(" ")[0] for frames, _ in found}, {"in_file"},
               "major-fault: in the function that reads")


def check_period():
    recording, _ = recorded("period", ["page-fault"], f"touch {10 * N}", options=("-c", "10"))
    values = [weight for weight, in recording.sql("SELECT DISTINCT weight FROM sample WHERE thread IS NOT NULL")]
    gate.equal(values, [10], "page-fault -c 10: each stands for ten")
    found = sum(count for _, count in stacks(recording, "page-fault", "in_touch"))
    gate.ok(10 * N - 9 <= found <= 10 * N + 9, "page-fault -c 10: every tenth", found)


def check_filters():
    events = {f"{SYSCALLS}/id == {GETPGID}/": N,
              f"{SYSCALLS}/id == {GETPGID} && regs->di < 0x40000000/": 1,
              f"{SYSCALLS}/id == {GETPGID} && regs->di > 0x40000000 && regs->di <= 0x40000007/": 7,
              f"{SYSCALLS}/id == 1000 || id == {GETPGID} && regs->di == 0x40000003 || id == -1/": 1,
              f"{SYSCALLS}/id == {GETPGID} && regs->di & 0x40000000/": N - 1,
              f"{SYSCALLS}/id == {GETPGID} && regs->orig_ax != {GETPGID}/": 0,
              f"{SYSCALLS}/id == {GETPGID} && comm == occurs && pid > 1/": N,
              f"{SYSCALLS}/id == {GETPGID} && comm == occur/": 0,
              "tracepoint:syscalls:sys_enter_getpgid": N,
              "tracepoint:syscalls:sys_exit_getpgid": N,
              "tracepoint:syscalls:sys_enter_getpgid/regs->di == 0/": 1,
              "tracepoint:syscalls:sys_exit_getpgid/ret == -3/": N - 1,
              "tracepoint:syscalls:sys_exit_getpgid/ret > -3/": 1,
              "tracepoint:syscalls:sys_exit_getpgid/ret < 0 || ret == 4711/": N - 1}
    recording, _ = recorded("filters", events, f"call {N}")
    for event, n in events.items():
        found = [(frames, count) for frames, count in recording.merged("--event", event) if frames] \
            if n else []
        gate.equal(sum(count for _, count in found), n, f"{event}: {n} samples")
        gate.equal([frames for frames, _ in found if not any(
            frame.startswith("in_call (") for frame in frames)], [], f"{event}: with their stack")
        gate.equal(recording.one("SELECT count(*) FROM sample JOIN event ON event.id = event "
                                 "WHERE event.name = ?", event), n, f"{event}: and no others")


def check_texts():
    events = {'tracepoint:task:task_rename/comm == "two"/': 1,
              "tracepoint:task:task_rename/task->comm == two/": 1,
              "tracepoint:task:task_rename/comm != two/": 2,
              "tracepoint:task:task_rename/comm == tw/": 0,
              "tracepoint:task:task_rename/task->signal->nr_threads == 1/": 3,
              "tracepoint:task:task_rename/task->signal->nr_threads > 1/": 0,
              "tracepoint:task:task_rename/task->se.on_rq == 1 && comm == three/": 1,
              "tracepoint:task:task_rename/comm == nobody/": 0}
    recording, _ = recorded("texts", events, "rename")
    for event, n in events.items():
        gate.equal(recording.one("SELECT count(*) FROM sample JOIN event ON event.id = event "
                                 "WHERE event.name = ?", event), n, f"{event}: {n} samples")


def check_calls():
    events = ["syscall:getpgid", "syscall:getpgid:2s", "syscall"]
    recording, _ = recorded("calls", events[:1] + events[2:], f"call {N}")
    found = recording.merged("--event", "syscall:getpgid")
    gate.equal([(sum(1 for frame in frames if frame.endswith("_[k]")), count > 0)
                for frames, count in found], [(0, True)], "syscall: one stack, without the kernel's frames")
    frames = found[0][0]
    gate.equal([frame.split(" ")[0] for frame in frames[-3:-1]], ["obey", "in_call"],
               "syscall: that of the call")
    gate.equal(recording.sql("SELECT count(*), min(value) > 0, min(syscall), max(syscall), unit "
                             "FROM sample JOIN event ON event.id = event "
                             "WHERE event.name = 'syscall:getpgid'"),
               [(N, 1, GETPGID + 1, GETPGID + 1, "ns")], "syscall: one each, of that call, in ns")
    gate.equal(recording.one("SELECT count(*) FROM sample JOIN event ON event.id = event "
                             "WHERE event.name = 'syscall' AND syscall = ?", GETPGID + 1), 0,
               "syscall: of all others it is not")
    gate.ok(recording.one("SELECT count(*) FROM sample JOIN event ON event.id = event "
                          "WHERE event.name = 'syscall' AND syscall = 2"), "syscall: but write is")
    recording, _ = recorded("long calls", [events[1], "cpu"], f"call {N}")
    gate.equal(recording.one("SELECT count(*) FROM sample JOIN event ON event.id = event "
                             "WHERE event.name LIKE 'syscall%'"), 0, "syscall: none takes 2 s")


def check_waiting():
    """Between what the program saw from within and from without."""
    pair = "tracepoint:syscalls:sys_enter_read/regs->dx == 1/:latency:" \
           "tracepoint:syscalls:sys_exit_read/regs->dx == 1/"
    recording, answers = recorded("waiting", ["syscall:read:1ms", pair], "wait")
    inner, outer = map(int, answers[0].split()[1:])
    for event in "syscall:read:1ms", pair:
        values = [value for frames, value in recording.merged("--event", event)
                  if any(frame.startswith("in_wait (") for frame in frames)]
        gate.ok(len(values) == 1 and inner <= values[0] <= outer,
                f"{event}: the time of the call", values, inner, outer)


def check_returns():
    called = f"uprobe:{OCCURS}:returning"
    returns = f"uretprobe:{OCCURS}:returning"
    both = f"{called}:latency:{returns}"
    least, most = f"{both}:100us", f"{both}:80000s"
    recording, _ = recorded("returns", [called, returns, both, least, most], f"return {N}")
    for event, last in (called, "returning"), (returns, "in_return"), (both, "in_return"):
        found = recording.merged("--event", event)
        gate.equal([frames[-1].split(" ")[0] for frames, _ in found], [last],
                   f"{event}: where it was called, or where it returns to")
        gate.equal(recording.one("SELECT count(*) FROM sample JOIN event ON event.id = event "
                                 "WHERE event.name = ?", event), N, f"{event}: as many as calls")
    gate.ok(recording.one("SELECT min(value) FROM sample JOIN event ON event.id = event "
                          "WHERE event.name = ?", both) >= 100000, f"{both}: as long as they run")
    for event, n in (least, N), (most, 0):
        gate.equal(recording.one("SELECT count(*) FROM sample JOIN event ON event.id = event "
                                 "WHERE event.name = ?", event), n, f"{event}: {n} that are as long")
    shown = gate.braid("report", "--histogram", "--event", least, recording.file)
    gate.equal((shown.status, sum(map(int, gate.re.findall(r" (\d+)  \|", shown.out)))),
               (0, N), "report --histogram: all of them", shown.out, shown.err)


def check_sites():
    begin, end = f"usdt:{OCCURS}:occurs:begin", f"usdt:{OCCURS}:occurs:end"
    both = f"{begin}:latency:{end}"
    recording, answers = recorded("sites", [begin, end, both], f"site {N}")
    for event in begin, end, both:
        gate.equal(recording.one("SELECT count(*) FROM sample JOIN event ON event.id = event "
                                 "WHERE event.name = ?", event), N,
                   f"{event}: as many as passes, by whichever of its sites")
        gate.equal({frames[-1].split(" ")[0] for frames, _ in recording.merged("--event", event)},
                   {"in_site"}, f"{event}: in its function")
    gate.equal(answers, ["done 1"], "sites: the probe's semaphore is raised, once for all events")


def check_unmatched():
    target = start()
    braid = record(target, f"usdt:{OCCURS}:occurs:end:latency:usdt:{OCCURS}:occurs:begin")
    gate.ask(target, f"site {N}")
    recording = finish("unmatched", braid)
    gate.equal(recording.count(), N - 1, "unmatched: intervals from each end to the next beginning")
    gate.equal(recording.counters(), {"intervals not seen: an end without a beginning": 1},
               "unmatched: the first beginning ends nothing, which is counted")
    gate.say(target, "end")


def check_refused():
    target = start()
    has_pmu = os.path.exists("/sys/bus/event_source/devices/cpu")
    has_kprobes = os.path.exists("/sys/bus/event_source/devices/kprobe/type")
    cases = [("tracepoint:sched:sched_switch/prv->prio < 1/", 1,
              "has no argument 'prv'. Choose one of preempt, prev, next"),
             ("tracepoint:sched:sched_switch/prev->prioo < 1/", 1,
              "struct task_struct has no field 'prioo': did you mean prio"),
             ("tracepoint:sched:sched_switch/prev->prio == abc/", 1, "compare prio with 'abc': the argument is not a text"),
             ("tracepoint:sched:sched_switch/prev->comm < 5/", 1, "compare comm with a number: it is a text. Compare it with"),
             ("tracepoint:sched:sched_switch/prev->se == 5/", 1, "compare se with a number: it is a struct"),
             ("tracepoint:sched:sched_switch/prev->sched_reset_on_fork == 1/", 1, "it is a bit field"),
             ("tracepoint:sched:sched_switch/preempt->x == 1/", 1, "preempt has no fields"),
             ("tracepoint:sched:sched_swich/a == 1/", 1, "did you mean sched_switch?"),
             (f"usdt:{OCCURS}:occurs:begn", 1, "has no probe occurs:begn: it has occurs:begin, occurs:end"),
             (f"usdt:{gate.MARKS}:a:b", 1, "it was built without probes"),
             (f"uretprobe:{OCCURS}:nobody", 1, "has no symbol nobody"),
             (f"uprobe:{OCCURS}:obey:latency:uretprobe:{OCCURS}:nobody", 1, "has no symbol nobody"),
             (",".join(f"uprobe:a:f{i}" for i in range(50)), 2, "at most 16 events")]
    if not has_pmu:
        cases += [("cycles", 1, "cannot count cycles: this machine has no hardware counters"),
                  ("cpu,LLC-load-misses", 1, "or page-fault"), ("r01c4", 1, "Record cpu")]
    if not has_kprobes:
        cases += [(f"{kind}:vfs_read", 1, "Use a tracepoint near vfs_read instead")
                  for kind in ("kprobe", "kretprobe", "fentry")]
    before = gate.all_ids("prog")
    for events, status, words in cases:
        result = gate.braid("record", "-e", events, "-p", target.pid, "-d", "1",
                            "-o", gate.path("refused.db"))
        gate.equal(result.status, status, f"{events[:60]}: status", result.err)
        gate.ok(words in result.err, f"{events[:60]}: says why", result.err)
        gate.ok(not os.path.exists(gate.path("refused.db")), f"{events[:60]}: no recording")
    gate.wait_until(lambda: gate.all_ids("prog") <= before, "the clean-up")
    gate.say(target, "end")


def check_list():
    names = [row.split()[0] for row in gate.braid("events").out.splitlines()]
    for name in ("cpu", "page-fault", "context-switches", "syscall[:NAME][:MIN]", "A:latency:B[:MIN]",
                 "tracepoint:sched:sched_switch", "tracepoint:raw_syscalls:sys_enter"):
        gate.equal(names.count(name), 1, f"events: {name} is listed")
    result = gate.braid("events", "sched_switch")
    gate.ok("struct task_struct *prev" in result.out, "events: with its arguments", result.out)
    gate.equal({"sched_switch" in row for row in result.out.splitlines()}, {True},
               "events: nothing but what holds the pattern")
    gate.equal([row.split()[0] for row in gate.braid("events", "page-f*t").out.splitlines()],
               ["page-fault"], "events: a pattern of the shell's")
    result = gate.braid("events", "sched_swich")
    gate.equal((result.status, result.out), (1, ""), "events: nothing is there")
    gate.ok("did you mean sched_switch?" in result.err, "events: but something near", result.err)
    target = start()
    result = gate.braid("events", "-p", target.pid)
    gate.equal([row.split()[0] for row in result.out.splitlines()],
               [f"usdt:{OCCURS}:occurs:begin", f"usdt:{OCCURS}:occurs:end"],
               "events: the probes of a process")
    gate.say(target, "end")


gate.need_root()
check_faults()
check_major_faults()
check_period()
check_filters()
check_texts()
check_calls()
check_waiting()
check_returns()
check_sites()
check_unmatched()
check_refused()
check_list()
gate.done()
