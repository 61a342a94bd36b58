/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LOAD_EXTENT_H
#define BRAID_LOAD_EXTENT_H

#include <stdint.h>

#include "core/base/err.h"

/* The extent of a recording in ns of CLOCK_REALTIME, as set at its beginning. `offset_ns` is the
 * difference of CLOCK_REALTIME and the clock of the samples. */
struct load_extent {
	int64_t begin_ns, end_ns;
	int64_t offset_ns;
	double frequency_hz;
};

/* Reads a recording's metadata. Reads its samples only if the recording predates the times in the
 * metadata. Errors are those of load__profile(). */
int load_extent__of(const char *path, struct load_extent *ret, struct err *err);

#endif
