#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Rows of runtimes/ruby/ruby_versions.c against real builds of CRuby: with their debug information, or
# where there is none with machine code that reads some of the offsets.

seen=
set -- scripts/check-ruby-offsets runtimes/ruby/ruby_versions.c vm_objspace
. tests/offsets.sh

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
	runtimes/ruby/ruby_versions.c | sort -u); do
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
