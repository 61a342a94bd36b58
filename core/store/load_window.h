/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LOAD_WINDOW_H
#define BRAID_LOAD_WINDOW_H

#include <stdint.h>

#include "core/base/err.h"

/* When a recording was made: CLOCK_REALTIME in ns, as it was at its beginning; and what that was
 * more than the clock of its samples. */
struct load_window {
	int64_t begin_ns, end_ns;
	int64_t offset_ns;
	double frequency_hz;
};

/* Looks at a recording's titles; at its samples only in one that was made before these had the
 * times. Errors as load__profile. */
int load_window__of(const char *path, struct load_window *ret, struct err *err);

#endif
