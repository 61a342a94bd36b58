#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""A C program with Debian's libperl inside: where it evaluates texts, which while they are compiled
no loop of Perl's runs yet, and before and between that."""

import gate

LIBRARY = "/usr/lib/x86_64-linux-gnu/libperl.so.5.36"
HITS = 3

gate.need_root()
gate.need_program(LIBRARY)
target = gate.marked(f"{gate.OUTPUT}/fixtures/native/embed_perl", LIBRARY,
                     "fixtures/perl/embedded/embedded.pl")
recorder = gate.recorder(2 * HITS + 2, target)
gate.equal(recorder.said[0].rpartition(" ")[2], "walk", "the library's version is walked")
for text in "begin", f"outer({HITS});", f"BEGIN {{ outer({HITS}); }}", "":
    gate.equal(gate.ask(target, text), "done", text)
recording = gate.finish(recorder, 2 * HITS + 2)

TO_EVAL = [*gate.TO_MAIN, "main_[n]", "evaluate_[n]", "Perl_eval_pv_[n]", "Perl_eval_sv_[n]"]
TO_HIT = [gate.Frame("main::outer (embedded.pl:11)_[pl]"), gate.Frame("Item::leaf (embedded.pl:5)_[pl]"),
          "Perl_pp_getppid_[n]", *gate.hit()]


def no_line(frame):
    return frame.partition(" ")[0] + "_[n]"


stacks = recording.merged()
compiled = [stack for stack in stacks if "Perl_yyparse_[n]" in stack[0]]
without = [stack for stack in stacks if "evaluate_[n]" not in map(no_line, stack[0])]
gate.check_merged("before and after", without, [*gate.TO_MAIN, "main_[n]", *gate.hit()], 2)
gate.check_merged("run", [stack for stack in stacks if stack not in compiled + without], [
    *TO_EVAL, gate.Frame("eval '...' ((eval):1)_[pl]", natives=1), *TO_HIT], HITS)
gate.check_merged("compiled", compiled, [
    *TO_EVAL, gate.Frame("eval '...' ((eval):1)_[pl]", natives=1),
    gate.Frame("eval {...} ((eval):1)_[pl]"),  # call_list's, which calls Perl with G_EVAL
    None, "Perl_yyparse_[n]", "Perl_newATTRSUB_x_[n]", None, "Perl_call_list_[n]", "Perl_call_sv_[n]",
    gate.Frame("main::BEGIN ((eval):1)_[pl]", natives=1), *TO_HIT], HITS)
gate.check_clean("embedded", recording)
gate.done()
