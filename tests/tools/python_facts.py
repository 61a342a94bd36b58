#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What an interpreter says about itself: the oracle of t_python. Runs on CPython 2.7, too.

usage: python_facts.py            prints its version, the file that contains the interpreter, and
                                  1 if it is built without the GIL, else 0
       python_facts.py ADDRESS    prints 1 if what is at this link-time address of the file is the
                                  thread key that leads to the thread state, else 0
       python_facts.py KIND OFFSET SLOT    the same for a thread-local variable: the numbers of
                                  struct x86_tls (runtimes/common/x86_code.h)"""

import ctypes
import platform
import struct
import sys

get_state = ctypes.pythonapi.PyGILState_GetThisThreadState
get_state.restype = ctypes.c_void_p


def interpreter():
    """The file's path, and where its first byte is in memory."""
    address = ctypes.cast(get_state, ctypes.c_void_p).value
    first = {}
    with open("/proc/self/maps") as maps:
        for line in maps:
            fields = line.split(None, 5)
            start, end = (int(x, 16) for x in fields[0].split("-"))
            path = fields[5].strip() if len(fields) > 5 else ""
            if int(fields[2], 16) == 0:
                first[path] = start
            if start <= address < end:
                return path, first[path]
    raise LookupError("PyGILState_GetThisThreadState")


def bias():
    """What a link-time address is less than the address in memory."""
    path, start = interpreter()
    with open(path, "rb") as file:
        header = file.read(64)
        e_phoff, = struct.unpack_from("<Q", header, 32)
        size, count = struct.unpack_from("<HH", header, 54)
        file.seek(e_phoff)
        table = file.read(size * count)
    for i in range(count):
        p_type, _, offset, vaddr = struct.unpack_from("<IIQQ", table, i * size)
        if p_type == 1 and offset == 0:
            return start - vaddr
    raise LookupError("PT_LOAD")


def leads_to_state(address):
    """Exchanges the key for one of our own: does the thread state follow?"""
    libc = ctypes.CDLL(None)
    key = ctypes.c_uint32()
    libc.pthread_key_create(ctypes.byref(key), None)
    libc.pthread_setspecific(key, ctypes.c_void_p(0x123450))
    is_plain = sys.version_info < (3, 7)  # an int; later a Py_tss_t {is_initialized, key}
    at = bias() + address
    if not is_plain and ctypes.c_uint32.from_address(at).value != 1:
        return False
    there = ctypes.c_uint32.from_address(at if is_plain else at + 4)
    old, there.value = there.value, key.value
    state = get_state()
    there.value = old
    return state == 0x123450 and get_state() not in (None, 0x123450)


def word(address):
    return ctypes.c_uint64.from_address(address % 2**64).value


def is_state(kind, offset, slot):
    """Is the thread state in this thread-local variable of this thread?"""
    pthread_self = ctypes.CDLL(None).pthread_self
    pthread_self.restype = ctypes.c_void_p
    start, slot = pthread_self(), bias() + slot
    if kind == 1:  # the slot tells the offset
        offset = word(slot)
    elif kind == 2:  # the slot tells the module, and the variable's offset in its block
        start = word(word(start + 8) + 16 * word(slot))
        offset += word(slot + 8)
    return word(start + offset) == get_state()


if platform.python_implementation() == "CPython":
    if len(sys.argv) > 2:
        print(int(is_state(*map(int, sys.argv[1:]))))
    elif len(sys.argv) > 1:
        print(int(leads_to_state(int(sys.argv[1]))))
    else:
        print("%s %s %d" % (platform.python_version(), interpreter()[0],
                            "t" in getattr(sys, "abiflags", "")))
