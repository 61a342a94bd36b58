# SPDX-License-Identifier: GPL-2.0-or-later
"""Servers on loopback for tests of what sends and asks: one that answers as it is told."""

import gzip
import http.client
import http.server
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request


class Told(http.server.ThreadingHTTPServer):
    """Answers each request by the next step of `plan`, then with 200. A step is a status, or (status,
    headers, body), "hang up", "silent" (until the test ends), or a function of the body that gives
    one. `requests`: (path, headers, body unpacked)."""
    daemon_threads = True

    def __init__(self, tls=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.plan, self.requests, self.always = [], [], None
        self.ends, self.lock = threading.Event(), threading.Lock()
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def at(self):
        return f"127.0.0.1:{self.server_port}"

    def handle_error(self, request, client_address):
        pass  # clients that go away are what this is about

    def close(self):
        self.ends.set()
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Content-Encoding"] == "gzip":
            body = gzip.decompress(body)
        with self.server.lock:
            self.server.requests.append((self.path, self.headers, body))
            step = self.server.plan.pop(0) if self.server.plan else self.server.always or 200
        if callable(step):
            step = step(body)
        if step == "silent":
            self.server.ends.wait()
        if step in ("silent", "hang up"):
            self.close_connection = True
            return
        status, headers, answer = step if isinstance(step, tuple) else (step, {}, b"")
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


class Between(http.server.ThreadingHTTPServer):
    """Hands requests on to a server, but for those that `judge` (of the query and the number of the
    request) has something else for: "lose request", or "lose answer"."""
    daemon_threads = True

    def __init__(self, port, judge):
        super().__init__(("127.0.0.1", 0), BetweenHandler)
        self.port, self.judge, self.n, self.lock = port, judge, 0, threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass

    def close(self):
        self.shutdown()
        self.server_close()


class BetweenHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            self.server.n += 1
            verdict = self.server.judge(self.path, self.server.n)
        if verdict != "lose request":
            to = http.client.HTTPConnection("127.0.0.1", self.server.port)
            to.request("POST", self.path, body, dict(self.headers))
            answer = to.getresponse()
            content = answer.read()
            to.close()
        if verdict:
            self.close_connection = True
            return
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


CONFIG = """<yandex>
<logger><level>warning</level><log>{dir}/log</log><errorlog>{dir}/errors</errorlog></logger>
<http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><listen_host>127.0.0.1</listen_host>
<path>{dir}/data/</path><tmp_path>{dir}/tmp/</tmp_path><users_config>users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>67108864</mark_cache_size>
<remote_servers><shards>{shards}</shards></remote_servers>
</yandex>
"""
SHARD = "<shard><replica><host>127.0.0.1</host><port>{}</port></replica></shard>"
USERS = """<yandex><profiles><default></default></profiles><users>
<default><password></password><networks><ip>127.0.0.1</ip></networks>
<profile>default</profile><quota>default</quota></default>
<shop><password>s3cret</password><networks><ip>127.0.0.1</ip></networks>
<profile>default</profile><quota>default</quota></shop>
</users><quotas><default></default></quotas></yandex>
"""


def free_ports(n):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class ClickHouse:
    """The real server, with a directory, ports and users of its own. All that have the same `ports`,
    pairs of HTTP's and the native one, are the shards of the cluster "shards"."""

    PROGRAM = shutil.which("clickhouse-server", path=os.environ.get("PATH", "") + ":/usr/sbin")

    def __init__(self, ports, number, start):
        self.dir = tempfile.mkdtemp(prefix="braid-clickhouse-")
        self.port, tcp = ports[number]
        self._start, self.process = start, None
        for name in "data", "tmp":
            os.mkdir(os.path.join(self.dir, name))
        shards = "".join(SHARD.format(port) for _, port in ports)
        for name, text in (("config.xml", CONFIG.format(dir=self.dir, http=self.port, tcp=tcp,
                                                        shards=shards)), ("users.xml", USERS)):
            with open(os.path.join(self.dir, name), "w", encoding="ascii") as file:
                file.write(text)
        self.begin()

    def begin(self):
        self.process = self._start(self.PROGRAM, "--config-file=" + os.path.join(self.dir, "config.xml"),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:  # until it answers
            try:
                if self.ask("SELECT 1", "default") == "1\n":
                    return
            except (urllib.error.URLError, ConnectionError):
                assert self.process.poll() is None, "clickhouse-server does not start"
                time.sleep(0.05)

    def end(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.end()
        shutil.rmtree(self.dir, ignore_errors=True)

    def ask(self, sql, database="braid"):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/?database={database}",
                                        sql.encode()) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from error
