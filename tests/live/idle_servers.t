#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Servers as distributions ship them, without symbols and without a request: all of their waits are idle."""

import glob
import os
import shutil
import subprocess

import gate

SECONDS = 1


def written(name, text):
    with open(gate.path(name), "w", encoding="utf-8") as out:
        out.write(text)
    os.chmod(gate.path(name), 0o644)
    return gate.path(name)


def check(name, ready, *command, children=0):
    """`ready` exists when the server accepts requests; then it has that many child processes."""
    server = gate.start(*command, stderr=subprocess.DEVNULL)

    def has_children():
        with open(f"/proc/{server.pid}/task/{server.pid}/children", encoding="ascii") as text:
            return len(text.read().split()) >= children

    gate.wait_until(lambda: os.path.exists(ready) and has_children(), f"{name}: is ready")
    file = gate.path(name + ".db")
    result = gate.braid("record", "-e", "wall", "-d", SECONDS, "-p", server.pid, "-o", file)
    gate.equal(result.status, 0, f"{name}: recorded", result.err)
    shown = gate.braid("report", "--format", "folded", "--by", "thread", "--state", "waiting", file)
    gate.equal(shown.out, "", f"{name}: no wait is shown")
    everything = gate.braid("report", "--format", "folded", "--by", "process", "--state", "waiting",
                            "--idle", "show", file).out
    gate.ok(len({line.split(";")[0] for line in everything.splitlines()}) > children,
            f"{name}: each process waits", everything)
    server.terminate()
    server.wait()


def check_nginx():
    conf = written("nginx.conf", f"daemon off; pid {gate.path('nginx.pid')}; error_log /dev/null;"
                   f"worker_processes 2; events {{}} http {{ access_log off;"
                   f"server {{ listen unix:{gate.path('nginx.sock')}; }} }}")
    check("nginx", gate.path("nginx.sock"), "nginx", "-c", conf, children=2)


def check_redis():
    check("redis", gate.path("redis.sock"), "redis-server", "--port", "0", "--save", "", "--unixsocket",
          gate.path("redis.sock"))


def check_uwsgi():
    app = written("wsgi.py", "def application(env, start):\n    start('200 OK', [])\n    return [b'ok']\n")
    check("uwsgi", gate.path("uwsgi.sock"), "uwsgi", "--plugin", "python3", "--socket",
          gate.path("uwsgi.sock"), "--wsgi-file", app, "--master", "--processes", "2", "--threads", "2",
          "--die-on-term", children=2)


def check_uvloop():
    written("asgi.py", "async def app(scope, receive, send):\n    pass\n")
    check("uvloop", gate.path("uvloop.sock"), "/usr/bin/python3", "-m", "uvicorn", "--loop", "uvloop",
          "--lifespan", "off", "--app-dir", gate.tmp, "--uds", gate.path("uvloop.sock"), "asgi:app")


def check_postgres(programs):
    data = gate.path("data")
    os.chmod(gate.tmp, 0o755)
    os.mkdir(data)
    shutil.chown(data, "postgres")
    subprocess.run(["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups",
                    f"{programs}/initdb", "-D", data, "-A", "trust", "--no-sync"], check=True,
                   stdout=subprocess.DEVNULL)
    check("postgres", os.path.join(data, ".s.PGSQL.5432"), "setpriv", "--reuid=postgres",
          "--regid=postgres", "--init-groups", f"{programs}/postgres", "-D", data, "-k", data, "-h", "",
          children=5)


gate.need_root()
for program, run in (("nginx", check_nginx), ("redis-server", check_redis), ("uwsgi", check_uwsgi)):
    if shutil.which(program):
        run()
    else:
        gate.skip(program, "it is not installed")
if subprocess.run(["/usr/bin/python3", "-c", "import uvicorn, uvloop"], check=False,
                  stderr=subprocess.DEVNULL).returncode:
    gate.skip("uvloop", "it is not installed")
else:
    check_uvloop()
found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
if found:
    check_postgres(found[-1])
else:
    gate.skip("postgres", "it is not installed")
gate.done()
