/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_WALKER_RECORDS_H
#define BRAID_WALKER_RECORDS_H

#include <stdint.h>

#include "core/kernel/kernel_half.h"

/* What walkers of the kernel half know of an address space: the records that `attach` of a runtime
 * has filled in. */

/* From its return on the walker may run there. -errno of the map, with the sentence. */
int walker_record__write(const struct kernel_half *half, const struct runtime *runtime,
			 uint32_t space, const void *record, struct err *err);

/* Idempotent; cannot fail. Of a runtime without records: nothing to do. */
void walker_record__delete(const struct kernel_half *half, const struct runtime *runtime,
			   uint32_t space);

#endif
