#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Records tests/replay/corpus/perl with the Perls at hand: this machine's and those of the test roots
(scripts/test-roots), and those that scripts/test-musl has built.

usage: record_perl.py [PATTERN...]"""

import os
import shutil
import subprocess
import tempfile

import corpus

SCRIPTS = ("calls", "nested", "steps", "threads")
MUSL = {"pl5.36": ("5.36-musl-plain", ("calls",)), "pl5.36t": ("5.36-musl", ("calls", "threads"))}


def record_musl():
    with tempfile.TemporaryDirectory() as work:
        for name, (label, scripts) in MUSL.items():
            directory = os.path.join(corpus.MUSL, name)
            if not os.path.exists(directory + "/bin/perl"):
                print("not here: %s (scripts/test-musl)" % directory)
                continue
            copy = corpus.moved(directory, "/opt/perl/" + name, os.path.join(work, name),
                                shutil.ignore_patterns("*.a", "*.h", "*.pod"))
            for script in scripts:
                corpus.record("perl/%s-%s" % (label, script),
                              ["/opt/perl/%s/bin/perl" % name, "/opt/replay/perl/%s.pl" % script],
                              binds={copy: "perl/" + name})


def main():
    for release in ("bullseye", None, "trixie", "forky", "experimental"):
        chroot = corpus.root(release) if release else None
        if (release and not chroot) or not os.path.exists((chroot or "") + "/usr/bin/perl"):
            print("not here: perl of Debian %s" % (release or "12"))
            continue
        command = (["chroot", chroot] if chroot else []) + ["/usr/bin/perl"]
        version = subprocess.check_output([*command, "-e", 'printf "%vd", $^V'], text=True)
        version = version.rpartition(".")[0]
        for script in SCRIPTS:
            module = {"threads": "threads"}.get(script)
            if module and subprocess.run([*command, "-e", "use " + module],
                                         stderr=subprocess.DEVNULL).returncode:
                print("not here: %s of perl %s" % (module, version))
                continue
            corpus.record("perl/%s-%s" % (version, script),
                          ["perl", "/opt/replay/perl/%s.pl" % script], chroot=chroot)
    record_musl()
    corpus.done()


main()
