#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings with wrong bytes and hostile names, through all readers; many more of them, some time:
tests/tools/damage -n 10000."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from tap import done, ok

COUNT = 60

result = subprocess.run(["tests/tools/damage", "-n", str(COUNT)], capture_output=True, text=True,
                        check=False)
ok(result.returncode == 0, f"{COUNT} damaged recordings", result.stdout, result.stderr)
done()
