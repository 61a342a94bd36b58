#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Records tests/replay/corpus/php with the PHPs at hand: this machine's and those of the test roots
(scripts/test-roots), and others of which BRAID_PHPS=VERSION=DIRECTORY:... tells: a directory has
php/php, php/modules and lib, as npm's packages @libphp/... have them in `native`, or it has libphp.so
(VERSION-embed: without thread safety), and lib, and maybe php.ini.

usage: record_php.py [PATTERN...]"""

import os
import subprocess

import corpus

# Compiled code has no unwind tables: libdwfl finds the native frames within it only.
OPCACHE = ["-d", "zend_extension=opcache", "-d", "opcache.enable_cli=1",
           "-d", "opcache.file_update_protection=0"]
JIT = [*OPCACHE, "-d", "opcache.jit_buffer_size=16M", "-d", "opcache.jit=function"]
TRACING = [*JIT[:-1], "opcache.jit=tracing"]
OPTIONS = {"": [], "-opcache": OPCACHE, "-jit": JIT, "-tracing": TRACING, "-dtrace": []}

SCRIPTS = {"calls": ("", "-opcache", "-jit", "-dtrace"), "nested": ("", "-opcache", "-jit"),
           "steps": ("", "-opcache"),  # between its calls compiled code does not tell the line
           "hot": ("-jit", "-tracing"), "frameless": ("", "-opcache", "-jit")}


def main():
    for release in (None, "trixie", "experimental"):
        chroot = corpus.root(release) if release else None
        if (release and not chroot) or not os.path.exists((chroot or "") + "/usr/bin/php"):
            print("not here: php of Debian %s" % (release or "12"))
            continue
        command = (["chroot", chroot] if chroot else []) + ["php", "-n", "-r"]
        version = subprocess.check_output([*command, 'echo PHP_VERSION;'], text=True)
        version = version.rpartition(".")[0]
        with open((chroot or "") + "/usr/bin/php", "rb") as program:
            has_probes = b"execute__entry\0" in program.read()
        for script, suffixes in SCRIPTS.items():
            for suffix in suffixes:
                if suffix == "-dtrace" and not has_probes:
                    continue
                corpus.record("php/%s-%s%s" % (version, script, suffix),
                              ["php", "-n", "-d", "extension=posix",
                               *OPTIONS[suffix][0 if version < "8.5" else 2:],  # ... has it in
                               "/opt/replay/php/%s.php" % script], chroot=chroot,
                              env={"USE_ZEND_DTRACE": "1"} if suffix == "-dtrace" else None)
    for version, directory in sorted(told()):
        if os.path.exists(directory + "/libphp.so"):
            record_threads(version, directory)
        else:
            record_package(version, directory)
    corpus.done()


def told():
    return [one.split("=", 1) for one in os.environ.get("BRAID_PHPS", "").split(":") if one]


# Without the extension posix the marker is called by FFI, on the way to which steps would begin.
def record_package(version, directory):
    posix, ffi = (os.path.exists("%s/php/modules/%s.so" % (directory, name))
                  for name in ("posix", "ffi"))
    command = ["/opt/php/php/php", "-n", "-d", "extension_dir=/opt/php/php/modules",
               *(["-d", "extension=posix"] if posix else
                 ["-d", "extension=ffi", "-d", "ffi.enable=1"] if ffi else [])]
    env = {"LD_LIBRARY_PATH": "/opt/php/lib"}
    binds = {directory: "php"}
    if not posix and not ffi:
        env["LD_PRELOAD"] = "/opt/native/getpid"
        binds[os.path.join(corpus.OUTPUT, "fixtures/native")] = "native"
    module = os.path.exists(directory + "/php/modules/opcache.so")
    opcache = module or version >= "8.5"  # ... has it in
    for script, suffixes in SCRIPTS.items():
        for suffix in suffixes:
            if (suffix == "" or (opcache and suffix != "-dtrace")) and (script != "steps" or posix):
                corpus.record("php/%s-%s%s" % (version, script, suffix),
                              [*command, *OPTIONS[suffix][0 if module else 2:], "/opt/replay/php/%s.php" % script],
                              binds=binds, env=env)


def record_threads(version, directory):
    binds = {directory: "php", os.path.join(corpus.OUTPUT, "fixtures/native"): "native"}
    for name, scripts in (("second", ["calls"]), ("both", ["nested", "calls"])):
        if name == "both" and version.endswith("-embed"):
            continue
        corpus.record("php/%s-threads-%s" % (version, name),
                      ["/opt/native/php_host", "/opt/php/libphp.so",
                       *["/opt/replay/php/%s.php" % script for script in scripts]],
                      binds=binds, env={"LD_LIBRARY_PATH": "/opt/php/lib", "PHPRC": "/opt/php"})


main()
