# SPDX-License-Identifier: GPL-2.0-or-later
"""ELF programs that run, and claim to have whatever a test wants: sections and segments of any size, most of it holes.
They burn CPU for SPINS turns of a loop at a time, with a pause between, until somebody kills them."""

import struct
import zlib

BASE = 0x400000
TEXT = 0x1000
SHT = {"progbits": 1, "symtab": 2, "strtab": 3, "note": 7, "nobits": 8, "dynsym": 11}
SHF_ALLOC, SHF_COMPRESSED = 2, 0x800
PT_LOAD, PT_NOTE, PT_GNU_EH_FRAME = 1, 4, 0x6474e550
ELFCOMPRESS_ZLIB = 1

# mov rcx, SPINS; 1: dec rcx; jnz 1b; mov eax, 35 (nanosleep); lea rdi, [pause]; xor esi, esi; syscall; jmp begin
_SPINS = 3000000
_LOOP = b"\x48\xb9" + struct.pack("<Q", _SPINS) + b"\x48\xff\xc9\x75\xfb"
_SLEEP = b"\xb8\x23\x00\x00\x00\x48\x8d\x3d\x09\x00\x00\x00\x31\xf6\x0f\x05"
CODE = _LOOP + _SLEEP + b"\xeb" + struct.pack("b", -(len(_LOOP) + len(_SLEEP) + 2))
CODE += bytes(3) + struct.pack("<QQ", 0, 10000000)


class Section:
    """One section: `data` at its begin, a hole behind it up to `size` bytes. `offset` places it anywhere, over others too."""

    def __init__(self, name, kind="progbits", data=b"", size=None, flags=0, link=0, entry=0, offset=None, info=0):
        self.name, self.kind, self.data, self.flags = name, SHT[kind], data, flags
        self.size = len(data) if size is None else size
        self.link, self.entry, self.offset, self.info = link, entry, offset, info


class Segment:
    """A program header besides the one of the code."""

    def __init__(self, kind, offset, vaddr, filesz, memsz=None, flags=4):
        self.words = (kind, flags, offset, vaddr, vaddr, filesz, filesz if memsz is None else memsz, 0x1000)


def compressed(data, claims=None):
    """A section's contents, deflated, which claim to have so many bytes."""
    return struct.pack("<IIQQ", ELFCOMPRESS_ZLIB, 0, len(data) if claims is None else claims, 1) + zlib.compress(data, 9)


def write(path, sections=(), segments=(), names_size=None, file_size=None, seed=0):
    """`names_size`: of .shstrtab, which ends in a hole. `seed` makes files differ whose contents are the same."""
    names = b"\0"
    at = {}
    for name in [".text", ".shstrtab", *(section.name for section in sections)]:
        at[name] = len(names)
        names += name.encode() + b"\0"
    everything = [Section(".text", data=CODE, flags=6, offset=TEXT),
                  Section(".shstrtab", "strtab", names, names_size), *sections]
    offset = TEXT + 0x1000
    headers = [bytes(64)]
    pieces = [(TEXT + 0x800, struct.pack("<Q", seed))]
    for section in everything:
        if section.offset is None:
            section.offset = offset
            offset = (offset + section.size + 0xfff) & ~0xfff
        if section.data:
            pieces.append((section.offset, section.data))
        headers.append(struct.pack("<IIQQQQIIQQ", at[section.name], section.kind, section.flags,
                                   BASE + TEXT if section.name == ".text" else 0, section.offset, section.size,
                                   section.link, section.info, 1, section.entry))
    programs = [struct.pack("<IIQQQQQQ", PT_LOAD, 5, 0, BASE, BASE, TEXT + 0x1000, TEXT + 0x1000, 0x1000)]
    programs += [struct.pack("<IIQQQQQQ", *segment.words) for segment in segments]
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, BASE + TEXT, 64, offset, 0, 64, 56, len(programs), 64, len(headers), 2)
    with open(path, "wb") as file:
        for where, data in [(0, head + b"".join(programs)), *pieces, (offset, b"".join(headers))]:
            file.seek(where)
            file.write(data)
        if file_size:
            file.truncate(max(file_size, file.tell()))
