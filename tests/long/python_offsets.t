#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Rows of runtimes/python/python_versions.c against the debug information of real builds, and against the
# headers that came with them.

judged=0
set -- scripts/check-python-offsets runtimes/python/python_versions.c tstate_thread_id
. tests/offsets.sh

check() { # [--headers] PATH
	scripts/check-python-offsets "$@" >"$tmp/out" 2>&1
	status=$?
	sed 's/^/# /' "$tmp/out"
	[ $status -eq 2 ] && return
	judged=$((judged + 1))
	result $status "offsets of $*"
	"$tmp/scripts/check-python-offsets" "$@" >"$tmp/out" 2>&1
	result $(($? != 1)) "a wrong offset would be found in $*"
}

roots=${BRAID_TEST_ROOTS:-${XDG_CACHE_HOME:-$HOME/.cache}/braid-tests}
for file in "$HOME"/.pyenv/versions/3.*/lib/libpython3.*.so.1.0 \
	"$HOME"/.pyenv/versions/3.*/bin/python3.*[0-9] /opt/*/lib/libpython3.*.so.1.0 \
	/usr/local/lib/libpython3.*.so.1.0 /usr/lib/*/libpython3.*.so.1.0 /usr/bin/python3 \
	"$roots"/pythons/*/lib/libpython3.*.so.1.0 "$roots"/pythons/*/bin/python3.*[0-9t]; do
	[ -e "$file" ] && check "$file"
done
for directory in "$HOME"/.pyenv/versions/3.*/include/python3.* /opt/*/include/python3.* \
	/usr/local/include/python3.* /usr/include/python3.* "$roots"/*/usr/include/python3.* \
	"$roots"/pythons/*/include/python3.*; do
	[ -e "$directory/Python.h" ] && check --headers "$directory"
done

if [ $judged -eq 0 ]; then
	echo "1..0 # SKIP no CPython with debug information or headers found"
else
	echo "1..$n"
fi
exit $failed
