#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Real programs without frame pointers, recorded from their start: SQLite's shell, and the C++
compiler, which runs as a child of its driver."""

import shutil

import lib

QUERY = ("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 1500000) "
         "SELECT count(*), sum(x) FROM (SELECT n * 7919 % 10007 AS x FROM c ORDER BY x, n DESC);")

CLASS = """
template <int N> struct Maker%(i)d {
    std::map<std::string, std::vector<int>> map;
    int make(const std::string &text) {
        map[text].push_back(N);
        std::sort(map[text].begin(), map[text].end(), [](int a, int b) { return a > b + N; });
        return std::regex_match(text, std::regex("[a-z]+")) ? N : Maker%(i)d<N - 1>().make(text);
    }
};
template <> struct Maker%(i)d<0> { int make(const std::string &) { return 0; } };
int call%(i)d(const std::string &text) { return Maker%(i)d<6>().make(text); }
"""


def check_sqlite():
    name = "sqlite3"
    tables = lib.record("--", "sqlite3", ":memory:", QUERY)
    lib.matches(r"^1500000\|", tables.result.out, f"{name}: does its work")
    lib.check_complete(tables, 97, name)
    lib.check_complete(tables, 99.5, name + ", once it runs", begin=0.2)
    lib.check_unwinder(name, "sqlite3", ":memory:", QUERY)
    lib.check_share(tables.folded(), r"^[^;]+;__libc_start_main[^;]*;.*;sqlite3_step;", 0.8, name)


def check_compiler():
    name = "g++"
    source, output = lib.path("medium.cc"), lib.path("medium.o")
    with open(source, "w", encoding="utf-8") as file:
        file.write("".join(f"#include <{h}>\n" for h in ("algorithm", "map", "regex", "string",
                                                         "vector")))
        file.write("".join(CLASS % {"i": i} for i in range(2)))
    command = ["g++", "-O1", "-c", source, "-o", output]
    expanded = lib.path("medium.ii")
    lib.subprocess.run(["g++", "-E", source, "-o", expanded], check=True)
    compiler = lib.subprocess.run(["g++", "-print-prog-name=cc1plus"], check=True,
                                  stdout=lib.subprocess.PIPE).stdout.decode().strip()
    lib.check_unwinder("cc1plus", compiler, "-quiet", "-O1", expanded, "-o", output + ".s")
    lib.record("--", *command)
    tables = lib.record("--", *command)  # from the cache: it takes a moment to make so large ones
    parents = tables.sql("""
        SELECT parent.name FROM process AS child JOIN process AS parent
            ON parent.pid = child.parent_pid WHERE child.name = 'cc1plus'""")
    lib.ok(("g++",) in parents, f"{name}: cc1plus is a child of g++", parents)
    names = {row[0] for row in tables.sql("SELECT name FROM process")}
    lib.ok({"g++", "cc1plus", "as"} <= names, f"{name}: all its children are followed", names)
    pid = tables.one("SELECT max(pid) FROM process WHERE name = 'cc1plus'")
    lib.check_complete(tables, 95, "cc1plus", pid)
    lib.check_complete(tables, 99.5, "cc1plus, once it runs", pid, begin=0.2)
    lib.check_share(tables.folded("--pid", pid), r"(^|;)(_start|main);", 0.95, "cc1plus")


lib.need_bpf()
for program, test in ("sqlite3", check_sqlite), ("g++", check_compiler):
    if shutil.which(program):
        test()
    else:
        lib.skip(program, "not installed")
lib.done()
