#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Machine code in `braid report --disassemble` and in the page, beside what objdump makes of the same
file and what samples were made at which address."""

import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap  # noqa: E402

OUTPUT = os.path.abspath(os.environ.get("OUTPUT", "build"))
WORK = tempfile.TemporaryDirectory()
FILE = os.path.join(WORK.name, "made.db")
PROGRAM = os.path.join(WORK.name, "program")

SOURCE = """
#include <string.h>
double table[256];
__attribute__((noinline)) double inner(int n) { return n * 0.5 + table[n & 255]; }
static inline double twice(double x) { double y = x; for (int i = 0; i < 8; i++) y += table[i] * x; return y; }
__attribute__((noinline)) double outer(int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++)
		sum += inner(i) + twice(sum);
	return sum;
}
int main(int argc, char **argv)
{
	char text[64] = "";
	strncpy(text, argv[0], 63);
	return outer(argc) > strlen(text);
}
"""

# What objdump and Capstone call otherwise.
SAME = {"retq": "ret", "leaveq": "leave", "movabsq": "movabs", "cwtl": "cwtl", "callq": "call",
        "jmpq": "jmp"}


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, check=False)


def compiled(*flags):
    source = PROGRAM + ".c"
    with open(source, "w", encoding="ascii") as out:
        out.write(SOURCE)
    subprocess.run(["gcc", "-O2", "-g", "-mavx2", *flags, source, "-o", PROGRAM], check=True)


def objdump(path):
    """{function: [(address, mnemonic)]}"""
    functions, here = {}, None
    for line in run("objdump", "-d", "--no-show-raw-insn", "-j", ".text", path).stdout.splitlines():
        start = re.match(r"[0-9a-f]+ <(.+)>:$", line)
        row = re.match(r" *([0-9a-f]+):\t(?:(?:bnd|notrack|data16|cs|lock|rep\w*|addr32) )*(\S+)", line)
        if start:
            here = functions.setdefault(start[1], [])
        elif row:
            here.append((int(row[1], 16), row[2]))
    return functions


def made(samples):
    if os.path.exists(FILE):
        os.unlink(FILE)
    lines = "".join("\t".join(f"cpu samples {n} running - - 42:app 42:app".split() + [frames]) + "\n"
                    for n, frames in samples)
    subprocess.run([OUTPUT + "/tests/tools/mksamples", FILE], input=lines, text=True, check=True)


def at(name, address, path=PROGRAM):
    return f"n:{name}@{path}+0x{address:x}"


def disassembled(name, *words):
    result = run(OUTPUT + "/braid", "report", "--disassemble", name, *words, FILE)
    tap.equal((result.returncode, result.stderr), (0, ""), f"{name}: is disassembled")
    return result.stdout


def rows_of(text):
    """[(self, total, address, text)], samples being counted."""
    rows = []
    for line in text[text.index("Instruction\n"):].splitlines()[1:]:
        if len(line) > 48 and line[:48].strip():
            own, total = line[7:17].strip(), line[25:35].strip()
            rows.append((int(own or 0), int(total or 0), int(line[36:46], 16), line[48:]))
    return rows


def page():
    path = os.path.join(WORK.name, "page.html")
    result = run(OUTPUT + "/braid", "flame", "--source", "-o", path, FILE)
    tap.equal((result.returncode, result.stderr), (0, ""), "the page is written")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    return json.loads(re.search(r'id="codes">(.*?)</script>', text, re.S)[1])


def check_counts():
    code = objdump(PROGRAM)
    outer, inner = code["outer"], code["inner"]
    call = next(i for i, (_, name) in enumerate(outer) if name.startswith("call"))
    behind = outer[call + 1][0]
    made([(5, f"{at('main', code['main'][0][0])};{at('outer', outer[3][0])}"),
          (7, f"{at('main', code['main'][0][0])};{at('outer', behind - 1)};{at('inner', inner[1][0])}"),
          (2, f"{at('outer', behind - 1)};{at('outer', behind - 1)};{at('outer', outer[3][0])}"),
          (1, f"{at('outer', outer[4][0])};k:page_fault")])
    text = disassembled("outer")
    rows = rows_of(text)
    tap.equal([address for _, _, address, _ in rows], [address for address, _ in outer],
              "the addresses are objdump's")
    tap.equal({address: (own, total) for own, total, address, _ in rows if total},
              {outer[3][0]: (7, 7), outer[4][0]: (0, 1), outer[call][0]: (0, 9)},
              "self at the instruction, callees at the call, recursion once, the kernel as called")
    tap.matches(r"outer in \S+/program\nself 7, total 15: 100.0% of all\n", text, "the whole")
    tap.matches(r" 46.7%          7  46.7%          7 .{10}  ", text, "in % of the function")
    tap.matches(r"program.c:9\n.*program.c:10\n", text, "lines by DWARF")
    tap.ok(re.search(r"call\w* 0x\w+ <inner>", text), "calls have names", text)
    tap.equal(sum(own for own, *_ in rows_of(disassembled("inner"))), 7, "another function")
    (file, why, flat), = [one for one in page() if one[2] and one[2][0] == outer[0][0]]
    tap.equal((file, why, [(flat[i], flat[i + 3]) for i in range(0, len(flat), 4)]),
              (PROGRAM, "", [(address, text) for _, _, address, text in rows]), "the same in the page")


def check_all(path):
    """All functions with sizes, in one recording."""
    symbols = re.findall(r"^([0-9a-f]+) ([0-9a-f]+) [tT] (\S+)$", run("nm", "-S", path).stdout, re.M)
    made([(1, at(name, int(start, 16), path)) for start, _, name in symbols])
    functions = objdump(path)
    wrong, n, names = [], 0, 0
    for _, why, flat in page():
        rows = [(flat[i], flat[i + 3].split()) for i in range(0, len(flat), 4) if not why]
        wants = next((rows for rows in functions.values() if rows and flat and rows[0][0] == flat[0]), None)
        if not wants or any(flat[1::4]):  # cut
            continue
        ends = rows[-1][0]
        wants = [want for want in wants if want[0] <= ends]
        n += len(wants)
        if [address for address, _ in rows] != [address for address, _ in wants]:
            wrong.append((rows[0], [x for x in wants if x[0] not in {a for a, _ in rows}][:3]))
            continue
        for (_, (name, *_)), (_, want) in zip(rows, wants):
            names += SAME.get(name, name) == want or name[:-1] == want or name == want[:-1]
    tap.equal(wrong, [], f"{os.path.basename(path)}: all of {n} addresses are objdump's")
    tap.ok(names > 0.97 * n > 80, f"and {names} mnemonics, others are spelt otherwise")


def check_refused():
    start = objdump(PROGRAM)["inner"][0][0]
    made([(1, at("inner", start))])
    os.chmod(PROGRAM, 0o700)
    if os.geteuid() == 0:
        tap.matches("no code: the file is not readable by all users", disassembled("inner"), "a private file")
    os.chmod(PROGRAM, 0o755)
    compiled("-DOTHER=1", "-O0")
    text = disassembled("inner")
    tap.matches("no code: the file has changed since the recording\n$", text, "another version")
    tap.ok("Instruction" not in text, "of which nothing is shown", text)
    os.unlink(PROGRAM)
    tap.matches("no code: the file is missing or unreadable on this machine", disassembled("inner"), "no file")
    tap.ok(all(why and not flat for _, why, flat in page()), "the page says why, too")
    compiled("-Wl,--build-id=none")
    made([(1, at("inner", objdump(PROGRAM)["inner"][0][0]))])
    tap.matches("no code: the file has no build ID", disassembled("inner"), "a file that has no build id")
    result = run(OUTPUT + "/braid", "report", "--disassemble", "nothing", FILE)
    tap.equal(result.returncode, 1, "a function that there is not")
    tap.matches("cannot show the code of nothing: no sample is in a native function", result.stderr, "and says so")
    result = run(OUTPUT + "/braid", "report", "--disassemble", "inner", "--format", "tree", FILE)
    tap.equal(result.returncode, 2, "it is a format of its own")


compiled()
check_counts()
check_all(PROGRAM)
check_all(OUTPUT + "/braid")
check_refused()
tap.done()
