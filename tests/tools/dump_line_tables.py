#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What CPython itself says about the lines of its code objects: the oracle of t_python_lines.

One text line for each code object:
    NAME FIRST_LINE LINE_TABLE(hex) LINE,LINE,...    one per code unit, 0: none
Exits with status 3 and a reason if this interpreter has no location tables of 3.11's form."""

import importlib.util
import sys
import types

MODULES = """argparse ast asyncio.base_events asyncio.tasks collections configparser csv ctypes
dataclasses datetime decimal difflib doctest email.message enum functools heapq html.parser
http.client inspect ipaddress json.decoder json.encoder logging mailbox optparse os pathlib pickle
pickletools pydoc random re._parser shutil smtplib socket sqlite3.dbapi2 ssl statistics string
subprocess tarfile tempfile textwrap threading tokenize traceback turtle typing unittest.mock
urllib.request uuid weakref xml.dom.minidom zipfile""".split()

# Forms that modules seldom have. (The long jumps need the long entries of the table.)
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
        except* ValueError as e:
            await e
        finally:
            del x
    match y:
        case [1, *rest]: return rest
        case {"a": b}: return (
            b
        )
"""
)


def codes_in(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from codes_in(const)


def dump(code):
    lines = [position[0] or 0 for position in code.co_positions()]
    for start, end, line in code.co_lines():
        assert all(lines[i] == (line or 0) for i in range(start // 2, end // 2)), code
    assert len(lines) == len(code.co_code) // 2, code
    print(code.co_name, code.co_firstlineno, code.co_linetable.hex() or "-", end=" ")
    print(",".join(map(str, lines)))


def main():
    if sys.implementation.name != "cpython" or sys.version_info < (3, 11):
        print("not CPython 3.11 or later:", sys.version.split()[0], file=sys.stderr)
        return 3
    sources = [(FORMS, "forms")]
    for name in MODULES:
        try:
            spec = importlib.util.find_spec(name)
        except ImportError:
            continue
        if spec and spec.origin and spec.origin.endswith(".py"):
            with open(spec.origin, "rb") as file:
                sources.append((file.read(), name))
    for source, name in sources:
        for code in codes_in(compile(source, name, "exec")):
            dump(code)
    return 0


sys.exit(main())
