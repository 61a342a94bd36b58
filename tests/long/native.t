#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""The native fixtures: the stacks that their header comments promise, complete, as libunwind finds
them."""

import re

import lib

# libc's own static functions have names only where its debug symbols are installed.
LIBC = r"\[libc[^;]*\]"
START = rf"^_start;__libc_start_main[^;]*;((__libc_start_call_main|{LIBC});)?main;"
THREAD = rf"^((__)?clone3?|{LIBC});(start_thread|{LIBC});"
BURN = r";burn(;|$)"

# name, arguments, {pattern over a folded stack: least share of the samples}
RECURSE = {START + "(recurse;){50}leaf" + BURN: 0.95}
FIXTURES = [
    ("recurse", [], RECURSE),
    ("recurse", [0, 900], {START + "(recurse;){900}leaf" + BURN: 0.95}),
    ("static", [], RECURSE),
    ("nopie", [], RECURSE),
    ("debugframe", [], RECURSE),
    ("realign", [], {START + "realigned_32" + BURN: 0.35, START + "realigned_64" + BURN: 0.35}),
    ("cxx", [], {
        START + r"shapes::area(\([a-z]+\))?" + BURN: 0.1,
        START + r"(void )?apply<shapes::Box<int>, [^;]*;main::[^;]*lambda[^;]*::operator\(\)[^;]*"
        + BURN: 0.05,
        START + r"catcher[^;]*;(thrower(\(int\))?;){5}burn": 0.05,
        START + r"catcher[^;]*;after_catch(\(\))?" + BURN: 0.05,
        START + r"sorted(\(\))?;.*;shapes::ByWeight::operator\(\)[^;]*" + BURN: 0.05,
    }),
    # The trampoline's symbol has no size, so that it may be shown by its place.
    ("signal", [], {
        START + "in_main" + BURN: 0.8,
        START + r"in_main;.*;(__restore_rt|\[libc[^;]*\]);on_signal;in_handler" + BURN: 0.25,
    }),
    ("signal", [0, "altstack"], {
        START + "in_main" + BURN: 0.8,
        START + r"in_main;.*;(__restore_rt|\[libc[^;]*\]);on_signal;in_handler" + BURN: 0.25,
    }),
    ("vdso", [], {START + "in_vdso;": 0.9, START + "in_vdso;[^;]*clock_gettime": 0.6}),
    ("syscalls", [], {
        START + "in_read;.*read.*;entry_SYSCALL_64.*;do_syscall_64;.*read": 0.15,
        START + "in_getdents;.*syscall;entry_SYSCALL_64.*;do_syscall_64;.*getdents64": 0.15,
        START + "in_faults;asm_exc_page_fault;.*fault": 0.1,
        START + "in_faults;.*munmap.*;entry_SYSCALL_64": 0.001,
    }),
    ("threads", [], {
        THREAD + "work_3;(work;)?burn": 0.03,
        THREAD + "work_brief;burn": 0.001,
        START + "between_threads" + BURN: 0.001,
    }),
    ("jitcode", [], {START + r"call_jit;\[anon\+0x5\];after_jit" + BURN: 0.9}),
]

# What opens libraries all the time is ahead of braid for moments.
DLOPEN = {START + "with;in_plugin;crc32": 0.3, START + "with;in_math;(__)?lgamma": 0.3}


def check(name, args, patterns, least=99.0, seconds=0.8):
    label = " ".join(map(str, [name, *args]))
    target = lib.start_ready(lib.fixture(name), *args)
    tables = lib.record("-p", target.pid, "-d", seconds)
    copies = lib.record("-p", target.pid, "-d", seconds, "--unwind", "copy")
    lib.stop(target)
    lib.check_complete(tables, least, label)
    used = int(tables.meta("copies_used"))
    lib.ok(used <= tables.samples() * (100 - least) / 100, f"{label}: by tables, not by copies",
           f"{used} of {tables.samples()} stacks were completed by copies", tables.result.err)
    lib.check_complete(copies, least, label + ", with stack copies")
    for pattern, share in patterns.items():
        lib.check_share(tables.folded(), pattern, share, label)
    return tables


def check_no_strangers(recording):
    """Nothing but kernel frames above the innermost function of recurse."""
    known = r"burn|spend|leaf|running|clock_ns|thread_cpu_ns|.*clock_gettime|\[vdso\+.*"
    wrong = {frames[55] for frames, _ in recording.folded("--annotate")
             if len(frames) > 55 and frames[55].endswith("_[n]")
             and not re.match(rf"({known})_\[n\]$", frames[55])}
    lib.equal(wrong, set(), "recurse: no frame that is none")


def check_thread_names(recording):
    names = {name for name, in recording.sql("SELECT DISTINCT name FROM thread")}
    want = {f"worker-{i}" for i in range(8)} | {"threads", "brief"}
    lib.equal(want - names, set(), "threads: names", names)
    wrong = recording.sql("""
        SELECT thread.name, stack.function FROM sample
          JOIN thread ON thread = thread.id JOIN stack ON stack.leaf = sample.native
         WHERE function LIKE 'work\\__' ESCAPE '\\'
           AND 'worker-' || substr(function, 6) != thread.name""")
    lib.equal(wrong, [], "threads: each name with its own stacks")
    born = recording.one("SELECT count(DISTINCT tid) FROM thread WHERE name = 'brief'")
    lib.ok(born >= 2, "threads: those that are born while recording", f"{born} of them")


def check_recursion_beyond_limit():
    target = lib.start_ready(lib.fixture("recurse"), 0, 3000)
    recording = lib.record("-p", target.pid, "-d", 1.5)
    lib.stop(target)
    n = recording.samples()
    stacks = recording.folded("--annotate")
    depths = {sum(frame.endswith("_[n]") for frame in frames) for frames, _ in stacks
              if "recurse_[n]" in frames}
    lib.ok(n >= 100, "too deep: samples are kept", n)
    lib.equal(depths, {1024}, "too deep: 1,024 frames are shown")
    lib.check_share(stacks, r";leaf_\[n\];burn_\[n\]", 0.95, "too deep: the innermost ones")
    cut = recording.one("SELECT ifnull(sum(value), 0) FROM counter "
                        "WHERE name = 'stacks cut: more native frames than shown'")
    marked = recording.one("SELECT count(*) FROM sample WHERE flags & 8")
    lib.ok(cut >= 0.95 * n, "too deep: counted", f"{cut} of {n}")
    lib.ok(marked >= 0.95 * n, "too deep: marked", f"{marked} of {n}")
    lib.equal(recording.one("SELECT count(*) FROM sample WHERE flags & 8 AND flags & 1"), 0,
              "too deep: none is called complete")
    lib.matches("more native frames than shown", recording.result.err, "too deep: in the summary")


lib.need_bpf()
for name, args, patterns in FIXTURES:
    tables = check(name, args, patterns, seconds=2.5 if name == "threads" else 0.8)
    if name == "threads":
        check_thread_names(tables)
    if name == "recurse" and not args:
        check_no_strangers(tables)
# In the moment in which one library replaces another at the same address, the kernel half still has
# the old one's table; the copy is unwound a little later, with the new one's.
check("dlopen", [], DLOPEN, least=90.0)
check_recursion_beyond_limit()
lib.done()
