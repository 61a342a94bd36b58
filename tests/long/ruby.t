#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""CRuby 3.1 to 3.2, every build at hand: see ruby_matrix.py."""

import ruby_matrix

ruby_matrix.run((3, 1), (3, 2), strip=[(3, 1)])
