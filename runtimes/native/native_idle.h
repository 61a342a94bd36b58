/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NATIVE_IDLE_H
#define BRAID_NATIVE_IDLE_H

#include "runtimes/idle.h"

/* Idle waits of well-known libraries and servers in C: member `idle` of runtime_native. */
extern const struct idle_rule native_idle[];

#endif
