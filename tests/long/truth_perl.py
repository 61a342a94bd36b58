# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs of truth_runtimes.t in Perl, with the C functions behind an XSUB."""

import os
import shutil
import subprocess

import truth_graph
from truth_graph import ANY

NAME = "Perl"
EDGES = {
    "ss": {"call": (), "map": (), "grep": (), "sort": (ANY,), "compare": ("key_{n}", ANY),
           "eval": (ANY,), "add": ("K_{n}::add", ANY), "fetch": ("K_{n}::FETCH", ANY),
           "auto": ("K_{n}::AUTOLOAD",), "first": ("__ANON__", ANY), "anon": ("__ANON__",),
           "destroy": ("K_{n}::DESTROY", ANY), "method": ("K_{n}::new",), "string": (ANY,)},
    "sc": {"method": ("enter_c", "enter_method", ANY)},
    "cs": {"pv": (ANY, "back_pv"), "sv": (ANY, "back_sv"), "eval": (ANY, "back_eval")},
}
ROOT = ("run", ANY)
RECURSION = ()
ENDS = r"_start"
CALL = """FUNCTION void back_{via}(int number, int depth)
{{ dTHX; dSP; char name[16]; snprintf(name, sizeof(name), "main::s%d", number);
  ENTER; SAVETMPS; PUSHMARK(SP); XPUSHs(sv_2mortal(newSViv(depth))); PUTBACK;
  {call}; FREETMPS; LEAVE; work(40); }}
"""
GLUE = """
#include <stdio.h>
#include "EXTERN.h"
#include "perl.h"
#include "XSUB.h"
""" + CALL.format(via="pv", call="call_pv(name, G_VOID | G_DISCARD)") + CALL.format(
    via="sv", call="call_sv((SV *)get_cv(name, 0), G_VOID | G_DISCARD)") + CALL.format(
    via="eval", call="call_pv(name, G_VOID | G_DISCARD | G_EVAL)") + """
__attribute__((visibility("default"))) XS(enter_method);
XS(enter_method) { dXSARGS; (void)items; enter_c((int)SvIV(ST(0))); XSRETURN_EMPTY; }
"""
C_CALLS = {via: f"back_{via}({{n}}, {{depth}});" for via in EDGES["cs"]}
CALLS = {
    "call": "s{n}({depth});", "map": "my @l = map {{ s{n}({depth}); 1 }} 1;",
    "grep": "my @l = grep {{ s{n}({depth}); 1 }} 1;",
    "sort": "my @l = sort {{ s{n}({depth}); $a <=> $b }} 2, 1;",
    "compare": "my @l = sort key_{n} 2, 1;", "eval": "eval {{ s{n}({depth}); 1 }};",
    "add": "my $l = $K_{n}::one + 1;", "fetch": "my $l = $K_{n}::tied; $x += $l;",
    "auto": "K_{n}::nothing();", "first": "my $l = List::Util::first(sub {{ s{n}({depth}); 1 }}, 1);",
    "anon": "sub {{ s{n}({depth}); $x++; }}->();", "destroy": "{{ my $l = bless [], 'K_{n}'; }}",
    "method": "K_{n}->new;", "string": "eval 's{n}({depth}); 1';", "method_c": "enter_method({n});",
}
ENTRIES = {
    "compare": "sub key_{n} {{ s{n}({depth}); return $a <=> $b; }}",
    "add": "package K_{n}; use overload '+' => \\&add; our $one = bless [];\n"
           "sub add {{ main::s{n}({depth}); return 1; }}\npackage main;",
    "fetch": "package K_{n}; sub TIESCALAR {{ return bless [] }} sub FETCH {{ main::s{n}({depth}); "
             "return 1; }}\nour $tied; tie $tied, 'K_{n}';\npackage main;",
    "auto": "package K_{n}; sub AUTOLOAD {{ main::s{n}({depth}); return 1; }}\npackage main;",
    "destroy": "package K_{n}; sub DESTROY {{ main::s{n}({depth}); return 1; }}\npackage main;",
    "method": "package K_{n}; sub new {{ my $class = shift; main::s{n}({depth}); "
              "return bless [], $class; }}\npackage main;",
}


def _function(number, nodes):
    node = nodes[number]
    lines = [f"sub s{number} {{ my ($depth) = @_; my $x = $depth;",
             "for (my $i = 0; $i < 6; $i++) { $x += $i * $i; }"]
    if node.repeats > 1:
        lines.append(f"if ($depth) {{ s{number}($depth - 1); }} else {{")
    entries = []
    for child in node.children:
        via, depth = nodes[child].via, nodes[child].repeats - 1
        calls = CALLS[via if nodes[child].letter == "s" else "method_c"]
        lines.append("{ " + calls.format(n=child, depth=depth) + " }")
        if nodes[child].letter == "s":
            entries.append(ENTRIES.get(via, "").format(n=child, depth=depth))
    lines.append("}" * (node.repeats > 1) + " for (my $i = 0; $i < 5; $i++) { $x -= $i; } return $x; }")
    return "\n".join([*lines, *entries])


def _options(name):
    return subprocess.run(["perl", "-MConfig", "-e", f"print {name}"], capture_output=True, check=True,
                          text=True).stdout


def missing():
    if not shutil.which("perl"):
        return "perl"
    core = _options("$Config{archlibexp}") + "/CORE"
    return None if os.path.exists(f"{core}/perl.h") else "perl.h"


def build(place, nodes, compiler):
    """The command that runs the program until it is killed."""
    with open(f"{place}/lib.c", "w", encoding="utf-8") as file:
        file.write(truth_graph.c_source(nodes, GLUE, C_CALLS))
    core = _options("$Config{archlibexp}") + "/CORE"
    subprocess.run([*compiler, *_options("$Config{ccflags}").split(), "-I", core, "-shared", "-fPIC",
                    f"{place}/lib.c", "-o", f"{place}/libtruth.so"], check=True)
    text = ["no warnings; use List::Util; use DynaLoader; $| = 1;",
            f"my $library = DynaLoader::dl_load_file('{place}/libtruth.so', 0) or die;",
            "DynaLoader::dl_install_xsub('main::enter_method', "
            "DynaLoader::dl_find_symbol($library, 'enter_method'));",
            *(_function(number, nodes) for number, node in nodes.items() if node.letter == "s"),
            "sub run { while (1) { s0(0); } }", "print \"READY\\n\";", "run();", ""]
    with open(f"{place}/program.pl", "w", encoding="utf-8") as file:
        file.write("\n".join(text))
    return [shutil.which("perl"), f"{place}/program.pl"]


def normal(name):
    name = name.removeprefix("main::")
    return "__ANON__" if name.endswith("__ANON__") else name
