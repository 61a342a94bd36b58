#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel takes what each option loads: -r of each runtime and of all others, --source, --unwind,
each kind of events, and what chooses processes (tests/tools/load_each.c)."""

import os

import gate

gate.need_root()
TOOL = os.path.join(gate.OUTPUT, "tests/tools/load_each")
gate.signal.alarm(gate.HANGS_S)  # each check of the program has as long
os.execv(TOOL, [TOOL])
