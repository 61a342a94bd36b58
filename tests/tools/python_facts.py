#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What an interpreter says about itself: the oracle of t_python.

usage: python_facts.py           prints its version and the file that contains the interpreter
       python_facts.py OFFSET    prints 1 if the Py_tss_t at _PyRuntime + OFFSET is the one that
                                 leads to the thread state, else 0"""

import ctypes
import platform
import sys

get_state = ctypes.pythonapi.PyGILState_GetThisThreadState
get_state.restype = ctypes.c_void_p


def interpreter_path():
    address = ctypes.cast(get_state, ctypes.c_void_p).value
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            fields = line.split(maxsplit=5)
            start, end = (int(x, 16) for x in fields[0].split("-"))
            if start <= address < end:
                return fields[5].strip()
    raise LookupError("PyGILState_GetThisThreadState")


def leads_to_state(offset):
    """Exchanges the key for one of our own: does the thread state follow?"""
    libc = ctypes.CDLL(None)
    key = ctypes.c_uint32()
    libc.pthread_key_create(ctypes.byref(key), None)
    libc.pthread_setspecific(key, ctypes.c_void_p(0x123450))
    runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
    there = ctypes.c_uint32.from_address(runtime + offset + 4)
    old, there.value = there.value, key.value
    state = get_state()
    there.value = old
    initialized = ctypes.c_uint32.from_address(runtime + offset).value
    return initialized == 1 and state == 0x123450 and get_state() not in (None, 0x123450)


if platform.python_implementation() == "CPython":
    if len(sys.argv) > 1:
        print(int(leads_to_state(int(sys.argv[1]))))
    else:
        print(platform.python_version(), interpreter_path())
