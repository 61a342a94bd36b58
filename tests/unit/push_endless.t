#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""A database server whose answers have no end, or more in them than any recording: `report --from-db`
ends with one sentence, and neither reads nor keeps more than its bounds."""

import http.server
import os
import resource
import struct
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap  # noqa: E402
from tap import equal, matches, ok  # noqa: E402

OUTPUT = os.environ.get("OUTPUT", "build")
MIB = 1 << 20
ANSWERS_MIB = 256  # CLICKHOUSE_ANSWERS_MAX
SOCKETS_MIB = 16  # that may be under way


def text(value):
    return bytes([len(value)]) + value.encode()


# What braid asks for, in this order.
ANSWERS = (("salt", text("version") + text("2") + text("salt") + text("ab")),
           ("events", text("cpu") + text("samples") + struct.pack("<d", 99)),
           ("void", b""),
           ("span", struct.pack("<II", 1, 2)),
           ("sums", struct.pack("<QQQQQ", 7, 0, 1, 1, 1)),
           ("stacks", struct.pack("<QBBHBHB", 7, 0, 0, 0, 0, 1, 1) + struct.pack("<QBH", 9, 1, 0)),
           ("frames", struct.pack("<Q", 9) + text("native") + text("n") + text("a.so") + struct.pack("<QB", 1, 0)
            + 4 * b"\x00" + b"\x00"))


class Server(http.server.ThreadingHTTPServer):
    """Answers as ANSWERS, but for the request number `at`: that gets `block` over and over."""
    daemon_threads = True

    def __init__(self, at, block):
        super().__init__(("127.0.0.1", 0), Handler)
        self.at, self.block, self.n, self.sent = at, block, 0, 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        number, self.server.n = self.server.n, self.server.n + 1
        self.send_response(200)
        self.end_headers()
        if number != self.server.at:
            self.wfile.write(ANSWERS[number][1])
            return
        while self.server.sent < 2048 * MIB:
            self.wfile.write(self.server.block)
            self.server.sent += len(self.server.block)


def report(at, block):
    """(What it says, MiB that the server could send)"""
    server = Server(at, block)
    done = subprocess.run([OUTPUT + "/braid", "report", "--from-db", f"clickhouse://127.0.0.1:{server.server_port}/x",
                           "--where", "time >= now-1h"], capture_output=True, text=True, check=False, timeout=300)
    server.shutdown()
    return done, server.sent / MIB


def check_endless():
    for at, (name, row) in enumerate(ANSWERS):
        done, sent = report(at, (row or struct.pack("<Q", 7)) * (MIB // max(len(row), 8)))
        equal(done.returncode, 1, f"{name} without end: status", done)
        matches("the answer is too long|there are too many", done.stderr, f"{name} without end: the sentence")
        limit = SOCKETS_MIB if name == "salt" else ANSWERS_MIB + SOCKETS_MIB
        ok(sent <= limit, f"{name} without end: {sent:.0f} MiB could be sent")


def check_frame():
    """A frame with more names than bytes could be kept of."""
    head = struct.pack("<Q", 9) + text("native") + text("n") + text("a.so") + struct.pack("<QB", 1, 0)
    done, _ = report(6, head + b"\x80\x80\x80\x20" + bytes(1 << 26))
    equal(done.returncode, 1, "a frame of 67 million names: status")
    matches("cannot read the answer|too long", done.stderr, "a frame of 67 million names: the sentence")


done, _ = report(-1, b"")
equal((done.returncode, "samples" in done.stdout or "cpu" in done.stdout), (0, True), "the server as it should be", done)
check_endless()
check_frame()
used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
ok(used < 3 * ANSWERS_MIB, f"braid's memory: {used} MiB at most")
tap.done()
