/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DURATION_H
#define BRAID_DURATION_H

#include <stdint.h>

/* "250ns", "10us", "1.5ms", "2s" -> ns. -EINVAL: it is none, has no unit, or is too long. */
int duration__parse(const char *text, uint64_t *ret_ns);

#endif
