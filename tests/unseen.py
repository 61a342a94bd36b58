# SPDX-License-Identifier: GPL-2.0-or-later
"""What must not reach a terminal or a page, by the Unicode data that Python has; and names that try."""

import re
import sys
import unicodedata

# One of each kind that core/base/escape.c replaces, and what follows and precedes ranges of it.
HOSTILE = ("\x01\x1b[31mred\x07\r\n\t\x7f\x80\x85\x9b2J\x9f\xa0\xad \u034f\u061c\u115f\u180b \u200a\u200b"
           "\u200d\u200e\u200f\u2010 \u2027\u2028\u2029\u202a\u202e\u202f \u205f\u2060\u2064\u2066\u2069"
           "\u206f\u2070 \u3164\ufdd0\ufe0f\ufeff\uffa0\ufff9\ufffe \U0001bca0\U0001d173\U000e0001"
           "\U000e0041\U000e0100\U0001f525")

# Of the category "other letter" or "nonspacing mark", and yet without a shape of their own.
BLANK = ("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0"
         + "".join(map(chr, [*range(0xfe00, 0xfe10), *range(0xe0100, 0xe01f0)])))


def is_unseen(char):
    code = ord(char)
    return (unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp") or char in BLANK
            or code & 0xfffe == 0xfffe or 0xfdd0 <= code <= 0xfdef)


def _pattern():
    """All of them as one regular expression, as pages are long."""
    ranges, start = [], None
    for code in range(sys.maxunicode + 2):
        unseen = code <= sys.maxunicode and is_unseen(chr(code))
        if unseen and start is None:
            start = code
        elif not unseen and start is not None:
            ranges.append(f"\\U{start:08x}-\\U{code - 1:08x}")
            start = None
    return re.compile("[" + "".join(ranges) + "]")


_UNSEEN = _pattern()


def found(data, allowed="\n"):
    """The first character in bytes that should not be there, with what is around it; or None."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        return f"no UTF-8: {data[error.start - 20:error.end + 20]!r}"
    for match in _UNSEEN.finditer(text):
        if match.group() not in allowed:
            at = match.start()
            return f"U+{ord(match.group()):04X} in {text[max(at - 20, 0):at + 20]!r}"
    return None
