#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What scripts/run-tests makes of tests that fail once, twice, or break off.

set -u
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
number=0
bad=0

# A test that says something else in each run: SAYS_1, SAYS_2; both end with $ENDS_1, $ENDS_2.
cat >"$dir/sampled.t" <<'END'
#!/bin/bash
said=SAYS_$TRY ended=ENDS_$TRY
echo -e "${!said}"
exit "${!ended}"
END
cat >"$dir/sure.t" <<'END'
#!/bin/bash
echo -e "${SURE-ok 1 - sure\n1..1}"
END
chmod +x "$dir"/*.t

# NAME EXIT_STATUS LAST_LINE: with SAYS_1 ENDS_1 ... set
check() {
	local status
	OUTPUT=$dir/out scripts/run-tests "$dir/sure.t" "$dir/sampled.t" >"$dir/log" 2>&1
	status=$?
	number=$((number + 1))
	if [ $status = "$2" ] && [[ $(tail -n 1 "$dir/log") = "$3" ]]; then
		echo "ok $number - $1"
	else
		echo "not ok $number - $1"
		sed 's/^/# /' "$dir/log"
		bad=1
	fi
}

export SAYS_1 SAYS_2 ENDS_1=1 ENDS_2=1 SURE
good='ok 1 - a\nok 2 - b\n1..2'
first='not ok 1 - a\nok 2 - b\n1..2'
second='ok 1 - a\nnot ok 2 - b\n1..2'

SAYS_1=$good ENDS_1=0 check 'nothing fails' 0 'Result: PASS'
SAYS_1=$first SAYS_2=$good ENDS_2=0 check 'a test fails once' 0 'Result: PASS'
SAYS_1=$first SAYS_2=$second check 'other checks fail in the second run' 0 '3 passed, 0 failed'
SAYS_1=$first SAYS_2=$first check 'a check fails twice' 1 '2 passed, 1 failed'
SAYS_1=$first SAYS_2='ok 1 - a' ENDS_2=2 check 'the second run breaks off' 1 '2 passed, 1 failed'
SAYS_1='ok 1 - a' SAYS_2=$second check 'the first run broke off' 1 '2 passed, 1 failed'
SAYS_1=$first SAYS_2='ok 1 - a\nnot ok 2 - c\n1..2' \
	check 'checks have other names' 1 '2 passed, 1 failed'
SAYS_1='ok 1 - a\nnot ok 2 - b 12\n1..2' SAYS_2='ok 1 - a\nnot ok 2 - b 3\n1..2' \
	check 'a check fails twice with other numbers' 1 '2 passed, 1 failed'
SAYS_1=$first SAYS_2=$good ENDS_2=0 SURE='not ok 1 - sure\n1..1' \
	check 'one test fails twice, one once' 1 '1 passed, 2 failed'
echo "1..$number"
exit $bad
