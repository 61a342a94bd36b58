#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""A library that is opened while the process is recorded: the very first call into it is sampled, with
names and lines; and again after it was closed and opened, perhaps at the same address."""

import gate

SOURCE = "fixtures/native/plugin.c"

gate.need_root()
target = gate.marked(gate.MARKS)
maps = []
recorder = gate.recorder(9, target)
for round_number in range(3):
    gate.ask(target, f"open {gate.PLUGIN} 3")
    gate.equal(gate.wait_line(recorder, f"recorded {3 * (round_number + 1)}")[-1],
               f"recorded {3 * (round_number + 1)}", f"opened {round_number + 1} times: recorded")
    maps.append(gate.Maps(target.pid))
    if round_number < 2:
        gate.ask(target, "close")
recording = gate.finish(recorder, 9)
samples, traces = recording.samples(), gate.traces()
for i in range(3):
    gate.check_native(f"round {i + 1}", samples[3 * i:3 * i + 3], maps[i], traces[3 * i:3 * i + 3])
gate.check_merged("dlopen", recording.merged(), [
    *gate.TO_OBEY,
    gate.marks("obey", "run_plugin(file, k);"),
    gate.Frame(gate.marks("run_plugin", "run(k);").replace("[n]", "[i]")),  # inlined
    gate.at("plugin_run", SOURCE, gate.line(SOURCE, "plugin_inner(k);")),
    gate.at("plugin_inner", SOURCE, gate.line(SOURCE, "getppid();")), *gate.hit()], 9)
gate.equal(recording.sql("SELECT count(*) FROM sample WHERE NOT flags & 1"), [(0,)],
           "every stack is complete")
gate.done()
