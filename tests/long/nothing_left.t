#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""However braid ends, the kernel and the target are as before; killed, it leaves a recording."""

import os
import signal

import lib


def left(ids):
    """The kernel frees asynchronously; an id that is gone is not used again so soon."""
    return {kind: ids[kind] & lib.all_bpf_ids(kind) for kind in ids if ids[kind] & lib.all_bpf_ids(kind)}


def check_gone(ids, name):
    lib.ok(all(ids.values()), f"{name}: there were programs, maps and links", ids)
    try:
        lib.wait_for(lambda: not left(ids), "the kernel's clean-up")
    except TimeoutError:
        pass
    lib.equal(left(ids), {}, f"{name}: no program, map or link is left")


def children_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return set(map(int, file.read().split()))


def check_target(target, name):
    state = lib.state_of(target.pid)
    lib.ok(state in ("R", "S"), f"{name}: the target is not stopped", state)
    with open(f"/proc/{target.pid}/status", encoding="utf-8") as file:
        lib.matches(r"\nTracerPid:\t0\n", file.read(), f"{name}: nor traced")
    used = lib.cpu_ticks(target.pid)
    lib.wait_for(lambda: lib.cpu_ticks(target.pid) > used, "CPU time of the target")
    lib.ok(True, f"{name}: the target goes on")


def check_end(name, end, status, *options):
    target = lib.start_ready(lib.fixture("shares"))
    file = lib.path(f"{name}.db")
    process = lib.start_braid("record", "-p", target.pid, "-F", 999, "-o", file, *options)
    ids = lib.wait_attached(process)
    lib.wait_for(lambda: end(process, file) or process.poll() is not None, name)
    error = process.communicate(timeout=lib.PATIENCE_S)[1].decode()
    lib.equal(process.returncode, status, f"{name}: status", error)
    check_gone(ids, name)
    check_target(target, name)
    others = children_of(os.getpid()) - {target.pid}
    lib.equal(others, set(), f"{name}: no stray process")
    lib.stop(target)
    return lib.Recording(file)


def signalled(number):
    def end(process, _):
        process.send_signal(number)
        return True
    return end


def samples_in(file):
    try:
        return lib.Recording(file).samples()
    except lib.sqlite3.Error:
        return 0


def check_kill():
    """Killed after some commits: what was taken up to a second before is there. The clock is that
    of the samples."""
    killed_at = []

    def end(process, file):
        if samples_in(file) < 1500:
            return False
        process.kill()
        killed_at.append(lib.time.clock_gettime_ns(lib.time.CLOCK_MONOTONIC))
        return True

    recording = check_end("SIGKILL", end, -signal.SIGKILL)
    lib.check_share(recording.folded(), "main;burn_[abc]", 0.8, "SIGKILL: report reads it")
    table = lib.braid("report", recording.file)
    lib.equal(table.status, 0, "SIGKILL: as a table, too", table.err)
    # A machine under load may be late with a commit: two seconds, not one.
    missing_s = (killed_at[0] - recording.one("SELECT max(time_ns) FROM sample")) / 1e9
    lib.ok(missing_s < 3, "SIGKILL: the last second at most is missing", f"{missing_s:.2f} s")
    lib.equal(recording.one("PRAGMA integrity_check"), "ok", "SIGKILL: intact")


def check_command_of_killed():
    """A command outlives braid, as it would the shell that started it."""
    file = lib.path("command.db")
    with open(lib.path("stderr"), "wb") as stderr:  # no pipe: the command holds it, too
        process = lib.start_braid("record", "-o", file, "--", lib.fixture("shares"), stderr=stderr)
    ids = lib.wait_attached(process)
    child = lib.wait_for(lambda: children_of(process.pid), "the command").pop()
    lib.wait_for(lambda: lib.read_link(f"/proc/{child}/exe") == lib.fixture("shares"), "exec")
    process.send_signal(signal.SIGINT)
    process.wait(timeout=lib.PATIENCE_S)
    with open(lib.path("stderr"), encoding="utf-8") as stderr:
        error = stderr.read()
    lib.equal(process.returncode, 0, "SIGINT with a command: status", error)
    check_gone(ids, "SIGINT with a command")
    state = lib.state_of(child)
    lib.matches(rf"goes on as PID {child}" if state else "ended", error,
                "SIGINT with a command: what becomes of it is told", state)
    if state:
        lib.ok(state in ("R", "S"), "SIGINT with a command: it is not stopped", state)
        os.kill(child, signal.SIGKILL)


def check_failed_command():
    file = lib.path("none.db")
    before = {kind: lib.all_bpf_ids(kind) for kind in ("prog", "link")}
    result = lib.braid("record", "-o", file, "--", "/no/such/program")
    lib.equal(result.status, 1, "no such command: status", result.err)
    lib.ok(not os.path.exists(file), "no such command: no file")
    lib.equal(children_of(os.getpid()), set(), "no such command: no process")

    def own():
        """Of all that is new, what no process holds: braids of other tests come and go."""
        new = {kind: lib.all_bpf_ids(kind) - before[kind] for kind in before}
        held = [lib.bpf_ids(name) for name in os.listdir("/proc") if name.isdigit()]
        return [i for kind in new for i in new[kind] - set().union(*(ids[kind] for ids in held))]

    try:
        lib.wait_for(lambda: not own(), "the kernel's clean-up")
    except TimeoutError:
        pass
    lib.equal(own(), [], "no such command: nothing in the kernel")


lib.need_bpf()
check_end("end", lambda process, file: True, 0, "-d", "1")
check_end("SIGINT", signalled(signal.SIGINT), 0)
check_end("SIGTERM", signalled(signal.SIGTERM), 0)
check_end("SIGHUP", signalled(signal.SIGHUP), 0)
check_kill()
check_command_of_killed()
check_failed_command()
lib.done()
