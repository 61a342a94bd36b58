#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""A debug server that takes the connection and never answers, asked with all the patience that the user's
settings can have: braid has half a minute."""

import os
import socket
import threading

import lib
from lib import equal, matches, ok, path

SOURCE = """
#include <stdio.h>
#include <unistd.h>
static __attribute__((noinline)) void hidden(void) { pause(); }
int main(void) { puts("READY"); fflush(stdout); for (;;) hidden(); }
"""

with open(path("p.c"), "w", encoding="ascii") as file:
    file.write(SOURCE)
lib.subprocess.run(["gcc", "-O2", "-s", path("p.c"), "-o", path("program")], check=True)
program = lib.start_ready(path("program"))
server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen()
held = []


def accept():
    while True:
        held.append(server.accept())


threading.Thread(target=accept, daemon=True).start()
done = lib.subprocess.run(
    [lib.BRAID, "dump", "-p", str(program.pid)], capture_output=True, text=True, check=False,
    timeout=120, env=dict(os.environ, DEBUGINFOD_TIMEOUT="100000",
                          DEBUGINFOD_URLS=f"http://127.0.0.1:{server.getsockname()[1]}"))
ok(held, "the server was asked")
equal(done.returncode, 0, "the dump is written", done.stderr)
matches(r"\[program\+0x", done.stdout, "without names")
matches("DEBUGINFOD_URLS: no further requests: no answer in time", done.stderr, "and says why")
lib.done()
