#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the README says is so: versions are those of the tables in the source, links lead somewhere,
commands and options are there, and the picture is one."""

import os
import re
import subprocess
import sys

sys.path.insert(0, "tests")
from tap import done, equal, ok

BRAID = os.path.join(os.path.abspath(os.environ.get("OUTPUT", "build")), "braid")


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def told(path):
    """[lowest, highest] of a range that a runtime says it supports."""
    with open(path, encoding="utf-8") as file:
        return re.search(r'^#define VERSIONS\s+"([0-9.]+) to ([0-9.]+)"', file.read(), re.M).groups()


with open("README.md", encoding="utf-8") as readme:
    text = readme.read()
table = re.search(r"<!-- scripts/versions -->\n(.*?)<!-- end -->", text, re.S)
equal(table and table[1], run("scripts/versions"), "the table of versions is what scripts/versions writes")
for name, label in ("python", "CPython"), ("ruby", "CRuby"), ("perl", "Perl"), ("php", "PHP"):
    listed = re.search(label + r" ([0-9., ]+?)(?:, from [^|]*)? \|", table[1])[1].split(", ")
    equal((listed[0], listed[-1]), told(f"runtimes/{name}/{name}.c"),
          f"{name}: the table in the source has what the program says")
links = [link.split("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
equal([link for link in links if not os.path.exists(link)], [], f"{len(links)} links lead somewhere")
for needed in "docs/symbols.md", "docs/dump.md", "docs/performance.md", "docs/testing.md":
    ok(needed in links, f"it leads to {needed}")
commands = set(re.findall(r"^  ([a-z]+)  +[A-Z]", run(BRAID, "--help"), re.M))
used = re.findall(r"\bbraid ([a-z]+)((?: -{1,2}[a-zA-Z-]+[^`|\n]*)?)", "\n".join(re.findall(r"`[^`\n]+`", text)))
equal(sorted({name for name, _ in used} - commands), [], "its commands are there")
for name, rest in used:
    said = run(BRAID, name, "--help") if name in commands else ""
    for option in re.findall(r"--[a-z][a-z-]+", rest):
        ok(option in said, f"braid {name} has {option}")
with open("docs/flame.png", "rb") as file:
    picture = file.read()
ok(picture.startswith(b"\x89PNG\r\n") and picture.endswith(b"IEND\xaeB`\x82"), "the picture is a PNG")
ok(len(picture) < 200_000, "and small", len(picture))
done()
