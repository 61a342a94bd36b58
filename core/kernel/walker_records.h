/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_WALKER_RECORDS_H
#define BRAID_WALKER_RECORDS_H

#include <stdint.h>

#include "core/kernel/kernel_half.h"

/* The records of an address space that the kernel half's walkers read. `attach` of a runtime fills
 * them in. */

/* Writes a record. The walker may run in @space from then on. Returns 0, or -errno of the map with
 * a message. */
int walker_record__write(const struct kernel_half *half, const struct runtime *runtime,
			 uint32_t space, const void *record, struct err *err);

/* Deletes the record, if the runtime has records. Idempotent; cannot fail. */
void walker_record__delete(const struct kernel_half *half, const struct runtime *runtime,
			   uint32_t space);

#endif
