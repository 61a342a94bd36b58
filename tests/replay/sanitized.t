#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The corpus once more, where memory that is misused and undefined behaviour end the program: of each
# language every third bundle, without the many instants of the same loops. With
# BRAID_EVERY_BUNDLE=1, as tests/long/sanitized_every.t has it, all of them.
number=0
for bundle in tests/replay/corpus/*/*.bundle; do
	case $bundle in
	*-steps* | *-loops*) [ -n "${BRAID_EVERY_BUNDLE-}" ] || continue ;;
	esac
	number=$((number + 1))
	[ -z "${BRAID_EVERY_BUNDLE-}" ] && [ $((number % 3)) -ne 0 ] || set -- "$@" "$bundle"
done
exec "${OUTPUT:-build}/fuzz/tests/replay/replay" "$@"
