#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of a stripped program from a debug server: the real one of elfutils, and one that lies."""

import glob
import http.server
import os
import re
import shutil
import socket
import threading
import urllib.error
import urllib.request

import dumps
import gate
from gate import equal, matches, ok, path

SOURCE = """
#include <stdio.h>
#include <unistd.h>
static volatile int n;
static __attribute__((noinline)) void hidden_spin(void)
{
	for (;;)
		n++;
}
static inline __attribute__((always_inline)) void in_line(void)
{
	pause();
	n++;
}
static __attribute__((noinline)) void hidden_wait(void)
{
	in_line();
}
int main(int argc, char **argv)
{
	puts("ready");
	fflush(stdout);
	if (argc > 1)
		hidden_spin();
	for (;;)
		hidden_wait();
}
"""
LINE = 1 + SOURCE[:SOURCE.index("pause();")].count("\n")
NAMED = [("in_line", LINE), ("hidden_wait", LINE + 5), ("main", LINE + 14)]

ENDLESS, MAXSIZE = 256 << 20, 1 << 20


class Liar(http.server.BaseHTTPRequestHandler):
    answers = {}  # by the first part of the path
    asked = []
    ends = threading.Event()
    sent = 0

    def send_endless(self):
        """A body of no stated size."""
        self.send_response(200)
        self.end_headers()
        try:
            while self.sent < ENDLESS:
                Liar.sent += self.wfile.write(bytes(1 << 20))
        except OSError:
            pass

    def do_GET(self):
        name = self.path.split("/")[1]
        self.asked.append(name)
        answer = self.answers.get(name)
        if name == "endless":
            self.send_endless()
            return
        if name == "silent":
            self.ends.wait()
            return
        if answer is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def build():
    with open(path("p.c"), "w", encoding="ascii") as file:
        file.write(SOURCE)
    os.mkdir(path("served"))
    for command in (
            ["gcc", "-g", "-O2", path("p.c"), "-o", path("stripped")],
            ["objcopy", "--only-keep-debug", path("stripped"), path("served/p.debug")],
            ["strip", path("stripped")],
            ["gcc", "-g", "-O1", path("p.c"), "-o", path("other")],
            ["objcopy", "--only-keep-debug", path("other"), path("other.debug")]):
        made = gate.run(*command)
        if made.status:
            raise RuntimeError(made.err)
    return re.search(r"Build ID: (\w+)", gate.run("readelf", "-n", path("stripped")).out)[1]


def environment(url, cache, **more):
    return dict(os.environ, DEBUGINFOD_URLS=url, XDG_CACHE_HOME=path("cache-" + cache), **more)


def unfinished(cache):
    """Files that libdebuginfod was writing."""
    return glob.glob(path(f"cache-{cache}/debuginfod_client/*/debuginfo.*"))


def own_frames(dump, pid):
    """[(function, line)] of the program's own code."""
    return [(frame["function"], frame.get("line")) for frame in dump.threads[pid].frames
            if frame["function"].startswith("[stripped+") or frame.get("file", "").endswith("p.c")]


def frames(pid, env):
    """(status, what is on stderr, own frames)."""
    dump = dumps.dump("-p", str(pid), env=env)
    return dump.result.status, dump.result.err, own_frames(dump, pid)


def real_server(build_id):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    gate.start("debuginfod", "-F", "-p", str(port), "-d", ":memory:", path("served"),
               stderr=gate.subprocess.DEVNULL, stdout=gate.subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"

    def serves():
        try:
            with urllib.request.urlopen(f"{url}/buildid/{build_id}/debuginfo", timeout=5) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False
    gate.wait_until(serves, "the server")
    return url


gate.need_root()
build_id = build()
program = gate.start(path("stripped"))
gate.wait_line(program, "ready")
dumps.stands(program.pid, program.pid)

status, err, nameless = frames(program.pid, dict(os.environ, DEBUGINFOD_URLS=""))
equal((status, err), (0, ""), "without servers: status")
ok(len(nameless) >= 2 and all(name.startswith("[stripped+") for name, _ in nameless),
   "without servers: no name", nameless)

# Below /usr/lib/debug, where braid is: a mount namespace of its own, that the program is not in.
inside = ('mount -t tmpfs none /usr/lib/debug && d=/usr/lib/debug/.build-id/$1 && mkdir -p $d && '
          'cp "$2" "$d/$3.debug" && shift 3 && exec "$@"')
os.makedirs("/usr/lib/debug", exist_ok=True)
installed = dumps.Dump(gate.run("unshare", "--mount", "sh", "-c", inside, "sh", build_id[:2],
                                path("served/p.debug"), build_id[2:], gate.BRAID, "dump", "--json",
                                "-p", program.pid, env=dict(os.environ, DEBUGINFOD_URLS="")))
equal(own_frames(installed, program.pid)[:3], NAMED, "a debug file below /usr/lib/debug",
      installed.result.err)

spinning = gate.start(path("stripped"), "spins")
gate.wait_line(spinning, "ready")
advised = gate.braid("record", "-F", "999", "-d", "1", "-p", spinning.pid, "-o", path("advice.db"),
                     env=dict(os.environ, DEBUGINFOD_URLS="")).err
spinning.kill()
equal(re.findall(r"by offset, most of it in stripped \(build ID (\w+)\): install .*DEBUGINFOD_URLS", advised), [build_id],
      "record names the file without symbols, its build ID and where symbols come from", advised)

if shutil.which("debuginfod"):
    url = real_server(build_id)
    env = environment(url, "real")
    equal(frames(program.pid, env)[2][:3], NAMED, "debuginfod: dump has names, lines and inlined frames")
    ok(os.path.exists(path(f"cache-real/debuginfod_client/{build_id}/debuginfo")),
       "debuginfod: the file is in libdebuginfod's own cache")
    recorded = gate.braid("record", "-e", "wall", "-d", "0.2", "-p", str(program.pid), "-o",
                          path("a.db"), env=env)
    equal(recorded.status, 0, "debuginfod: record", recorded.err)
    spinning = gate.start(path("stripped"), "spins")
    gate.wait_line(spinning, "ready")
    got = frames(spinning.pid, env)[2]
    equal([name for name, _ in got[:2]], ["hidden_spin", "main"], "debuginfod: dump of a thread that runs", got)
    spinning.kill()
    matches("DEBUGINFOD_URLS: names of 1 of 1 stripped files\n", recorded.err,
            "debuginfod: record says what it got")
    matches("main;hidden_wait;in_line;", gate.braid("report", "--format", "folded", path("a.db")).out,
            "debuginfod: the recording has the names")
else:
    gate.skip("debuginfod", "it is not installed")

with open(path("served/p.debug"), "rb") as file:
    good = file.read()
with open(path("other.debug"), "rb") as file:
    Liar.answers["other"] = file.read()
Liar.answers.update(good=good, cut=good[:len(good) // 2], start=good[:100], empty=b"",
                    text=b"<html>not here</html>",
                    zeros=good[:64] + bytes(len(good) - 64),
                    sections=good[:40] + b"\xff" * 8 + good[48:])
liar = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Liar)
liar.daemon_threads = True
threading.Thread(target=liar.serve_forever, daemon=True).start()
base = f"http://127.0.0.1:{liar.server_port}"
equal(frames(program.pid, environment(base + "/good", "good"))[2][:3], NAMED,
      "a server of our own that tells the truth")
for name in "other", "cut", "start", "empty", "text", "zeros", "sections", "missing":
    status, err, got = frames(program.pid, environment(f"{base}/{name}", name))
    equal((status, got), (0, nameless), f"an answer that is none ({name}) changes nothing", err)
    ok(name in Liar.asked, f"{name}: it was asked")

status, err, got = frames(program.pid, environment(base + "/silent", "silent", DEBUGINFOD_TIMEOUT="1"))
equal((status, got), (0, nameless), "a server that never answers changes nothing", err)

status, err, got = frames(program.pid, environment(base + "/endless", "endless", DEBUGINFOD_MAXSIZE=str(MAXSIZE)))
equal((status, got), (0, nameless), "an answer without an end changes nothing", err)
ok(Liar.sent < ENDLESS, "an answer without an end is cut off", Liar.sent)
equal(unfinished("endless"), [], "an answer without an end leaves no file")

# It may be as patient as it likes: who is not, presses Ctrl-C.
Liar.asked.clear()
recorder = gate.start(gate.BRAID, "record", "-e", "wall", "-d", "0.2", "-p", program.pid, "-o",
                      path("b.db"), stderr=gate.subprocess.PIPE,
                      env=environment(base + "/silent", "patient", DEBUGINFOD_TIMEOUT="1000"))
gate.wait_until(lambda: Liar.asked and unfinished("patient"), "the question")
recorder.send_signal(gate.signal.SIGINT)
_, said = recorder.communicate()
equal(recorder.returncode, 0, "Ctrl-C while a server is asked: record's status", said)
matches("names of 0 of 1 stripped files; no further requests: interrupted", said.decode(),
        "Ctrl-C while a server is asked: it is said")
gate.wait_until(lambda: not unfinished("patient"), "the helper to remove its file")
matches(r"\[stripped\+", gate.braid("report", "--format", "folded", path("b.db")).out,
        "Ctrl-C while a server is asked: the recording is whole")
Liar.ends.set()
with socket.socket() as closed:
    closed.bind(("127.0.0.1", 0))
    status, err, got = frames(program.pid, environment(
        f"http://127.0.0.1:{closed.getsockname()[1]}", "closed"))
    equal((status, got), (0, nameless), "a server that is not there changes nothing", err)
gate.done()
