/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_SAMPLE_RATE_H
#define BRAID_SAMPLE_RATE_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"

/* The kernel's limit of samples. An event with too many samples within one tick of the kernel is
 * stopped until the next tick. Nothing reports this to the event's owner, and the time until then
 * has no samples. The limit is kernel.perf_event_max_sample_rate divided by the ticks of a second.
 * It applies to events with a period, too. */

#define SAMPLE_RATE_SETTING "kernel.perf_event_max_sample_rate"

/* Returns the setting; 0: unknown. */
uint64_t sample_rate__limit(void);

/* Returns the highest frequency in Hz at which a clock event with a varied period (varied_clock.h)
 * is never stopped. @limit: the setting; @tick_ns: length of the kernel's tick. */
uint32_t sample_rate__highest(uint64_t limit, uint64_t tick_ns);

/* Returns 0, or -EINVAL if the kernel would stop a clock event of this mean period. */
int sample_rate__check(uint64_t period_ns, struct err *err);

/* Returns the fraction, 0 to 1, of the time since their start in which the kernel stopped the clock
 * events @fds (cpu_clock.h). */
double sample_rate__stopped(const int *fds, size_t n);

#endif
