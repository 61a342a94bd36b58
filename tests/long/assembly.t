#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules that were made of machine code, at each instruction that real assembly executes: programs are
stepped through (tests/tools/step_frames.c), and a call has just put the return address where the
frame begins. None may be wrong; how many have no rule is told."""

import glob
import os
import re
import subprocess

import lib

STEPS = 300_000
FFMPEG = ["ffmpeg", "-v", "error", "-threads", "1", "-f", "lavfi", "-i", "testsrc2=s=640x360:d=900"]
ENCODE = ["-threads", "1", "-f", "null", "-"]
GMPY = """
import gmpy2
x = gmpy2.mpz(3) ** 20000
while True:
    y = x * x
    z = y // (x + 1)
    gmpy2.isqrt(y), gmpy2.powmod(x, 12345, z), gmpy2.gcd(x, z)
"""
NUMPY = """
import numpy
a = numpy.random.rand(96, 96)
b, c = a.astype("f"), a + 1j
while True:
    a @ a, b @ b, c @ c, a @ a[0], numpy.linalg.inv(a), numpy.dot(a[0], a[1])
"""
OPENBLAS = "openblas-pthread/libopenblas.so.0"
CORES = "Haswell", "SkylakeX", "Nehalem", "Sandybridge", "Prescott", "Barcelona"
PICTURE = lib.path("picture.ppm")
CASES = [ # library, seconds at full speed, instructions with a rule at least, command
    ("libgmp.so.10", 1, 10_000, ["/usr/bin/python3", "-c", GMPY]),
    ("libx264.so.*", 2, 1_000, [*FFMPEG, "-c:v", "libx264", "-x264-params", "threads=1:lookahead_threads=1", *ENCODE]),
    ("libvpx.so.*", 2, 1_000, [*FFMPEG, "-c:v", "libvpx-vp9", *ENCODE]),
    ("libjpeg.so.62", 0.05, 1_000, ["sh", "-c", f"exec cjpeg -outfile /dev/null {PICTURE}"]),
    ("libavcodec.so.*", 2, 1_000, [*FFMPEG, "-c:v", "mpeg4", *ENCODE]),
    *((OPENBLAS, 3, 1_000, ["env", "OPENBLAS_NUM_THREADS=1", f"OPENBLAS_CORETYPE={core}", "/usr/bin/python3", "-c", NUMPY])
      for core in CORES),
]


def make_picture():
    with open(PICTURE, "wb") as file:
        file.write(b"P6 4000 4000 255\n" + os.urandom(3 * 4000) * 4000)


def library(name):
    """The file of that name, which is no link."""
    found = [path for path in glob.glob("/usr/lib/x86_64-linux-gnu/" + name) if os.path.exists(path)]
    return os.path.realpath(found[0]) if found else None


def check(name, skip_s, least, command):
    path = library(name)
    run = path and subprocess.run([f"{lib.OUTPUT}/tests/tools/step_frames", path, str(STEPS), str(skip_s), *command],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    said = run.stdout.decode(errors="replace") if path else ""
    told = re.search(r"(\d+) right, (\d+) without a rule, (\d+) wrong", said)
    if not told or told.group(1, 2, 3) == ("0", "0", "0"):
        lib.skip(name, "not here, or none of its assembly was executed")
        return
    right, without, wrong = map(int, told.groups())
    lib.ok(not wrong and right >= least, f"{name}: frames begin where calls were made", said)
    print(f"# {name}: {right} instructions right, {without} without a rule, {wrong} wrong")


make_picture()
for case in CASES:
    check(*case)
lib.done()
