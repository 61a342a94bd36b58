#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The corpus once more, where memory that is misused and undefined behaviour end the program; without
# the many instants of the same loops.
for bundle in tests/replay/corpus/*/*.bundle; do
	case $bundle in
	*-steps* | *-loops*) ;;
	*) set -- "$@" "$bundle" ;;
	esac
done
exec "${OUTPUT:-build}/fuzz/tests/replay/replay" "$@"
