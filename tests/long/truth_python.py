# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs of truth_runtimes.t in Python, with C functions as built-in methods and by ctypes."""

import shutil
import subprocess

import truth_graph
from truth_graph import ANY

NAME = "Python"
EDGES = {
    "ss": {"call": (), "key": ("key_{n}", ANY), "comp": ("s{p}.<locals>.<listcomp>",),
           "gen": ("gen_{n}", ANY), "init": ("K_{n}.__init__", ANY), "map": ("key_{n}", ANY),
           "attr": ("K_{n}.__getattr__", ANY), "decorated": ("outer.<locals>.wrapper",),
           "star": (ANY,), "send": ("co_{n}", ANY)},
    "sc": {"method": ("enter_c", "enter_method", ANY), "ctypes": ("enter_c", ANY)},
    "cs": {"object": (ANY, "back_object"), "closure": (ANY, "back_closure"), "import": (
        ANY, "back_again")},
}
ROOT = ("run", ANY)
RECURSION = ()
ENDS = r"_start|_*clone3?"
GLUE = """
typedef struct object object;
extern object *PyLong_FromLong(long), *PyCFunction_NewEx(void *, object *, object *);
extern object *PyObject_CallFunctionObjArgs(object *, ...), *PyObject_CallFunction(object *, const char *, ...);
extern long PyLong_AsLong(object *);
extern object *PyTuple_New(long), *PyObject_GetItem(object *, object *);
extern void Py_DecRef(object *), PyErr_Print(void);
static object *functions;
typedef void closure(int, int);
static closure *the_closure;
static void check(object *result) { if (!result) { PyErr_Print(); abort(); } Py_DecRef(result); }
static object *function_of(int number)
{ object *n = PyLong_FromLong(number), *found = PyObject_GetItem(functions, n); Py_DecRef(n); return found; }
FUNCTION void back_object(int number, int depth)
{ object *f = function_of(number), *n = PyLong_FromLong(depth);
  check(PyObject_CallFunctionObjArgs(f, n, NULL)); Py_DecRef(n); Py_DecRef(f); work(40); }
FUNCTION void back_again(int number, int depth)
{ object *f = function_of(number);
  check(PyObject_CallFunction(f, "i", depth)); Py_DecRef(f); work(40); }
FUNCTION void back_closure(int number, int depth) { the_closure(number, depth); work(40); }
FUNCTION object *enter_method(object *self, object *n)
{ (void)self; enter_c((int)PyLong_AsLong(n)); return PyLong_FromLong(1); }
static struct { const char *name; void *call; int flags; const char *doc; } method = {
	"enter_method", enter_method, 8, NULL };
FUNCTION object *make(object *list, closure *called)
{ functions = list; the_closure = called; return PyCFunction_NewEx(&method, NULL, NULL); }
"""
C_CALLS = {"object": "back_object({n}, {depth});", "closure": "back_closure({n}, {depth});",
           "import": "back_again({n}, {depth});"}

HEAD = '''
import ctypes, sys, threading
lib = ctypes.PyDLL("{library}")
lib.make.restype = ctypes.py_object

def outer(function):
    def wrapper(depth):
        x = 1
        function(depth)
        for i in range(3):
            x += i
        return x
    return wrapper
'''
TAIL = '''
functions = {{int(name[1:]): value for name, value in list(globals().items())
             if name[0] == "s" and name[1:].isdigit()}}
Closure = ctypes.PYFUNCTYPE(None, ctypes.c_int, ctypes.c_int)
closures = {{number: Closure(lambda n, depth: functions[n](depth)) for number in functions}}
closure_of = Closure(lambda n, depth: functions[n](depth))
enter_method = lib.make(ctypes.py_object(functions), closure_of)
enter_ctypes = lib.enter_c

def run():
    while True:
        s0(0)

threading.Thread(target=run, daemon=True).start()
print("READY", flush=True)
run()
'''
EDGES["cs"]["closure"] = ("<lambda>", ANY, "back_closure")
CALLS = {
    "call": "s{n}({depth})", "key": "sorted((1,), key=key_{n})", "comp": "[s{n}({depth}) for _ in (1,)]",
    "gen": "for _ in gen_{n}(): x += 1", "init": "K_{n}()", "map": "list(map(key_{n}, (1,)))",
    "attr": "K_{n}.it.missing", "decorated": "w_{n}({depth})", "star": "s{n}(*(), **{{'depth': {depth}}})",
    "send": "x += finish(co_{n}())", "method": "enter_method({n})", "ctypes": "enter_ctypes({n})",
}
ENTRIES = {
    "key": "def key_{n}(_):\n    s{n}({depth})\n    return 0\n",
    "gen": "def gen_{n}():\n    x = 2\n    s{n}({depth})\n    yield x\n    x += 1\n",
    "init": "class K_{n}:\n    def __init__(self):\n        self.x = 1\n        s{n}({depth})\n",
    "attr": "class K_{n}:\n    def __getattr__(self, name):\n        s{n}({depth})\n        return 1\n"
            "K_{n}.it = K_{n}()\n",
    "decorated": "w_{n} = outer(s{n})\n",
    "send": "async def co_{n}():\n    s{n}({depth})\n    return 1\n",
}
ENTRIES["map"] = ENTRIES["key"]


def _function(number, nodes):
    node = nodes[number]
    lines = [f"def s{number}(depth):", "    x = depth", "    for i in range(6): x += i * i"]
    indent = "    "
    if node.repeats > 1:
        lines += ["    if depth:", f"        s{number}(depth - 1)", "    else:", "        x = 1"]
        indent = "        "
    entries = []
    for child in node.children:
        via, depth = nodes[child].via, nodes[child].repeats - 1
        lines.append(indent + CALLS[via].format(n=child, depth=depth))
        entries.append(ENTRIES.get(via, "").format(n=child, depth=depth))
    return "\n".join([*lines, "    for i in range(6): x -= i", "    return x", "", *entries])


def missing():
    return None if shutil.which("python3", path="/usr/bin") else "python3"


def build(place, nodes, compiler):
    """The command that runs the program until it is killed."""
    with open(f"{place}/lib.c", "w", encoding="utf-8") as file:
        file.write(truth_graph.c_source(nodes, GLUE, C_CALLS))
    subprocess.run([*compiler, "-shared", "-fPIC", f"{place}/lib.c", "-o", f"{place}/libtruth.so"],
                   check=True)
    finish = ("def finish(coroutine):\n    try:\n        coroutine.send(None)\n"
              "    except StopIteration as stop:\n        return stop.value\n")
    text = [HEAD.format(library=f"{place}/libtruth.so"), finish,
            *(_function(number, nodes) for number in reversed(nodes) if nodes[number].letter == "s"),
            TAIL.format()]
    with open(f"{place}/program.py", "w", encoding="utf-8") as file:
        file.write("\n".join(text))
    return ["/usr/bin/python3", f"{place}/program.py"]
