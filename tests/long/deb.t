#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""make install, make uninstall, and make deb: the package in a clean Debian system, where braid records a
Python program."""

import os
import re
import shutil
import subprocess

import lib
from lib import equal, matches, ok, path

PROGRAM = """
import time
def spin_here():
    end = time.process_time() + 2
    while time.process_time() < end:
        sum(range(1000))
spin_here()
"""


def run(*command, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    return done.returncode, done.stdout, done.stderr


def files_below(root):
    return sorted(os.path.relpath(os.path.join(at, name), root)
                  for at, _, names in os.walk(root) for name in names)


def make(*words):
    environment = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    return run("make", "--no-print-directory", f"OUTPUT={lib.OUTPUT}", *words, env=environment)


def check_install():
    root = path("installed")
    status, _, err = make("install", f"DESTDIR={root}", "PREFIX=/opt/braid")
    equal(status, 0, "make install", err)
    files = files_below(root)
    for name in ("bin/braid", "share/braid/braid_hook.rb", "lib/braid/libbraid-heap.so", "share/man/man1/braid.1",
                 "share/man/man1/braid-record.1", "share/bash-completion/completions/braid",
                 "share/zsh/site-functions/_braid", "share/fish/vendor_completions.d/braid.fish"):
        ok("opt/braid/" + name in files, f"make install: {name}")
    matches("^braid ", run(root + "/opt/braid/bin/braid", "--version")[1], "what is installed runs")
    with open(root + "/opt/braid/bin/other", "w", encoding="ascii"):
        pass
    status, _, err = make("uninstall", f"DESTDIR={root}", "PREFIX=/opt/braid")
    equal((status, files_below(root)), (0, ["opt/braid/bin/other"]),
          "make uninstall: nothing is left but what others put there", err)


def mirror():
    with open("/etc/os-release", encoding="utf-8") as file:
        release = dict(line.strip().split("=", 1) for line in file if "=" in line)
    name = release["VERSION_CODENAME"]
    sites = run("apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages",
                "Origin: Debian", f"Codename: {name}")[1].split()
    return name, sites[0] if sites else None


def in_root(root, *command):
    """With the kernel's file systems, and a mount namespace that ends with it."""
    script = ('mount --bind /proc "$0/proc" && mount --rbind /sys "$0/sys" && '
              'mount --bind /dev "$0/dev" && exec chroot "$0" "$@"')
    return run("unshare", "--mount", "sh", "-c", script, root, *command,
               env=dict(os.environ, DEBIAN_FRONTEND="noninteractive", HOME="/root",
                        PATH="/usr/sbin:/usr/bin:/sbin:/bin", XDG_CACHE_HOME="/tmp/cache"))


def check_advice(root, record, err):
    """Debian's interpreter is stripped: what braid advises gives the names."""
    advised = re.search(r"by offset, most of it in (python3\.\d+) \(build ID [0-9a-f]+\): install the -dbgsym or -dbg package", err)
    status, out, _ = in_root(root, "apt-get", "install", "-q", "-y", "--no-install-recommends",
                             advised[1] + "-dbg" if advised else "none")
    equal(status, 0, "it says which file lacks symbols, and which package to look for", err, out[-500:])
    status, _, err = in_root(root, *record)
    equal((status, "most of it in python" in err), (0, False), "and which has them", err)


def check_package():
    status, out, err = make("deb")
    equal(status, 0, "make deb", err)
    package = out.split()[-1]
    matches(r"Depends: .*libbpf1.*libc6.*libsqlite3-0", run("dpkg-deb", "-I", package)[1],
            "it depends on the libraries that it is linked with")
    name, site = mirror()
    root = path("root")
    if not site or not shutil.which("debootstrap"):
        lib.skip("in a clean system", "no mirror of Debian, or no debootstrap")
        return
    status, out, _ = run("debootstrap", "--variant=minbase", name, root, site)
    if not equal(status, 0, "a clean system", out[-500:]):
        return
    shutil.copy(package, root + "/tmp/braid.deb")
    with open(root + "/tmp/program.py", "w", encoding="ascii") as file:
        file.write(PROGRAM)
    status, out, err = in_root(root, "apt-get", "install", "-q", "-y", "--no-install-recommends",
                               "/tmp/braid.deb", "python3-minimal")
    equal(status, 0, "it can be installed there", out[-500:], err[-500:])
    record = ["braid", "record", "-F", "999", "-o", "/tmp/a.db", "--", "/usr/bin/python3",
              "/tmp/program.py"]
    status, out, err = in_root(root, *record)
    equal(status, 0, "it records there", out, err)
    matches("python 3[.0-9]+: walk", err, "it walks the interpreter's frames")
    matches(r"spin_here \(program\.py\)",
            in_root(root, "braid", "report", "/tmp/a.db")[1], "the function is in the report")
    check_advice(root, record, err)
    status, _, err = in_root(root, "apt-get", "purge", "-q", "-y", "braid")
    equal((status, [name for name in files_below(root + "/usr") if "braid" in name]), (0, []),
          "it can be removed", err)


lib.need_bpf()
check_install()
check_package()
lib.done()
