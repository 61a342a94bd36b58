#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""CPython, every build at hand: see python_matrix.py."""

import python_matrix

python_matrix.run([((3, 6), (3, 9)), ((3, 10), (3, 12)), ((3, 13), (3, 15))],
                  strip=[(3, 6), (3, 11)])
