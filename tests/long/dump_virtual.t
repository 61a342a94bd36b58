#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The live test of virtual threads with every JVM at hand.

BRAID_EVERY_INTERPRETER=1 exec tests/live/dump_virtual.t
