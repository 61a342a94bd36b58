#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""CPython 3.6 to 3.9, every build at hand: see python_matrix.py."""

import python_matrix

python_matrix.run(python_matrix.OLDEST, (3, 9), strip=[(3, 6)])
