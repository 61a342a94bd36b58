# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs of truth_runtimes.t in PHP, with the C functions called by FFI."""

import shutil
import subprocess

import truth_graph
from truth_graph import ANY

NAME = "PHP"
EDGES = {
    "ss": {"call": (), "map": ("{{closure}}", ANY), "usort": ("{{closure}}", ANY), "by_name": (ANY,),
           "gen": ("gen_{n}", ANY), "init": ("K_{n}::__construct",), "get": ("K_{n}::__get", ANY),
           "magic": ("K_{n}::__call", ANY), "closure": ("{{closure}}",),
           "iterate": ("K_{n}::current", ANY), "replace": ("{{closure}}", ANY),
           "destroy": ("K_{n}::__destruct", ANY), "string": ("K_{n}::__toString", ANY),
           "static": ("K_{n}::make",), "array": ("K_{n}::offsetGet", ANY), "from": (
               "gen_{n}", "from_{n}", ANY)},
    "sc": {"ffi": ("enter_c", ANY)},
    "cs": {"callback": ("{{closure}}", ANY, "back_callback")},
}
ROOT = ("run", ANY)
RECURSION = ()
ENDS = r"_start"
GLUE = """
typedef void callback(int, int);
static callback *the_callback;
FUNCTION void set_callback(callback *called) { the_callback = called; }
FUNCTION void back_callback(int number, int depth) { the_callback(number, depth); work(40); }
"""
C_CALLS = {"callback": "back_callback({n}, {depth});"}
CALLS = {
    "call": "s{n}({depth});", "map": "array_map(function ($i) {{ s{n}({depth}); return $i; }}, [1]);",
    "usort": "$l = [2, 1]; usort($l, function ($a, $b) {{ s{n}({depth}); return $a <=> $b; }});",
    "by_name": "call_user_func_array('s{n}', [{depth}]);", "gen": "foreach (gen_{n}() as $i) $x++;",
    "init": "new K_{n}();", "get": "$x += K_{n}::$it->nothing;", "magic": "K_{n}::$it->nothing();",
    "closure": "(function () {{ s{n}({depth}); return 1; }})();",
    "iterate": "foreach (K_{n}::$it as $i) $x++;",
    "replace": "preg_replace_callback('/a/', function ($m) {{ s{n}({depth}); return 'b'; }}, 'a');",
    "destroy": "$l = new K_{n}(); $l = null;", "string": "$x += strlen('' . K_{n}::$it);",
    "static": "K_{n}::make();", "array": "$x += K_{n}::$it[1];", "from": "foreach (from_{n}() as $i) $x++;",
    "ffi": "$ffi->enter_c({n});",
}
CLASS = "class K_{n} {more} {{ static $it; {body} }} K_{n}::$it = new K_{n}();"
ENTRIES = {
    "gen": "function gen_{n}() {{ s{n}({depth}); yield 1; }}",
    "from": "function gen_{n}() {{ s{n}({depth}); yield 1; }}\n"
            "function from_{n}() {{ yield from gen_{n}(); }}",
    "init": "class K_{n} {{ function __construct() {{ s{n}({depth}); $this->x = 1; }} public $x; }}",
    "destroy": "class K_{n} {{ function __destruct() {{ s{n}({depth}); $this->x = 1; }} public $x; }}",
    "get": "function __get($name) {{ s{n}({depth}); return 1; }}",
    "magic": "function __call($name, $list) {{ s{n}({depth}); return 1; }}",
    "static": "static function make() {{ s{n}({depth}); return 1; }}",
    "string": "function __toString() {{ s{n}({depth}); return 'a'; }}",
    "array": "function offsetGet($i): mixed {{ s{n}({depth}); return 1; }} function offsetExists($i): "
             "bool {{ return true; }} function offsetSet($i, $v): void {{}} function offsetUnset($i): "
             "void {{}}",
    "iterate": "private $at = 0; function current(): mixed {{ s{n}({depth}); return 1; }} function key(): "
               "mixed {{ return 1; }} function next(): void {{ $this->at++; }} function rewind(): void "
               "{{ $this->at = 0; }} function valid(): bool {{ return $this->at < 1; }}",
}
IMPLEMENTED = {"array": "implements ArrayAccess", "iterate": "implements Iterator"}


def _entry(via, number, depth):
    text = ENTRIES.get(via, "").format(n=number, depth=depth)
    if not text or text.startswith(("function gen_", "class ")):
        return text
    return CLASS.format(n=number, more=IMPLEMENTED.get(via, ""), body=text)


def _function(number, nodes):
    node = nodes[number]
    lines = [f"function s{number}($depth) {{ global $ffi; $x = $depth;",
             "for ($i = 0; $i < 9; $i++) $x += $i * $i;"]
    if node.repeats > 1:
        lines.append(f"if ($depth) s{number}($depth - 1); else {{")
    entries = []
    for child in node.children:
        via, depth = nodes[child].via, nodes[child].repeats - 1
        lines.append(CALLS[via].format(n=child, depth=depth))
        if nodes[child].letter == "s":
            entries.append(_entry(via, child, depth))
    lines.append("}" * (node.repeats > 1) + " for ($i = 0; $i < 6; $i++) $x -= $i; return $x; }")
    return "\n".join([*lines, *entries])


def missing():
    if not shutil.which("php"):
        return "php"
    modules = subprocess.run(["php", "-m"], capture_output=True, check=True, text=True).stdout
    return None if "\nFFI\n" in modules else "PHP's FFI"


def build(place, nodes, compiler):
    """The command that runs the program until it is killed."""
    with open(f"{place}/lib.c", "w", encoding="utf-8") as file:
        file.write(truth_graph.c_source(nodes, GLUE, C_CALLS))
    subprocess.run([*compiler, "-shared", "-fPIC", f"{place}/lib.c", "-o", f"{place}/libtruth.so"],
                   check=True)
    text = ["<?php", "$ffi = FFI::cdef('typedef void callback(int, int); void enter_c(int); "
            f"void set_callback(callback *);', '{place}/libtruth.so');",
            *(_function(number, nodes) for number, node in nodes.items() if node.letter == "s"),
            "$called = function ($n, $depth) { $name = \"s$n\"; $name($depth); };",
            "$ffi->set_callback($called);", "function run() { while (true) s0(0); }",
            "echo \"READY\\n\";", "run();", ""]
    with open(f"{place}/program.php", "w", encoding="utf-8") as file:
        file.write("\n".join(text))
    return [shutil.which("php"), "-d", "ffi.enable=1", f"{place}/program.php"]


def normal(name):
    return "{closure}" if "{closure" in name else name
