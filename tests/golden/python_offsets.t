#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Rows of runtimes/python_versions.c against the debug information of real builds.

n=0
failed=0
judged=0

result() { # STATUS TEXT
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		failed=1
	fi
}

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

if ! command -v gdb >/dev/null || ! command -v python3 >/dev/null; then
	echo "1..0 # SKIP needs gdb and python3"
	exit 0
fi

# The same checker next to a table with one wrong value.
mkdir "$tmp/scripts" "$tmp/runtimes"
cp scripts/check-python-offsets "$tmp/scripts/"
sed 's/\(\.frame_code = \)32/\140/' runtimes/python_versions.c > "$tmp/runtimes/python_versions.c"

for file in "$HOME"/.pyenv/versions/3.*/lib/libpython3.*.so.1.0 \
	"$HOME"/.pyenv/versions/3.*/bin/python3 \
	/usr/local/lib/libpython3.*.so.1.0 /usr/lib/*/libpython3.*.so.1.0 /usr/bin/python3; do
	[ -e "$file" ] || continue
	scripts/check-python-offsets "$file" > "$tmp/out" 2>&1
	status=$?
	sed 's/^/# /' "$tmp/out"
	[ $status -eq 2 ] && continue
	judged=$((judged + 1))
	result $status "offsets of $file"
	"$tmp/scripts/check-python-offsets" "$file" > "$tmp/out" 2>&1
	result $(($? != 1)) "a wrong offset would be found in $file"
done

if [ $judged -eq 0 ]; then
	echo "1..0 # SKIP no CPython 3.11 with debug information found"
else
	echo "1..$n"
fi
exit $failed
