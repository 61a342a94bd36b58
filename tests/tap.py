# SPDX-License-Identifier: GPL-2.0-or-later
"""TAP for tests in Python, in all rooms. They run from the top directory."""

import collections
import os
import re
import sys

_counts = collections.Counter()


def ok(good, name, *details):
    """Details are printed of a test that fails."""
    _counts["tests"] += 1
    print("ok" if good else "not ok", _counts["tests"], "-", name)
    if not good:
        _counts["failed"] += 1
        print(f"# {sys.argv[0]}: not ok {_counts['tests']} - {name}", file=sys.stderr)
        for detail in details:
            for line in str(detail).splitlines()[:60]:
                print("#", line[:500], file=sys.stderr)  # prove shows it
    sys.stdout.flush()
    return good


def equal(got, want, name, *details):
    return ok(got == want, name, f"got  {got!r}", f"want {want!r}", *details)


def matches(pattern, text, name, *details):
    return ok(re.search(pattern, text, re.S), name, f"{text!r} does not match {pattern!r}",
              *details)


def skip(name, reason):
    _counts["tests"] += 1
    print(f"ok {_counts['tests']} - {name} # SKIP {reason}")


def done():
    print(f"1..{_counts['tests']}")
    sys.exit(_counts["failed"] != 0)


def skip_all(reason):
    if os.environ.get("BRAID_NO_SKIP"):
        print(f"Bail out! BRAID_NO_SKIP is set, but: {reason}")
        sys.exit(1)
    print(f"1..0 # SKIP {reason}")
    sys.exit(0)
