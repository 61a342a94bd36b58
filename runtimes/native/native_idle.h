/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NATIVE_IDLE_H
#define BRAID_NATIVE_IDLE_H

#include "runtimes/idle.h"

/* Waits of well-known libraries and servers in C that mean nothing: what `idle` of its struct
 * runtime is. */
extern const struct idle_rule native_idle[];

#endif
