#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""CRuby 2.7 to 3.0, every build at hand: see ruby_matrix.py."""

import ruby_matrix

ruby_matrix.run((2, 7), (3, 0))
