#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The whole corpus once more, where memory that is misused and undefined behaviour end the program.
exec "${OUTPUT:-build}/fuzz/tests/replay/replay" tests/replay/corpus/*/*.bundle
