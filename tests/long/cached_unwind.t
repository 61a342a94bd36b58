#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""cached_unwind.t [CALLS]: stacks that are unwound with what is kept of the thread's last one are those that
unwinding all of it finds. Each sample is unwound both ways (--unwind twice) and compared in the
kernel half: a million and more of them, at system calls that programs of five kinds make from
stacks that change all the time, and at ticks of the clock in between."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../live"))
import gate

CALLS = int(sys.argv[1]) if len(sys.argv) > 1 else 250_000
EVENTS = "tracepoint:raw_syscalls:sys_enter,cpu"
SAME = "stacks with cached frames that are equal without them"
DIFFERS = "stacks with cached frames that differ without them"

# Functions that call each other at random, some by way of the interpreter's own C code, and make a
# system call at any depth.
PYTHON = """
import os, random, sys
left = int(sys.argv[1])
class Adds:
    def __add__(self, depth): return step(depth)
def plain(depth): return step(depth)
def made(depth): return list(step(depth) for _ in range(1))
def ordered(depth): return sorted([2, 1], key=lambda n: step(depth) and n)
def added(depth): return Adds() + depth
def step(depth):
    global left
    for _ in range(random.randrange(1, 4)):
        if left > 0 and random.random() < 0.4:
            os.getppid()
            left -= 1
        if left > 0 and depth < 60 and random.random() < 0.9:
            random.choice((plain, made, ordered, added))(depth + 1)
    return 1
while left > 0:
    step(0)
"""
RUBY = """
$left = ARGV[0].to_i
def plain(depth) = step(depth)
def each(depth) = [1].each { step(depth) }
def ordered(depth) = [2, 1].sort_by { |n| step(depth); n }
def fiber(depth) = Fiber.new { step(depth) }.resume
def step(depth)
  (1 + rand(3)).times do
    if $left > 0 && rand < 0.4
      Process.getpgid(0)
      $left -= 1
    end
    send(%i[plain each ordered fiber][rand(depth % 10 == 0 ? 4 : 3)], depth + 1) if $left > 0 && depth < 60 && rand < 0.9
  end
  1
end
step(0) while $left > 0
"""
NODE = """
let left = +process.argv[2];
const calls = [depth => step(depth), depth => [1].map(() => step(depth)),
               depth => [2, 1].sort((a, b) => (step(depth), a - b)),
               depth => JSON.stringify({ toJSON: () => step(depth) })];
function step(depth) {
  for (let turns = 1 + Math.random() * 3; turns >= 1; turns--) {
    if (left > 0 && Math.random() < 0.4) {
      process.umask();
      left--;
    }
    if (left > 0 && depth < 60 && Math.random() < 0.9)
      calls[Math.floor(Math.random() * 4)](depth + 1);
  }
  return 1;
}
while (left > 0)
  step(0);
"""
JAVA = """
import java.util.*;
import java.util.stream.*;
public class Varied {
    static long left;
    static final Random random = new Random(1);
    static int plain(int depth) { return step(depth); }
    static int stream(int depth) { return IntStream.of(1).map(one -> step(depth)).sum(); }
    static int ordered(int depth) {
        Integer[] two = { 2, 1 };
        Arrays.sort(two, (a, b) -> { step(depth); return a - b; });
        return two[0];
    }
    static int step(int depth) {
        for (int turns = 1 + random.nextInt(3); turns > 0; turns--) {
            if (left > 0 && random.nextInt(5) < 2) {
                Thread.yield();
                left--;
            }
            if (left > 0 && depth < 60 && random.nextInt(10) > 0)
                switch (random.nextInt(3)) {
                case 0: plain(depth + 1); break;
                case 1: stream(depth + 1); break;
                default: ordered(depth + 1);
                }
        }
        return 1;
    }
    public static void main(String[] arguments) {
        left = Long.parseLong(arguments[0]);
        while (left > 0)
            step(0);
    }
}
"""

total = 0
signal.alarm(1800)


def check(name, *command, calls=CALLS):
    global total
    file = gate.path(f"{name}.db")
    subprocess.run([os.path.join(gate.OUTPUT, "braid"), "record", "-e", EVENTS, "-F", "999", "--unwind", "twice",
                    "--max-overhead", "none", "-o", file, "--", *command, str(calls)],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with sqlite3.connect(file) as recording:
        counters = dict(recording.execute("SELECT name, value FROM counter"))
    os.unlink(file)
    same, differs = counters.get(SAME, 0), counters.get(DIFFERS, 0)
    total += same
    gate.equal(differs, 0, f"{name}: no stack is another one without kept frames")
    gate.ok(same > 0, f"{name}: of {same} that have kept frames")


def inline(name, suffix, text, *command):
    if not shutil.which(command[0]):
        print(f"# {name}: not installed")
        return
    with tempfile.TemporaryDirectory() as directory:
        file = os.path.join(directory, "Varied" + suffix)
        with open(file, "w", encoding="ascii") as program:
            program.write(text)
        check(name, *command, file)


check("native", os.path.join(gate.OUTPUT, "fixtures/native/varied"), calls=CALLS // 4)  # by each of four threads
inline("python", ".py", PYTHON, "/usr/bin/python3")
inline("ruby", ".rb", RUBY, "ruby")
inline("java", ".java", JAVA, "java")
inline("node", ".js", NODE, "node")
if CALLS >= 250_000:
    gate.ok(total >= 1_000_000, f"{total} stacks with kept frames in all")
gate.done()
