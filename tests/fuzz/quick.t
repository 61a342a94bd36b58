#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Every fuzz target for two seconds, from its seeds alone: none may have rotted.
cd "$(dirname "$0")/../.." || exit 1
for source in tests/fuzz/f_*.c; do
	set -- "$@" "${OUTPUT:-build}/fuzz/$(basename "$source" .c)"
done
FUZZ_SECONDS=2 exec scripts/fuzz "$@"
