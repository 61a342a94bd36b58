#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian 12's Perl: one exact stack of C and Perl frames, with packages and lines, on which C calls
Perl in several ways; with what Perl itself says of it."""

import gate

PERL = "/usr/bin/perl"
SCRIPT = "fixtures/perl/marked/marked.pl"
HITS = 6

gate.need_root()
gate.need_program(PERL)
target = gate.marked(PERL, SCRIPT)
recorder = gate.recorder(HITS, target)
gate.equal(recorder.said[0].rpartition(".")[0], f"source {target.pid} perl 5.36",
           "the runtime is told")
gate.equal(recorder.said[0].rpartition(" ")[2], "walk", "and where frames come from")
told = gate.ask(target, str(HITS)).split("|")
recording = gate.finish(recorder, HITS)

# What Perl says. It has no frames of sort blocks, and calls both kinds of eval the same.
gate.equal(told, [told[0]] * HITS, "Perl sees the same at each hit")
subs = [frame.rpartition(":")[0] for frame in told[0].split(";")]
lines = [frame.rpartition(":")[2] for frame in told[0].split(";")]
gate.equal(subs, ["<main>", "main::outer", "(eval)", "main::inner", "main::compare", "(eval)",
                  "main::find", "main::__ANON__", "Item::FETCH", "Item::leaf"],
           "Perl's own stack")


def frame(i, name=None, file="marked.pl", natives=0):
    return gate.Frame(f"{name or subs[i]} ({file}:{lines[i]})_[pl]", natives=natives)


# Each call of Perl by C has one Perl_runops_standard; an eval within sort has a second one and what
# is between, docatch.
seen = gate.traces()
gate.check_native("perl", recording.samples(), gate.Maps(target.pid), seen)
gate.check_merged("perl", recording.merged(), [
    *gate.TO_MAIN, "main_[n]", "perl_run_[n]",
    frame(0, natives=1), frame(1), frame(2, "eval '...'", "(eval)"), frame(3),
    "Perl_pp_sort_[n]", "Perl_sortsv_flags_[n]", None,  # S_sortcv
    frame(3, "sort {...}", natives=3), frame(4), frame(5, "eval {...}"), frame(6),
    "Perl_pp_entersub_[n]", "List::Util::first_[n]",
    frame(7, natives=1),
    "Perl_pp_add_[n]", "Perl_try_amagic_bin_[n]", "Perl_mg_get_[n]", "Perl_magic_getpack_[n]", "Perl_magic_methcall_[n]", "Perl_call_sv_[n]",
    frame(8, natives=1), frame(9),
    "Perl_pp_getppid_[n]",
    *gate.hit()], HITS, natives=len(seen[0][1]))
gate.equal(recording.sql("SELECT runtime, source FROM source"), [("perl", "walk")],
           "the source is recorded")
gate.check_clean("perl", recording)
gate.done()
