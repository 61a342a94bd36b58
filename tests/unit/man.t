#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""The man pages: one for each command, with each of its options, readable without a complaint."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, "tests")
from tap import done, equal, matches, ok, skip

BRAID = os.path.join(os.path.abspath(os.environ.get("OUTPUT", "build")), "braid")


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def text_of(page):
    if not shutil.which("groff"):
        skip(os.path.basename(page), "there is no groff")
        return None
    read = run("groff", "-man", "-ww", "-Tutf8", "-P-cbou", "-K", "utf8", page)
    equal((read.returncode, read.stderr), (0, ""), f"{os.path.basename(page)}: groff does not complain")
    return re.sub(r"\s+", " ", re.sub(r"\u2010\n\s*", "", read.stdout))


with tempfile.TemporaryDirectory() as directory:
    made = run("scripts/man", BRAID, "docs/reference/man.in", directory)
    equal((made.returncode, made.stderr), (0, ""), "are written")
    commands = re.findall(r"^  ([a-z]+)  +[A-Z]", run(BRAID, "--help").stdout, re.M)
    equal(sorted(os.listdir(directory)), sorted(["braid.1"] + [f"braid-{name}.1" for name in commands]),
          "one for each command")
    text = text_of(directory + "/braid.1")
    for section in "DESCRIPTION", "OVERHEAD", "CAVEATS", "REQUIREMENTS", "FILES", "SEE ALSO":
        ok(text is None or f" {section} " in text, f"braid.1 has {section}")
    for command in commands:
        text = text_of(f"{directory}/braid-{command}.1")
        if text is None:
            continue
        said = run(BRAID, command, "--help", env=dict(os.environ, ARGP_HELP_FMT="rmargin=9000")).stdout
        options = re.findall(r"^ +((?:-., )?--\S+) +(.*)$", said.split("\nMandatory")[0], re.M)
        missing = [name for name, what in options
                   if f" {name} {re.sub(' +', ' ', what).strip()} " not in text]
        equal(missing, [], f"{command}: has all {len(options)} options as the help says them")
        matches("EXAMPLES .* SEE ALSO .*braid\\(1\\)", text, f"{command}: examples, and what else to see")
done()
