#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Recorded instants of java: docs/internals/testing.md.
exec "${OUTPUT:-build}/tests/replay/replay" tests/replay/corpus/java/*.bundle
