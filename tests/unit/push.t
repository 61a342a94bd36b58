#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""`braid push` to OpenTelemetry and Pyroscope: what arrives, read by readers of these formats' own
descriptions, and what happens when a server does not take it. push_clickhouse.t has the rest."""

import collections
import email.utils
import fcntl
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "../tools")]
import read_formats  # noqa: E402
import read_pprof  # noqa: E402
import servers  # noqa: E402
import tap  # noqa: E402
from tap import equal, matches, ok  # noqa: E402

OUTPUT = os.environ.get("OUTPUT", "build")
WORK = tempfile.TemporaryDirectory()
Result = collections.namedtuple("Result", "status out err")

SAMPLES = [
    f"wall ns {1000 + n} running - - {pid}:app {tid}:w{tid} n:main;python:f{n % 3}@/x/app.py;n:strcmp"
    for n in range(20) for pid, tid in ((42, 42), (42, 43), (50, 50))
] + ["alloc bytes 2048 running - - 42:app 42:w42 n:main;n:malloc"]


def path(name):
    return os.path.join(WORK.name, name)


def made(name, samples=SAMPLES):
    lines = "".join(sample.replace(" ", "\t") + "\n" for sample in samples)
    os.makedirs(os.path.dirname(path(name)), exist_ok=True)
    subprocess.run([OUTPUT + "/tests/tools/mksamples", path(name)], input=lines, text=True,
                   check=True)
    return path(name)


def braid(*words, **options):
    done = subprocess.run([OUTPUT + "/braid", *words], capture_output=True, text=True, check=False,
                          timeout=60, **options)
    return Result(done.returncode, done.stdout, done.stderr)


def nothing_new(source):
    return Result(0, "", f"nothing new in {source}: all samples were sent there before\n")


def push(*words, wait="0.02", **options):
    return braid("push", *words, "--max-wait", wait, **options)


def forget():
    for directory, _, names in os.walk(WORK.name):
        for name in names:
            if name.startswith(".braid-push-"):
                os.unlink(os.path.join(directory, name))


def otlp_sums(requests, origin=None):
    """{(track, frames): value} of all of them."""
    sums = collections.Counter()
    for _, _, body in requests:
        tracks = read_formats.otlp(body, [] if origin is None else origin)
        for track, stacks in tracks.items():
            for frames, value in stacks:
                sums[track, frames] += value
    return sums


def reported_sums(file):
    data = subprocess.run([OUTPUT + "/braid", "report", "--format", "otlp", "--lines", file],
                          capture_output=True, check=True).stdout
    return collections.Counter({(track, frames): value
                                for track, stacks in read_formats.otlp(data).items()
                                for frames, value in stacks})


FILE = made("made.db")
WANT = reported_sums(FILE)


def check_otlp():
    server = servers.Told()
    result = push(FILE, "--to", f"otlp://{server.at}", "--host", "box")
    equal(result, Result(0, "made.db: 61 samples sent\n", ""), "a recording is sent")
    origin = []
    equal(otlp_sums(server.requests, origin), WANT, "what arrives is what was recorded")
    equal([name for name, _, _ in origin], ["box"] * 6, "the host is told")
    now = time.time_ns()
    ok(all(now - 3600e9 < at < now + 3600e9 for _, at, _ in origin), "and the time", origin)
    ids = {of for _, _, of in origin}
    equal(len(ids), 6, "each profile has an id of its own, values and occurrences")
    where, headers, _ = server.requests[0]
    equal((where, headers["Content-Type"], headers["Content-Encoding"]),
          ("/v1development/profiles", "application/x-protobuf", "gzip"), "as the protocol has it")
    equal(push(FILE, "--to", f"otlp://{server.at}"), nothing_new(FILE), "the second time nothing is")
    equal(len(server.requests), 1, "... not even a request")
    forget()
    server.requests.clear()
    push(FILE, "--to", f"otlp://{server.at}/some/where", "--service", "shop")
    equal(server.requests[0][0], "/some/where", "another path")
    again = []
    tracks = read_formats.otlp(server.requests[0][2], again)
    ok(all(" of shop " in track for track in tracks), "a service by name", tracks)
    equal({of for _, _, of in again}, ids, "the same samples have the same ids whenever they are sent")
    forget()
    server.close()


def check_pyroscope():
    server = servers.Told()
    result = push(FILE, "--to", f"pyroscope://{server.at}", "--host", "box")
    equal((result.status, len(server.requests)), (0, 1), "Pyroscope: is sent at once", result)
    where, headers, body = server.requests[0]
    equal((where, headers["Content-Type"]), ("/push.v1.PusherService/Push", "application/proto"),
          "Pyroscope: as a call")
    request = read_formats.decoded(body, "PushRequest", "push.proto")
    series = {}
    for one in request["series"]:
        labels = {pair["name"][0].decode(): pair["value"][0].decode() for pair in one["labels"]}
        sample, = one["samples"]
        matches(rb"^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-9[0-9a-f]{3}-[0-9a-f]{12}$".decode(),
                sample["ID"][0].decode(), "Pyroscope: a UUID")
        series[labels.pop("__name__")] = (labels, list(
            read_pprof.Reader(sample["raw_profile"][0]).lines()))
    common = {"service_name": "app", "hostname": "box", "process": "app"}
    equal({name: labels for name, (labels, _) in series.items()}, {"wall": common, "alloc": common},
          "Pyroscope: labels")
    stacks = collections.Counter()
    for line in series["wall"][1]:
        if line.startswith("stack "):
            _, occurrences, value, frames = line.split(" ", 3)
            stacks[frames.split(" {")[0], "ns"] += int(value)
            stacks[frames.split(" {")[0], "times"] += int(occurrences)
    want = collections.Counter()
    for sample in SAMPLES[:-1]:
        frames = sample.split()[8].replace("python:", "").replace("n:", "").replace("@/x/app.py", " (app.py)")
        want[frames, "ns"] += int(sample.split()[2])
        want[frames, "times"] += 1
    equal(stacks, want, "Pyroscope: sums by stack")
    ok([line for line in series["wall"][1] if line.startswith("time ")], "Pyroscope: the time")
    forget()
    server.close()


def check_again():
    """Each of these is repeated until the server takes it."""
    server = servers.Told()
    soon = email.utils.formatdate(time.time() - 100, usegmt=True)
    server.plan = [(429, {"Retry-After": "1"}, b"not so fast"), (503, {"Retry-After": soon}, b""),
                   500, 502, 408, "hang up", "silent"]
    result = push(FILE, "--to", f"otlp://{server.at}", "--timeout", "0.3")
    equal((result.status, len(server.requests), result.out), (0, 8, "made.db: 61 samples sent\n"),
          "is sent until it is taken", result)
    equal(len({body for _, _, body in server.requests}), 1, "... always the same")
    lines = result.err.splitlines()
    matches(r"answers 429: not so fast; next attempt in 1 s$", lines[0], "as long as Retry-After says")
    matches(r"answers 503; next attempt in 0 s$", lines[1], "which may be a date")
    for line, why in zip(lines[2:], ("answers 500", "answers 502", "answers 408", "", "")):
        matches(why + r".*; next attempt in 0\.0\d+ s$", line, "backoff: " + (why or "no answer"))
    forget()
    server.plan = [(429, {"Retry-After": email.utils.formatdate(time.time() + 9000, usegmt=True)}, b"")]
    result = push(FILE, "--to", f"otlp://{server.at}", "--give-up", "2")
    matches(r"gave up", result.err, "more than we are ready to wait")
    forget()
    server.close()


def check_too_large():
    server = servers.Told()
    server.always = lambda body: 413 if sum(otlp_sums([(0, 0, body)]).values()) > 8000 else 200
    result = push(FILE, "--to", f"otlp://{server.at}")
    taken = [one for one in server.requests if server.always(one[2]) == 200]
    equal(result.status, 0, "413: is sent in parts", result)
    ok(len(taken) > 8, "413: in many", len(taken))
    equal(otlp_sums(taken), WANT, "413: all of it, once")
    forget()
    server.requests.clear()
    server.always = 413
    result = push(FILE, "--to", f"otlp://{server.at}")
    equal((result.status, len(server.requests)), (1, 7), "413: one sample is still too large", result)
    matches(r"^braid: made.db is left out: .* answers 413", result.err, "413: is said")
    forget()
    server.close()


def check_refused():
    server = servers.Told()
    server.plan = [(400, {}, b"no \x1b[31m" + 9000 * b"x" + b"\nmore")]
    result = push(FILE, "--to", f"otlp://{server.at}")
    equal((result.status, len(server.requests)), (1, 1), "400: not repeated", result)
    matches(r"^braid: made.db is left out: http://.* answers 400: no \?\[31mx{10,400}\n$", result.err,
            "400: with the server's words, harmless and not too many")
    equal(push(FILE, "--to", f"otlp://{server.at}").status, 0, "400: the next time neither")
    equal(len(server.requests), 1, "400: ...")
    forget()
    for status in 401, 403, 404:
        server.plan = [status]
        result = push(FILE, "--to", f"otlp://{server.at}")
        matches(rf"^braid: http://\S+ answers {status}\n$", result.err, f"{status}: is said")
        equal(result.status, 1, f"{status}: ends it")
    equal(push(FILE, "--to", f"otlp://{server.at}").out, "made.db: 61 samples sent\n",
          "and when that was put right, all is sent")
    forget()
    other = servers.Told()
    for status in 301, 302, 307, 308:
        server.plan = [(status, {"Location": f"http://{other.at}/v1development/profiles"}, b"")]
        result = push(FILE, "--to", f"otlp://{server.at}")
        matches("a redirection .*, which braid does not follow", result.err, f"{status}: is not followed")
    equal(other.requests, [], "nobody else gets anything")
    forget()
    server.close()
    other.close()


def check_gone():
    server = servers.Told()
    server.close()
    result = push(FILE, "--to", f"otlp://{server.at}", "--give-up", "0.3")
    equal(result.status, 1, "nobody there: ends")
    matches(r"gave up after \d+ s and \d+ attempts?", result.err.splitlines()[-1], "nobody there: said")
    ok(len(result.err.splitlines()) > 3, "nobody there: after some attempts", result.err)
    process = subprocess.Popen([OUTPUT + "/braid", "push", FILE, "--to", f"otlp://{server.at}"],
                               stderr=subprocess.PIPE, text=True)
    process.stderr.readline()
    process.send_signal(signal.SIGINT)
    equal((process.wait(timeout=20), process.stderr.read()),
          (0, "stopped; samples that were acknowledged are not sent again\n"), "Ctrl-C ends the waiting")
    forget()


def check_who():
    server = servers.Told()
    with open(path("token"), "w", encoding="ascii") as file:
        file.write("aB3.-_~+/=\n")
    push(FILE, "--to", f"otlp://{server.at}", "--token-file", path("token"))
    equal(server.requests[-1][1]["Authorization"], "Bearer aB3.-_~+/=", "a token")
    forget()
    with open(path("token"), "w", encoding="ascii") as file:
        file.write("me:secret")
    push(FILE, "--to", f"otlp://{server.at}", "--token-file", path("token"))
    equal(server.requests[-1][1]["Authorization"], "Basic bWU6c2VjcmV0", "a user and a password")
    forget()
    n = len(server.requests)
    for wrong in "", "a\nX-Header: b", "a\x1b", "\n", "a\0b", "a\n\0":
        with open(path("token"), "w", encoding="ascii") as file:
            file.write(wrong)
        equal(push(FILE, "--to", f"otlp://{server.at}", "--token-file", path("token")).status, 1,
              f"no token: {wrong!r}")
    equal(push(FILE, "--to", f"otlp://{server.at}", "--token-file", path("none")).status, 1,
          "no file of tokens")
    equal(len(server.requests), n, "nothing was sent then")
    result = push(FILE, "--to", f"otlp://me:secret@{server.at}")
    equal(result.status, 2, "a password in a URL is refused")
    matches("--token-file", result.err, "... with the way out")
    ok("secret" not in result.err, "... and not shown")
    server.close()


def certificate(name, host):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout",
                    path(name + ".key"), "-out", path(name + ".pem"), "-subj", "/CN=braid test",
                    "-addext", "subjectAltName=" + host], check=True, capture_output=True)
    return path(name + ".pem"), path(name + ".key")


def check_tls():
    good = servers.Told(certificate("good", "IP:127.0.0.1"))
    wrong = servers.Told(certificate("wrong", "DNS:example.org"))
    result = push(FILE, "--to", f"otlp+https://{good.at}")
    equal((result.status, len(result.err.splitlines())), (1, 1), "a certificate that nobody knows",
          result)
    matches("certificate", result.err, "... is said")
    result = push(FILE, "--to", f"otlp+https://{wrong.at}", "--ca-file", path("wrong.pem"))
    equal((result.status, len(result.err.splitlines())), (1, 1), "one of another host", result)
    result = push(FILE, "--to", f"otlp+https://{good.at}", "--ca-file", path("none.pem"))
    matches("cannot read .*none.pem", result.err, "no file of certificates")
    equal((good.requests, wrong.requests), ([], []), "nothing was sent then")
    equal(push(FILE, "--to", f"otlp+https://{good.at}", "--ca-file", path("good.pem")).status, 0,
          "one that is trusted")
    equal(otlp_sums(good.requests), WANT, "... gets it")
    forget()
    plain = servers.Told()
    result = push(FILE, "--to", f"otlp+https://{plain.at}", "--give-up", "0.1")
    equal((result.status, plain.requests), (1, []), "a server without TLS gets nothing", result)
    for server in good, wrong, plain:
        server.close()
    forget()


def check_directory():
    server = servers.Told()
    to = "--to", f"otlp://{server.at}"
    os.mkdir(path("dir"))
    matches("no recordings in", push(path("dir"), *to).err, "an empty directory")
    for name in "a", "c":
        made(f"dir/{name}.db")
    with open(made("dir/b.db"), "r+b") as file:
        file.seek(100)
        file.write(4000 * b"\xff")
    with open(path("dir/d.db"), "wb") as file:
        file.write(b"something else")
    made("dir/e.db.tmp")
    result = push(path("dir"), *to)
    equal((result.status, result.out), (1, "a.db: 61 samples sent\nc.db: 61 samples sent\n"),
          "a directory: all that can be read", result)
    matches(r"b.db is left out: .*damaged.*\n.*d.db is left out: .* not a braid recording\n$",
            result.err, "a directory: what cannot is named")
    equal(sorted(os.listdir(path("dir")))[1:], ["a.db", "b.db", "c.db", "d.db", "e.db.tmp"],
          "a directory: nothing else is left there")
    equal(push(path("dir"), *to), nothing_new(path("dir")), "a directory: the next time nothing is new")
    made("dir/f.db")
    equal(push(path("dir"), *to), Result(0, "f.db: 61 samples sent\n", ""), "a directory: one more")
    state, = [name for name in os.listdir(path("dir")) if name.startswith(".braid-push-")]
    with open(os.path.join(path("dir"), state), "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        result = push(path("dir"), *to)
    equal(result.status, 1, "two at once: refused")
    matches("^braid: another braid push is using", result.err, "two at once: said")
    result = push(path("dir"), "--to", f"pyroscope://{server.at}", "--state",
                  os.path.join(path("dir"), state))
    matches("belongs to the target otlp http://", result.err, "the state of another server")
    with open(path("dir/broken"), "wb") as file:
        file.write(b"braid push 1 otlp http://" + server.at.encode() + b"\nremoved 0\nnonsense\n")
    matches("damaged", push(path("dir"), *to, "--state", path("dir/broken")).err, "a damaged state")
    server.close()


def check_no_room():
    def no_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    server = servers.Told()
    result = push(FILE, "--to", f"otlp://{server.at}", preexec_fn=no_files)
    equal((result.status, len(server.requests)), (1, 1), "no room for the state: ends", result)
    matches(r"^braid: cannot write \S+: File too large\n$", result.err, "no room for the state: said")
    equal([name for name in os.listdir(WORK.name) if name.startswith(".braid-") and "push" not in name],
          [], "no room for the state: nothing is left")
    equal(push(FILE, "--to", f"otlp://{server.at}").out, "made.db: 61 samples sent\n",
          "what may not have arrived is sent again")
    equal(server.requests[0][2], server.requests[1][2], "... as it was, under the same ids")
    server.close()
    forget()


def check_watch():
    server = servers.Told()
    os.mkdir(path("watched"))
    process = subprocess.Popen(
        [OUTPUT + "/braid", "push", path("watched"), "--watch", "--max-wait", "0.05", "--to",
         f"otlp://{server.at}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    matches("no finished recording in .* yet: waiting", process.stderr.readline(), "watch: an empty directory")
    os.rename(made("one.tmp"), path("watched/1.db"))
    equal(process.stdout.readline(), "1.db: 61 samples sent\n", "watch: one that is new")
    server.always = 503
    os.rename(made("two.tmp"), path("watched/2.db"))
    matches("answers 503", process.stderr.readline(), "watch: the server is gone")
    os.rename(made("three.tmp"), path("watched/3.db"))
    os.rename(made("four.tmp"), path("watched/4.db"))
    n = len(server.requests)
    while len(server.requests) < n + 3:  # so that it has been looked at
        time.sleep(0.01)
    os.unlink(path("watched/2.db"))  # which is being sent, from an open file
    os.unlink(path("watched/3.db"))
    line = process.stderr.readline()
    while "answers 503" in line:
        line = process.stderr.readline()
    equal(line, "braid: 1 recordings were removed before they were sent\n",
          "watch: what was removed too early is said")
    server.always = None
    equal(process.stdout.readline(), "2.db: 61 samples sent\n", "watch: the server is back")
    equal(process.stdout.readline(), "4.db: 61 samples sent\n", "watch: and goes on")
    process.send_signal(signal.SIGINT)
    equal(process.wait(timeout=20), 1, "watch: ends, and not all was sent")
    process.communicate()
    server.close()


def check_usage():
    to = "--to", "otlp://127.0.0.1:9"
    for words, why in (
            ((FILE,), "--to URL"), (to, "name a recording"), ((FILE, FILE, *to), "one recording"),
            ((FILE, "--to", "http://x"), "FORMAT"), ((FILE, "--to", "otlp://"), "FORMAT"),
            ((FILE, "--to", "otlp://x:123456"), "FORMAT"), ((FILE, "--to", "otlp://x:0x"), "FORMAT"),
            ((FILE, "--to", "otlp://x/?a=b"), "does not match FORMAT:"), ((FILE, "--to", "otlp://a b"), "FORMAT"),
            ((FILE, "--init", *to), "clickhouse"), ((FILE, "--cluster", "x", *to), "--init"),
            ((FILE, "--batch", "3", *to), "power of two"), ((FILE, "--ca-file", FILE, *to), "requires a URL FORMAT\\+https"), ((FILE, "--give-up", "x", *to), "never")):
        result = braid("push", *words)
        equal(result.status, 2, f"refused: {words[:-1]}", result)
        matches(why, result.err, "... with a reason")
    equal(push(FILE, "--watch", *to).status, 1, "--watch of a file")
    equal(push(path("none.db"), *to).status, 1, "a file that is not there")


check_otlp()
check_pyroscope()
check_again()
check_too_large()
check_refused()
check_gone()
check_who()
check_tls()
check_directory()
check_no_room()
check_watch()
check_usage()
tap.done()
