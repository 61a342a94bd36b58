#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Qualified names of code objects, as CPython's compiler gives them: the oracle of
t_python_qualname.

    dump_qualnames.py library STEP          every STEP-th file of the standard library
    dump_qualnames.py source PATH...        these files

One text line for each code object but modules: PATH, first line, name and qualified name,
separated by tabs. From 3.11 on, the name is co_qualname. Before, the bytecode holds it: functions
are made of a code object and a qualified name, and a class's body stores its own."""

import dis
import os
import sys
import sysconfig
import types

CODE_UNIT = 2
CO_NEWLOCALS = 2  # all but class bodies
LOAD_CONST, STORE_NAME, MAKE_FUNCTION, EXTENDED_ARG = (
    dis.opmap[name] for name in ("LOAD_CONST", "STORE_NAME", "MAKE_FUNCTION", "EXTENDED_ARG")
)


def instructions(code):
    """Those with an argument that counts: (operation, argument)."""
    bytecode = code.co_code
    extended = 0
    for i in range(0, len(bytecode), CODE_UNIT):
        operation, argument = bytecode[i], extended | bytecode[i + 1]
        extended = argument << 8 if operation == EXTENDED_ARG else 0
        if operation != EXTENDED_ARG:
            yield operation, argument


def made_names(code):
    """Code objects made in this one, with the qualified name each is given."""
    before = [None, None]
    for operation, argument in instructions(code):
        if operation == MAKE_FUNCTION:
            yield before
        before = [before[1], code.co_consts[argument] if operation == LOAD_CONST else None]


def class_name(code):
    """The __qualname__ that a class's body stores, first of all."""
    const = None
    for operation, argument in instructions(code):
        if operation == STORE_NAME and code.co_names[argument] == "__qualname__":
            return const
        const = code.co_consts[argument] if operation == LOAD_CONST else None


def names_in(code):
    if hasattr(code, "co_qualname"):
        for const in code.co_consts:
            if isinstance(const, types.CodeType):
                yield const, const.co_qualname
                yield from names_in(const)
        return
    for made, name in made_names(code):
        is_class = not made.co_flags & CO_NEWLOCALS
        yield made, class_name(made) if is_class else name
        yield from names_in(made)


def library():
    stdlib = sysconfig.get_paths()["stdlib"]
    for directory, subdirectories, files in os.walk(stdlib):
        subdirectories[:] = sorted(set(subdirectories) - {"site-packages", "dist-packages"})
        for name in sorted(files):
            # The scopes of PEP 695 (3.12) are no business of what is for up to 3.10.
            if name.endswith(".py") and name != "test_type_params.py":
                yield os.path.join(directory, name)


def dump(path):
    try:
        with open(path, "rb") as file:
            module = compile(file.read(), path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, OSError):
        return  # tests of the compiler, or Python 2
    for code, name in names_in(module):
        if not code.co_name.startswith("<generic "):
            line = "\t".join((path, str(code.co_firstlineno), code.co_name, name))
            sys.stdout.buffer.write(line.encode("utf-8", "surrogateescape") + b"\n")


if sys.argv[1] == "library":
    paths = list(library())[:: int(sys.argv[2])]
else:
    paths = sys.argv[2:]
for path in paths:
    dump(path)
