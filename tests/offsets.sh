# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
# Sourced by the tests of tables of offsets, runtimes/*_versions.c: TAP, the tools that are needed,
# and in $tmp/scripts the checker beside a table with a wrong value in each row.
# Usage: set -- CHECKER TABLE FIELD; . tests/offsets.sh

n=0
failed=0

result() { # STATUS TEXT
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		# shellcheck disable=SC2034 # what the test exits with
		failed=1
	fi
}

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

for tool in gdb python3 cc; do
	if ! command -v $tool >/dev/null; then
		echo "1..0 # SKIP needs $tool"
		exit 0
	fi
done

mkdir -p "$tmp/scripts" "$tmp/$(dirname "$2")"
cp "$1" "$tmp/scripts/"
sed "s/\(\.$3 = [0-9]*\)/\10/" "$2" >"$tmp/$2"
shift $#
