#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""CPython 3.10 to 3.12, every build at hand: see python_matrix.py."""

import python_matrix

python_matrix.run((3, 10), (3, 12), strip=[(3, 11)])
