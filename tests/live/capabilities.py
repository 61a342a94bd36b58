# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs as another user, with some capabilities and never others."""

import os
import re
import shutil

import gate

NOBODY, OTHER = 65534, 65533
UNIT = "scripts/braid.service"


def as_user(caps, user=NOBODY, forever=False):
    """The words before a command that begin it so; `forever`: no file gives it more, either."""
    plus = "-all" + "".join(f",+{cap}" for cap in caps)
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", f"--inh-caps={plus}",
            *([f"--ambient-caps={plus}"] if caps else []), f"--bounding-set={plus}",
            *(["--no-new-privs"] if forever else [])]


def of_unit(key="CapabilityBoundingSet"):
    """Those of the systemd unit, as setpriv calls them."""
    with open(UNIT, encoding="utf-8") as file:
        lines = re.findall(rf"^{key}=(.*)$", file.read(), re.M)
    return [name.removeprefix("CAP_").lower() for line in lines for name in line.split()]


def room(name):
    """A directory of nobody's, with braid in it."""
    os.chmod(gate.tmp, 0o755)
    directory = gate.path(name)
    os.mkdir(directory)
    os.chown(directory, NOBODY, NOBODY)
    shutil.copy(gate.BRAID, directory)
    os.environ["XDG_CACHE_HOME"] = os.path.join(directory, "cache")
    return directory
