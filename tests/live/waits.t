#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Waiting, of a program in C: each time that a thread leaves the CPU is one sample, with the stack
under which it waits, why, in which system call, and how long: not longer than the thread's own
readings before and after say, and not shorter than from when the test has seen it off the CPU until
the test has ended the wait."""

import os

import gate
import waiting
from waiting import BLOCKED, FUTEX, PREEMPTED, READ, STOPPED

WAITS = os.path.join(gate.OUTPUT, "fixtures/native/waits")
N = 5
TRIES = 500


def record(*pids):
    return waiting.record("off-cpu:1ns", *pids, options=["--max-overhead", "none"])


def check(name, recording, waiter, waits, call, stack, state=BLOCKED):
    """One long sample of each wait, and as many samples in all as the kernel has counted."""
    everything = recording.waits(waiter.tid)
    found = [wait.of(everything) for wait in waits]
    gate.equal([sum(sample.state in (BLOCKED, STOPPED) for sample in samples) for samples in found],
               [wait.more[0] for wait in waits], f"{name}: a sample for each switch",
               "(before, after, samples since the wait before), us",
               *(((wait.after - wait.before) // 1000,
                  [((sample.time_ns - wait.before) // 1000, sample.value // 1000, sample.state)
                   for sample in everything if last.before <= sample.time_ns <= wait.after + 10**8])
                 for last, wait in zip(waits[:1] + waits, waits)))
    if waits[0].by_ns:
        found = [wait.seen_of(everything) for wait in waits]
        gate.equal([len(samples) for samples in found], [1] * len(waits),
                   f"{name}: one is the wait that the test has seen")
    gate.equal([wait.before for wait, samples in zip(waits, found)
                if sum(sample.value for sample in samples) > wait.after - wait.before], [],
               f"{name}: and not longer")
    samples = [sample for some in found for sample in some if sample.state == state]
    gate.equal({sample.syscall for sample in samples}, {call}, f"{name}: the system call")
    gate.ok(len(samples) >= len(waits), f"{name}: the state")
    stacks = recording.user_stacks(samples)
    gate.ok(len(stacks) == 1 and waiting.same_frames(stacks[0], stack), f"{name}: the stack",
            *stacks, stack)
    return recording.kernel_stacks(samples)


def disk_waits(waiter, line):
    """A disk may have done before the thread would have to wait: some for which it had to, if any."""
    waits = []
    for _ in range(TRIES):
        wait = waiting.Wait(gate.ask(waiter.process, line))
        waits += [wait] * (wait.more[0] > 0)
        if len(waits) == N:
            break
    return waits


def check_waits(outside=()):
    """`outside`: waits that nobody sees the end of in the thread itself."""
    waiter = waiting.Waiter(WAITS)
    file = gate.path(f"file-{waiter.pid}")
    braid = record(waiter.pid)
    mutex = [waiter.wait("mutex", FUTEX) for _ in range(N)]
    pipe = [waiter.wait("pipe", READ) for _ in range(N)]
    sock = [waiter.wait("socket", waiting.RECVFROM) for _ in range(N)]
    sleep = [waiter.sleep("sleep 20000000", waiting.NANOSLEEP) for _ in range(N)]
    stop = [waiter.wait("stop", waiting.TGKILL) for _ in range(N)]
    sync, read, touch = (disk_waits(waiter, f"{what} {file}") for what in ("sync", "read", "touch"))
    recording = waiting.finish("waits", braid)
    kernel_stacks = {}
    for name, waits, call, function, inner, state in [
            ("mutex", mutex, FUTEX, "in_mutex", ["pthread_mutex_lock_[n]", None], BLOCKED),
            ("pipe", pipe, READ, "in_pipe", ["read_[n]"], BLOCKED),
            ("socket", sock, waiting.RECVFROM, "in_socket", ["recv_[n]"], BLOCKED),
            ("sleep", sleep, waiting.NANOSLEEP, "in_sleep", ["clock_nanosleep_[n]"], BLOCKED),
            ("stop", stop, waiting.TGKILL, "in_stop", ["syscall_[n]"], STOPPED),
            ("sync", sync, waiting.FSYNC, "in_sync", ["fsync_[n]"], BLOCKED),
            ("read", read, waiting.PREAD64, "in_read", [None], BLOCKED),
            ("touch", touch, None, "in_touch", [], BLOCKED)]:
        if waits and name in outside:
            samples = [sample for wait in waits for sample in wait.of(recording.waits(waiter.tid))
                       if sample.state == state]
            gate.ok(len(samples) >= len(waits), f"{name}: samples of each")
            right = [*waiting.to(function), *inner]
            gate.equal([frames for frames in recording.user_stacks(samples)
                        if frames and not waiting.same_frames(frames, right)], [],
                       f"{name}: the user's frames, or none of them")
            gate.ok(all(recording.stacks(samples)), f"{name}: with the kernel's")
        elif waits:
            kernel_stacks[name] = check(name, recording, waiter, waits, call,
                                        [*waiting.to(function), *inner], state)
        else:
            gate.skip(name, "the disk is too fast for anybody to wait")
    gate.check_clean("waits", recording)
    frames = {frame for stacks in kernel_stacks.values() for stack in stacks for frame in stack}
    gate.ok("do_syscall_64_[k]" in frames, "waits: the kernel's frames", *frames)
    gate.equal(frames & {"schedule_[k]", "__schedule_[k]"}, set(), "waits: not the scheduler's")
    # What a disk waits in is the file system's affair, and can differ from one time to the next.
    return {name: kernel_stacks.get(name) for name in ("mutex", "pipe", "socket", "sleep", "stop")}


def check_without_rseq():
    """Older kernels see threads without restartable sequences come back from system calls only
    (docs/decisions/0024-waiting-before-6.16.md)."""
    without = {"BRAID_TEST_OLDER_KERNEL": "1", "GLIBC_TUNABLES": "glibc.pthread.rseq=0"}
    os.environ.update(without)
    check_waits(("stop", "touch"))
    for name in without:
        del os.environ[name]


def check_preempted():
    """Two threads, one CPU: neither gives it up."""
    waiters = [waiting.Waiter(WAITS) for _ in range(2)]
    for waiter in waiters:
        os.sched_setaffinity(waiter.pid, {min(os.sched_getaffinity(0))})
    braid = record(*(waiter.pid for waiter in waiters))
    for waiter in waiters:
        gate.say(waiter.process, f"spin {N}")
    waits = [waiting.Wait(gate.line_of(waiter.process)) for waiter in waiters]
    recording = waiting.finish("preempted", braid)
    for number, (waiter, wait) in enumerate(zip(waiters, waits)):
        samples = wait.of(recording.waits(waiter.tid))
        taken = [sample for sample in samples if sample.state == PREEMPTED]
        gate.ok(len(taken) >= N, f"preempted {number}: a sample for each time", len(taken))
        gate.equal(len(samples) - len(taken), wait.more[0], f"preempted {number}: and no other")
        gate.ok(sum(sample.value for sample in samples) <= wait.after - wait.before,
                f"preempted {number}: not longer than the thread says")
        stacks = recording.user_stacks(taken)
        gate.ok(stacks, f"preempted {number}: stacks")
        gate.equal([frames for frames in stacks if waiting.function(frames, len(waiting.OBEY))
                    != "in_spin"], [], f"preempted {number}: in in_spin")


gate.need_root()
waiting.on_each_kernel(check_waits)
check_without_rseq()
waiting.on_each_kernel(check_preempted)
gate.done()
