# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs of truth_runtimes.t in JavaScript, with the C functions in an addon (Node-API)."""

import shutil
import subprocess

import truth_graph
from truth_graph import ANY

NAME = "Node"
EDGES = {
    "ss": {"call": (ANY,), "each": ("key_{n}", ANY), "sort": ("key_{n}", ANY), "map": ("key_{n}", ANY),
           "getter": ("key_{n}", ANY), "init": ("K_{n}", ANY), "apply": (ANY,), "bound": (ANY,),
           "json": ("key_{n}", ANY), "replace": ("key_{n}", ANY), "gen": ("key_{n}", ANY),
           "spread": ("key_{n}", ANY), "proxy": ("key_{n}", ANY), "primitive": ("key_{n}", ANY),
           "caught": ("key_{n}", ANY), "async": ("key_{n}", ANY)},
    "sc": {"method": ("enter_c", "enter_method", ANY), "each": ("enter_c", "enter_method", ANY)},
    "cs": {"call": (ANY, "back_call")},
}
ROOT = ("run", ANY)
RECURSION = (ANY,)
ENDS = r"_start"
# Node's headers may be missing: its functions are declared here (node_api.h).
GLUE = """
typedef struct napi_env__ *env;
typedef struct napi_value__ *value;
typedef struct napi_scope__ *scope;
extern int napi_create_function(env, const char *, size_t, value (*)(env, void *), void *, value *);
extern int napi_get_cb_info(env, void *, size_t *, value *, value *, void **);
extern int napi_get_value_int32(env, value, int *), napi_create_int32(env, int, value *);
extern int napi_call_function(env, value, value, size_t, const value *, value *);
extern int napi_get_global(env, value *), napi_get_named_property(env, value, const char *, value *);
extern int napi_open_handle_scope(env, scope *), napi_close_handle_scope(env, scope);
extern int snprintf(char *, size_t, const char *, ...);
static env the_env;
FUNCTION void back_call(int number, int depth)
{ scope inner; value global, function, n, result; char name[16];
  napi_open_handle_scope(the_env, &inner); snprintf(name, sizeof(name), "s%d", number);
  napi_get_global(the_env, &global); napi_get_named_property(the_env, global, name, &function);
  napi_create_int32(the_env, depth, &n);
  if (napi_call_function(the_env, global, function, 1, &n, &result)) abort();
  napi_close_handle_scope(the_env, inner); work(40); }
FUNCTION value enter_method(env given, void *info)
{ size_t n = 1; value argument; int number; the_env = given;
  napi_get_cb_info(given, info, &n, &argument, NULL, NULL); napi_get_value_int32(given, argument, &number);
  enter_c(number); sink[2]++; return NULL; }
__attribute__((visibility("default"))) value napi_register_module_v1(env given, value exports)
{ value function; (void)exports; napi_create_function(given, "enter", 5, enter_method, NULL, &function);
  return function; }
"""
C_CALLS = {"call": "back_call({n}, {depth});"}
CALLS = {
    "call": "s{n}({depth});", "each": "[1].forEach(key_{n});", "sort": "[2, 1].sort(key_{n});",
    "map": "x += [1].map(key_{n}).length;", "getter": "x += it_{n}.value;", "init": "new K_{n}();",
    "apply": "Reflect.apply(s{n}, null, [{depth}]);", "bound": "bound_{n}();",
    "json": "x += JSON.stringify(it_{n}).length;", "replace": "x += 'a'.replace(/a/, key_{n}).length;",
    "gen": "for (const i of key_{n}()) x += i;", "spread": "x += Math.max(...it_{n});",
    "proxy": "x += it_{n}.value;", "primitive": "x += +it_{n};",
    "caught": "try {{ key_{n}(); }} catch (e) {{ x++; }}", "async": "key_{n}();",
}
C_ENTRIES = {"method": "enter({n});", "each": "[{n}].forEach(enter);"}
KEY = "function key_{n}() {{ s{n}({depth}); return 1; }}"
ENTRIES = {
    "each": KEY, "sort": KEY, "map": KEY, "replace": KEY,
    "getter": KEY + "const it_{n} = Object.defineProperty({{}}, 'value', {{ get: key_{n} }});",
    "init": "class K_{n} {{ constructor() {{ s{n}({depth}); this.x = 1; }} }}",
    "bound": "const bound_{n} = s{n}.bind(null, {depth});",
    "json": KEY + "const it_{n} = {{ toJSON: key_{n} }};",
    "gen": "function *key_{n}() {{ s{n}({depth}); yield 1; }}",
    "spread": "function *key_{n}() {{ s{n}({depth}); yield 1; }}"
              "const it_{n} = {{ [Symbol.iterator]: key_{n} }};",
    "proxy": KEY + "const it_{n} = new Proxy({{}}, {{ get: key_{n} }});",
    "primitive": KEY + "const it_{n} = {{ valueOf: key_{n} }};",
    "caught": "function key_{n}() {{ s{n}({depth}); throw new Error(); }}",
    "async": "async function key_{n}() {{ s{n}({depth}); return 1; }}",
}


def _function(number, nodes):
    node = nodes[number]
    lines = [f"globalThis.s{number} = s{number};", f"function s{number}(depth) {{ let x = depth;",
             "for (let i = 0; i < 60; i++) x += i * i;"]
    if node.repeats > 1:
        lines.append(f"if (depth) s{number}(depth - 1); else {{")
    entries = []
    for child in node.children:
        via, depth = nodes[child].via, nodes[child].repeats - 1
        calls = CALLS if nodes[child].letter == "s" else C_ENTRIES
        lines.append(calls[via].format(n=child, depth=depth))
        if nodes[child].letter == "s":
            entries.append(ENTRIES.get(via, "").format(n=child, depth=depth))
    lines.append("}" * (node.repeats > 1) + " for (let i = 0; i < 40; i++) x -= i; return x; }")
    return "\n".join([*lines, *entries])


def missing():
    return None if shutil.which("node") else "node"


# Options of Node, one after the other with the compilers of C
OPTIONS = (["--no-opt"], [], ["--always-sparkplug"], ["--jitless"])


def build(place, nodes, compiler):
    """The command that runs the program until it is killed."""
    at = int(place.rpartition("-")[2])
    with open(f"{place}/lib.c", "w", encoding="utf-8") as file:
        file.write(truth_graph.c_source(nodes, GLUE, C_CALLS))
    subprocess.run([*compiler, "-shared", "-fPIC", f"{place}/lib.c", "-o", f"{place}/truth.node"],
                   check=True)
    text = [f"const enter = require('{place}/truth.node');",
            *(_function(number, nodes) for number, node in nodes.items() if node.letter == "s"),
            "function run() { for (let i = 0; i < 100; i++) s0(0); setImmediate(run); }",
            "console.log('READY');", "run();", ""]
    with open(f"{place}/program.js", "w", encoding="utf-8") as file:
        file.write("\n".join(text))
    return [shutil.which("node"), *OPTIONS[at % len(OPTIONS)], f"{place}/program.js"]
