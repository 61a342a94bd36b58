#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Records the part of the replay corpus that has several runtimes in one thread: record_mixed.py
[PATTERN...]"""

import os

import corpus

PYTHON = "/usr/bin/python3.11"
RUBY = "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1"
ENV = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}

if os.path.exists(PYTHON) and os.path.exists(RUBY):
    corpus.record("mixed/python-ruby", [PYTHON, "-S", "/opt/replay/mixed/python_ruby.py", RUBY], env=ENV)
else:
    print("not here: %s with %s" % (PYTHON, RUBY))
corpus.done()
