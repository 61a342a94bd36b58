# SPDX-License-Identifier: GPL-2.0-or-later
# The line tables of this CRuby's own library, as they are in memory, and what Ruby makes of them:
# per iseq its size, its succ_index_table, its entries, and "POSITION:LINE,..." of its instructions
# (from disasm). Arguments: offsets in struct rb_iseq_constant_body of insns_info's body, size and
# succ_index_table, and the size of an entry.
require "fiddle"
require "rbconfig"

ENTRIES_AT, COUNT_AT, POSITIONS_AT, ENTRY_SIZE = ARGV.map(&:to_i)
FILES_MAX = 40

def read(at, size)
  Fiddle::Pointer.new(at)[0, size]
end

def word(at)
  read(at, 8).unpack1("Q")
end

def body_of(iseq)
  data = word(Fiddle.dlwrap(iseq) + 32) # RTypedData.data: the iseq, or later where that is told
  data = word(data) if word(data) & 0x1f != 0x1a # T_IMEMO
  word(data + 16)
end

# As the compiler has it: 54 positions at once, then blocks of 512.
def positions_size(size)
  size < 54 ? (size + 8) / 9 * 8 : 48 + (size - 54 + 511) / 512 * 80
end

# Ruby tells a line where it is another one than before, and is not 0: "~" where it does not.
def lines_of(iseq)
  line = 0
  own = iseq.disasm.split(/^== disasm/, 3)[1] # behind it: its children
  own.split(/^(?=\d{4,} )/).drop(1).map do |text|
    told = text.strip[/\(\s*(\d+)\)(?:\[\w+\])?\z/, 1]
    line = told || line
    "#{text.to_i}:#{line}#{"~" unless told}"
  end
end

def dump(iseq)
  body = body_of(iseq)
  size = read(body + 4, 4).unpack1("L")
  count = read(body + COUNT_AT, 4).unpack1("L")
  positions = word(body + POSITIONS_AT)
  puts [size,
        read(positions, positions_size(size)).unpack1("H*"),
        read(word(body + ENTRIES_AT), count * ENTRY_SIZE).unpack1("H*"),
        lines_of(iseq).join(",")].join(" ")
  iseq.each_child { |child| dump(child) }
end

Dir[RbConfig::CONFIG["rubylibdir"] + "/*.rb"].sort.first(FILES_MAX).each do |path|
  dump(RubyVM::InstructionSequence.compile_file(path))
end
