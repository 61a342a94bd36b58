#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A replay must be able to fail. Cases that are wrong on purpose: what is expected is changed, what was
recorded is changed, and what was recorded is taken away, which is "record again" whatever stack
comes out."""

import glob
import lzma
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

REPLAY = os.path.join(os.environ.get("OUTPUT", "build"), "tests/replay/replay")
HEADER = struct.Struct("<IIQQQ")
MAGIC = b"braid corpus 1\n\0"
FILE, IMAGE, CASE, BYTES, SAME, SIZE, PIECE, KNOWN = range(1, 9)

n_tests = n_failed = 0


def ok(good, name, detail=""):
    global n_tests, n_failed
    n_tests += 1
    n_failed += not good
    print("ok" if good else "not ok", n_tests, "-", name)
    if not good:
        print("# " + detail.replace("\n", "\n# "), file=sys.stderr)


def read_pack(path):
    """Entries as [tag, name, a, b, bytes]."""
    data, at, entries = lzma.open(path).read(), len(MAGIC), []
    assert data.startswith(MAGIC)
    while at < len(data):
        tag, name_size, a, b, size = HEADER.unpack_from(data, at)
        at += HEADER.size
        entries.append([tag, data[at:at + name_size], a, b,
                        data[at + name_size:at + name_size + size]])
        at += name_size + size
    return entries


def write_pack(path, entries):
    with lzma.open(path, "w") as out:
        out.write(MAGIC)
        for tag, name, a, b, data in entries:
            out.write(HEADER.pack(tag, len(name), a, b, len(data)) + name + data)


class Copy:
    """A bundle with its first case alone, in a directory of its own."""

    def __init__(self, bundle):
        self.dir = tempfile.mkdtemp(prefix="braid-wrong-")
        self.path = os.path.join(self.dir, "x.bundle")
        entries, cases = [], 0
        for entry in read_pack(bundle):
            cases += entry[0] == CASE
            if cases < 2:
                entries.append(entry)
        write_pack(self.path, entries)
        with open(bundle[:-len("bundle")] + "txt", encoding="utf-8") as texts:
            text = texts.read()
        self.write_text(text[:(text + "\n== ").index("\n== ", 1) + 1])
        shutil.copytree(os.path.join(os.path.dirname(bundle), "images"),
                        os.path.join(self.dir, "images"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.dir)

    def text(self):
        with open(self.path[:-len("bundle")] + "txt", encoding="utf-8") as texts:
            return texts.read()

    def write_text(self, text):
        with open(self.path[:-len("bundle")] + "txt", "w", encoding="utf-8") as texts:
            texts.write(text)

    def replay(self):
        run = subprocess.run([REPLAY, self.path], text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
        return run.returncode, run.stdout


def fails(title, copy, why):
    status, said = copy.replay()
    ok(status != 0 and re.search(why, said, re.M), title, said)


def swap_lines(text, first):
    lines = text.split("\n")
    lines[first], lines[first + 1] = lines[first + 1], lines[first]
    return "\n".join(lines)


def wrong_texts(bundle):
    with Copy(bundle) as copy:
        good = copy.text()
        lines = good.split("\n")
        merged = lines.index("-- merged") + 1
        told = next(i for i, line in enumerate(lines) if line.startswith("-- told")) + 1
        unwound = next(i for i, line in enumerate(lines) if line.startswith("-- unwound")) + 1

        copy.write_text(swap_lines(good, merged))
        fails("two frames of the merged stack swapped", copy, "# want")
        copy.write_text("\n".join(lines[:merged] + lines[merged + 1:]))
        fails("a frame less is expected", copy, "# want")
        copy.write_text(good.rstrip("\n") + "\n  one_more_[n]\n")
        fails("a frame more is expected", copy, "the end")
        copy.write_text(re.sub(r":(\d+)\)", lambda match: ":%d)" % (int(match[1]) + 1), good, 1))
        fails("a line is one too high", copy, "# want")
        copy.write_text("\n".join(lines[:told] + ["what_is_not_there\t*\t*"] + lines[told:]))
        fails("the program told of another frame", copy, "# told")
        copy.write_text("\n".join(lines[:unwound] + ["libc.so.6+0x1"] + lines[unwound:]))
        fails("libdwfl found another frame", copy, "libdwfl")
        copy.write_text("\n".join(lines[:merged - 1]) + "\n")
        fails("no merged stack is expected", copy, "no merged stack")
        copy.write_text(good.replace("== ", "== another ", 1))
        fails("the case is not in the text", copy, "nothing is expected")


def wrong_records(bundle):
    with Copy(bundle) as copy:
        entries = read_pack(copy.path)
        name = re.search(r"-- told\n(?:.*\n)*?([A-Za-z_]{4,})\t", copy.text())[1].encode()

        write_pack(copy.path, [[tag, path, a, b, data.replace(name, name[::-1])]
                               if tag in (BYTES, SAME) else [tag, path, a, b, data]
                               for tag, path, a, b, data in entries])
        fails("a function has another name in memory", copy, "# told|# want")

        case = next(i for i, entry in enumerate(entries) if entry[0] == CASE)
        regs = bytearray(entries[case][4])
        regs[7 * 8] ^= 8  # the stack pointer
        write_pack(copy.path, entries[:case] + [entries[case][:4] + [bytes(regs)]] +
                   entries[case + 1:])
        fails("the stack pointer is 8 off", copy, "^not ok|# ")

        for machine, name in (183, "an arm64"), (62 << 8, "another"):
            write_pack(copy.path, entries[:case] + [entries[case][:3] + [machine, entries[case][4]]] +
                       entries[case + 1:])
            fails(f"a case of {name} machine", copy, f"is of {name} process, whose code this build does not unwind")

        kept = [entry for entry in entries if entry[0] != BYTES]
        write_pack(copy.path, kept)
        fails("no memory was recorded", copy, "record again")
        stack = max((entry for entry in entries if entry[0] == BYTES), key=lambda e: len(e[4]))
        write_pack(copy.path, [entry for entry in entries if entry is not stack])
        fails("the largest piece of memory was not recorded", copy, "record again")
        write_pack(copy.path, [entry for entry in entries if entry[1] != b"maps"])
        fails("no mappings were recorded", copy, "^not ok")

        write_pack(copy.path, entries)
        image = next(entry[4].decode() for entry in entries
                     if entry[0] == IMAGE and b"python" in entry[1])
        path = os.path.join(copy.dir, "images", image)
        pieces = read_pack(path)
        write_pack(path, [entry for entry in pieces if entry[0] != KNOWN])
        fails("code that an image does not describe", copy, "record again")
        write_pack(path, [entry for entry in pieces if entry[0] != PIECE or entry[2] == 0])
        fails("an image without its parts", copy, "^not ok")
        with open(copy.path, "r+b") as out:
            out.truncate(os.path.getsize(copy.path) // 2)
        fails("half a bundle", copy, "damaged")


bundles = sorted(glob.glob("tests/replay/corpus/python/*.bundle"))
with Copy(bundles[0]) as unchanged:
    exit_status, output = unchanged.replay()
    ok(exit_status == 0, "unchanged, it passes", output)
wrong_texts(bundles[0])
wrong_records(bundles[0])
print("1..%d" % n_tests)
sys.exit(n_failed != 0)
