# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs as another user, with some capabilities and never others."""

import atexit
import fcntl
import os
import re
import shutil
import signal

import gate

NOBODY, OTHER = 65534, 65533
UNIT = "scripts/braid.service"
FORBIDDEN = "processes without names of code: mappings are forbidden"
PARANOID = "/proc/sys/kernel/perf_event_paranoid"
# perf_event_open of the clock of the first CPU, for all processes.
SAMPLE = """if True:
    import ctypes, struct, sys
    TYPE_SOFTWARE, SIZE_VER0, CPU_CLOCK, PERIOD_NS = 1, 64, 0, 10**7
    attr = struct.pack("IIQQ", TYPE_SOFTWARE, SIZE_VER0, CPU_CLOCK, PERIOD_NS).ljust(SIZE_VER0, b"\\0")
    sys.exit(ctypes.CDLL(None).syscall(298, attr, -1, 0, -1, 0) < 0)
"""


def as_user(caps, user=NOBODY, forever=False):
    """The words before a command that begin it so; `forever`: no file gives it more, either."""
    plus = "-all" + "".join(f",+{cap}" for cap in caps)
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", f"--inh-caps={plus}",
            *([f"--ambient-caps={plus}"] if caps else []), f"--bounding-set={plus}",
            *(["--no-new-privs"] if forever else [])]


def without_names(pid, name, more=""):
    """What `record` says where mappings are CAP_SYS_PTRACE's to read: before Linux 6.15 or so."""
    return (f"code of PID {pid} ({name}){more} has no names, and stacks end there: user {NOBODY} lacks "
            "CAP_SYS_PTRACE")


def may_read_mappings(caps, pid):
    return not gate.run(*as_user(caps), "head", "-c1", f"/proc/{pid}/maps").status


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


def may_sample(caps):
    """Does the kernel let it, whatever braid says?"""
    return not gate.run(*as_user(caps), "/usr/bin/python3", "-c", SAMPLE).status


def _set_paranoid(value):
    with open(PARANOID, "w", encoding="ascii") as file:
        file.write(value)


def let_sample(while_refused=lambda setting: None):
    """Debian's kernels take CAP_SYS_ADMIN for perf events while this setting is above 2, as it is there by
    default: makes it 2 until the test ends, after `while_refused`. Tests that do so come one after the
    other."""
    file = open(PARANOID, encoding="ascii")

    def put_back():
        _set_paranoid(setting)
        file.close()  # and with that the lock is gone

    fcntl.flock(file, fcntl.LOCK_EX)
    signal.alarm(gate.HANGS_S)  # it has waited for them
    if may_sample(("bpf", "perfmon")):
        file.close()
        return
    setting = file.read().strip()
    atexit.register(put_back)
    while_refused(setting)
    _set_paranoid("2")
