#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The whole corpus, where memory that is misused and undefined behaviour end the program.
BRAID_EVERY_BUNDLE=1 exec tests/replay/sanitized.t
