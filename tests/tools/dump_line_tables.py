#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What CPython itself says about the lines of its code objects: the oracle of t_python_lines.

The first text line is the name of the tables' format; then one for each code object:
    NAME FIRST_LINE LINE_TABLE(hex) LINE,LINE,...    one per code unit, 0: none

The answers are PyCode_Addr2Line's where ctypes is there to call it. What the interpreter tells by
another way (dis, co_lines()) must agree: if it does not, the dump ends with an exception. The code
objects are compiled for the dump and never run, so that nothing can specialize them."""

import dis
import importlib.util
import sys
import types

try:
    import ctypes

    addr2line = ctypes.pythonapi.PyCode_Addr2Line
    addr2line.argtypes = [ctypes.py_object, ctypes.c_int]
    addr2line.restype = ctypes.c_int
except ImportError:
    addr2line = None

UNIT_BYTES = 2
MODULES = """argparse ast asyncio.base_events asyncio.tasks collections configparser csv ctypes
dataclasses datetime decimal difflib doctest email.message enum functools heapq html.parser
http.client inspect ipaddress json.decoder json.encoder logging mailbox optparse os pathlib pickle
pickletools pydoc random re._parser sre_parse shutil smtplib socket sqlite3.dbapi2 ssl statistics string
subprocess tarfile tempfile textwrap threading tokenize traceback turtle typing unittest.mock
urllib.request uuid weakref xml.dom.minidom zipfile""".split()

# Forms that modules seldom have. (The long jumps need many or the long entries of the table.)
FORMS = (
    """
def outer(f):
    return f
@outer
@outer(
    lambda x:
        x
)
def decorated(a=[i
                 for i in range(3)
                 if i]):
    value = max(
        a,
        key=lambda v: (
            v +
            1),
    )
    return {k:
            v for k, v in
            zip(value, a)}
"""
    + "\n" * 5000
    + """
class Late:
    x = (1,
         2 if outer else
         3)
    def method(self): yield [
        (await_, y)
        for await_ in self
        for y in (z
                  for z in self)]
"""
    + "\n" * 70000
    + """
async def far(x):
    async with x as y, \\
            y as z:
        try:
            assert z, (
                "a" + y
                if y else
                "c")
        except ValueError as e:
            await e
        finally:
            del x
"""
)
FORMS_310 = """
def choose(y):
    match y:
        case [1, *rest]: return rest
        case {"a": b}: return (
            b
        )
"""
FORMS_311 = """
try: pass
except* ValueError as e:
    print(
        e)
"""


def codes_in(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from codes_in(const)


def expand_lines(code):
    """Line of each code unit, from what Python code can ask."""
    lines = [0] * (len(code.co_code) // UNIT_BYTES)
    if hasattr(code, "co_lines"):
        for start, end, line in code.co_lines():
            for i in range(start // UNIT_BYTES, end // UNIT_BYTES):
                lines[i] = line or 0
        return lines
    starts = list(dis.findlinestarts(code)) + [(len(code.co_code), 0)]
    for (start, line), (end, _) in zip(starts, starts[1:]):
        for i in range(start // UNIT_BYTES, end // UNIT_BYTES):
            lines[i] = line
    return lines


def dump(code, name):
    lines = expand_lines(code)
    if addr2line:
        told = [addr2line(code, UNIT_BYTES * i) for i in range(len(lines))]
        told = [line if line > 0 else 0 for line in told]
        assert told == lines, (code, told, lines)
    if hasattr(code, "co_positions"):
        assert [position[0] or 0 for position in code.co_positions()] == lines, code
    table = code.co_linetable if hasattr(code, "co_lines") else code.co_lnotab
    # Blanks are in "<generic parameters of f>".
    name = (name + ":" + code.co_name).replace(" ", "_")
    print(name, code.co_firstlineno, table.hex() or "-", end=" ")
    print(",".join(map(str, lines)))


def main():
    version = sys.version_info
    print("locations" if version >= (3, 11) else "ranges" if version >= (3, 10) else "lnotab")
    sources = [(FORMS, "forms")]
    if version >= (3, 10):
        sources.append((FORMS_310, "forms-3.10"))
    if version >= (3, 11):
        sources.append((FORMS_311, "forms-3.11"))
    for name in MODULES:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, AttributeError):  # the latter: 3.6, of a module in what is no package
            continue
        if spec and spec.origin and spec.origin.endswith(".py"):
            with open(spec.origin, "rb") as file:
                sources.append((file.read(), name))
    for source, name in sources:
        for code in codes_in(compile(source, name, "exec")):
            dump(code, name)


main()
