#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""HotSpot 17 and later, every JVM at hand, without any flag: see java_matrix.py."""

import java_matrix as matrix
import python_matrix


def make_targets(java):
    for script in java.scripts():
        if script not in matrix.ELSEWHERE:
            yield matrix.Target(java, script, options=matrix.WARM)


builds, skipped = matrix.begin()
matrix.check_all(builds, make_targets)
python_matrix.print_skipped(skipped)
matrix.lib.done()
