#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""CPython 3.11, every build at hand: the fixtures' Python stacks with their lines, as the
interpreter itself tells them, and the C frames between them."""

import glob
import os
import re
import shutil
import subprocess

import lib

C = r"([^;]*_\[[nik]\];)"  # a frame that is no Python frame
SCRIPTS = sorted(set(map(os.path.basename, glob.glob("fixtures/python/*.py")))
                 - {"fixture.py", "imported.py"})


def between(*words):
    """A stack that has these Python frames and C functions (patterns behind a *) in this order,
    and no other Python frames in between."""
    pattern = ""
    for word in words:
        if word.startswith("*"):
            pattern += rf"{C}*({word[1:]})( \([^;]*\))?_\[[ni]\];{C}*"
        else:
            pattern += rf"{re.escape(word)} \([^;]*\)_\[py\];"
    return pattern


ANY = r"*[^;]+"  # some C function
# Names of functions that are exported, or in .symtab; a stripped build shows [file+0x...].
NESTING = {
    "nest_sorted.py": [
        between("<module>", "outer", r"*(list_sort\w*|builtin_sorted|\[[^;]*\])",
                "outer_key", r"*(list_sort\w*|builtin_sorted|\[[^;]*\])", "inner_key"),
    ],
    "nest_resub.py": [
        between("<module>", "outer", r"*(pattern_subx\w*|\[[^;]*\])", "replace_digit",
                r"*(pattern_subx\w*|\[[^;]*\])", "replace_letter"),
    ],
    "nest_reduce.py": [
        between("outer", r"*(functools_reduce\w*|\[[^;]*\])", "add", "burn"),
        between("add", r"*(functools_reduce\w*|\[[^;]*\])", "add_inner", "burn"),
        between("outer", r"*(functools_reduce\w*|\[[^;]*\])", r"*(filter_next|\[[^;]*\])", "keep",
                "burn"),
    ],
    "nest_sqlite.py": [
        between("Database.doubled", "*sqlite3_step", "*sqlite3VdbeExec", "double"),
        between("Database.ordered", "*sqlite3_step", "*sqlite3VdbeExec", "compare"),
    ],
    "nest_ctypes.py": [
        between("<module>", "outer", "*ffi_call[^;]*", "*(__GI_)?(__)?qsort(_r)?", ANY,
                "compare_nested", "*ffi_call[^;]*", "*(__GI_)?(__)?qsort(_r)?", ANY, "compare"),
    ],
    "nest_del.py": [
        between("<module>", "drop", r"*(slot_tp_finalize|subtype_dealloc|\[[^;]*\])",
                "Held.__del__"),
        between("<module>", "collect", r"*(slot_tp_finalize|PyObject_CallFinalizer\w*|\[[^;]*\])",
                "Cycle.__del__", ANY, "Held.__del__"),
    ],
    "nest_import.py": [
        between("<module>", "outer", ANY, "importing_key",
                r"*(PyImport_ImportModuleLevelObject|\[[^;]*\])", ANY, "_find_and_load",
                "_find_and_load_unlocked"),
        between("_call_with_frames_removed", ANY, "<module>", ANY, "Body", "burn"),
    ],
    # Threads that have let the GIL go.
    "threads_c.py": [
        between("Thread._bootstrap", "Thread._bootstrap_inner", "Thread.run", ANY, "worker",
                "compress", "*deflate"),
        between("worker", "hash_password", "*PKCS5_PBKDF2_HMAC"),
        between("worker", "query", "*sqlite3_step", "*sqlite3VdbeExec"),
    ],
}


def pythons():
    """[(what it is, environment, program)]"""
    found = [("Debian's", {}, path) for path in glob.glob("/usr/bin/python3.11")]
    for python in sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.11.*/bin/python3.11"))):
        version = python.split("/")[-3]
        found.append((f"pyenv {version}", {}, python))
        library = os.path.join(os.path.dirname(python), "../lib/libpython3.11.so.1.0")
        if os.path.exists(library) and shutil.which("strip"):
            directory = lib.path(version)
            os.mkdir(directory)
            subprocess.run(["strip", "--strip-all", "-o",
                            os.path.join(directory, os.path.basename(library)), library],
                           check=True)
            found.append((f"pyenv {version}, stripped", {"LD_LIBRARY_PATH": directory}, python))
    return found


def frame_name(function, file, line):
    return f"{function} ({file}:{line})"


def oracle(python, env, script):
    """The stacks that the interpreter sees in its own frames, as --lines shows them."""
    file = lib.path("oracle")
    subprocess.run([python, "-B", lib.script(script), "--oracle", file], env=env, check=True,
                   timeout=lib.PATIENCE_S, stdout=subprocess.DEVNULL)
    with open(file, encoding="utf-8") as lines:
        stacks = lines.read().split("\n\n")[:-1]
    return {tuple(frame_name(*line.split("\t")) for line in stack.splitlines())
            for stack in stacks}


def python_frames(frames):
    return tuple(frame[:-len("_[py]")] for frame in frames if frame.endswith("_[py]"))


def check_oracle(stacks, want, name):
    """Every stack of the oracle was seen, and little else: the target is now and then on its way
    from one to the next."""
    total = sum(count for _, count in stacks)
    seen = {python_frames(frames) for frames, _ in stacks}
    lib.equal(want - seen, set(), f"{name}: every stack with its lines", *sorted(seen)[:10])
    hits = sum(count for frames, count in stacks if python_frames(frames) in want)
    others = [python_frames(frames) for frames, _ in stacks if python_frames(frames) not in want]
    lib.ok(hits >= 0.75 * total, f"{name}: in most samples", f"{hits} of {total}", *others[:5])


def check_script(recording, pid, script, name, want):
    stacks = recording.folded("--pid", pid, "--lines", "--annotate")
    lib.check_complete(recording, 99.5, name, pid)
    lib.check_share(stacks, r"_\[py\]", 0.97, f"{name}: Python frames")  # threads end in C
    lib.check_share([stack for stack in stacks if python_frames(stack[0])],
                    rf"(^|;)(<module> \({re.escape(script)}:|Thread\._bootstrap \()", 0.99,
                    f"{name}: Python frames from the outermost one")
    loops = r"(^|;)_PyEval_EvalFrameDefault[^;]*_\[n\]"
    lib.ok(lib.share_of(stacks, loops) <= 0.01, f"{name}: loops give way to what they run",
           lib.share_of(stacks, loops))
    if script not in ("mixed.py", "exec_reuse.py"):
        check_oracle(stacks, want, name)
    for pattern in NESTING.get(script, []):
        text = "\n".join(";".join(frames) + ";" for frames, _ in stacks)
        lib.ok(re.search(pattern, text), f"{name}: C and Python in turn", pattern,
               *(";".join(frames)[-450:] for frames, _ in sorted(stacks, key=lambda s: -s[1])[:4]))


def check_reused_memory(recording, pid, name):
    """Functions phase_0, phase_1, ... run once each, at the same addresses."""
    names = recording.sql("""
        SELECT DISTINCT sample.id, function FROM sample
          JOIN thread ON thread = thread.id JOIN process ON process = process.id
          JOIN stack ON stack.leaf = sample.runtime
         WHERE pid = ? AND function LIKE 'phase%' ORDER BY time_ns""", pid)
    numbers = [int(function.rpartition("_")[2]) for _, function in names]
    lib.ok(len(numbers) >= 100, f"{name}: samples", len(numbers))
    lib.equal(numbers, sorted(numbers), f"{name}: no name comes back")
    lib.ok(len(set(numbers)) >= 5, f"{name}: new names at the same address", set(numbers))


def check_build(what, env, python):
    """All fixtures at once: one recording, many targets."""
    env = {**os.environ, **env}
    targets = {script: lib.start_ready(python, "-B", lib.script(script), env=env)
               for script in SCRIPTS}
    pids = ",".join(str(target.pid) for target in targets.values())
    recording = lib.record("-p", pids, "-d", 10)
    lib.stop(*targets.values())
    sources = recording.sql("SELECT DISTINCT version, source FROM source "
                            "WHERE runtime = 'python'")
    lib.ok(len(sources) == 1 and re.match(r"3\.11\.", sources[0][0])
           and sources[0][1] == "walk", f"{what}: walked", sources)
    for script, target in targets.items():
        name = f"{what} {script}"
        check_script(recording, target.pid, script, name, oracle(python, env, script))
        if script == "exec_reuse.py":
            check_reused_memory(recording, target.pid, name)


lib.need_bpf()
builds = pythons()
if not builds:
    lib.skip_all("no CPython 3.11")
for build in builds:
    check_build(*build)
lib.done()
