/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DURATION_H
#define BRAID_DURATION_H

#include <stdint.h>

/* Converts "250ns", "10us", "1.5ms" or "2s" to ns. Returns 0, or -EINVAL if @text is not a
 * duration, has no unit, or exceeds one day. */
int duration__parse(const char *text, uint64_t *ret_ns);

#endif
