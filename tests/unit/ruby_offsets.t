#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Rows of runtimes/ruby_versions.c against real builds of CRuby: with their debug information, or
# where there is none with machine code that reads some of the offsets.

n=0
failed=0
seen=

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

for tool in gdb python3 cc; do
	if ! command -v $tool >/dev/null; then
		echo "1..0 # SKIP needs $tool"
		exit 0
	fi
done

# The same checker next to a table with a wrong value in each row.
mkdir "$tmp/scripts" "$tmp/runtimes"
cp scripts/check-ruby-offsets "$tmp/scripts/"
sed 's/\(\.vm_objspace = [0-9]*\)/\10/' runtimes/ruby_versions.c >"$tmp/runtimes/ruby_versions.c"

check() { # PATH
	scripts/check-ruby-offsets "$1" >"$tmp/out" 2>&1
	status=$?
	sed 's/^/# /' "$tmp/out"
	[ $status -eq 2 ] && return
	result $status "offsets of $1"
	minor=$(sed -n 's/.*: \([0-9]*\.[0-9]*\)\.[0-9]*: .*/\1/p' "$tmp/out")
	case "$seen " in
	*" $minor "*) return ;;
	esac
	seen="$seen $minor"
	"$tmp/scripts/check-ruby-offsets" "$1" >"$tmp/out" 2>&1
	result $(($? != 1)) "a wrong offset would be found in $1"
}

cache=${XDG_CACHE_HOME:-$HOME/.cache}
roots=${BRAID_TEST_ROOTS:-$cache/braid-tests}
library='libruby*.so.[0-9].[0-9]'
# shellcheck disable=SC2086 # $library is to be expanded
[ -n "$BRAID_EVERY_INTERPRETER" ] || set -- /usr/lib/*/$library "$(command -v ruby)"
# shellcheck disable=SC2086
[ $# -ne 0 ] || set -- "$cache"/braid-rubies/*/bin/ruby "$cache"/braid-rubies/*/lib/$library \
	"$cache"/braid-rubies/*/usr/lib/*/$library "$roots"/*/usr/lib/*/$library \
	/usr/lib/*/$library /usr/local/lib/$library /opt/*/lib/$library /opt/*/bin/ruby \
	"$HOME"/.rbenv/versions/*/lib/$library "$HOME"/.rbenv/versions/*/bin/ruby \
	"$(command -v ruby)"
for file; do
	[ -f "$file" ] && check "$file"
done

if [ -z "$seen" ]; then
	echo "1..0 # SKIP no CRuby found that can be judged"
	exit 0
fi
for minor in $(sed -n '/\.major =/{N;s/.*= \([0-9]*\).*= \([0-9]*\).*/\1.\2/p}' \
	runtimes/ruby_versions.c | sort -u); do
	case "$seen " in
	*" $minor "*) ;;
	*)
		n=$((n + 1))
		echo "ok $n - offsets of $minor # SKIP no such build found"
		;;
	esac
done
echo "1..$n"
exit $failed
