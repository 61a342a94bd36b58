#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian 12's PHP: one exact stack of C and PHP frames, with classes and lines, on which C calls PHP
in several ways; with what PHP itself says of it. The same once more with all of it compiled by
opcache's JIT."""

import gate

PHP = "/usr/bin/php8.2"
SCRIPT = "fixtures/php/marked/marked.php"
HITS = 6

gate.need_root()
gate.need_program(PHP)
JIT = ("-d", "zend_extension=opcache", "-d", "opcache.enable_cli=1", "-d", "opcache.jit=function",
       "-d", "opcache.jit_buffer_size=16M", "-d", "opcache.file_update_protection=0")


def check(*options):
    target = gate.marked(PHP, "-n", "-d", "extension=ffi", "-d", "ffi.enable=1", *options, SCRIPT)
    recorder = gate.recorder(HITS, target)
    gate.equal(recorder.said[0].rpartition(".")[0], f"source {target.pid} php 8.2",
               "the runtime is told")
    gate.equal(recorder.said[0].rpartition(" ")[2], "walk", "and where frames come from")
    told = gate.ask(target, str(HITS)).split("|")
    recording = gate.finish(recorder, HITS)

    # What PHP says: functions in C have no line.
    gate.equal(told, [told[0]] * HITS, "PHP sees the same at each hit")
    names = [frame.rpartition(":")[0] for frame in told[0].split(";")]
    lines = [frame.rpartition(":")[2] for frame in told[0].split(";")]
    gate.equal(names, ["<main>", "Marked\\outer", "array_map", "Marked\\{closure}", "eval",
                       "Marked\\inner", "Marked\\numbers", "preg_replace_callback",
                       "Marked\\{closure}", "usort", "Marked\\Item::compare",
                       "Marked\\Item::__call", "Marked\\Item::leaf"], "PHP's own stack")
    evaluated = f"marked.php({lines[3]}) : eval()'d code"

    def frame(i, file="marked.php", natives=0):
        place = f" ({file}:{lines[i]})" if lines[i] != "0" else ""
        return gate.Frame(f"{names[i]}{place}_[php]", natives=natives)

    # What libunwind sees ends where compiled code begins.
    seen = gate.traces()
    if not options:
        gate.check_native("php", recording.samples(), gate.Maps(target.pid), seen)
    # Each call of PHP by C has one execute_ex. Functions in C are frames beside their native ones,
    # whose names PHP knows, too; usort only jumps to what it shares. That which calls through FFI has
    # its name from what it calls.
    gate.check_merged("php", recording.merged(), [
        *gate.TO_MAIN, None, None, "php_execute_script_[n]", "zend_execute_scripts_[n]",
        "zend_execute_[n]",
        frame(0, natives=1), frame(1), frame(2),
        "array_map_[n]", "zend_call_function_[n]",
        frame(3, natives=1), frame(4, evaluated), frame(5),
        None, None, None, "zend_generator_resume_[n]",  # foreach: what takes the next from a generator
        frame(6, natives=1), frame(7),
        "preg_replace_callback_[n]", None, None, None, "zend_call_function_[n]",
        frame(8, natives=1), frame(9),
        None, None, None, "zend_insert_sort_[n]", None, None, "zend_call_function_[n]",
        frame(10, natives=1), frame(11), frame(12), gate.Frame("getppid_[php]"),
        None, "ffi_call_[n]", None, None,
        *gate.hit()], HITS, natives=None if options else len(seen[0][1]))
    gate.equal(recording.sql("SELECT runtime, source FROM source"), [("php", "walk")],
               "the source is recorded")
    gate.check_clean("php", recording)


def check_reused():
    """Memory of one function that is another's a moment later."""
    target = gate.marked(PHP, "-n", "-d", "extension=ffi", "-d", "ffi.enable=1",
                         "fixtures/php/marked/reused.php", trace=False)
    recorder = gate.recorder(2 * HITS, target)
    gate.equal(gate.ask(target, str(2 * HITS)), str(2 * HITS), "reused: all closures are in one place")
    stacks = gate.finish(recorder, 2 * HITS).merged()
    called = {frame: count for frames, count in stacks for frame in frames if "{closure}" in frame}
    lines = [gate.line("fixtures/php/marked/reused.php", f"class {name}") + 2 for name in ("One", "Two")]
    gate.equal(called, {f"{name}::{{closure}} (reused.php:{line})_[php]": HITS
                        for name, line in zip(("One", "Two"), lines)}, "reused: each by its own name")


check()
check(*JIT)
check_reused()
gate.done()
