#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""CPython 3.13 and later, every build at hand: see python_matrix.py."""

import python_matrix

python_matrix.run((3, 13), python_matrix.NEWEST)
