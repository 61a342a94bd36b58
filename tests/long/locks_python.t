#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The live test of the GIL with every CPython at hand.

BRAID_EVERY_INTERPRETER=1 exec tests/live/locks_python.t
