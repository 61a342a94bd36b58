# SPDX-License-Identifier: GPL-2.0-or-later
# What `braid bench` measures CRuby by: as workload.py.
$stdout.sync = true

def callee
end

def calls(n)
  i = 0
  while i < n
    callee
    i += 1
  end
  n
end

NAMES = %w[alpha beta gamma delta epsilon zeta eta theta].freeze
ENTRIES = 60

def entry(i)
  { "id" => i, "name" => NAMES[i % 8] + (i * 7919 % 1000).to_s, "size" => i * 104729 % 1009,
    "tags" => [NAMES[i % 3], NAMES[i % 5], NAMES[i % 7]] }
end

def size_of(one)
  one["size"]
end

def as_text(one)
  tags = one["tags"].uniq.sort.join(", ")
  "{\"id\": #{one['id']}, \"name\": \"#{one['name']}\", \"size\": #{one['size']}, \"tags\": \"#{tags}\"}"
end

def parsed(text)
  result = {}
  text[1..-2].split(', "').each do |part|
    key, value = part.split(": ", 2)
    key = key.delete('"')
    value = value.to_s.delete('"')
    result[key] = value =~ /\A\d+\z/ ? value.to_i : value
  end
  result
end

def unit
  found = []
  ENTRIES.times { |i| found << entry(i) }
  found.sort_by! { |one| size_of(one) }
  lines = found.map { |one| as_text(one) }
  text = lines.join("\n")
  total = 0
  text.split("\n").each { |line| total += parsed(line)["size"] }
  words = Hash.new(0)
  text.tr('":', "  ").split.each { |word| words[word] += 1 }
  total + words.sort_by { |_, n| n }.size
end

def work(n)
  n.times { unit }
  n * (4 * ENTRIES + 1)
end

def deep(n)
  deep(n - 1) if n > 1
  puts "0 0"
  while true; end
end

def cpu_ns
  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
end

puts "READY #{RUBY_VERSION}"
while (line = $stdin.gets)
  name, n = line.split
  deep(n.to_i) if name == "deep"
  start = cpu_ns
  n_calls = name == "calls" ? calls(n.to_i) : work(n.to_i)
  puts "#{cpu_ns - start} #{n_calls}"
end
