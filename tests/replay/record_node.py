#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Records the Node.js part of the replay corpus: record_node.py [PATTERN...]

Names come from a perf map (docs/jit-code.md), from which each case gets what lies around it."""

import os
import re
import subprocess

import corpus

NAMES = ["--perf-basic-prof", "--interpreted-frames-native-stack", "--no-logfile-per-isolate",
         "--logfile=/dev/null"]
NO_INLINING = ["--no-turbo-inlining", "--no-maglev-inlining"]
SCENARIOS = [  # name, file, options
    ("calls", "calls.js", NAMES),
    ("async", "async.js", NAMES),
    ("hot", "hot.js", NAMES + NO_INLINING),
    ("baseline", "hot.js", NAMES + NO_INLINING + ["--always-sparkplug"]),
    ("worker", "worker.js", NAMES),
    ("module", "module.mjs", NAMES),
]


def main():
    for release in (None, "trixie", "forky"):
        chroot = corpus.root(release) if release else None
        path = os.path.join(chroot or "/", "usr/bin/node")
        if (release and not chroot) or not os.path.exists(path):
            print("not here: node of Debian %s" % (release or "12"))
            continue
        command = (["chroot", chroot] if chroot else []) + ["/usr/bin/node", "--version"]
        version = subprocess.check_output(command, text=True)
        major = re.match(r"v(\d+)", version).group(1)
        for name, file, options in SCENARIOS:
            known = subprocess.check_output(command[:-1] + ["--v8-options"], text=True)
            options = [option for option in options
                       if option != "--no-maglev-inlining" or "--maglev-inlining" in known]
            corpus.record("node/%s-%s-%s" % (release or "debian12", major, name),
                          ["node", *options, "/opt/replay/node/" + file], chroot=chroot)
    corpus.done()


main()
