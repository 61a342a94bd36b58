#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Block I/O: so many requests of a program, so many samples, each with the stack that asked, the bytes
that were asked for, and a time that lies between the program's own readings of the clock. What is
synchronous is told from what is written back, and what is too large for the device is one request."""

import os

import gate
import waiting

WAITS = os.path.join(gate.OUTPUT, "fixtures/native/waits")
EVENT = "block-io"
N = 20
BLOCK = 4096  # never in two places of the disk
LARGE = 8 << 20
UNSEEN = "samples left out: the end of their interval was not seen"


def device_of(path):
    """What block device the file is on; None: on none."""
    number = os.stat(path).st_dev
    name = f"/sys/dev/block/{os.major(number)}:{os.minor(number)}"
    return os.path.realpath(name) if os.path.exists(name) else None


def frames_of(recording, samples):
    """Their stacks without the kernel's frames but the last, which says what is asked for."""
    kept = {(*(frame for frame in frames[:-1] if not frame.endswith("_[k]")), frames[-1])
            for frames in recording.stacks(samples, EVENT)}
    return [list(frames) for frames in sorted(kept)]


def check(name, recording, waits, call, stack, outlives=False):
    """One request for each. `outlives`: the program does not wait for it. Its end may not be seen,
    where the kernel lets no program run just then, which is counted: seen on Linux 6.18 while
    other BPF programs are being loaded."""
    samples = [wait.of(recording.waits(waiter.tid, EVENT)) for wait in waits]
    unseen = sum(not found for found in samples)
    gate.ok(unseen <= recording.counters().get(UNSEEN, 0), f"{name}: what is missing is counted")
    gate.equal([len(found) for found in samples if found], [1] * (len(waits) - unseen),
               f"{name}: a sample for each")
    gate.ok(unseen < len(waits), f"{name}: there are some")
    waits = [wait for wait, found in zip(waits, samples) if found]
    samples = sum(samples, [])
    gate.equal({sample.object for sample in samples}, {BLOCK}, f"{name}: bytes")
    gate.equal({sample.syscall for sample in samples}, {call}, f"{name}: the system call")
    gate.ok(all(sample.value > 0 for sample in samples), f"{name}: it took time")
    if not outlives:
        gate.equal([(sample.value, wait.after - sample.time_ns)
                    for sample, wait in zip(samples, waits)
                    if sample.value > wait.after - sample.time_ns], [],
                   f"{name}: it has ended before the program went on")
    found = frames_of(recording, samples)
    gate.ok(len(found) == 1 and waiting.same_frames(found[0], stack), f"{name}: the stack", *found)


gate.need_root()
place, small = gate.path("file"), gate.path("small")
device = device_of(gate.tmp)
if not device:
    gate.skip_all("files of tests are on no block device")
waiter = waiting.Waiter(WAITS)
braid = waiting.record(EVENT, waiter.pid, options=["--max-overhead", "none"])


def ask(line):
    return waiting.Wait(gate.ask(waiter.process, line))


direct = [ask(f"direct {place} {BLOCK}") for _ in range(N)]
written = [ask(f"write {place} {BLOCK}") for _ in range(N)]
large = ask(f"direct {place} {LARGE}")
behind = [ask(f"behind {small} {BLOCK}") for _ in range(N)]
missed = [ask(f"read {small}") for _ in range(N)]
touched = [ask(f"touch {small}") for _ in range(N)]
synced = [ask(f"sync {small}") for _ in range(N)]
recording = waiting.finish("block-io", braid)
check("O_DIRECT read", recording, direct, waiting.PREAD64,
      [*waiting.to("in_direct"), None, "[read]_[k]"])
check("O_DIRECT write", recording, written, waiting.PWRITE64,
      [*waiting.to("in_write"), None, "[synchronous write]_[k]"])
check("page cache miss, read", recording, missed, waiting.PREAD64,
      [*waiting.to("in_read"), None, "[read]_[k]"])
check("page cache miss, mapped", recording, touched, None,
      [*waiting.to("in_touch"), "[read]_[k]"])
check("write-back", recording, behind, waiting.SYNC_FILE_RANGE,
      [*waiting.to("in_behind"), None, "[write-back]_[k]"], outlives=True)
# Of fsync: what the file has in the page cache, the file system's own blocks, the device's cache.
found = [[sample for sample in wait.of(recording.waits(waiter.tid, EVENT))] for wait in synced]
gate.ok(UNSEEN in recording.counters() or all(found), "fsync: samples for each")
gate.equal([True for samples, wait in zip(found, synced) for sample in samples
            if sample.value > wait.after - sample.time_ns], [], "fsync: all has ended before it has")
for what, samples in [("[synchronous write]", [one for some in found for one in some if one.object]),
                      ("[flush]", [one for some in found for one in some if not one.object])]:
    stacks = frames_of(recording, samples) if samples else []
    gate.ok(all(waiting.same_frames(stack, [*waiting.to("in_sync"), None, what + "_[k]"])
                for stack in stacks), f"fsync: {what}", *stacks)
samples = large.of(recording.waits(waiter.tid, EVENT))
gate.ok(UNSEEN in recording.counters() or sum(sample.object for sample in samples) == LARGE,
        "a large read: all of its bytes", *(sample.object for sample in samples))
gate.equal(recording.counters().keys() - {UNSEEN}, set(), "nothing is lost")

# Whatever is left out or has no end, the weights are those of all requests.
READER = """import mmap, os, sys
file, page = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT | os.O_NOATIME), mmap.mmap(-1, int(sys.argv[2]))
print("ready", flush=True)
for line in sys.stdin:
    print(sum(os.preadv(file, [page], 0) for _ in range(int(line))), flush=True)
"""
reader = gate.start("/usr/bin/python3", "-c", READER, place, BLOCK, stdin=gate.subprocess.PIPE)
gate.wait_line(reader, "ready")
for options in ([], ["-c", "7"], ["--max-overhead", "none"]):
    braid = waiting.record(EVENT, reader.pid, options=options)
    size = int(gate.ask(reader, "3000"))
    recording = waiting.finish(f"weights {options}", braid)
    gate.equal(recording.sql("SELECT sum(weight), sum(object * weight) FROM sample"),
               [(3000, size)], f"weights {options}: requests and bytes")
gate.done()
