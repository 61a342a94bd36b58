#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""The README is true: versions are those of the tables in the source, commands and options exist, and
the picture is one. Links of all pages lead to a file, and to a heading where they name one."""

import glob
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


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def links_of(page):
    """Links of a page that lead to files of the tree, or to headings of the page itself."""
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", read(page)) if "://" not in link]


def anchors_of(page):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.+)$", read(page), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def leads(page, link):
    path, _, anchor = link.partition("#")
    path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
    return os.path.exists(path) and (not anchor or anchor in anchors_of(path))


text = read("README.md")
table = re.search(r"<!-- scripts/versions -->\n(.*?)<!-- end -->", text, re.S)
equal(table and table[1], run("scripts/versions"), "the table of versions is what scripts/versions writes")
for name, label in ("python", "CPython"), ("ruby", "CRuby"), ("perl", "Perl"), ("php", "PHP"):
    listed = re.search(label + r" ([0-9., ]+?)(?:, from [^|]*)? \|", table[1])[1].split(", ")
    equal((listed[0], listed[-1]), told(f"runtimes/{name}/{name}.c"),
          f"{name}: the table in the source has what the program says")
links = [link.split("#")[0] for link in links_of("README.md")]
pages = [page for page in glob.glob("**/*.md", recursive=True) if not page.startswith("build")]
for page in sorted(pages):
    equal([link for link in links_of(page) if not leads(page, link)], [], f"{page}: links lead somewhere")
for needed in "reference/symbols.md", "reference/dump.md", "internals/performance.md", "internals/testing.md":
    ok(f"docs/{needed}" in links, f"it leads to {needed}")
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
