#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Recorded instants of native: docs/internals/testing.md.
exec "${OUTPUT:-build}/tests/replay/replay" tests/replay/corpus/native/*.bundle
