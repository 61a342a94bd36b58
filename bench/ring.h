/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_RING_H
#define BRAID_RING_H

#include <stdint.h>

#include "bench/figures.h"
#include "core/err.h"

/* What a record of this size costs in the ring buffer: the kernel half that writes it, and braid
 * that takes it out again and looks at none of it. Nanoseconds. -EPERM, ... */
int ring_cost__measure(uint32_t record_bytes, unsigned rounds, struct figure *ret_write,
		       struct figure *ret_read, struct err *err);

#endif
