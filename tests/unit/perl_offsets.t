#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Rows of runtimes/perl/perl_versions.c against the headers of the perl that is installed.

set -- scripts/check-perl-offsets runtimes/perl/perl_versions.c minor
. tests/offsets.sh

scripts/check-perl-offsets perl >"$tmp/out" 2>&1
status=$?
sed 's/^/# /' "$tmp/out"
if [ $status -eq 2 ]; then
	echo "1..0 # SKIP $(tail -n 1 "$tmp/out")"
	exit 0
fi
result $status "offsets of perl"

# As tests/offsets.sh has it, but of the common part, which is in a macro.
sed 's/\(\.code_stash = [0-9]*\)/\10/; s/\(\.curcop = [0-9]*\)/\10/g' runtimes/perl/perl_versions.c \
	>"$tmp/runtimes/perl/perl_versions.c"
"$tmp/scripts/check-perl-offsets" perl >"$tmp/out" 2>&1
result $(($? != 1)) "a wrong offset would be found"
for field in curcop code_stash; do
	grep -q "^$field: " "$tmp/out"
	result $? "and it is named: $field"
done
echo "1..$n"
exit $failed
