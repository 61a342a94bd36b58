# SPDX-License-Identifier: GPL-2.0-or-later
# What `braid bench` measures CPython by: a line "calls N" or "work N" on standard input is answered
# by "NANOSECONDS CALLS": CPU time, and how many functions written here were called; "deep N" when it
# is in so many calls, which it does not come back from.
import sys
import time


def callee():
    pass


def calls(n):
    f = callee
    for i in range(n):
        f()
    return n


NAMES = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]
ENTRIES = 60


def entry(i):
    return {"id": i, "name": NAMES[i % 8] + str(i * 7919 % 1000), "size": i * 104729 % 1009,
            "tags": [NAMES[i % 3], NAMES[i % 5], NAMES[i % 7]]}


def size_of(one):
    return one["size"]


def as_text(one):
    tags = ", ".join(sorted(set(one["tags"])))
    return '{"id": %d, "name": "%s", "size": %d, "tags": "%s"}' % (
        one["id"], one["name"], one["size"], tags)


def parsed(text):
    result = {}
    for part in text.strip("{}").split(', "'):
        key, _, value = part.partition(": ")
        key = key.strip('"')
        value = value.strip('"')
        result[key] = int(value) if value.isdigit() else value
    return result


def unit():
    found = []
    for i in range(ENTRIES):
        found.append(entry(i))
    found.sort(key=size_of)
    lines = []
    for one in found:
        lines.append(as_text(one))
    text = "\n".join(lines)
    total = 0
    for line in text.split("\n"):
        total += parsed(line)["size"]
    words = {}
    for word in text.replace('"', " ").replace(":", " ").split():
        words[word] = words.get(word, 0) + 1
    return total + len(sorted(words, key=words.get))


def work(n):
    for i in range(n):
        unit()
    return n * (4 * ENTRIES + 1)


def deep(n, target):
    if n > 1:
        deep(n - 1, target)
    target.write(b"0 0\n")
    target.flush()
    while True:
        pass


def main():
    # Raw files: what decodes text is written in Python, and would be counted.
    source = sys.stdin.buffer
    target = sys.stdout.buffer
    target.write(("READY %d.%d.%d\n" % sys.version_info[:3]).encode())
    target.flush()
    for line in iter(source.readline, b""):
        name, n = line.split()
        if name == b"deep":
            sys.setrecursionlimit(100000)
            deep(int(n), target)
        start = time.process_time()
        n_calls = (calls if name == b"calls" else work)(int(n))
        seconds = time.process_time() - start
        target.write(("%d %d\n" % (seconds * 1e9, n_calls)).encode())
        target.flush()


main()
