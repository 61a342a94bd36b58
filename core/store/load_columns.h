/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_LOAD_COLUMNS_H
#define BRAID_LOAD_COLUMNS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/profile/recorded.h"

/* Divides the time from the first sample to the last, which is not before it: into columns that a
 * second, or ten, have a whole number of; `instants`: of 1 ns. */
void load_columns__divide(uint64_t first_ns, uint64_t last_ns, bool instants,
			  struct recorded_columns *ret);

#endif
