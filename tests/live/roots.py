# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that are there more than once: the machine's own, and with BRAID_EVERY_INTERPRETER those of the test roots
(scripts/test-roots), which run in there."""

import glob
import os
import re
import shutil

import gate

EVERY = bool(os.environ.get("BRAID_EVERY_INTERPRETER"))
# The JVM, and what loads it, looks for itself in /proc.
CHROOT = ["unshare", "--mount", "sh", "-c", 'mount --bind /proc "$0/proc" && exec chroot "$0" "$@"']


def within(root, *command):
    """The command, in a root ("": the machine's own)."""
    return [*CHROOT, root, *command] if root else [*command]


def all_of():
    """The directories of the test roots, if they are wanted."""
    directory = os.environ.get("BRAID_TEST_ROOTS", os.path.expanduser("~/.cache/braid-tests"))
    return sorted(glob.glob(directory + "/*")) if EVERY and not os.geteuid() else []


def jdks(since):
    """[(version, root, home in it)] of JDKs from that version on, the newest last."""
    found = []
    for root in ["", *all_of()]:
        for home in glob.glob(root + "/usr/lib/jvm/*"):
            version = re.search(r"-(\d+)-", home)
            if not os.path.islink(home) and version and int(version[1]) >= since and os.path.exists(home + "/bin/java"):
                found.append((int(version[1]), root, home[len(root):]))
    return sorted(found)


class Classes:
    """The test's directory of classes, as it is to be seen in a root, until the block ends."""

    def __init__(self, root):
        self.root, self.copy = root, root + "/tmp/" + os.path.basename(gate.tmp) if root else gate.tmp

    def __enter__(self):
        if self.root:
            shutil.copytree(gate.tmp, self.copy, dirs_exist_ok=True)
        return self.copy[len(self.root):]

    def __exit__(self, *_):
        if self.root:
            shutil.rmtree(self.copy)
