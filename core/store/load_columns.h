/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LOAD_COLUMNS_H
#define BRAID_LOAD_COLUMNS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/profile/recorded.h"

/* Divides the time from the first sample to the last, which must not be earlier, into columns. A
 * second, or ten seconds, have a whole number of columns. With @instants each column is 1 ns
 * wide. */
void load_columns__divide(uint64_t first_ns, uint64_t last_ns, bool instants,
			  struct recorded_columns *ret);

#endif
