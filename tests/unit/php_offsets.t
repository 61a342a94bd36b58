#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Rows of runtimes/php/php_versions.c against the headers of the PHP that is installed.

set -- scripts/check-php-offsets runtimes/php/php_versions.c filename
. tests/offsets.sh

if ! command -v php-config >/dev/null; then
	echo "1..0 # SKIP there is no php-config"
	exit 0
fi
scripts/check-php-offsets >"$tmp/out" 2>&1
status=$?
sed 's/^/# /' "$tmp/out"
if [ $status -eq 2 ]; then
	echo "1..0 # SKIP $(tail -n 1 "$tmp/out")"
	exit 0
fi
result $status "offsets of PHP"

sed -i 's/\(\.current = [0-9]*\)/\10/' "$tmp/runtimes/php/php_versions.c"
"$tmp/scripts/check-php-offsets" >"$tmp/out" 2>&1
result $(($? != 1)) "a wrong offset would be found"
for field in current filename; do
	grep -q "^$field: " "$tmp/out"
	result $? "and it is named: $field"
done
echo "1..$n"
exit $failed
