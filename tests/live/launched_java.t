#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""A JVM is prepared while its launcher is held: the walker is loaded before the launcher's own code
runs. The launcher of this test prints braid's programs of BPF instead of loading the JVM."""

import json
import os
import subprocess

import gate

LIBRARY = "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so"
LAUNCH = 'int launch(void) { return 0; }\n'
# the programs of which the launcher's parent has descriptors: other recordings have programs of the same names
SHOW = r"sed -n 's/^prog_id:[^0-9]*//p' /proc/$PPID/fdinfo/* | while read id; do /usr/sbin/bpftool prog show id $id; done"
MAIN = """#include <unistd.h>
int launch(void);
int main(void)
{
	launch();
	execl("/bin/sh", "sh", "-c", SHOW, (char *)0);
	return 1;
}
"""


def build(name, library):
    """Returns the path of a program in a directory of its own that needs this library."""
    place = gate.path(name)
    os.makedirs(place + "/lib/server")
    os.symlink(LIBRARY, place + "/lib/server/libjvm.so")
    for source, text in (("launch.c", LAUNCH), ("main.c", MAIN)):
        with open(f"{place}/{source}", "w", encoding="utf-8") as file:
            file.write(text)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", f"{place}/lib/{library}", place + "/launch.c"],
                   check=True)
    subprocess.run(["gcc", "-o", place + "/main", f"-DSHOW={json.dumps(SHOW)}", place + "/main.c", f"-L{place}/lib",
                    f"-l:{library}", f"-Wl,-rpath,{place}/lib"], check=True)
    return place + "/main"


gate.need_root()
for needed in LIBRARY, "/usr/sbin/bpftool", "/usr/bin/gcc":
    gate.need_program(needed)
run = subprocess.run([gate.BRAID, "record", "--max-overhead", "none", "-o", gate.path("l.db"), "--",
                      build("java", "libjli.so")], capture_output=True, text=True, check=False)
gate.equal(run.returncode, 0, "status")
gate.ok("name unwind_stack" in run.stdout, "braid's programs are listed")
gate.ok("name walk_jvm" in run.stdout, "the walker is there before the JVM")
gate.done()
