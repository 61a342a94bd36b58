#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""CRuby 3.3 to 4.0, every build at hand: see ruby_matrix.py."""

import ruby_matrix

ruby_matrix.run((3, 3), (4, 0), strip=[(3, 4)])
