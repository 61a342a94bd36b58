#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""`braid report` for programs: JSON by docs/reference/report.schema.json, Markdown, and --fail-if."""

import json
import os
import subprocess
import sys
import tempfile

import jsonschema

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import tap  # noqa: E402

OUTPUT = os.environ.get("OUTPUT", "build")
WORK = tempfile.TemporaryDirectory()
SHAPES = ("empty", "zero", "hostile", "wide", "deep", "times", "odd")
with open(os.path.join(HERE, "../../docs/reference/report.schema.json"), encoding="utf-8") as text:
    SCHEMA = jsonschema.Draft202012Validator(json.load(text))


def made(name, *samples):
    """As in report.t: fields of tests/tools/mksamples, with blanks between."""
    path = os.path.join(WORK.name, name)
    lines = "".join(sample.replace(" ", "\t") + "\n" for sample in samples)
    subprocess.run([OUTPUT + "/tests/tools/mksamples", path], input=lines, text=True, check=True)
    return path


def report(*words):
    return subprocess.run([OUTPUT + "/braid", "report", *words], capture_output=True, text=True,
                          check=False)


def shaped(shape, name):
    return subprocess.run([OUTPUT + "/tests/tools/mkprofile", shape, name], capture_output=True,
                          check=True).stdout.decode()


def valid(text, what):
    document = json.loads(text)
    errors = [error.message[:200] for error in SCHEMA.iter_errors(document)]
    tap.equal(errors, [], f"{what}: by the schema")
    return document


def stacks_of(document):
    """{names from the root on: value}, by the tree's nodes."""
    paths, stacks = [], {}
    for node in document["nodes"]:
        above = paths[node["parent"]] if node["parent"] >= 0 else ()
        paths.append(above + (document["frames"][node["frame"]]["name"],))
        if node["self"]:
            stacks[paths[-1]] = stacks.get(paths[-1], 0) + node["self"]
    return stacks


def many(**by_line):
    """So many samples of each stack, each of its own, as a test of chance counts them."""
    return [LINES[name] for name, n in by_line.items() for _ in range(n)]


LINES = {"strcmp": "cpu samples 1 running - - 42:app 42:app n:main;python:f@/x/app.py;n:strcmp",
         "g": "cpu samples 1 running - - 42:app 42:app n:main;python:g@/x/app.py",
         "f": "cpu samples 1 running - - 42:app 43:w n:main;python:g@/x/app.py;python:f@/x/app.py"}
OLD, NEW = many(strcmp=70, g=30), many(strcmp=30, f=70)


def check_json():
    new = made("new.db", *NEW)
    document = valid(report("--format", "json", new).stdout, "one recording")
    tap.equal(stacks_of(document), {("main", "f", "strcmp"): 30, ("main", "g", "f"): 70},
              "the tree's stacks")
    rows = {(row["name"], row["file"], row["kind"]): (row["self"], row["script"], row["total"])
            for row in document["rows"]}
    tap.equal(rows, {("main", "", "native"): (0, 0, 100), ("f", "/x/app.py", "python"): (70, 100, 100),
                     ("g", "/x/app.py", "python"): (0, 0, 70), ("strcmp", "", "native"): (30, 0, 30)},
              "rows: self, script, total; recursion counts once")
    tap.equal([row["name"] for row in document["rows"]][0], "f", "rows: by script, as a table")
    tap.equal((document["recording"]["event"], document["recording"]["unit"],
               document["recording"]["total"]), ("cpu", "samples", 100), "facts")
    document = valid(report("--format", "json", "--by", "thread", "--rows", "1", "--group", "library",
                            new).stdout, "options")
    tap.equal(len(document["rows"]), 1, "--rows")
    tap.equal(stacks_of(document), {("app (42)", "main", "f", "strcmp"): 30,
                                    ("w (43)", "main", "g", "f"): 70}, "--by")
    tap.ok("groups" not in document, "groups are of tables of functions")
    document = valid(report("--format", "json", "--by", "thread", new).stdout, "--by")
    groups = {group["name"]: (group["kind"], group["total"], {row["name"]: (row["self"], row["total"])
                                                              for row in group["rows"]})
              for group in document["groups"]}
    tap.equal(groups, {"w (43)": ("thread", 70, {"f": (70, 70), "g": (0, 70), "main": (0, 70)}),
                       "app (42)": ("thread", 30, {"f": (0, 30), "strcmp": (30, 30), "main": (0, 30)})},
              "groups: each with its own functions")
    document = valid(report("--format", "json", "--by", "thread", "--rows", "1", new).stdout, "--rows")
    tap.equal([(group["name"], [row["name"] for row in group["rows"]]) for group in document["groups"]],
              [("w (43)", ["f"])], "--rows: of groups, and of functions of each")


def check_shapes():
    """No name breaks a document, and its values are those of the folded form."""
    for shape in SHAPES:
        document = valid(shaped(shape, "json"), shape)
        whole = sum(int(line.rsplit(" ", 1)[1]) for line in shaped(shape, "folded").splitlines())
        tap.equal(sum(node["self"] for node in document["nodes"]), whole, f"{shape}: the whole")
        text = shaped(shape, "markdown")
        fence = text.split("text\n", 1)[0]
        tap.equal([line for line in text.splitlines() if line.startswith(fence)],
                  [fence + "text", fence] * (2 if whole else 1), f"{shape}: no name ends a block")


def check_diff():
    old, new = made("old.db", *OLD), made("new.db", *NEW)
    document = valid(report("--format", "json", "--diff", old, "--sort", "total", new).stdout, "a diff")
    changes = {row["name"]: (round(row["old"], 3), round(row["new"], 3), row["verdict"])
               for row in document["changes"]}
    tap.equal(changes["g"], (0.3, 0.7, "more"), "diff: a change beyond chance")
    tap.equal(changes["main"][2], "same", "diff: no change")
    tap.equal((document["old"]["total"], document["new"]["total"], document["measure"]),
              (100, 100, "total"), "diff: facts of both")


def check_markdown():
    new = made("new.db", "cpu samples 3 running - - 42:app 42:app n:main;python:a|b@/x/app.py",
               "cpu samples 1 running - - 42:app 42:app n:main;python:a|b@/x/app.py;n:`x`")
    lines = report("--format", "markdown", "--frames", "all", new).stdout.splitlines()
    table = [line for line in lines if line.startswith("|")]
    tap.equal(table, ["| Script | Self | Total | Kind | Function |", "|---:|---:|---:|---|---|",
                      r"| 100.0 % (4) | 75.0 % (3) | 100.0 % (4) | python | `a\|b (app.py)` |",
                      "| 0.0 % (0) | 25.0 % (1) | 25.0 % (1) | native | &#96;x&#96; |",
                      "| 0.0 % (0) | 0.0 % (0) | 100.0 % (4) | native | `main` |"],
              "markdown: a table, names escaped")
    tap.equal([lines[0], lines[-1]], ["```text", "```"], "markdown: blocks")
    new = made("new.db", *NEW)
    lines = report("--format", "markdown", "--by", "thread", "--frames", "script", new).stdout.splitlines()
    tap.equal([line for line in lines if line.startswith("|")][2:],
              ["|  | 70.0 % (70) | thread | `w (43)` |",
               "| 70.0 % (70) | 70.0 % (70) | python | `f (app.py)` |",
               "| 0.0 % (0) | 70.0 % (70) | python | `g (app.py)` |",
               "|  | 30.0 % (30) | thread | `app (42)` |",
               "| 30.0 % (30) | 30.0 % (30) | python | `f (app.py)` |"],
              "markdown: each group, and its functions")


def check_conditions():
    old, new = made("old.db", *OLD), made("new.db", *NEW)
    for condition, diff, status in (
            ("self(f) > 69%", [], 1), ("self(f) > 70%", [], 0), ("self(f) < 71 %", [], 1),
            ("total(f) > 99%", [], 1), ("total(f) > 100%", [], 0), ("total([fg]) > 99.9%", [], 1),
            ("total(g) > 69%", ["--diff", old], 1), ("total(none) > 0%", [], 0),
            ("change(g) > 39%", ["--diff", old], 1), ("change(g) > 41%", ["--diff", old], 0),
            ("change(strcmp) < -39%", ["--diff", old], 1), ("change(main) < 1%", ["--diff", old], 0)):
        result = report("--fail-if", condition, *diff, new)
        tap.equal(result.returncode, status, f"{condition} {diff[:1]}: status", result.stderr)
        tap.equal(f"braid: {condition}: it is " in result.stderr, status == 1, f"{condition}: named")
        tap.ok("Function" in result.stdout, f"{condition}: the report is there")
    for wrong in ("", "f > 1%", "self(f)", "self(f) > 1", "self(f) > x%", "self() > 1%", "total(f) = 1%",
                  "self(f) > 1%%", "change(f) > 1%"):
        result = report("--fail-if", wrong, new)
        tap.equal((result.returncode, result.stdout), (2, ""), f"'{wrong}': misuse")
        tap.ok("--fail-if" in result.stderr, f"'{wrong}': says so")


check_json()
check_shapes()
check_diff()
check_markdown()
check_conditions()
tap.done()
