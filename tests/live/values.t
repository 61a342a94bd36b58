#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Values of samples: a program calls a function with known arguments, and the recording has exactly these, as
often as the program used them; arguments of functions, of both sites of a USDT probe, of tracepoints, and results."""

import collections
import os
import re
import subprocess

import gate

PROGRAM = os.path.join(gate.OUTPUT, "fixtures/native/values")
CALLS = 100
TEXTS = ["[empty]", "a text?with a tab", "x" * 64 + "...", "[unreadable]"]
VALUES = ("SELECT event.name, sample.id, label.key, label.value, sample.weight FROM sample JOIN event ON "
          "event.id = sample.event JOIN label ON label.context = sample.context")


def recorded(events, *command, text=None):
    """The samples of each event, as sorted texts of their values, and the recording."""
    file = gate.path(f"{len(os.listdir(gate.tmp))}.db")
    done = subprocess.run([gate.BRAID, "record", "-e", events, "-c", "1", "--max-overhead", "none", "-o", file, "--",
                           *command], input=text, capture_output=True, text=True, check=False)
    gate.equal(done.returncode, 0, f"{events.replace(PROGRAM, str())}: recorded", done.stderr)
    recording = gate.Recording(file)
    samples = collections.defaultdict(dict)
    for event, sample, key, value, _ in recording.sql(VALUES):
        samples[event, sample][key] = value
    seen = collections.defaultdict(list)
    for (event, _), labels in samples.items():
        seen[event.split(":")[0]].append(sorted(f"{key[6:]}={value}" for key, value in labels.items()))
    return {event: sorted(rows) for event, rows in seen.items()}, recording


def expected(row):
    return sorted(sorted(row(i)) for i in range(CALLS))


def check_calls():
    seen, recording = recorded(
        f"uprobe:{PROGRAM}:values__call(number:s32, text:str, large:u64, small:s16, byte:u8, pointer:ptr),"
        f"uretprobe:{PROGRAM}:values__call(ret:s64)", PROGRAM, text=f"{CALLS}\n")
    gate.equal(seen["uprobe"], expected(lambda i: [
        f"number={-i}", f"text={TEXTS[i % 4]}", f"large={10**10 + i}", "small=-7", f"byte={200 + i % 50}",
        "pointer=0x1234"]), "the arguments of each call")
    gate.equal(seen["uretprobe"], expected(lambda i: [f"ret={-2 * i - 200 - i % 50}"]), "the result of each call")
    gate.equal(recording.counters().get("values of samples missing: memory not readable"), CALLS // 4,
               "unreadable texts are counted")
    check_views(recording)
    rows = recording.merged("--event", f"uprobe:{PROGRAM}:values__call")
    gate.equal((len(rows), sum(n for _, n in rows)), (1, CALLS), "all calls have one stack")


def total(recording, *options):
    """The sum of the selected calls."""
    result = gate.braid("report", "--format", "folded", "--event", f"uprobe:{PROGRAM}:values__call", *options,
                        recording.file)
    gate.equal(result.status, 0, f"report {options}", result.err)
    return [(line.rsplit(" ", 1)[0].split(";")[0], int(line.rsplit(" ", 1)[1])) for line in result.out.splitlines()]


def check_views(recording):
    """--by, --where and --of have the numbers that follow from the arguments."""
    groups = collections.Counter()
    for group, n in total(recording, "--by", "value:text"):
        groups[group] += n
    gate.equal(groups, collections.Counter({text: CALLS // 4 for text in TEXTS}), "calls by value")
    for where, want in (("value.byte > 240", lambda i: 200 + i % 50 > 240), ("value.number <= -90", lambda i: i >= 90),
                        ("value.large >= 10000000050 and value.text ~ '^xx'", lambda i: i >= 50 and i % 4 == 2),
                        ("value.text < 5", lambda i: False), ("value.number = -7", lambda i: i == 7),
                        ("value.none > 0", lambda i: False)):
        want = sum(map(want, range(CALLS)))
        if want:
            gate.equal(sum(n for _, n in total(recording, "--where", where)), want, f"calls with {where}")
        else:
            result = gate.braid("report", "--event", f"uprobe:{PROGRAM}:values__call", "--format", "folded", "--where",
                                where, recording.file)
            gate.equal(result.out, "", f"no call with {where}", result.err)
    result = gate.braid("report", "--event", f"uprobe:{PROGRAM}:values__call", "--of", "byte", recording.file)
    gate.ok(re.search(rf"mean 224, p50 < 256.*\n +128 \.\. +256 +{CALLS} ", result.out), "a histogram of a value",
            result.out)
    result = gate.braid("report", "--event", f"uprobe:{PROGRAM}:values__call", "--of", "number", "--histogram=stacks",
                        recording.file)
    gate.equal(result.out.count(f"below 0: {CALLS - 1} occurrences"), 2, "of one below 0, also of the stack")
    result = gate.braid("report", "--event", f"uprobe:{PROGRAM}:values__call", "--of", "text", recording.file)
    gate.equal(result.status, 1, "a text has no histogram", result.out)
    for options, says in ((["--of", "byte", "--spans"], "exclude each other"),
                          (["--where", "value. > 1"], "the name of a value is missing"),
                          (["--of", "byte", "--format", "json"], "--of has its own format")):
        result = gate.braid("report", "--event", f"uprobe:{PROGRAM}:values__call", *options, recording.file)
        gate.ok(result.status and says in result.err, f"report {options}: {says}", result.err)


def check_stack_arguments():
    seen, _ = recorded(f"uprobe:{PROGRAM}:values__call(_, _, _, _, _, _, seventh:s32, e=arg8)", PROGRAM,
                       text=f"{CALLS}\n")
    gate.equal(seen["uprobe"], expected(lambda i: [f"seventh={-70 - i}", f"e={1 << 63}"]), "arguments on the stack")


def check_sites():
    """Odd and even calls hit different sites, with their arguments in different places."""
    seen, _ = recorded(f"usdt:{PROGRAM}:braid:value(n, text:str, arg3)", PROGRAM, text=f"{CALLS}\n")
    gate.equal(seen["usdt"], expected(lambda i: [f"n={-i}", f"text={TEXTS[i % 4]}", "arg3=-7"]),
               "the arguments of both sites of a probe")
    seen, _ = recorded(f"usdt:{PROGRAM}:braid:value()", PROGRAM, text=f"{CALLS}\n")
    gate.equal([len(row) for row in seen["usdt"]], [3] * CALLS, "an empty list: all arguments")


def check_kernel():
    name = gate.path("a file")
    with open(name, "w", encoding="ascii") as file:
        file.write("text")
    seen, _ = recorded("tracepoint:syscalls:sys_enter_openat(_, name:str),"
                       "tracepoint:sched:sched_process_exec(p->comm, bprm->argc, bprm->filename)",
                       "/bin/cat", name, name)
    gate.equal(sum(row == [f"name={name}"] for row in seen["tracepoint"]), 2, "a system call's text")
    gate.ok(["argc=3", "comm=cat", "filename=/bin/cat"] in seen["tracepoint"], "fields behind a tracepoint's arguments",
            seen["tracepoint"])
    seen, _ = recorded("tracepoint:sched:sched_process_exec(bprm->argc:u64)", "/bin/cat", name)
    gate.equal(seen["tracepoint"], [["argc=2"]], "a wider type than the field's reads no neighbour")
    seen, _ = recorded("tracepoint:syscalls:sys_exit_openat(ret)", "/bin/cat", gate.path("none"))
    gate.ok(["ret=-2"] in seen["tracepoint"], "a system call's result", seen["tracepoint"])


def check_patterns():
    seen, recording = recorded(f"uprobe:{PROGRAM}:[rv][ua][nl]*,usdt:{PROGRAM}:*:val*(n)", PROGRAM, text=f"{CALLS}\n")
    gate.equal(collections.Counter(row[0] for row in seen["uprobe"]),
               collections.Counter({"function=run": 1, "function=values__call": CALLS}), "each function of a pattern")
    gate.equal(seen["usdt"], expected(lambda i: ["function=braid:value", f"n={-i}"]), "each probe of a pattern, and values")
    result = gate.braid("report", "--format", "folded", "--event", f"uprobe:{PROGRAM}:[rv][ua][nl]*", "--by",
                        "value:function", recording.file)
    gate.equal({line.split(";")[0]: int(line.split()[-1]) for line in result.out.splitlines()},
               {"run": 1, "values__call": CALLS}, "report --by value:function")
    for pattern, says in (("*", "at most 1000 can be probed"), ("zz*", "no function of libc.so.6 matches zz*")):
        result = gate.braid("record", "-e", f"uprobe:libc.so.6:{pattern}", "-o", gate.path("none.db"), "--", "true")
        gate.ok(result.status == 1 and says in result.err, f"the pattern {pattern} is refused", result.err)


def check_interval():
    seen, _ = recorded(f"uprobe:{PROGRAM}:values__call:latency:uretprobe:{PROGRAM}:values__call(ret:s64)", PROGRAM,
                       text=f"{CALLS}\n")
    gate.equal(seen["uprobe"], expected(lambda i: [f"ret={-2 * i - 200 - i % 50}"]), "the result at an interval's end")


check_calls()
check_stack_arguments()
check_sites()
check_kernel()
check_interval()
check_patterns()
gate.done()
