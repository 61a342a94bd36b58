#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Records the Node.js part of the replay corpus: record_node.py [PATTERN...]

The machine's own Node, those of npm (scripts/test-nodes) and those of other Debian releases."""

import os
import re
import subprocess

import corpus

SCENARIOS = [  # name, file, options
    ("calls", "calls.js", []),
    ("async", "async.js", []),
    ("hot", "hot.js", []),
    ("baseline", "hot.js", ["--always-sparkplug", "--no-opt", "--no-maglev"]),
    ("maglev", "hot.js", ["--maglev", "--max-optimized-bytecode-size=0"]),
    ("worker", "worker.js", []),
    ("module", "module.mjs", []),
]


def nodes():
    """(name, path, chroot, directory to bind as /opt/node)"""
    yield "debian12", "/usr/bin/node", None, None
    for release in "trixie", "forky":
        yield release, "/usr/bin/node", corpus.root(release), None
    for major in "18", "19", "20", "22", "23", "24", "25", "26":
        directory = os.path.join(corpus.ROOTS, "nodes", major)
        yield "npm", directory + "/bin/node", None, directory


def record_all(name, path, chroot, directory):
    run = ["chroot", chroot, path] if chroot else [path]
    major = re.match(r"v(\d+)", subprocess.check_output(run + ["--version"], text=True)).group(1)
    known = subprocess.check_output(run + ["--v8-options"], text=True)
    for scenario, file, options in SCENARIOS:
        if "--maglev " not in known:
            if "--maglev" in options:
                continue
            options = [option for option in options if option != "--no-maglev"]
        node = "/opt/node/bin/node" if directory else path
        corpus.record(f"node/{name}-{major}-{scenario}", [node, *options, "/opt/replay/node/" + file],
                      {directory: "node"} if directory else None, chroot)


def main():
    for name, path, chroot, directory in nodes():
        if os.path.exists((chroot or "") + path) and (chroot or name not in ("trixie", "forky")):
            record_all(name, path, chroot, directory)
        else:
            print("not here: node of", name, directory or "")
    corpus.done()


main()
