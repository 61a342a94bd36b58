/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_REGISTRY_H
#define BRAID_REGISTRY_H

#include "runtimes/runtime.h"

/* All runtimes, NULL-terminated. Only main and tests use this list, and pass it down. */
extern const struct runtime *const runtimes[];

#endif
