#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""The systemd unit: with the capabilities that it names, as another user and with no way to more, braid
fills a directory from another user's Python; what it keeps of its privileges; and its metrics, as
another program reads them."""

import os
import re
import signal
import socket
import stat

import capabilities
import gate
from capabilities import OTHER, UNIT, as_user, of_unit

PYTHON = os.path.expanduser("~/.pyenv/versions/3.11.7/bin/python3.11")
PYTHON = PYTHON if os.path.exists(PYTHON) else "/usr/bin/python3"
READER = """if True:
    import sys
    from prometheus_client.openmetrics.parser import text_string_to_metric_families
    for family in text_string_to_metric_families(sys.stdin.read()):
        for sample in family.samples:
            print(sample.name, ",".join(sample.labels.values()), int(sample.value), sep="|")
"""
SPIN = "import time\nprint('ready', flush=True)\ndef spin():\n  while True: sum(range(100))\nspin()"


def capabilities_of(pid):
    """Of each thread: permitted ones, as bits."""
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status", encoding="utf-8") as status:
            found.append({key: int(value, 16) for key, value in
                          re.findall(r"^(Cap\w+|NoNewPrivs):\s(\w+)$", status.read(), re.M)})
    return found


def get(path, request="GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"):
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
        client.sendall(request.encode())
        answer = b""
        while part := client.recv(65536):
            answer += part
    head, _, body = answer.decode().partition("\r\n\r\n")
    return head, body


def metrics(text):
    result = gate.run("/usr/bin/python3", "-c", READER, stdin=None, input=text.encode())
    gate.equal(result.status, 0, "metrics: another program reads them", result.err)
    rows = [line.split("|") for line in result.out.splitlines()]
    return {(name, labels): int(value) for name, labels, value in rows}


def check_unit():
    bounding = of_unit()
    gate.equal(sorted(of_unit("AmbientCapabilities")), sorted(bounding), "unit: has what it may have")
    result = gate.run("sh", "-c", f"sed 's|@BINDIR@|{gate.OUTPUT}|' {UNIT} >{gate.tmp}/braid.service"
                      f" && systemd-analyze verify --man=no {gate.tmp}/braid.service")
    gate.equal((result.status, result.err), (0, ""), "unit: systemd accepts it")
    limits = settings()
    gate.equal([limits.get(name, "") for name in ("TasksMax", "OOMScoreAdjust")], ["128", "500"],
               "unit: limits")
    gate.ok(memory_max() > kept_max() + (1 << 30), "unit: room for all that may be kept, and 1 GB", limits)
    with open("core/files/target_helper.c", encoding="utf-8") as source:
        stuck = int(re.search(r"#define STUCK_MAX (\d+)", source.read())[1])
    gate.ok(int(limits["TasksMax"]) > stuck + 32, "unit: room for all helpers that may be stuck")
    return bounding


def settings():
    with open(UNIT, encoding="utf-8") as unit:
        return dict(re.findall(r"(?m)^(\w+)=(.*)$", unit.read()))


def memory_max():
    number, unit = re.fullmatch(r"(\d+)([GM])", settings()["MemoryMax"]).groups()
    return int(number) << {"M": 20, "G": 30}[unit]


def kept_max():
    """What may be kept of files that targets name."""
    if not os.path.exists("core/base/quota.h"):
        return 0
    with open("core/base/quota.h", encoding="utf-8") as source:
        number, shift = re.search(r"#define QUOTA_RETAINED_MAX \((\d+)ULL << (\d+)\)", source.read()).groups()
    return int(number) << int(shift)


def memory_of(pid):
    """Bytes: the most that was resident, and the kernel's for maps."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as status:
        memory = int(re.search(r"VmHWM:\s+(\d+) kB", status.read())[1]) << 10
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{fd}", encoding="utf-8") as info:
                memory += sum(map(int, re.findall(r"(?m)^memlock:\s+(\d+)$", info.read())))
        except OSError:
            pass
    return memory


def check_run(caps):
    """As the unit has it: a user, these capabilities and never others."""
    room = capabilities.room("room")
    target = gate.start(*as_user((), OTHER), PYTHON, "-c", SPIN)
    gate.wait_line(target, "ready")
    directory, sock = os.path.join(room, "d"), os.path.join(room, "metrics")
    braid = gate.start(*as_user(caps, forever=True), room + "/braid", "record", "-p", target.pid, "--rotate", "1",
                       "--keep", "100", "-o", directory, "--metrics", "unix:" + sock,
                       stderr=gate.subprocess.PIPE)
    gate.wait_until(lambda: braid.poll() is not None or (os.path.isdir(directory) and [
        name for name in os.listdir(directory) if name.endswith(".db")]), "a recording")
    kept = capabilities_of(braid.pid)
    used = memory_of(braid.pid)
    gate.ok(32 << 20 < used < memory_max() / 2, "as the unit: half of its memory is not used", used)
    check_metrics(sock)
    braid.send_signal(signal.SIGTERM)
    said = braid.stderr.read().decode()
    gate.equal(braid.wait(), 0, "as the unit: status", said)
    gate.matches(r"(?m)^pid \d+: python 3[\d.]+: walk$", said, "as the unit: is walked")
    gate.equal(sorted({one["NoNewPrivs"] for one in kept}), [1], "as the unit: no new privileges")
    gate.equal(min(one["CapPrm"] for one in kept), 0, "as the unit: a thread that needs none has none")
    gate.ok(not os.path.exists(sock), "as the unit: the socket is gone")
    modes = {stat.S_IMODE(os.stat(os.path.join(directory, name)).st_mode)
             for name in os.listdir(directory)}
    gate.equal((modes, stat.S_IMODE(os.stat(directory).st_mode)), ({0o600}, 0o700),
               "as the unit: for nobody else to read")
    stacks = gate.Recording(directory).merged()
    spin = [frames for frames, _ in stacks if any(frame.startswith("spin (") for frame in frames)]
    gate.ok(spin, "as the unit: functions of another user's program are named")
    gate.ok(any(frames[0].startswith("_start") for frames in spin), "as the unit: and native ones",
            stacks[:3])
    target.kill()


def check_metrics(sock):
    gate.equal(stat.S_IMODE(os.stat(sock).st_mode), 0o600, "metrics: mode of the socket")
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(sock)  # and says nothing: the next reader is served all the same
        head, body = get(sock)
    gate.matches("^HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text; version=1.0.0;",
                 head, "metrics: head")
    values = metrics(body)
    gate.equal((values[("braid_processes", "")], values[("braid_probes_given_up", "")],
                values[("braid_frequency_hertz", "")]), (1, 0, 99), "metrics: values")
    gate.ok(values[("braid_samples_total", "")] > 0 and values[("braid_memory_bytes", "")] > 1e6 and
            values[("braid_recordings_finished_total", "")] > 0, "metrics: what grows", values)
    for request in "POST / HTTP/1.1\r\n\r\n", "x" * 9000, "\r\n\r\n":
        try:
            head, body = get(sock, request)
        except OSError:
            head, body = "", ""
        gate.ok(not body and "200" not in head, f"metrics: no answer to {request[:6]!r}", head)


def check_file():
    file = gate.path("braid.prom")
    directory = gate.path("files")
    words = ("record", "--rotate", "1", "--keep", "3", "-o", directory, "--metrics", file, "--")
    result = gate.braid(*words, "sleep", "1.5")
    gate.equal(result.status, 0, "metrics in a file: status", result.err)
    with open(file, encoding="utf-8") as text:
        values = metrics(text.read())
    gate.ok(("braid_recordings_bytes", "") in values, "metrics in a file: all of them")
    gate.equal(values[("braid_recordings_finished_total", "")],
               len([name for name in os.listdir(directory) if name.endswith(".db")]),
               "metrics in a file: as it was at the end")
    gate.equal(stat.S_IMODE(os.stat(file).st_mode), 0o644, "metrics in a file: for collectors")
    everything = gate.path("everything.prom")
    result = gate.braid("record", "-a", "-d", "1.5", "--rotate", "1", "--keep", "3", "-o", gate.path("everything"),
                        "--metrics", everything)
    gate.equal(result.status, 0, "metrics of -a: status", result.err)
    with open(everything, encoding="utf-8") as text:
        gate.ok(metrics(text.read())[("braid_processes", "")] > 0, "metrics of -a: processes")
    with open(file, "w", encoding="utf-8") as text:
        text.write("precious\n")
    result = gate.braid(*words, "true")
    gate.equal((result.status, result.err), (1, f"braid: cannot write metrics to {file}: the file exists and "
                                                "has none of braid's. Choose another file\n"),
               "metrics in a file: nothing else is overwritten")
    sock = gate.path("taken")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(sock)
        server.listen()
        result = gate.braid(*words[:-2], "unix:" + sock, "--", "true")
        gate.equal((result.status, "Address already in use" in result.err), (1, True),
                   "metrics: another's socket is refused", result.err)
    result = gate.braid(*words[:-2], "unix:" + sock, "--", "true")
    gate.equal(result.status, 0, "metrics: a dead one is replaced", result.err)


def check_lost_place():
    """It goes, and comes again."""
    room = gate.path("place")
    os.mkdir(room)
    file = os.path.join(room, "braid.prom")
    braid = gate.start(gate.BRAID, "record", "-o", gate.path("place.db"), "--metrics", file, "-p",
                       os.getpid(), stderr=gate.subprocess.PIPE)
    gate.wait_until(lambda: os.path.exists(file) or braid.poll() is not None, "metrics")
    os.rename(room, room + ".away")
    first = braid.stderr.readline().decode()
    while first.startswith(("recording ", "pid ")):
        first = braid.stderr.readline().decode()
    gate.equal(first, f"cannot write metrics to {file}: No such file or directory. The recording "
                      "continues, and braid tries again each second\n", "metrics: their place is gone")
    os.rename(room + ".away", room)
    gate.equal(braid.stderr.readline().decode(), f"metrics are being written to {file} again\n",
               "metrics: it is there again")
    braid.send_signal(signal.SIGINT)
    gate.equal(braid.wait(), 0, "metrics: status")


def check_root():
    """What root keeps, and that a command gets all of it."""
    braid = gate.start(gate.BRAID, "record", "-o", gate.path("root.db"), "--", "sh", "-c",
                       "grep CapPrm /proc/self/status; echo ready; read x",
                       stderr=gate.subprocess.DEVNULL)
    said = gate.wait_line(braid, "ready")
    command = int(said[0].split()[1], 16)
    with open("/proc/self/status", encoding="utf-8") as status:
        own = int(re.search(r"CapPrm:\s(\w+)", status.read())[1], 16)
    gate.equal(command, own, "root: a command has what braid had")
    threads = capabilities_of(braid.pid)
    unneeded = sum(1 << bit for bit in (12, 13, 16, 17, 22, 25, 27, 31))  # NET_ADMIN, SYS_MODULE, ...
    gate.equal([hex(one["CapPrm"] & unneeded) for one in threads], ["0x0"] * len(threads),
               "root: braid has given up what it never needs")
    gate.say(braid, "")
    gate.equal(braid.wait(), 0, "root: status")


gate.need_root()
gate.need_program("/usr/bin/systemd-analyze")
capabilities.let_sample()
check_run(check_unit())
check_file()
check_lost_place()
check_root()
gate.done()
