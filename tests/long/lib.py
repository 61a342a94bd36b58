# SPDX-License-Identifier: GPL-2.0-or-later
"""What the long tests share: TAP, targets, recordings. They run as root, from the top directory,
with OUTPUT in the environment. Each has a directory of its own, and a cache in it, so that they can
run at the same time; nothing waits for a time to pass, only for something to happen."""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import running
from running import (BRAID, OUTPUT, Result, all_ids as all_bpf_ids, ids_of as bpf_ids, path, start,
                     state_of, tmp)
from tap import done, equal, matches, ok, skip, skip_all  # for all that import this

PATIENCE_S = 60  # for anything that must happen sooner or later


def need_bpf():
    if os.geteuid() != 0:
        skip_all("not root")
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        skip_all("the kernel has no BTF")
    if subprocess.run([bpftool(), "prog", "show"], capture_output=True).returncode:
        skip_all("BPF is not available")


def bpftool():
    path_of_root = os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin"
    return shutil.which("bpftool", path=path_of_root) or "false"


# --- processes ---

def fixture(name):
    return os.path.join(OUTPUT, "fixtures/native", name)


def script(name):
    return os.path.join("fixtures/python", name)


def start_ready(*command, **options):
    """A fixture that has said READY."""
    process = start(*command, stdout=subprocess.PIPE, **options)
    line = process.stdout.readline()
    if line != b"READY\n":
        raise RuntimeError(f"{command} is not ready but says {line!r}")
    return process


def stop(*processes):
    for process in processes:
        process.kill()
    for process in processes:
        process.communicate()
        running.processes.remove(process)


def wait_for(condition, what):
    """The condition's value, once it is true."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise TimeoutError(f"waited {PATIENCE_S} s for: {what}")


def read_link(path):
    """None: it is gone meanwhile."""
    try:
        return os.readlink(path)
    except OSError:
        return None


def cpu_ticks(pid):
    """CPU time that the process has used."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return sum(map(int, file.read().rpartition(")")[2].split()[11:13]))


# --- braid ---

def braid(*args, **options):
    """Runs to the end. A crash shows as a negative status."""
    run = subprocess.run([BRAID, *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True,
                         timeout=180, **options)
    return Result(run.returncode, run.stdout.decode(errors="replace"),
                  run.stderr.decode(errors="replace"))


def start_braid(*args, **options):
    """In the background; its stderr goes to a pipe."""
    options.setdefault("stderr", subprocess.PIPE)
    return start(BRAID, *args, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **options)


def bpf_statistics():
    """Whether the administrator has switched the kernel's BPF statistics on."""
    with open("/proc/sys/kernel/bpf_stats_enabled", encoding="ascii") as file:
        return file.read()


def wait_attached(process):
    """Until samples are taken: there is an event for each CPU, besides fork and exec."""
    def attached():
        if process.poll() is not None:
            raise RuntimeError(f"braid has ended: {process.stderr and process.stderr.read()}")
        ids = bpf_ids(process.pid)
        return ids if len(ids["link"]) >= 2 + os.cpu_count() else None
    return wait_for(attached, "braid attached")


class Recording(running.Recording):
    """A finished recording, with what braid wrote on stderr."""

    def __init__(self, file, result=None):
        super().__init__(file)
        self.result = result

    def samples(self, pid=None):
        return self.one("SELECT count(*) FROM sample JOIN thread ON thread = thread.id "
                        "JOIN process ON process = process.id WHERE pid = ? OR ? IS NULL", pid, pid)

    def folded(self, *args):
        """[(frames, count)], outermost frame first."""
        result = braid("report", "--format", "folded", *args, self.file)
        if result.status:
            raise RuntimeError(result.err)
        return running.stacks_of(result.out)


def record(*args, options=("-F", "999"), file=None):
    """Records to the end, into a file of its own."""
    name = file or path(f"{len(os.listdir(tmp))}.db")
    result = braid("record", "-o", name, *options, *args)
    if result.status:
        raise RuntimeError(f"braid record {args}: {result}")
    return Recording(name, result)


def check_complete(recording, least, name, pid=None, begin=0.0):
    """The share of stacks that reach the outermost native frame. `begin`: from which part of the
    samples on; braid reads the mappings of a new program while that runs already."""
    flags = [row[0] for row in recording.sql("""
        SELECT flags FROM sample
          JOIN thread ON thread = thread.id JOIN process ON process = process.id
         WHERE pid = ?1 OR ?1 IS NULL ORDER BY time_ns""", pid)]
    flags = flags[int(begin * len(flags)):]
    share = 100 * sum(f & 1 for f in flags) / max(len(flags), 1)  # SAMPLE_COMPLETE, bpf/shared.h
    return ok(len(flags) >= 100 and share >= least,
              f"{name}: at least {least} % of the stacks complete",
              f"{share:.2f} % of {len(flags)}", recording.result and recording.result.err)


def check_unwinder(name, *command, **options):
    """A program that runs by itself for a second, stopped here and there: the kernel half's unwinder,
    built for this machine, finds the frames that libunwind and libdwfl find. (t_unwind.c)"""
    script = 'echo ready; exec "$@"'
    run = subprocess.run([os.path.join(OUTPUT, "tests/long/t_unwind"), "sh", "-c", script, "sh",
                          *map(str, command)], stdin=subprocess.DEVNULL, capture_output=True,
                         timeout=180, **options)
    return equal((run.returncode, b"\nok 2 " in run.stdout), (0, True),
                 f"{name}: frames of libunwind and libdwfl", run.stdout.decode(errors="replace"),
                 run.stderr.decode(errors="replace"))


def share_of(stacks, pattern):
    """Of the samples, those whose folded stack matches: 0 to 1."""
    total = sum(count for _, count in stacks)
    hits = sum(count for frames, count in stacks if re.search(pattern, ";".join(frames)))
    return hits / max(total, 1)


def check_share(stacks, pattern, least, name):
    share = share_of(stacks, pattern)
    common = sorted(stacks, key=lambda stack: -stack[1])[:5]
    return ok(share >= least, f"{name}: {pattern}",
              f"in {100 * share:.2f} % of the samples, not {100 * least:g} %",
              *(f"{count} {';'.join(frames)}" for frames, count in common))
