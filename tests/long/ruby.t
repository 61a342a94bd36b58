#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""CRuby, every build at hand: see ruby_matrix.py."""

import ruby_matrix

ruby_matrix.run([((2, 7), (3, 0)), ((3, 1), (3, 2)), ((3, 3), (4, 0))],
                strip=[(3, 1), (3, 4)])
