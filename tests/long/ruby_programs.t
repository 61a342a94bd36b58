#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Ruby programs that nobody wrote for these tests, recorded from their start: asciidoctor, and
rdoc, whose parser is a C extension that calls Ruby."""

import collections
import os
import re
import shutil

import lib
import ruby_matrix as matrix
import rubies

SECTION = """
== Section %(i)d: about _things_ and `code`

Some *bold* text with a https://example.org/%(i)d[link], {product} and footnote:[Note %(i)d.] words
that go on for a while; see <<section-%(i)d>> -- "quoted" text...

[[section-%(i)d]]
* item one
** item `two`
. numbered

|===
|a |b
|%(i)d |cell with *text*
|===

[source,ruby]
----
puts %(i)d
----
"""

METHOD = """
  # Returns the sum of +a+ and +b+, see Part%(i)d#sum and {a link}[https://example.org/%(i)d].
  # * one
  # * two
  def sum_%(i)d(a, b = [1, 2].map { |x| x + %(i)d }, *rest, key: "text #{a}", &block)
    rest.each_with_index { |x, i| yield(x * i) if x =~ /[a-z]+%(i)d/ }
    { a: a, "b" => b }.merge(key: key) unless a.nil?
  rescue ArgumentError => error
    raise error.class, "no: #{error}"
  end
"""

CODE = r" \([^;]*\)_\[rb\]"
OUTERMOST = rf"(<main>|<internal:gem_prelude>){CODE}"  # the latter before the program begins


def program(name):
    """(its path, None), or (None, why it cannot be tested)."""
    path = shutil.which(name, path="/usr/bin:" + os.environ["PATH"])
    if not path:
        return None, "not installed"
    with open(path, encoding="utf-8") as file:
        interpreter = file.readline().removeprefix("#!").split()
    if len(interpreter) != 1:
        return None, f"{path} is no Ruby script"
    if not matrix.is_known(rubies.Ruby(name, interpreter[0])):
        return None, f"{interpreter[0]} is not known to braid"
    return path, None


def check(name, recording, begin, pattern, least):
    """Where the Ruby program runs, each stack begins at its outermost frame in C and in Ruby."""
    lib.ok(recording.sql("SELECT 1 FROM source WHERE runtime = 'ruby' AND source = 'walk'"),
           f"{name}: walked", recording.result.err)
    lib.check_complete(recording, 99.5, name, begin=begin)
    folded = recording.folded("--annotate")
    stacks = [(frames, count) for frames, count in folded
              if any(re.search(CODE + "$", frame) for frame in frames)]
    total = sum(count for _, count in folded)
    ruby = sum(count for _, count in stacks)
    lib.ok(ruby >= 0.9 * total, f"{name}: Ruby frames", f"{ruby} of {total}", *folded[:3])
    outermost = collections.Counter()
    for frames, count in stacks:
        outermost[next(frame for frame in frames if re.search(CODE + "$", frame))] += count
    good = sum(count for frame, count in outermost.items() if re.match(OUTERMOST, frame))
    lib.ok(good >= 0.995 * ruby, f"{name}: 99.5 % of them from <main>", outermost.most_common(9))
    unknown = sum(count for frames, count in folded if "[unknown]" in ";".join(frames))
    lib.ok(unknown == 0, f"{name}: nothing unknown", unknown)
    lib.check_share(stacks, pattern, least, name)
    return stacks


def check_asciidoctor(path):
    source, output = lib.path("book.adoc"), lib.path("book.html")
    with open(source, "w", encoding="utf-8") as file:
        file.write("= Book\n:product: braid\n:toc:\n")
        file.write("".join(SECTION % {"i": i} for i in range(5000)))
    name = "asciidoctor"
    recording = lib.record("--", path, "-o", output, source)
    lib.ok(os.path.getsize(output) > 100_000, f"{name}: does its work")
    stacks = check(name, recording, 0.1, rf"^[^;]*_\[n\];.*<main>{CODE};.*Asciidoctor::Cli::Invoker"
                   rf"#invoke!{CODE};.*Asciidoctor\.convert", 0.75)
    for pattern, least in ((r"Asciidoctor::Parser\.next_block", 0.05),
                           (r"Asciidoctor::Document#convert", 0.2),
                           (r"Asciidoctor::Substitutors#apply_subs", 0.1),
                           (r"String#gsub_\[rb\];[^;]*_\[n\]", 0.02)):
        lib.check_share(stacks, pattern, least, name)


def check_rdoc(path):
    source, output = lib.path("part.rb"), lib.path("rdoc")
    with open(source, "w", encoding="utf-8") as file:
        file.write("class Part\n")
        file.write("".join(METHOD % {"i": i} for i in range(700)))
        file.write("end\n")
    name = "rdoc"
    recording = lib.record("--", path, "--quiet", "--ri", "-o", output, source)
    lib.ok(os.path.exists(output + "/Part/cdesc-Part.ri"), f"{name}: does its work")
    stacks = check(name, recording, 0.1, rf"<main>{CODE};.*RDoc::RDoc#document{CODE};"
                   rf".*RDoc::RDoc#parse_file{CODE}", 0.5)
    # The C parser calls Ruby methods for what it finds.
    lib.check_share(stacks, r"Ripper#parse_\[rb\];([^;]*_\[n\];)+"
                    rf"[\w:]+#(on_\w+|_push_token){CODE}", 0.02, name)


lib.need_bpf()
for command, test in ("asciidoctor", check_asciidoctor), ("rdoc", check_rdoc):
    found, why = program(command)
    if found:
        test(found)
    else:
        lib.skip(command, why)
lib.done()
