# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs of truth_runtimes.t in Go, with the C functions called by cgo."""

import os
import shutil
import subprocess

import truth_graph
from truth_graph import ANY

NAME = "Go"
EDGES = {
    "ss": {"call": (), "closure": ("s{p}.func",), "interface": ("K_{n}.Go", ANY), "defer": ("s{p}.func", ANY, "s{p}.func"),
           "sort": ("K_{n}.Less", ANY), "method": ("(*K_{n}).Call",), "once": ("s{p}.func", ANY),
           "map": ("s{p}.func", ANY)},
    "sc": {"cgo": ("enter_c", ANY)},
    "cs": {"export": ("main.exported", ANY, "back_export")},
}
ROOT = ("run", ANY)
RECURSION = ()
ENDS = r"_start|runtime\.goexit|_*clone3?|runtime\.rt0_go|_rt0_amd64_linux|runtime\.main"
GLUE = """
extern void exported(int, int);
FUNCTION void back_export(int number, int depth) { exported(number, depth); work(40); }
"""
C_CALLS = {"export": "back_export({n}, {depth});"}
CALLS = {
    "call": "s{n}({depth})", "closure": "func() {{ s{n}({depth}); x++ }}()",
    "interface": "its[{n}].Go()", "defer": "func() {{ defer func() {{ s{n}({depth}); x++ }}(); x++ }}()",
    "sort": "sort.Sort(K_{n}{{}})", "method": "(&K_{n}{{}}).Call()",
    "once": "var once sync.Once; once.Do(func() {{ s{n}({depth}); x++ }})",
    "map": "strings.Map(func(r rune) rune {{ s{n}({depth}); return r }}, \"a\")",
    "cgo": "C.enter_c({n})",
}
ENTRIES = {
    "interface": "type K_{n} struct{{ x int }}\n//go:noinline\nfunc (k K_{n}) Go() {{ s{n}({depth}); "
                 "sink++ }}\nfunc init() {{ its[{n}] = K_{n}{{1}} }}",
    "sort": "type K_{n} struct{{}}\nfunc (k K_{n}) Len() int {{ return 2 }}\nfunc (k K_{n}) Swap(i, j "
            "int) {{}}\n//go:noinline\nfunc (k K_{n}) Less(i, j int) bool {{ s{n}({depth}); sink++; "
            "return i < j }}",
    "method": "type K_{n} struct{{}}\n//go:noinline\nfunc (k *K_{n}) Call() {{ s{n}({depth}); sink++ }}",
}


def _function(number, nodes):
    node = nodes[number]
    lines = ["//go:noinline", f"func s{number}(depth int) {{", "x := depth",
             "for i := 0; i < 90; i++ { sink += i * i }"]
    if node.repeats > 1:
        lines.append(f"if depth > 0 {{ s{number}(depth - 1) }} else {{")
    entries = []
    for child in node.children:
        via, depth = nodes[child].via, nodes[child].repeats - 1
        lines.append("{\n" + CALLS[via].format(n=child, depth=depth) + "\n}")
        if nodes[child].letter == "s":
            entries.append(ENTRIES.get(via, "").format(n=child, depth=depth))
    lines.append("}" * (node.repeats > 1) + "\nfor i := 0; i < 50; i++ { sink -= i }\nsink += x\n}")
    return "\n".join([*lines, *entries])


def missing():
    return None if shutil.which("go") else "go"


def build(place, nodes, compiler):
    """The command that runs the program until it is killed."""
    with open(f"{place}/lib.c", "w", encoding="utf-8") as file:
        file.write(truth_graph.c_source(nodes, GLUE, C_CALLS))
    functions = [number for number, node in nodes.items() if node.letter == "s"]
    cases = "\n".join(f"case {number}: s{number}(int(depth))" for number in functions)
    text = ["package main", "// void enter_c(int number);", 'import "C"',
            'import ("fmt"; "sort"; "strings"; "sync")', "var sink int", "type goer interface{ Go() }",
            "var its [1000]goer", "var _ sort.Interface", "var _ sync.Once", "var _ strings.Builder",
            "//export exported", "func exported(n C.int, depth C.int) {", "switch n {", cases, "}",
            "sink++", "}", *(_function(number, nodes) for number in functions), "//go:noinline",
            "func run() { for { s0(0) } }",
            'func main() { go run(); fmt.Println("READY"); run() }', ""]
    with open(f"{place}/main.go", "w", encoding="utf-8") as file:
        file.write("\n".join(text))
    with open(f"{place}/go.mod", "w", encoding="utf-8") as file:
        file.write("module truth\n\ngo 1.18\n")
    environment = {**os.environ, "CC": compiler[0], "CGO_CFLAGS": " ".join(compiler[1:]),
                   "GOFLAGS": "-mod=mod", "GOCACHE": f"{place}/cache", "HOME": place}
    subprocess.run([shutil.which("go"), "build", "-o", f"{place}/program", "."], cwd=place, check=True,
                   env=environment)
    return [f"{place}/program"]


def normal(name):
    if name != "main.exported":
        name = name.removeprefix("main.")
    return name.rpartition(".func")[0] + ".func" if ".func" in name else name
