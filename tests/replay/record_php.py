#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Records tests/replay/corpus/php with the PHPs at hand: this machine's and those of the test roots
(scripts/test-roots).

usage: record_php.py [PATTERN...]"""

import os
import subprocess

import corpus

# Compiled code has no unwind tables: libdwfl finds the native frames within it only.
OPCACHE = ["-d", "zend_extension=opcache", "-d", "opcache.enable_cli=1",
           "-d", "opcache.file_update_protection=0"]
JIT = [*OPCACHE, "-d", "opcache.jit_buffer_size=16M", "-d", "opcache.jit=function"]
TRACING = [*JIT[:-1], "opcache.jit=tracing"]
OPTIONS = {"": [], "-opcache": OPCACHE, "-jit": JIT, "-tracing": TRACING}

SCRIPTS = {"calls": ("", "-opcache", "-jit"), "nested": ("", "-opcache", "-jit"),
           "steps": ("", "-opcache"),  # between its calls compiled code does not tell the line
           "hot": ("-jit", "-tracing")}


def main():
    for release in (None, "trixie"):
        chroot = corpus.root(release) if release else None
        if (release and not chroot) or not os.path.exists((chroot or "") + "/usr/bin/php"):
            print("not here: php of Debian %s" % (release or "12"))
            continue
        command = (["chroot", chroot] if chroot else []) + ["php", "-n", "-r"]
        version = subprocess.check_output([*command, 'echo PHP_VERSION;'], text=True)
        version = version.rpartition(".")[0]
        for script, suffixes in SCRIPTS.items():
            for suffix in suffixes:
                corpus.record("php/%s-%s%s" % (version, script, suffix),
                              ["php", "-n", "-d", "extension=posix", *OPTIONS[suffix],
                               "/opt/replay/php/%s.php" % script], chroot=chroot)
    corpus.done()


main()
